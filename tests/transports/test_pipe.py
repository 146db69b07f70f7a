"""Named pipes, as far as they can be tried without Windows."""

import asyncio
from typing import Any

import pytest

from dragoman.transports import pipe


def hearer(link: Any) -> Any:
    raise AssertionError("nobody connects")


async def test_pipe_needs_the_loop_of_windows_and_closes_what_it_served(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(OSError, match="proactor"):
        await pipe.listen(r"\\.\pipe\x", hearer)
    closed: list[str] = []

    class Server:
        def close(self) -> None:
            closed.append("closed")

    async def serve(make: Any, path: str) -> list[Server]:
        assert make() is not None
        return [Server()]

    loop = asyncio.get_running_loop()
    monkeypatch.setattr(loop, "start_serving_pipe", serve, raising=False)
    listener = await pipe.listen(r"\\.\pipe\x", hearer)
    await listener.close()
    await listener.close()
    assert closed == ["closed"] and listener.path == r"\\.\pipe\x"
