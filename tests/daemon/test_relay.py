"""What a relay does about the ways that it has, and about hosts that go away again and again."""

import asyncio
from typing import Any

import pytest

from dragoman.stdio import relay
from dragoman.stdio.relay import Head, Open, Relay


class Path:
    """A way that counts who comes and goes (`relay.Way`)."""

    half_closes = True

    def __init__(self, label: str) -> None:
        self.label = label
        self.tried = asyncio.Event()

    async def connect(self, open: Any, name: str) -> Any:
        self.tried.set()
        raise relay.NotThere("nobody listens")

    def busy(self) -> bool:
        return False

    async def close(self) -> None:
        raise AssertionError("it was to stay")


async def looked(first: Path, spare: Path) -> bool:
    """Whether a relay on its spare way looks for the first one."""
    one = Relay("test", first, spare=spare, patience=1.0)
    one.begin_with(spare)
    one._ready = True
    one._look()
    try:
        async with asyncio.timeout(0.2):
            await first.tried.wait()
    except TimeoutError:
        return False
    finally:
        one.leave()
    return True


async def test_a_host_that_is_the_only_way_is_not_torn_down(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(relay, "_LOOK_EVERY", 0.001)
    alone = Path("a host of its own")
    assert not await looked(alone, alone)
    assert await looked(Path("the daemon"), alone)


@pytest.mark.parametrize(
    ("lasted", "to_blame"),
    [
        ((0.1, 0.1, 0.1), True),  # seconds from each send to the end of its connection
        ((0.1, 0.1), False),
        ((9.0, 9.0, 0.1), False),  # a host worked on it, and then hosts were ended
        ((0.1, 0.1, 9.0, 0.1, 0.1), False),
        ((9.0, 0.1, 0.1, 0.1), True),
    ],
)
def test_a_request_is_to_blame_only_when_it_ends_connections_at_once_in_a_row(
    lasted: tuple[float, ...], to_blame: bool
) -> None:
    one = Open(b"", Head())
    now, found = 100.0, False
    for seconds in lasted:
        one.sent = now
        now += seconds
        found = one.lost(now)
    assert found is to_blame
