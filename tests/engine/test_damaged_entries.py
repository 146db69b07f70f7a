"""One entry that cannot be read hides no other, and is told."""

from collections.abc import Sequence

import msgspec
import pytest
from tests.engine.tape import ME

from dragoman.engine import events as ev
from dragoman.engine.content import Text
from dragoman.engine.faults import StoreFailed
from dragoman.engine.opening import OpenSpec
from dragoman.engine.ports import Entry
from dragoman.store.memory import MemoryStore
from dragoman.testing.host import host_of, memory_door
from dragoman.testing.script import Scripted, say

RUBBISH = [b"", b"{", b"null", b"\xff", b'{"type":"from_the_future"}', b'{"type":"renamed"}']


class Damaged(MemoryStore):
    """A store in which one entry was written over."""

    at, data = 0, b""

    def _seen(self, page: Sequence[Entry]) -> list[Entry]:
        return [
            msgspec.structs.replace(e, body=self.data) if e.gseq == self.at else e for e in page
        ]

    async def entries(
        self, session: str, after: int = 0, limit: int | None = None
    ) -> Sequence[Entry]:
        return self._seen(await super().entries(session, after, limit))

    async def entries_since(self, gseq: int, limit: int) -> Sequence[Entry]:
        return self._seen(await super().entries_since(gseq, limit))


@pytest.mark.parametrize("data", RUBBISH)
async def test_the_others_are_read_and_the_place_is_kept(data: bytes) -> None:
    store = Damaged()
    door = memory_door(Scripted([say("ok")] * 2), store=store)
    host, told = host_of(door), []
    host.on_trouble = lambda what, error, **facts: told.append((what, facts))
    names = [(await door.open(OpenSpec(), ME)).id for _ in range(2)]
    for name in names:
        await (await host.prompt(name, (Text("hi"),), ME)).done
    every = await host.read_all(0, 1_000)
    store.at, store.data = every[2].gseq, data
    session = every[2].session
    page = await host.read_all(0, 1_000)
    assert [one.gseq for one in page] == [one.gseq for one in every]
    body = page[2].body
    assert isinstance(body, ev.Noted) and body.level == "error" and "damaged" in body.text
    assert [one.body for one in page if one is not page[2]] == [
        one.body for one in every if one is not every[2]
    ]
    assert ("an entry cannot be read", {"session": session, "seq": every[2].seq}) in told
    # Page by page, as those read who keep a place.
    at, seen = 0, 0
    while part := await host.read_all(at, 1):
        at, seen = part[-1].gseq, seen + 1
    assert seen == len(every)
    assert len(await host.read(session, 0, 1_000)) == sum(e.session == session for e in every)
    # It is not gone on with as if nothing had happened.
    await host.close(session)
    with pytest.raises(StoreFailed, match="cannot be read"):
        await host.get(session)
    other = next(name for name in names if name != session)
    await host.close(other)
    await host.get(other)
    await host.stop()
