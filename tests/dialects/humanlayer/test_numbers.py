"""The numbers of events: each has its own, and coming back with one leaves no gap."""

import asyncio
import json

import pytest
from tests.dialects.humanlayer.desk import Client, Refused, make, pending

from dragoman.dialects.humanlayer.subscription import BUFFER
from dragoman.engine import events as ev
from dragoman.engine.content import Text
from dragoman.engine.events import Who
from dragoman.engine.host import OpenSpec
from dragoman.engine.traits import Waiver
from dragoman.store.memory import MemoryStore
from dragoman.store.sqlite import open_store
from dragoman.testing.host import host_of
from dragoman.testing.script import call, hang, think, turn

ME = Who("test", id="t")
SCRIPT = [turn(think("hm"), "I look.", call("echo", text="a"), call("echo", text="b")), "done"]
FILTERS = [
    {},
    {"event_types": ["conversation_updated"]},
    {"event_types": ["session_status_changed"]},
]


async def heard(desk, count, **params):
    """The first events of a new subscription."""
    client = Client(desk)
    await client.subscribe(**params)
    events = [await client.event() for _ in range(count)]
    client.wire.drop()
    return events


async def told(store):
    """One session from its launch to its end, as a subscriber heard it."""
    door, desk = make(SCRIPT, store=store)
    watcher = Client(desk)
    await watcher.subscribe()
    launched = await Client(desk).call(
        "launchSession", query="x", dangerously_skip_permissions=True
    )
    await door.idle(launched["session_id"])
    events = []
    while not events or events[-1]["data"].get("new_status") != "completed":
        events.append(await watcher.event())
    return door, desk, events


@pytest.mark.parametrize("params", FILTERS)
async def test_a_client_cut_off_after_any_event_gets_exactly_the_rest(params):
    _, desk, live = await told(MemoryStore())
    kinds = params.get("event_types") or [event["type"] for event in live]
    wanted = [event for event in live if event["type"] in kinds]
    numbers = [event["seq"] for event in live]
    assert numbers == sorted(set(numbers))  # each its own, growing
    spoke = [event["seq"] for event in live if event["data"].get("event_type") == "tool_call"]
    assert len(spoke) == 2
    for seen in live:  # also one that the filter of the new subscription would not have told
        rest = [event for event in wanted if event["seq"] > seen["seq"]]
        assert await heard(desk, len(rest), since=seen["seq"], **params) == rest
    assert await heard(desk, len(wanted), since=0, **params) == wanted


async def test_nothing_comes_twice_when_all_was_seen():
    door, desk, live = await told(MemoryStore())
    client = Client(desk)
    await client.subscribe(since=live[-1]["seq"])
    await door.rename(live[0]["data"]["session_id"], "later", ME)
    assert (await client.event())["data"]["title"] == "later"


async def test_the_numbers_are_the_same_after_a_restart(tmp_path):
    store, _ = open_store(tmp_path / "s.db")
    _, _, live = await told(store)
    await store.close()
    store, _ = open_store(tmp_path / "s.db")
    _, desk = make(store=store)
    for place, seen in enumerate(live):
        rest = await heard(desk, len(live) - place - 1, since=seen["seq"])
        facts = [(event["seq"], event["type"]) for event in rest]
        assert facts == [(event["seq"], event["type"]) for event in live[place + 1 :]]
    await store.close()


async def test_what_was_dropped_in_the_middle_of_one_model_call_can_be_had_again():
    door, desk = make()
    info = await door.open(OpenSpec(cwd="/"), ME)
    client = Client(desk)
    await client.subscribe()
    client.wire.wire.stuck = True
    for _ in range(1_000):
        await door.rename(info.id, "x" * 400, ME)
        await asyncio.sleep(0)  # the store in memory never waits: let the connection be written
        if client.wire.pump.paused:
            break
    session = await host_of(door).get(info.id)
    count = BUFFER * 2  # all from one kept event, so the cut is inside of it
    said = tuple(Text(str(place)) for place in range(count))
    await session.ledger.put(ev.Spoke("t", 1, said, "end_turn"))
    client.wire.wire.take()
    await asyncio.sleep(0)
    got = [json.loads(line)["result"]["event"] for line in client.wire.received()]
    notice = got.pop()
    assert notice["type"] == "events_dropped" and "seq" not in notice
    seen = [event["data"]["content"] for event in got if "content" in event["data"]]
    assert 0 < len(seen) < count and notice["data"]["count"] == count - len(seen)
    rest = await heard(desk, count - len(seen), since=got[-1]["seq"])
    seen += [event["data"]["content"] for event in rest]
    assert seen == [str(place) for place in range(count)]


async def test_numbers_grow_when_many_sessions_write_at_once(tmp_path):
    store, _ = open_store(tmp_path / "s.db")
    door, desk = make(store=store)
    infos = [await door.open(OpenSpec(cwd="/"), ME) for _ in range(20)]
    client = Client(desk)
    await client.subscribe()
    renamed = (door.rename(info.id, str(n), ME) for n in range(10) for info in infos)
    await asyncio.gather(*renamed)
    numbers = [(await client.event())["seq"] for _ in range(200)]
    assert numbers == sorted(set(numbers))
    await store.close()


@pytest.mark.parametrize("since", [-1, 10**30, 1.5, True, "4"])
async def test_a_number_that_was_never_given_is_refused(since):
    _, desk, _ = await told(MemoryStore())
    client = Client(desk)
    with pytest.raises(Refused) as refused:
        await client.subscribe(since=since)
    assert refused.value.args[0] == -32602
    assert (await client.call("health"))["status"] == "ok"


@pytest.mark.parametrize("left_ms", [50, -5_000])
async def test_the_end_of_skipped_permissions_is_told_after_a_restart(left_ms, tmp_path):
    store, _ = open_store(tmp_path / "s.db")
    door, desk = make(store=store)
    info = await door.open(OpenSpec(cwd="/"), ME)
    until = door.now_ms() + left_ms
    await door.keep(info.id, Waiver, ME, everything=True, until=until)
    await store.close()
    store, _ = open_store(tmp_path / "s.db")
    door, desk = make(store=store)
    client = Client(desk)
    await client.subscribe()
    told = (await client.event("session_settings_changed"))["data"]
    assert (told["session_id"], told["reason"]) == (info.id, "expired")
    assert "waiver" not in (await door.info(info.id)).extra
    await desk.close()
    await store.close()


async def test_a_new_approval_counts_what_waits_outside_of_the_memory(tmp_path):
    store, _ = open_store(tmp_path / "s.db")
    other, _ = open_store(tmp_path / "s.db")
    _, elsewhere = make([turn(call("echo", text="a"))], store=other)
    watcher = Client(elsewhere)
    await watcher.subscribe(event_types=["new_approval"])
    await Client(elsewhere).call("launchSession", query="x")
    assert (await watcher.event())["data"]["total"] == 1
    _, desk = make([turn(call("echo", text="b"))], store=store)
    watcher, client = Client(desk), Client(desk)
    await watcher.subscribe(event_types=["new_approval"])
    assert len((await client.call("fetchApprovals"))["approvals"]) == 1
    await client.call("launchSession", query="x")
    assert (await watcher.event())["data"]["total"] == 2
    for one, kept in ((elsewhere, other), (desk, store)):
        await host_of(one.door).stop(0.0)
        await kept.close()


async def test_a_new_approval_says_how_many_wait():
    # Each session plays the whole script: after its one question it asks nothing more.
    _, desk = make([turn(call("echo", text="a")), hang()])
    watcher, client = Client(desk), Client(desk)
    await watcher.subscribe(event_types=["new_approval"])
    counts = []
    for _ in range(2):
        await client.call("launchSession", query="x")
        data = (await watcher.event())["data"]
        counts.append((data["count"], data["total"]))
    assert counts == [(1, 1), (1, 2)]
    first = await pending(client)
    await client.call("sendDecision", approval_id=first["id"], decision="deny", comment="no")
    await client.call("createApproval", run_id=first["run_id"], tool_name="x", tool_input={})
    assert (await watcher.event())["data"]["total"] == 2
