"""Two nodes on one database: each session has one owner, and can be used from both."""

import asyncio
from typing import Any

import pytest
from tests.fleet.making import LEASE, Fleet, Member, until

from dragoman.engine import events as ev
from dragoman.engine.content import Text
from dragoman.engine.events import Who
from dragoman.engine.faults import AlreadySettled, Busy, InUse, NothingRunning, StaleEpoch
from dragoman.providers.scripted import Call, Hang, Say, Scripted, Turn
from dragoman.store.postgres.changes import Wanted
from dragoman.testing.host import EchoTool

ANN, BOB = Who("acp", name="ann"), Who("zot", name="bob")


class Seen:
    """A shape that keeps what it is told."""

    def __init__(self) -> None:
        self.events: list[Any] = []

    def speak(self, events: Any) -> None:
        self.events += events

    def kinds(self) -> list[str]:
        return [type(event.body).__name__ for event in self.events]


def script(*turns: Any) -> Scripted:
    return Scripted(turns or (Turn((Say("hello"),)),), loop=True)


async def kept(member: Member, session: str) -> list[Any]:
    return [event.body for event in await member.door.history(session)]


async def gapless(member: Member, session: str) -> None:
    seqs = [event.seq for event in await member.door.history(session)]
    assert seqs == [*range(1, len(seqs) + 1)]


async def test_a_prompt_from_another_node_is_taken_by_the_owner(fleet: Fleet) -> None:
    a, b = await fleet.join("a", script()), await fleet.join("b", Scripted([]))
    session = await a.open()
    seen = Seen()
    await b.door.watch(session, BOB, seen, lambda said: None)
    work = await b.say(session, "hi", by=BOB, keep=True)
    finished = await asyncio.wait_for(work.done, 10)
    assert (finished.outcome, finished.text) == ("completed", "hello")
    assert session in a.host.live and a.host.live[session].own
    assert not b.host.live[session].own
    await until(lambda: "TurnEnded" in seen.kinds())
    told = seen.kinds()
    assert told.index("TurnBegan") < told.index("TextDelta") < told.index("Spoke")
    assert "".join(e.body.text for e in seen.events if isinstance(e.body, ev.TextDelta)) == "hello"
    began = [body for body in await kept(b, session) if isinstance(body, ev.TurnBegan)]
    assert [(body.turn, body.by) for body in began] == [(work.turn, BOB)]
    await gapless(a, session)


async def test_steer_cancel_and_interrupt_from_another_node(fleet: Fleet) -> None:
    a = await fleet.join("a", script(Turn((Say("x"), Hang()))))
    b = await fleet.join("b", Scripted([]))
    session = await a.open()
    work = await a.say(session, "go", by=ANN)
    await work.started
    await b.door.load(session)
    await until(lambda: b.door.live(session).turn)  # type: ignore[union-attr]
    assert await b.door.steer(session, (Text("left"),), BOB) == work.turn
    assert b.door.cancel(session) == work.turn
    assert (await asyncio.wait_for(work.done, 10)).outcome == "cancelled"
    await until(lambda: not b.door.live(session).turn)  # type: ignore[union-attr]
    with pytest.raises(NothingRunning):
        b.door.cancel(session)
    with pytest.raises(NothingRunning):
        await b.door.steer(session, (Text("late"),), BOB)
    second = await b.say(session, "again", by=BOB)
    await asyncio.wait_for(second.started, 10)
    await until(lambda: b.door.live(session).turn)  # type: ignore[union-attr]
    assert await b.door.interrupt(session, BOB) == second.turn
    assert (await asyncio.wait_for(second.done, 10)).outcome == "interrupted"
    assert sum(isinstance(body, ev.Steered) for body in await kept(a, session)) == 1


async def test_an_approval_is_answered_from_anywhere_and_the_first_answer_wins(
    fleet: Fleet,
) -> None:
    echo = EchoTool()
    turns = Turn((Call("echo", {"text": "x"}),)), Turn((Say("done"),))
    a = await fleet.join("a", script(*turns), [echo], mode="supervised")
    b = await fleet.join("b", Scripted([]))
    c = await fleet.join("c", Scripted([]))
    session = await a.open()
    work = await b.say(session, "go", by=BOB)
    (row,) = await until(b.door.asks)
    answers = await asyncio.gather(
        b.door.answer(row.ask.id, "allow", BOB),
        c.door.answer(row.ask.id, "deny", ANN),
        return_exceptions=True,
    )
    losers = [one for one in answers if isinstance(one, AlreadySettled)]
    winners = [one for one in answers if isinstance(one, ev.Settled)]
    assert len(losers) == len(winners) == 1
    assert losers[0].data["by"] == winners[0].by and losers[0].data["verdict"] == winners[0].verdict
    finished = await asyncio.wait_for(work.done, 10)
    assert finished.outcome == "completed"
    assert len(echo.ran) == (winners[0].verdict == "allow")


async def test_changes_from_another_node_are_there_when_they_are_acknowledged(fleet: Fleet) -> None:
    a, b = await fleet.join("a", script()), await fleet.join("b", script())
    session = await a.open()
    await b.door.rename(session, "Blue", BOB)
    await b.door.set_mode(session, "full", BOB)
    await b.door.keep(session, Wanted, BOB, labels=("x",))
    for door in (a.door, b.door):
        info = await door.info(session)
        assert (info.title, info.mode, info.extra) == ("Blue", "full", {"fleet": {"labels": ["x"]}})


async def test_the_same_command_five_times_has_one_effect(fleet: Fleet) -> None:
    a, b = await fleet.join("a", script()), await fleet.join("b", Scripted([]))
    session = await a.open()
    send = b.node.desk.send

    async def five(id: str, session: str, command: Any) -> None:
        for _ in range(5):
            await send(id, session, command)
            await b.node.desk.hint()

    b.node.desk.send = five  # type: ignore[method-assign]
    do = a.node._do

    async def again(*command: Any) -> None:
        for _ in range(5):
            await do(*command)

    a.node._do = again  # type: ignore[assignment, method-assign]
    works = [await b.say(session, f"{n}", by=BOB) for n in range(3)]
    for work in works:
        assert (await asyncio.wait_for(work.done, 10)).outcome == "completed"
    await b.door.note(session, "info", "once")
    bodies = await kept(a, session)
    assert sum(isinstance(body, ev.TurnBegan) for body in bodies) == 3
    await gapless(a, session)


async def test_a_prompt_with_a_key_that_was_taken_is_not_taken_twice(fleet: Fleet) -> None:
    from dragoman.engine.faults import WrongState

    a, b = await fleet.join("a", script()), await fleet.join("b", Scripted([]))
    session = await a.open()
    work = await b.say(session, "hi", by=BOB, key="k")
    await asyncio.wait_for(work.done, 10)
    for door in (a, b):
        with pytest.raises(WrongState) as caught:
            await door.say(session, "hi", by=BOB, key="k")
        assert caught.value.data["turn"] == work.turn


async def test_a_full_inbox_is_told_over_the_way(fleet: Fleet) -> None:
    a = await fleet.join("a", script(Turn((Hang(),))))
    b = await fleet.join("b", Scripted([]))
    session = await a.open()
    first = await a.say(session, "go", by=ANN)
    await first.started
    works = []
    with pytest.raises(Busy):
        for _ in range(4):
            works.append(await b.say(session, "more", by=BOB, limit=3))
    a.door.cancel(session)
    await first.done


async def test_a_clean_stop_hands_over_at_once(fleet: Fleet) -> None:
    a = await fleet.join("a", Scripted([]), lease=60)
    b = await fleet.join("b", script(), lease=60)
    session = await a.open()
    await a.leave()
    work = await b.say(session, "hi", by=BOB)
    assert (await asyncio.wait_for(work.done, 5)).text == "hello"
    assert b.host.live[session].own


async def test_another_node_goes_on_with_the_turn_of_one_that_died(fleet: Fleet) -> None:
    a = await fleet.join("a", script(Turn((Say("half"), Hang()))))
    b = await fleet.join("b", script(Turn((Say("whole"),))))
    session = await a.open()
    seen = Seen()
    await b.door.watch(session, BOB, seen, lambda said: None)
    work = await b.say(session, "go", by=BOB)
    await asyncio.wait_for(work.started, 10)
    began = asyncio.get_running_loop().time()
    await a.die()
    finished = await asyncio.wait_for(work.done, 10)
    assert asyncio.get_running_loop().time() - began < LEASE + 2
    assert (finished.outcome, finished.text) == ("completed", "whole")
    notes = [body for body in await kept(b, session) if isinstance(body, ev.Noted)]
    assert [note.data for note in notes] == [{"resumed": work.turn}] and "b" in notes[0].text
    await until(lambda: "TurnEnded" in seen.kinds())
    assert seen.kinds().count("TurnBegan") == 1
    await gapless(b, session)


async def test_a_tool_that_had_begun_is_not_run_again(fleet: Fleet) -> None:
    class Stuck(EchoTool):
        async def run(self, args: dict[str, Any], env: Any) -> Any:
            self.ran.append(args)
            begun.set()
            await asyncio.Event().wait()

    begun = asyncio.Event()
    stuck, fresh = Stuck(), EchoTool()
    calls = Turn((Call("echo", {"text": "1"}), Call("echo", {"text": "2"})))
    a = await fleet.join("a", script(calls), [stuck], mode="full")
    b = await fleet.join("b", script(Turn((Say("done"),))), [fresh], mode="full")
    session = await a.open()
    await a.say(session, "go", by=ANN)
    await asyncio.wait_for(begun.wait(), 10)
    await a.die()

    async def over() -> bool:
        return any(isinstance(body, ev.TurnEnded) for body in await kept(b, session))

    await until(over)
    ends = [body for body in await kept(b, session) if isinstance(body, ev.CallEnded)]
    assert [end.outcome for end in ends] == ["unknown", "done"]
    assert stuck.ran == [{"text": "1"}] and fresh.ran == [{"text": "2"}]


async def test_a_turn_goes_on_by_itself_only_once(fleet: Fleet) -> None:
    for name in "ab":
        await fleet.join(name, script(Turn((Hang(),))))
    a, b = fleet.members
    session = await a.open()
    work = await a.say(session, "go", by=ANN)
    await work.started
    await a.die()
    await until(lambda: session in b.host.live and b.host.live[session].ledger.turn)
    await b.die()
    c = await fleet.join("c", script())

    async def over() -> Any:
        return [body for body in await kept(c, session) if isinstance(body, ev.TurnEnded)]

    ends = await until(over)
    assert [(end.outcome, end.cause) for end in ends] == [("interrupted", "restart")]


async def test_one_that_was_away_past_its_lease_is_refused(fleet: Fleet) -> None:
    echo = EchoTool()
    ended = asyncio.Event()

    class Long(EchoTool):
        async def run(self, args: dict[str, Any], env: Any) -> Any:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

    begun = asyncio.Event()
    a = await fleet.join("a", script(Turn((Call("echo"),))), [Long()], mode="full")
    session = await a.open()
    await a.say(session, "go", by=ANN)
    await begun.wait()
    for task in a.node._tasks:  # it is paused: nothing of it is heard
        task.cancel()
    ledger = a.host.live[session].ledger
    b = await fleet.join("b", script(), [echo], mode="full")
    await until(lambda: session in b.host.live)
    with pytest.raises(StaleEpoch):
        await ledger.append(ev.Noted("info", "late"))
    await asyncio.wait_for(ended.wait(), 5)
    assert session not in a.host.live
    await gapless(b, session)
    assert "late" not in [getattr(body, "title", "") for body in await kept(b, session)]


async def test_a_session_whose_folder_only_its_node_sees_waits_for_it(fleet: Fleet) -> None:
    a = await fleet.join("a", script(), roots=("/srv",))
    b = await fleet.join("b", script(), roots=("/srv",))
    session, shared = await a.open("/tmp"), await a.open("/", check_cwd=False)
    del shared
    work = await b.say(session, "hi", by=BOB)
    assert (await asyncio.wait_for(work.done, 10)).outcome == "completed"
    await a.die()
    await asyncio.sleep(LEASE + 0.2)
    await until(lambda: b.node.absence(session))
    with pytest.raises(InUse) as caught:
        await b.say(session, "hi", by=BOB)
    assert "waiting for node a, last seen" in str(caught.value)
    assert "fleet move" in str(caught.value)
    await b.node.desk.move(session, "b")
    await until(lambda: b.node.absence(session) is None)
    work = await b.say(session, "hi", by=BOB)
    assert (await asyncio.wait_for(work.done, 10)).outcome == "completed"
    assert b.host.live[session].own


async def test_labels(fleet: Fleet) -> None:
    a = await fleet.join("a", Scripted([]), labels=("gpu",))
    b = await fleet.join("b", script())
    session = await a.open(traits=(Wanted(("gpu",)),))
    await a.leave()
    await b.door.load(session)
    assert not b.host.live[session].own
    c = await fleet.join("c", script(), labels=("gpu", "big"))
    work = await b.say(session, "hi", by=BOB)
    assert (await asyncio.wait_for(work.done, 10)).outcome == "completed"
    assert c.host.live[session].own


async def test_a_node_that_is_drained_gives_its_sessions_away(fleet: Fleet) -> None:
    a = await fleet.join("a", script(Turn((Say("one"), Hang())), Turn((Say("two"),))))
    b = await fleet.join("b", script())
    resting, running = await a.open(), await a.open()
    work = await a.say(running, "go", by=ANN)
    await work.started
    seen = Seen()
    await a.door.watch(resting, ANN, seen, lambda said: None)
    assert await b.node.desk.drain("a")
    await until(lambda: resting not in a.host.live or not a.host.live[resting].own)
    assert a.host.live[running].own  # until its turn is over
    a.door.cancel(running)
    await work.done
    await until(lambda: running not in a.host.live)
    later = await a.say(resting, "hi", by=ANN)  # its clients go on, over the other node
    assert (await asyncio.wait_for(later.done, 10)).text == "hello"
    assert b.host.live[resting].own
    await until(lambda: "TurnEnded" in seen.kinds())


async def test_a_session_that_waits_for_a_human_is_held_by_nobody(fleet: Fleet) -> None:
    turns = Turn((Call("echo", {"text": "x"}),)), Turn((Say("done"),))
    a = await fleet.join("a", script(*turns), [EchoTool()], mode="supervised", lease=0.5)
    echo = EchoTool()
    session = await a.open()
    await a.say(session, "go", by=ANN)
    await until(lambda: session not in a.host.live, 10)

    async def free() -> bool:
        return (await a.node.desk.place(session)).owner == ""

    await until(free)
    b = await fleet.join("b", script(Turn((Say("done"),))), [echo], mode="supervised")
    (row,) = await b.door.asks()
    await b.door.answer(row.ask.id, "allow", BOB)
    await until(lambda: b.host.live[session].state.status == "idle")
    assert len(echo.ran) == 1


async def test_two_nodes_cannot_have_one_name(fleet: Fleet) -> None:
    await fleet.join("a", script())
    with pytest.raises(InUse):
        await fleet.join("a", script())
