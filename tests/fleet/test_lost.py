"""A session that its node lost: whoever waits there hears how its turns end elsewhere."""

import asyncio
from typing import Any

import pytest
from tests.fleet.making import Fleet, Member, until

from dragoman.engine import events as ev
from dragoman.engine.events import Who
from dragoman.engine.faults import StaleEpoch, WrongState
from dragoman.providers.scripted import Call, Hang, Say, Scripted, Turn
from dragoman.testing.host import EchoTool

ANN, BOB = Who("acp", name="ann"), Who("zot", name="bob")


def script(*turns: Turn) -> Scripted:
    return Scripted(turns or (Turn((Say("hello"),)),), loop=True)


def pause(member: Member) -> None:
    """Nothing of it is heard from now on."""
    for task in member.node._tasks:
        task.cancel()


def revive(member: Member) -> None:
    member.node._tasks = [
        asyncio.create_task(work) for work in (member.node._keep(), member.node._act())
    ]


async def ended(member: Member, session: str) -> list[ev.TurnEnded]:
    page = await member.door.read(session, 0, 500)
    return [event.body for event in page if isinstance(event.body, ev.TurnEnded)]


async def test_who_waits_at_a_node_that_was_paused_hears_how_its_turns_end(fleet: Fleet) -> None:
    a = await fleet.join("a", script(Turn((Say("half"), Hang()))))
    session = await a.open()
    runs = await a.say(session, "go", by=ANN)
    waits = await a.say(session, "and on", by=ANN, keep=True)
    await asyncio.wait_for(runs.started, 10)
    pause(a)
    b = await fleet.join("b", script(Turn((Say("whole"),)), Turn((Say("more"),))))
    await until(lambda: session in b.host.live)
    revive(a)
    found = [await asyncio.wait_for(work.done, 10) for work in (runs, waits)]
    assert [(one.outcome, one.text) for one in found] == [
        ("completed", "whole"),
        ("completed", "more"),
    ]
    assert [one.turn for one in await ended(b, session)] == [runs.turn, waits.turn]


async def test_what_was_not_acknowledged_is_refused_when_the_session_is_lost(fleet: Fleet) -> None:
    a = await fleet.join("a", script(Turn((Hang(),))))
    session = await a.open()
    await (await a.say(session, "go", by=ANN)).started
    waits = await a.say(session, "and on", by=ANN)
    a.host.live[session].ledger.lose()
    with pytest.raises(StaleEpoch):
        await asyncio.wait_for(waits.done, 30)


async def test_prompts_behind_a_question_are_followed_too(fleet: Fleet) -> None:
    turns = Turn((Call("echo", {"text": "x"}),)), Turn((Say("done"),))
    a = await fleet.join("a", script(*turns), [EchoTool()], mode="supervised")
    session = await a.open()
    await a.say(session, "go", by=ANN)
    (row,) = await until(a.door.asks)
    await a.leave()  # the question is held by nobody
    b = await fleet.join("b", script(), [EchoTool()], mode="supervised")
    behind = await b.say(session, "and on", by=BOB, keep=True)
    refused = await b.say(session, "and so on", by=BOB)
    assert b.host.live[session].inbox.task is None
    pause(b)
    c = await fleet.join("c", script(), [EchoTool()], mode="supervised")
    await asyncio.sleep(1.1)  # its lease lapses, by the clock of the database
    await c.door.answer(row.ask.id, "allow", BOB)
    revive(b)
    assert (await asyncio.wait_for(behind.done, 10)).outcome == "completed"
    with pytest.raises(StaleEpoch):
        await asyncio.wait_for(refused.done, 30)


async def test_a_lost_session_writes_no_end_of_its_turn(fleet: Fleet) -> None:
    """Also while nobody else has taken it: its epoch would still hold."""
    a = await fleet.join("a", script(Turn((Hang(),)), Turn((Say("again"),))))
    session = await a.open()
    work = await a.say(session, "go", by=ANN)
    await asyncio.wait_for(work.started, 10)
    a.node._give_up("a test")
    finished = await asyncio.wait_for(work.done, 10)  # taken up again by the same node
    assert (finished.outcome, finished.text) == ("completed", "again")
    assert [one.outcome for one in await ended(a, session)] == ["completed"]


async def test_a_key_that_the_owner_knows_is_known_on_every_node(
    fleet: Fleet, monkeypatch: Any
) -> None:
    a, b = await fleet.join("a", script()), await fleet.join("b", Scripted([]))
    session = await a.open()
    await b.door.load(session)
    monkeypatch.setattr(b.node.following, "look", lambda: asyncio.sleep(0))  # b knows nothing yet
    first = await a.say(session, "go", by=ANN, key="k")
    with pytest.raises(WrongState) as caught:
        await b.say(session, "go", by=BOB, key="k", keep=True)
    assert caught.value.data["turn"] == first.turn
    again = await b.say(session, "go", by=BOB, key="k")  # without an acknowledgement to wait for
    with pytest.raises(WrongState):
        await asyncio.wait_for(again.done, 10)
    await asyncio.wait_for(first.done, 10)
    assert len(await ended(a, session)) == 1
