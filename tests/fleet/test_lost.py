"""A session that its node lost: whoever waits there hears how its turns end elsewhere."""

import asyncio
from functools import partial
from typing import Any

import pytest
from tests.fleet.making import Fleet, Member, until
from tests.timed import promised

from dragoman.engine import events as ev
from dragoman.engine.events import Who
from dragoman.engine.faults import Fault, StaleEpoch, StoreFailed, WrongState
from dragoman.engine.ports import Batch, Entry
from dragoman.fleet import words
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
    await asyncio.wait_for(runs.started, 60)
    pause(a)
    b = await fleet.join("b", script(Turn((Say("whole"),)), Turn((Say("more"),))))
    await until(lambda: session in b.host.live)
    revive(a)
    found = [await asyncio.wait_for(work.done, 60) for work in (runs, waits)]
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
        await asyncio.wait_for(waits.done, 60)


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
    assert (await asyncio.wait_for(behind.done, 60)).outcome == "completed"
    with pytest.raises(StaleEpoch):
        await asyncio.wait_for(refused.done, 60)


async def test_a_lost_session_writes_no_end_of_its_turn(fleet: Fleet) -> None:
    """Also while nobody else has taken it: its epoch would still hold."""
    a = await fleet.join("a", script(Turn((Hang(),)), Turn((Say("again"),))))
    session = await a.open()
    work = await a.say(session, "go", by=ANN)
    await asyncio.wait_for(work.started, 60)
    a.node._give_up("a test")
    finished = await asyncio.wait_for(work.done, 60)  # taken up again by the same node
    assert (finished.outcome, finished.text) == ("completed", "again")
    assert [one.outcome for one in await ended(a, session)] == ["completed"]


async def test_one_session_that_cannot_be_given_up_keeps_no_other(
    fleet: Fleet, monkeypatch: Any
) -> None:
    a = await fleet.join("a", script(Turn((Hang(),))))
    first, second = await a.open(), await a.open()
    work = await a.say(second, "go", by=ANN)
    await asyncio.wait_for(work.started, 60)
    ledgers = [a.host.live[one].ledger for one in (first, second)]
    park = a.host.let_down

    def odd(ledger: Any) -> None:
        if ledger is ledgers[0]:
            raise RuntimeError("odd")
        park(ledger)

    monkeypatch.setattr(a.host, "let_down", odd)
    a.node._give_up("a test")
    assert all(ledger.lost for ledger in ledgers) and a.host.live.get(second) is None
    monkeypatch.undo()
    park(ledgers[0])


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
    with pytest.raises(WrongState):  # at once, if b heard of it meanwhile
        again = await b.say(session, "go", by=BOB, key="k")  # no acknowledgement to wait for
        await asyncio.wait_for(again.done, 60)
    await asyncio.wait_for(first.done, 60)
    assert len(await ended(a, session)) == 1


class Seen:
    """What somebody is told who watches a session."""

    def __init__(self) -> None:
        self.kinds: list[str] = []

    def speak(self, events: Any) -> None:
        self.kinds += [type(event.body).__name__ for event in events]


async def test_who_watches_a_lost_session_sees_on_when_it_cannot_be_read_at_once(
    fleet: Fleet, monkeypatch: Any
) -> None:
    a = await fleet.join("a", script(Turn((Say("half"), Hang()))))
    b = await fleet.join("b", script(Turn((Say("whole"),))))
    session = await a.open()
    seen = Seen()
    await a.door.watch(session, ANN, seen, lambda said: None)
    work = await a.say(session, "go", by=ANN, keep=True)
    await asyncio.wait_for(work.started, 60)
    take, tries = a.store.take, 3

    async def reluctant(*given: Any) -> int:
        nonlocal tries
        tries -= 1
        if tries >= 0 or session not in b.host.live:  # else a would have it again
            raise StoreFailed("The database cannot be reached.", stalled=True)
        return await take(*given)

    monkeypatch.setattr(a.store, "take", reluctant)
    monkeypatch.setattr(a.node.desk, "claim", lambda *given: asyncio.sleep(0, ()))  # b takes it
    a.node._give_up("a test")
    await until(lambda: "TurnEnded" in seen.kinds)
    assert tries < 0 and seen.kinds.count("TurnEnded") == 1
    assert b.host.live[session].own


async def test_who_watches_a_lost_session_hears_that_it_was_deleted(fleet: Fleet) -> None:
    a = await fleet.join("a", script())
    session = await a.open()
    seen = Seen()
    await a.door.watch(session, ANN, seen, lambda said: None)
    pause(a)
    a.host.live[session].ledger.lose()
    await a.store.delete(session)
    revive(a)
    await until(lambda: "Deleted" in seen.kinds)
    assert not a.host.unheld


@pytest.mark.parametrize("again", ["here", "elsewhere"])
async def test_what_was_claimed_and_could_not_be_taken_up_does_not_stand_still(
    fleet: Fleet, monkeypatch: Any, again: str
) -> None:
    a = await fleet.join("a", script(Turn((Hang(),))))
    session = await a.open()
    await (await a.say(session, "go", by=ANN)).started
    await a.die()
    b = await fleet.join("b", script(Turn((Say("whole"),))))
    rebuild, tries = b.host.rebuild, 1

    async def broken(session_id: str) -> Any:
        nonlocal tries
        tries -= 1
        if tries >= 0 and again == "here":
            raise StoreFailed("The database cannot be reached.", stalled=True)
        if again == "elsewhere":
            raise RuntimeError("not on this machine")
        return await rebuild(session_id)

    monkeypatch.setattr(b.host, "rebuild", broken)
    await until(lambda: tries <= 0)
    c = await fleet.join("c", script(Turn((Say("whole"),)))) if again == "elsewhere" else b
    await until(lambda: session in c.host.live and c.host.live[session].own)
    await until(partial(ended, c, session))


async def test_a_claim_whose_answer_was_lost_is_found_again(fleet: Fleet, monkeypatch: Any) -> None:
    a = await fleet.join("a", script(Turn((Hang(),))))
    session = await a.open()
    await (await a.say(session, "go", by=ANN)).started
    await a.die()
    b = await fleet.join("b", script(Turn((Say("whole"),))))
    claim, lost = b.node.desk.claim, False

    async def unheard(*given: Any) -> Any:
        nonlocal lost
        found = await claim(*given)
        if found and not lost:
            lost = True
            raise StoreFailed("The database cannot be reached.", stalled=True)
        return found

    monkeypatch.setattr(b.node.desk, "claim", unheard)
    await until(partial(ended, b, session))
    assert lost


async def test_a_session_that_cannot_be_read_keeps_no_other_from_being_followed(
    fleet: Fleet,
) -> None:
    a, b = await fleet.join("a", script()), await fleet.join("b", Scripted([]))
    odd, plain = await a.open(), await a.open()
    seen = Seen()
    await b.door.load(odd)
    await b.door.watch(plain, BOB, seen, lambda said: None)
    ledger = a.host.live[odd].ledger
    entry = Entry(ledger.state.seq + 1, 1, "fly", b'{"type":"fly"}')
    await a.store.append(Batch(odd, ledger.epoch, [entry], ledger.state.info()))
    await (await a.say(plain, "go", by=ANN)).done
    await until(lambda: "TurnEnded" in seen.kinds)


async def test_a_turn_whose_end_cannot_be_read_keeps_no_other_waiting(fleet: Fleet) -> None:
    hang = Turn((Hang(),))
    a, b = await fleet.join("a", script(hang)), await fleet.join("b", Scripted([]))
    odd = await a.open()
    lost = await b.say(odd, "go", by=BOB)
    await asyncio.wait_for(asyncio.shield(lost.started), 60)
    other = await b.say(odd, "go", by=BOB)

    async def waits() -> bool:
        return other.turn in (await a.host.rebuild(odd)).queued

    await until(waits)  # nothing more is written there by itself
    state = await a.host.rebuild(odd)
    ledger = a.host.live[odd].ledger
    body = b'{"type":"turn_ended","turn":"%s","outcome":"dreamt"}' % lost.turn.encode()
    entry = Entry(state.seq + 1, 1, "turn_ended", body)
    await a.store.append(Batch(odd, ledger.epoch, [entry], ledger.state.info()))
    with pytest.raises(StoreFailed, match=f"turn {lost.turn} cannot be read"):
        await asyncio.wait_for(lost.done, 60)
    assert not other.done.done()  # it was about another turn
    c = await fleet.join("c", script())
    plain = await c.open()
    assert (await asyncio.wait_for((await b.say(plain, "go", by=BOB)).done, 60)).outcome


async def test_an_answer_that_cannot_be_read_keeps_no_other_waiting(
    fleet: Fleet, monkeypatch: Any
) -> None:
    a, b = await fleet.join("a", script()), await fleet.join("b", Scripted([]))
    odd, plain = await a.open(), await a.open()
    for session in (odd, plain):
        await b.door.load(session)
    encode = words.encode

    def newer(value: Any) -> bytes:
        if isinstance(value, words.Result) and "odd" in done:
            done.clear()
            return b'{"seq":"many"}'
        return encode(value)

    done = {"odd"}
    monkeypatch.setattr(words, "encode", newer)
    with pytest.raises(StoreFailed, match="its answer cannot be read here"):
        await asyncio.wait_for(b.door.rename(odd, "Blue", BOB), 60)
    await asyncio.wait_for(b.door.rename(plain, "Blue", BOB), 60)
    assert (await b.door.info(odd)).title == "Blue"


async def test_a_command_that_nobody_knows_keeps_no_other_waiting(fleet: Fleet) -> None:
    a, b = await fleet.join("a", script()), await fleet.join("b", Scripted([]))
    session = await a.open()
    await b.door.load(session)
    await b.store.fetch(
        "INSERT INTO commands (id, session, sender, kind, body)"
        " SELECT 'x', num, 'b', 'fly', $2 FROM sessions WHERE id = $1",
        session,
        b'{"type":"fly"}',
    )
    await asyncio.wait_for(b.door.rename(session, "Blue", BOB), 60)
    result = (await b.node.desk.results(["x"]))["x"]
    assert result is not None and result.refusal is not None
    assert "does not know" in result.refusal.message


async def test_a_command_that_breaks_is_told_and_not_tried_for_ever(
    fleet: Fleet, monkeypatch: Any
) -> None:
    a, b = await fleet.join("a", script()), await fleet.join("b", Scripted([]))
    session = await a.open()
    await b.door.load(session)
    done: list[str] = []

    async def broken(host: Any, session_id: str, id: str, command: Any) -> Any:
        done.append(id)
        raise RuntimeError("no such thing")

    monkeypatch.setattr("dragoman.fleet.node.do", broken)
    with pytest.raises(Fault, match="no such thing"):
        await asyncio.wait_for(b.door.rename(session, "Blue", BOB), 60)
    await a.node.tick()
    assert len(done) == 1


async def test_a_slow_answer_costs_no_lease(fleet: Fleet, monkeypatch: Any) -> None:
    """What takes longer than a third of the lease is waited for, over the same connection."""
    a = await fleet.join("a", script(Turn((Hang(),))), lease=3.0)
    b = await fleet.join("b", script())
    session = await a.open()
    await (await a.say(session, "go", by=ANN)).started
    connect, made = a.store.link.connect, 0

    async def counted(**given: Any) -> Any:
        nonlocal made
        made += 1
        return await connect(**given)

    monkeypatch.setattr(a.store.link, "connect", counted)

    async def waits() -> bool:
        return bool(await b.store.fetch("SELECT FROM pg_locks WHERE NOT granted"))

    async with b.store.link.reading() as connection:
        async with connection.transaction():  # who renews waits for the row
            await connection.execute("SELECT 1 FROM nodes WHERE name = 'a' FOR UPDATE")
            held = a.node._held
            await until(waits)
            await asyncio.sleep(1.3)  # so long the database takes
        await until(lambda: a.node._held > held)
    assert made == 0 and a.node.stalled == ""
    assert a.host.live[session].own and session not in b.host.live


@promised(2.0)
async def test_an_answer_that_never_comes_costs_the_sessions_at_the_lease(
    fleet: Fleet, within: float
) -> None:
    a = await fleet.join("a", script(Turn((Hang(),))), lease=1.0)
    b = await fleet.join("b", script(), lease=10.0)
    session = await a.open()
    await (await a.say(session, "go", by=ANN)).started
    ledger = a.host.live[session].ledger
    async with b.store.link.reading() as connection, connection.transaction():
        await connection.execute("SELECT 1 FROM nodes WHERE name = 'a' FOR UPDATE")
        held = a.node._held
        await until(lambda: ledger.lost)
        now = asyncio.get_running_loop().time()
        assert a.node.stalled and 1.0 < now - max(held, a.node._held) < within
