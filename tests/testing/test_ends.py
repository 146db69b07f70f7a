"""Ends of connections that tests hold."""

from typing import Any

import pytest

from dragoman.testing.ends import MemoryEnd, pipes
from dragoman.transports.memory import Client
from dragoman.wire.link import Link


class Echo:
    """Says every line again, and leaves at the end."""

    max_line = 1024
    limit_counts_newline = False
    max_pending = 0

    def __init__(self, link: Link) -> None:
        self._link = link

    def hear(self, lines: list[bytes]) -> None:
        for line in lines:
            self._link.send(line)

    def overlong(self, size: int) -> None:
        self._link.send(b"too long")

    def ended(self) -> None:
        self._link.close()

    def lost(self) -> None:
        return None


@pytest.mark.parametrize("kind", ["memory", "pipes"])
async def test_ends_carry_lines_and_tell_the_end(kind: str) -> None:
    end: Any = MemoryEnd(Client(Echo)) if kind == "memory" else await pipes(Echo)
    await end.send(b"one\ntw")
    await end.send(b"o\n")
    assert [await end.receive(60), await end.receive(60)] == [b"one", b"two"]
    with pytest.raises(TimeoutError):
        await end.receive(0.01)
    await end.end()
    with pytest.raises(EOFError):
        await end.receive(60)
    await end.close()
