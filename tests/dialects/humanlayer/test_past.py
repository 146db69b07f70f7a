"""What is read again says what was told: of sessions that went on since, that left memory, that a
process had which was killed."""

import pytest
from tests.dialects.humanlayer.desk import Client, Refused, make

from dragoman.dialects.humanlayer import past
from dragoman.engine.content import Text
from dragoman.engine.events import Who
from dragoman.engine.host import OpenSpec
from dragoman.store.sqlite import open_store
from dragoman.testing.host import host_of
from dragoman.testing.script import fail, turn

ME = Who("test", id="t")
SCRIPT = [
    "one",
    "two",
    turn(fail("bad_request")),
    "four",
    turn(fail("bad_request")),
    "six",
    "a",
    "b",
]
GO = (Text("go"),)
STATUS = "session_status_changed"


async def lived(door, desk):
    """A launched session, its child, and one of another protocol; all as a subscriber heard it."""
    watcher, client = Client(desk), Client(desk)
    await watcher.subscribe()
    launched = await client.call("launchSession", query="x")
    await door.idle(launched["session_id"])
    info = await door.open(OpenSpec(cwd="/"), ME)
    for _ in range(2):
        await (await door.prompt(info.id, GO, ME)).done
        await door.rename(info.id, "a title", ME)
    await (await door.prompt(info.id, GO, ME)).done
    await (await door.prompt(info.id, GO, ME)).done
    await (await door.prompt(info.id, GO, ME)).done
    await client.call("continueSession", session_id=launched["session_id"], query="y")
    await door.rename(info.id, "the end", ME)
    events = []
    while not events or events[-1]["data"].get("title") != "the end":
        events.append(await watcher.event())
    watcher.wire.drop()
    return info.id, launched, events


async def again(desk, events, **params):
    client = Client(desk)
    await client.subscribe(**params)
    found = [await client.event() for _ in events]
    client.wire.drop()
    return found


@pytest.mark.parametrize("how", ["same", "closed", "killed"])
async def test_every_event_says_the_same_whenever_it_is_read(how, tmp_path):
    store, _ = open_store(tmp_path / "s.db")
    door, desk = make(SCRIPT, store=store)
    session, launched, live = await lived(door, desk)
    words = [
        (one["data"]["old_status"], one["data"]["new_status"])
        for one in live
        if one["data"]["session_id"] == session and one["type"] == STATUS
        if one["data"].get("old_status") != one["data"].get("new_status")
    ]
    assert words == [
        ("draft", "running"), ("running", "completed"), ("completed", "running"),
        ("running", "completed"), ("completed", "running"), ("running", "failed"),
        ("failed", "running"), ("running", "completed"), ("completed", "running"),
        ("running", "failed"),
    ]  # fmt: skip
    assert all(one["data"]["run_id"] for one in live)
    if how == "closed":
        for one in tuple(door.lives()):
            await door.close(one.id)
    elif how == "killed":
        await store.close()
        store, _ = open_store(tmp_path / "s.db")
        door, desk = make([], store=store)
        host_of(door).owner = "another life"
    assert await again(desk, live, since=live[0]["seq"] - 1) == live
    for place in range(1, len(live), 3):  # whichever came last
        _, fresh = make([], store=store) if how == "killed" else (door, desk)
        rest = live[place:]
        assert await again(fresh, rest, since=live[place - 1]["seq"]) == rest
    own = [one for one in live if one["data"]["run_id"] == launched["run_id"]]
    assert own and await again(desk, own, since=own[0]["seq"] - 1, run_id=launched["run_id"]) == own
    await store.close()


async def test_who_comes_between_two_turns_is_told_how_the_one_before_ended():
    door, desk = make(["one", turn(fail("bad_request")), "three"])
    info = await door.open(OpenSpec(cwd="/"), ME)
    await (await door.prompt(info.id, GO, ME)).done
    early = Client(desk)
    await early.subscribe()
    await (await door.prompt(info.id, GO, ME)).done
    early.wire.drop()
    late = Client(desk)
    await late.subscribe(event_types=[STATUS])
    await (await door.prompt(info.id, GO, ME)).done
    first = (await late.event())["data"]
    assert (first["old_status"], first["new_status"]) == ("failed", "running")


async def test_what_is_remembered_is_bounded(monkeypatch):
    monkeypatch.setattr(past, "_MOST", 4)
    door, desk = make(["a"] * 12)
    for _ in range(6):
        info = await door.open(OpenSpec(cwd="/"), ME)
        await (await door.prompt(info.id, GO, ME)).done
    client = Client(desk)
    await client.subscribe(since=0, event_types=[STATUS])
    ends = 0
    while ends < 6:
        data = (await client.event())["data"]
        ends += data["new_status"] == "completed"
        assert data["old_status"] in ("draft", "running") and data["run_id"]
    kept = desk.past
    assert len(kept._about) <= 4 and len(kept._rests) <= 4 and len(kept._last) <= 4


async def test_a_session_deleted_while_it_is_read_keeps_nobody_waiting(monkeypatch):
    door, desk = make(["a"])
    info = await door.open(OpenSpec(cwd="/"), ME)
    await (await door.prompt(info.id, GO, ME)).done
    page = await door.history(info.id)
    await door.delete(info.id)
    await desk.past.look([one for one in page if one.seq > 2])
    assert desk.past.about(info.id).run == info.id
    with pytest.raises(Refused):
        await Client(desk).call("getSessionState", session_id=info.id)
