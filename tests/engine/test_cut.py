"""Words that were shown and whose message was broken off stay, marked as cut."""

import asyncio

import pytest
from tests.engine.tape import ME
from tests.engine.test_recovery import begin, kill, reopen  # noqa: F401

from dragoman.engine import ending
from dragoman.engine import events as ev
from dragoman.engine.content import Message, Text, Thinking, text_of
from dragoman.engine.host import OpenSpec
from dragoman.engine.ports import ModelText, ModelThought
from dragoman.testing.host import host_of, memory_door
from dragoman.testing.script import Scripted, call_with, fail, hang, say, think, turn


class Blunt(Scripted):
    """A provider that forgets to say that it was opened."""

    async def stream(self, request):
        self.requests.append(request)
        yield ModelThought("hm")
        yield ModelText("some words")
        self.hanging.set()
        await asyncio.Event().wait()


class Broken(Scripted):
    async def stream(self, request):
        yield ModelText("some words")
        raise ZeroDivisionError


def last_of(door, sid) -> Message:
    return host_of(door).live[sid].state.messages[-1]


ARGS = call_with("write", {"text": "x"}, id="t1", fragments=3)


@pytest.mark.parametrize(
    ("make", "shown"),
    [
        (lambda: Scripted([turn(say("I will", deltas=2), ARGS, hang())]), "I will"),
        (lambda: Scripted([turn("I will", ARGS, "and more", hang())]), "I willand more"),
        (lambda: Scripted([turn(think("hm"), "I will", ARGS, hang())]), "I will"),
        (lambda: Scripted([turn("plain", hang())]), "plain"),
        (lambda: Blunt([]), "some words"),
    ],
)
@pytest.mark.parametrize("cause", ["client", "interrupt"])
async def test_words_before_a_cancel_stay(make, shown, cause):
    script = make()
    door = memory_door(script)
    info = await door.open(OpenSpec(cwd="/"), ME)
    work = await door.prompt(info.id, (Text("go"),), ME)
    await asyncio.wait_for(script.hanging.wait(), 60)
    if cause == "interrupt":
        await door.interrupt(info.id)
    else:
        door.cancel(info.id)
    finished = await work.done
    said = last_of(door, info.id)
    assert (said.role, text_of(said.content), said.cut) == ("assistant", shown, True)
    assert finished.text == shown
    assert not host_of(door).live[info.id].state.journal, "half a call is no call"


async def test_words_of_an_agent_that_breaks_stay():
    door = memory_door(Broken([]))
    info = await door.open(OpenSpec(cwd="/"), ME)
    finished = await (await door.prompt(info.id, (Text("go"),), ME)).done
    assert finished.outcome == "failed"
    said = last_of(door, info.id)
    assert text_of(said.content) == "some words" and said.cut is True


async def test_words_before_a_failure_stay_once():
    door = memory_door(Scripted([turn("half", fail())]))
    info = await door.open(OpenSpec(cwd="/"), ME)
    await (await door.prompt(info.id, (Text("go"),), ME)).done
    messages = host_of(door).live[info.id].state.messages
    assert [text_of(m.content) for m in messages] == ["go", "half"] and messages[-1].cut is True


async def test_whole_messages_are_not_marked():
    door = memory_door(Scripted([turn("whole")]))
    info = await door.open(OpenSpec(cwd="/"), ME)
    await (await door.prompt(info.id, (Text("go"),), ME)).done
    assert not last_of(door, info.id).cut
    assert [type(e.body) for e in await door.history(info.id)].count(ev.Spoke) == 1


def notes(door) -> "asyncio.Queue[bytes | None]":
    """What is noted of drafts from now on; None: a note was removed."""
    store = host_of(door).store
    put, told = store.put, asyncio.Queue()

    async def telling(space, key, value):
        await put(space, key, value)
        if space == ending.DRAFTS:
            told.put_nowait(value)

    store.put = telling
    return told


async def test_what_a_model_said_until_a_kill_comes_back(reopen, monkeypatch):  # noqa: F811
    monkeypatch.setattr(ending, "NOTE_SECONDS", 0.01)
    script = Scripted([turn(think("hm"), "many words", ARGS, hang())])
    door = await reopen(script)
    noted = notes(door)
    sid, _ = await begin(door)
    await door.prompt(sid, (Text("go"),), ME)
    await asyncio.wait_for(script.hanging.wait(), 60)
    assert await asyncio.wait_for(noted.get(), 60)
    await kill(door)
    door = await reopen(Scripted(["again"]))
    await door.load(sid)
    said = last_of(door, sid)
    assert said.content == (Thinking("hm"), Text("many words")) and said.cut is True
    ended = [e.body for e in await door.history(sid) if type(e.body) is ev.TurnEnded]
    assert [one.text for one in ended] == ["many words"]
    await (await door.prompt(sid, (Text("more"),), ME)).done
    assert text_of(last_of(door, sid).content) == "again"


async def test_a_note_of_a_message_that_was_kept_is_void(reopen, monkeypatch):  # noqa: F811
    monkeypatch.setattr(ending, "NOTE_SECONDS", 0.01)
    script = Scripted([turn("first", hang(), call_with("none", {})), turn(hang())])
    door = await reopen(script)
    noted = notes(door)
    sid, _ = await begin(door)
    await door.prompt(sid, (Text("go"),), ME)
    await asyncio.wait_for(script.hanging.wait(), 60)
    assert await asyncio.wait_for(noted.get(), 60)
    script.release()
    await asyncio.wait_for(script.hanging.wait(), 60)  # in the second step
    await kill(door)
    door = await reopen(Scripted([]))
    await door.load(sid)
    said = [text_of(m.content) for m in host_of(door).live[sid].state.messages]
    assert said.count("first") == 1


async def test_a_turn_that_ends_leaves_no_note(reopen, monkeypatch):  # noqa: F811
    monkeypatch.setattr(ending, "NOTE_SECONDS", 0.01)
    script = Scripted([turn("words", hang(), "more")])
    door = await reopen(script)
    noted = notes(door)
    sid, _ = await begin(door)
    work = await door.prompt(sid, (Text("go"),), ME)
    await asyncio.wait_for(script.hanging.wait(), 60)
    assert await asyncio.wait_for(noted.get(), 60)
    script.release()
    await work.done
    async with asyncio.timeout(60):
        while await noted.get() is not None:
            continue
    assert await host_of(door).store.get(ending.DRAFTS, sid) is None


async def test_half_characters_can_be_noted():
    note = ending.Note("t", 1, 0, (Text("a\ud83d"), Thinking("b")))
    assert b"a" in ending._encoded(note)
