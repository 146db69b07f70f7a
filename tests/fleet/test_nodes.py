"""Two nodes on one database: each session has one owner, and can be used from both."""

import asyncio
from functools import partial
from typing import Any

import pytest
from tests.fleet.making import LEASE, Fleet, Member, place_of, until
from tests.fleet.proxy import Proxy
from tests.timed import promised

from dragoman.engine import events as ev
from dragoman.engine.content import Text
from dragoman.engine.events import Who
from dragoman.engine.faults import (
    AlreadySettled,
    Busy,
    InUse,
    NothingRunning,
    StaleEpoch,
    StoreFailed,
    UnknownSession,
)
from dragoman.providers.scripted import Call, Hang, Say, Scripted, Turn
from dragoman.store.postgres.changes import Wanted
from dragoman.testing.host import EchoTool
from dragoman.testing.postgres import Server

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
    finished = await asyncio.wait_for(work.done, 60)
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
    assert (await asyncio.wait_for(work.done, 60)).outcome == "cancelled"
    await until(lambda: not b.door.live(session).turn)  # type: ignore[union-attr]
    with pytest.raises(NothingRunning):
        b.door.cancel(session)
    with pytest.raises(NothingRunning):
        await b.door.steer(session, (Text("late"),), BOB)
    second = await b.say(session, "again", by=BOB)
    await asyncio.wait_for(second.started, 60)
    await until(lambda: b.door.live(session).turn)  # type: ignore[union-attr]
    assert await b.door.interrupt(session, BOB) == second.turn
    assert (await asyncio.wait_for(second.done, 60)).outcome == "interrupted"
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
    finished = await asyncio.wait_for(work.done, 60)
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
        assert (await asyncio.wait_for(work.done, 60)).outcome == "completed"
    await b.door.note(session, "info", "once")
    bodies = await kept(a, session)
    assert sum(isinstance(body, ev.TurnBegan) for body in bodies) == 3
    await gapless(a, session)


async def test_a_prompt_with_a_key_that_was_taken_is_not_taken_twice(fleet: Fleet) -> None:
    from dragoman.engine.faults import WrongState

    a, b = await fleet.join("a", script()), await fleet.join("b", Scripted([]))
    session = await a.open()
    work = await b.say(session, "hi", by=BOB, key="k")
    await asyncio.wait_for(work.done, 60)
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
    assert (await asyncio.wait_for(work.done, 60)).text == "hello"
    assert b.host.live[session].own


@promised(LEASE + 2)
async def test_another_node_goes_on_with_the_turn_of_one_that_died(
    fleet: Fleet, within: float
) -> None:
    a = await fleet.join("a", script(Turn((Say("half"), Hang()))))
    b = await fleet.join("b", script(Turn((Say("whole"),))))
    session = await a.open()
    seen = Seen()
    await b.door.watch(session, BOB, seen, lambda said: None)
    work = await b.say(session, "go", by=BOB)
    await asyncio.wait_for(work.started, 60)
    began = asyncio.get_running_loop().time()
    await a.die()
    finished = await asyncio.wait_for(work.done, 60)
    assert asyncio.get_running_loop().time() - began < within
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
    await asyncio.wait_for(begun.wait(), 60)
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
        await ledger.put(ev.Noted("info", "late"))
    await asyncio.wait_for(ended.wait(), 60)
    assert session not in a.host.live
    await gapless(b, session)
    assert "late" not in [getattr(body, "title", "") for body in await kept(b, session)]


async def test_a_session_whose_folder_only_its_node_sees_waits_for_it(fleet: Fleet) -> None:
    a = await fleet.join("a", script(), roots=("/srv",))
    b = await fleet.join("b", script(), roots=("/srv",))
    session, shared = await a.open("/tmp"), await a.open("/", check_cwd=False)
    del shared
    work = await b.say(session, "hi", by=BOB)
    assert (await asyncio.wait_for(work.done, 60)).outcome == "completed"
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
    assert (await asyncio.wait_for(work.done, 60)).outcome == "completed"
    assert b.host.live[session].own


async def test_labels(fleet: Fleet) -> None:
    a = await fleet.join("a", Scripted([]), labels=("gpu",))
    b = await fleet.join("b", script())
    session = await a.open(traits=(Wanted(("gpu",)),))
    await a.leave()
    await b.door.load(session)
    assert not b.host.live[session].own
    with pytest.raises(InUse) as caught:
        await b.say(session, "hi", by=BOB)
    assert "waiting for a node with gpu" in str(caught.value)
    c = await fleet.join("c", script(), labels=("gpu", "big"))
    await until(lambda: b.node.absence(session) is None)
    work = await b.say(session, "hi", by=BOB)
    assert (await asyncio.wait_for(work.done, 60)).outcome == "completed"
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
    assert (await asyncio.wait_for(later.done, 60)).text == "hello"
    assert b.host.live[resting].own
    await until(lambda: "TurnEnded" in seen.kinds())


async def test_a_session_whose_only_node_is_drained_says_that_it_waits(fleet: Fleet) -> None:
    a = await fleet.join("a", script(Turn((Say("one"), Hang())), Turn((Say("two"),))), roots=())
    b = await fleet.join("b", script(), roots=())
    wanted = Wanted(("gpu",))
    session, labelled = await a.open("/tmp"), await a.open("/tmp", traits=(wanted,))
    work = await a.say(session, "go", by=ANN)
    await work.started
    await b.door.load(session)
    assert await b.node.desk.drain("a")
    await until(lambda: labelled not in a.host.live)
    assert b.node.absence(session) is None  # its turn runs, and can be stopped
    b.door.cancel(session)
    await asyncio.wait_for(work.done, 60)
    await until(lambda: session not in a.host.live)
    for member in (a, b):  # whichever node is asked
        await member.door.load(session)
        await until(partial(member.node.absence, session))
        with pytest.raises(InUse, match="waiting for node a, which is draining"):
            await member.say(session, "hi", by=BOB)
    assert (await b.door.whereabouts([labelled]))[labelled].waiting
    assert await b.node.desk.drain("a", False)
    await until(lambda: b.node.absence(session) is None)
    later = await b.say(session, "hi", by=BOB)
    assert (await asyncio.wait_for(later.done, 60)).text == "two"


async def test_a_session_that_waits_for_a_human_is_held_by_nobody(fleet: Fleet) -> None:
    turns = Turn((Call("echo", {"text": "x"}),)), Turn((Say("done"),))
    a = await fleet.join("a", script(*turns), [EchoTool()], mode="supervised", lease=0.5)
    echo = EchoTool()
    session = await a.open()
    await a.say(session, "go", by=ANN)
    await until(lambda: session not in a.host.live)

    async def free() -> bool:
        return (await place_of(a.node.desk, session)).owner == ""

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


async def test_a_session_is_deleted_wherever_it_is(fleet: Fleet) -> None:
    a, b, c = [await fleet.join(name, script(Turn((Say("x"), Hang())))) for name in "abc"]
    session = await a.open()
    seen = {name: Seen() for name in "ac"}
    await a.door.watch(session, ANN, seen["a"], lambda said: None)
    await c.door.watch(session, ANN, seen["c"], lambda said: None)
    work = await a.say(session, "go", by=ANN)
    await work.started
    assert await b.door.delete(session, BOB)
    assert not await b.door.delete(session, BOB)
    assert (await asyncio.wait_for(work.done, 60)).outcome == "cancelled"
    for member in (a, b):
        assert session not in member.host.live
        with pytest.raises(UnknownSession):
            await member.door.look(session)
    await until(lambda: "Deleted" in seen["a"].kinds() and "Deleted" in seen["c"].kinds())
    await until(lambda: session not in c.host.live)


async def test_who_waits_for_a_session_that_is_deleted_hears_of_it(fleet: Fleet) -> None:
    a = await fleet.join("a", script(Turn((Hang(),))))
    b = await fleet.join("b", Scripted([]))
    session = await a.open()
    await (await a.say(session, "go", by=ANN)).started
    await b.door.load(session)
    a.node.desk.finish = lambda id, result: asyncio.sleep(0)  # type: ignore[method-assign]
    asked = asyncio.create_task(b.door.steer(session, (Text("left"),), BOB))
    await until(lambda: b.node._results)
    await a.store.delete(session)
    with pytest.raises(UnknownSession):
        await asyncio.wait_for(asked, 60)


async def test_a_moved_session_is_bound_to_its_folder_and_not_to_the_node(fleet: Fleet) -> None:
    a, b, c = [await fleet.join(name, script()) for name in "abc"]
    session = await a.open()
    assert await c.node.desk.move(session[:8], "b") == session
    await until(lambda: session not in a.host.live)
    work = await c.say(session, "hi", by=BOB)
    await asyncio.wait_for(work.done, 60)
    assert b.host.live[session].own
    assert not (await place_of(c.node.desk, session)).pinned
    await b.leave()
    work = await c.say(session, "hi", by=BOB)
    await asyncio.wait_for(work.done, 60)
    assert c.host.live[session].own or a.host.live[session].own


async def test_who_answered_and_where_is_stored(fleet: Fleet) -> None:
    turns = Turn((Call("echo", {"text": "x"}),)), Turn((Say("done"),))
    a = await fleet.join("a", script(*turns), [EchoTool()], mode="supervised")
    b = await fleet.join("b", Scripted([]))
    session = await a.open()
    work = await a.say(session, "go", by=ANN)
    (row,) = await until(b.door.asks)
    await b.door.answer(row.ask.id, "allow", BOB)
    await asyncio.wait_for(work.done, 60)
    (settled,) = [body for body in await kept(a, session) if isinstance(body, ev.Settled)]
    assert settled.by is not None
    assert (settled.by.name, settled.by.dialect, settled.by.node) == ("bob", "zot", "b")
    assert (await a.door.ask(row.ask.id)).settled == settled


async def test_a_denial_that_another_node_remembers_counts_here(fleet: Fleet) -> None:
    call = Turn((Call("echo", {"text": "x"}),)), Turn((Say("done"),))
    echo = EchoTool()
    a = await fleet.join("a", script(*call), [EchoTool()], mode="supervised")
    b = await fleet.join("b", script(*call), [echo], mode="full")
    assert not await b.host.rules.deny_any()
    session = await a.open()
    work = await a.say(session, "go", by=ANN)
    (row,) = await until(a.door.asks)
    await a.door.answer(row.ask.id, "deny_always", ANN, lasts="agent")
    await asyncio.wait_for(work.done, 60)
    await until(b.host.rules.deny_any)
    work = await b.say(await b.open(), "go", by=BOB)
    await asyncio.wait_for(work.done, 60)
    assert echo.ran == []


async def test_a_name_whose_last_life_ended_is_taken_at_once(fleet: Fleet) -> None:
    a = await fleet.join("a", script(), lease=60, life="first")
    session = await a.open()
    await a.die()
    b = await fleet.join("a", script(), lease=60, has_ended=lambda life: life == "first")
    work = await b.say(session, "hi", by=BOB)
    assert (await asyncio.wait_for(work.done, 60)).text == "hello"


async def test_a_name_whose_last_life_was_cut_off_is_waited_for(fleet: Fleet) -> None:
    a = await fleet.join("a", script())
    await a.die()
    b = await fleet.join("a", script())
    assert [row.owner for row in await b.node.desk.nodes()] == [b.node.desk.owner]


async def test_a_guest_uses_what_others_have_and_leaves_no_trace(fleet: Fleet) -> None:
    a = await fleet.join("a", script())
    guest = await fleet.join("laptop", Scripted([]), guest=True)
    session = await a.open()
    await guest.door.rename(session, "Blue", BOB)
    assert (await a.door.info(session)).title == "Blue"
    mine = await guest.open()
    assert (await a.door.whereabouts([mine]))[mine].node == "laptop"
    names = [row.name for row in await a.node.desk.nodes()]
    assert names == ["a", "laptop~1"]
    await guest.leave()
    assert [row.name for row in await a.node.desk.nodes()] == ["a"]
    work = await a.say(mine, "hi", by=ANN)
    await asyncio.wait_for(work.done, 60)


async def test_a_guest_takes_nothing_by_itself(fleet: Fleet) -> None:
    a = await fleet.join("a", script(Turn((Hang(),))))
    session = await a.open()
    await (await a.say(session, "go", by=ANN)).started
    guest = await fleet.join("b", script(), guest=True)
    await a.die()
    await until(lambda: guest.node._swept)
    assert not await asyncio.wait_for(guest.node._sweep(), 60)  # type: ignore[func-returns-value]
    assert session not in guest.host.live
    c = await fleet.join("c", script())
    await until(lambda: session in c.host.live)


async def test_a_node_that_hears_nothing_begins_nothing(fleet: Fleet, postgres: Server) -> None:
    proxy = await Proxy.open(postgres.socket)
    name = fleet.url.partition("@/")[2].partition("?")[0]
    url = f"postgresql://dragoman@127.0.0.1:{proxy.port}/{name}"
    try:
        a = await fleet.join("a", script(), url=url, lease=2.0)
        session = await a.open()
        proxy.mute = proxy.deaf = True  # nothing is refused, nothing comes
        await until(lambda: a.store.stalled)
        with pytest.raises(StoreFailed, match="Stalled"):
            await a.say(session, "hi", by=ANN)
        await until(lambda: a.node.status()["state"] == "stalled")
        await until(lambda: session not in a.host.live)  # the lease is over
        proxy.cut()
        await until(lambda: not a.store.stalled and not a.node.stalled)
        work = await a.say(session, "hi", by=ANN)
        assert (await asyncio.wait_for(work.done, 60)).text == "hello"
        await fleet.close()
    finally:
        await proxy.close()
