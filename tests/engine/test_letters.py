"""Questions of a session that another process has are answered from here all the same."""

import asyncio

import msgspec
import pytest
from tests.engine.tape import ME, Tape
from tests.engine.test_recovery import begin, kill

from dragoman.engine import events as ev
from dragoman.engine import letters
from dragoman.engine.content import Text
from dragoman.engine.events import Who
from dragoman.engine.faults import AlreadySettled, BadInput, Changed, InUse
from dragoman.engine.letters import LETTERS, Letter, Letters
from dragoman.store.sqlite import open_store
from dragoman.testing.host import EchoTool, host_of, memory_door
from dragoman.testing.script import Scripted, call

FAR = Who("far", id="c2")


class Two:
    """Two processes on one database: the first has the session, the second is asked."""

    def __init__(self, path) -> None:
        self.alive = {"first", "second"}
        self.stores = [open_store(path)[0], open_store(path)[0]]
        self.first = memory_door(
            Scripted([call("echo", text="x"), "done"]), [EchoTool()], store=self.stores[0]
        )
        self.second = memory_door(Scripted(["done there"]), [EchoTool()], store=self.stores[1])
        for door, name in ((self.first, "first"), (self.second, "second")):
            host_of(door).owner = name
            host_of(door).is_alive = self.alive.__contains__

    async def asked(self, *told, takes: bool = True):
        if takes:
            self.letters = Letters(host_of(self.first))
            host_of(self.first).on_asked += (self.letters.look, *told)
        self.sid, self.tape = await begin(self.first)
        self.work = await self.first.prompt(self.sid, (Text("go"),), ME)
        return (await self.tape.until(ev.Asked)).body.ask

    async def left(self):
        return await self.stores[1].pairs(LETTERS)


@pytest.fixture
async def two(tmp_path, monkeypatch):
    monkeypatch.setattr(letters, "_LOOK_SECONDS", 0.01)
    monkeypatch.setattr(letters, "_ASK_SECONDS", 0.01)
    made = Two(tmp_path / "sessions.db")
    yield made
    for door in (made.first, made.second):
        await host_of(door).stop(1.0)
    for store in made.stores:
        await store.close()


async def test_an_answer_reaches_the_process_that_has_the_session(two):
    ask = await two.asked()
    settled = await two.second.answer(ask.id, "allow", FAR, comment="so be it", digest=ask.digest)
    assert (settled.verdict, settled.by, settled.comment) == ("allow", FAR, "so be it")
    assert (await two.work.done).text == "done"
    assert [one.by for one in two.tape.of(ev.Settled)] == [FAR]
    assert not await two.left()


async def test_what_the_other_process_refuses_is_refused_here(two):
    ask = await two.asked()
    with pytest.raises(Changed) as changed:
        await two.second.answer(ask.id, "allow", FAR, digest="another")
    assert changed.value.data["digest"] == ask.digest
    with pytest.raises(BadInput):
        await two.second.answer(ask.id, "answer", FAR, text="no question")
    assert not two.tape.of(ev.Settled) and not await two.left()


async def test_of_two_answers_at_once_the_first_counts_and_the_other_is_told_so(two):
    ask = await two.asked()
    given = (
        two.second.answer(ask.id, "allow", FAR),
        two.second.answer(ask.id, "deny", Who("far", id="c3")),
        two.first.answer(ask.id, "deny", ME),
    )
    said = await asyncio.gather(*given, return_exceptions=True)
    assert sorted(type(one).__name__ for one in said) == [
        "AlreadySettled", "AlreadySettled", "Settled",
    ]  # fmt: skip
    assert len(two.tape.of(ev.Settled)) == 1


async def test_when_the_other_process_dies_first_the_answer_counts_here(two):
    ask = await two.asked(takes=False)
    answering = asyncio.ensure_future(two.second.answer(ask.id, "allow", FAR))
    while not await two.left():
        continue
    await kill(two.first)
    two.alive.discard("first")
    assert (await answering).by == FAR
    await two.second.idle(two.sid)
    assert (await two.second.look(two.sid)).messages[-1].content == (Text("done there"),)


async def test_an_answer_that_was_stored_by_a_process_that_died_then_is_no_second_one(two):
    """It settled the question and could not say so any more: whoever answered is told its own."""
    ask = await two.asked(takes=False)
    answering = asyncio.ensure_future(two.second.answer(ask.id, "allow", FAR))
    while not await two.left():
        continue
    await two.first.answer(ask.id, "allow", FAR)
    await two.work.done
    await two.first.close(two.sid)
    assert (await answering).by == FAR
    with pytest.raises(AlreadySettled):
        await two.second.answer(ask.id, "deny", FAR)


async def test_a_process_that_does_not_look_is_said_to_and_nothing_is_left(two, monkeypatch):
    monkeypatch.setattr(letters, "HOLDS_SECONDS", 0.05)
    ask = await two.asked(takes=False)
    with pytest.raises(InUse, match="does not take answers now"):
        await two.second.answer(ask.id, "allow", FAR)
    assert not await two.left()


async def test_old_letters_and_those_of_another_version_are_thrown_away(two):
    ask = await two.asked()
    old = Letter(two.sid, host_of(two.first).clock.now_ms() - 60_000, ask.id, "allow", FAR)
    await two.stores[1].put(LETTERS, "old", msgspec.json.encode(old))
    await two.stores[1].put(LETTERS, "strange", b'{"session": 7}')
    async with asyncio.timeout(60):
        while await two.left():
            continue
    assert not two.tape.of(ev.Settled), "a letter whose sender was told no must not count later"


async def test_a_process_that_waits_for_nobody_does_not_look(two, monkeypatch):
    monkeypatch.setattr(letters, "HOLDS_SECONDS", 0.0)
    begun = asyncio.Event()
    ask = await two.asked(begun.set)
    await asyncio.wait_for(begun.wait(), 60)
    looking = two.letters._task
    assert looking is not None
    await two.first.answer(ask.id, "allow", ME)
    await asyncio.wait_for(looking, 60)
    assert two.letters._task is None


async def test_who_watches_everything_sees_the_question_of_another_process(two):
    """`catch_up` is what a daemon does every second while somebody watches all sessions."""
    seen = Tape()
    await two.second.reached()
    two.second.watch_all(FAR, seen, lambda said: None)
    ask = await two.asked()
    await host_of(two.second).catch_up()
    assert (await seen.until(ev.Asked)).body.ask.id == ask.id
