"""Undo and redo through the door: what is said of it, and where nothing is kept."""

from collections.abc import Sequence
from typing import Any

import pytest
from tests.engine.tape import ME, Tape

from dragoman.engine import events as ev
from dragoman.engine.content import Message, Text
from dragoman.engine.door import Door
from dragoman.engine.faults import BadInput, Busy
from dragoman.engine.host import OpenSpec
from dragoman.engine.info import SessionInfo
from dragoman.engine.ports.checkpoints import ChangedFile, Checkpoint, Restored, TouchedFile
from dragoman.engine.state import State
from dragoman.engine.traits import PutBack
from dragoman.engine.undoing import sentence, words_of
from dragoman.testing.host import host_of, memory_door
from dragoman.testing.script import Scripted, hang

FILE = TouchedFile("a.txt", "changed")


class Kept:
    """Checkpoints that say what they were asked."""

    def __init__(self, broken: bool = False) -> None:
        self.told: list[tuple[str, Any]] = []
        self.broken = broken

    async def before(self, session: SessionInfo, turn: str, paths: Sequence[str] | None) -> None:
        self.told.append(("before", paths))
        if self.broken:
            raise OSError("no space")

    async def after(self, session: SessionInfo, turn: str, paths: Sequence[str] | None) -> None:
        self.told.append(("after", paths))

    async def listed(self, session: SessionInfo) -> Sequence[Checkpoint]:
        return [Checkpoint("t1", 1, (FILE,), undone=True), Checkpoint("t2", 2, (FILE, FILE))]

    async def changed(self, session: SessionInfo, turn: str = "") -> Sequence[ChangedFile]:
        return [ChangedFile(f"of {turn or 'all'}", "made")]

    async def undo(self, session: SessionInfo, turn: str = "") -> Restored:
        return Restored((turn or "t2",), (FILE,), "Links were left alone.")

    async def redo(self, session: SessionInfo) -> Restored:
        raise BadInput("Nothing was undone.")

    async def forget(self, session_id: str) -> None:
        self.told.append(("forget", session_id))


async def opened(
    script: Scripted, keeper: Kept | None, tools: Sequence[Any] = (), **more: Any
) -> tuple[Door, str]:
    door = memory_door(script, tools, **more)
    host_of(door).make_checkpoints = lambda: keeper
    return door, (await door.open(OpenSpec(cwd="/"), ME)).id


async def test_where_nothing_is_kept_nothing_is_undone() -> None:
    door, sid = await opened(Scripted(["never asked"]), None)
    for asked in (door.undo(sid), door.redo(sid), door.checkpoints(sid), door.changed(sid)):
        with pytest.raises(BadInput, match="No checkpoints"):
            await asked
    done = await (await door.prompt(sid, (Text("/undo"),), ME)).done
    assert done.text.startswith("No checkpoints are kept here.")  # and no model was asked


async def test_an_undo_is_told_to_everybody_and_kept_for_the_model() -> None:
    door, sid = await opened(Scripted(["ok"]), Kept())
    tape = Tape()
    await door.watch(sid, ME, tape, lambda said: None)
    assert [one.turn for one in await door.checkpoints(sid)] == ["t1", "t2"]
    assert [one.path for one in await door.changed(sid, "t1")] == ["of t1"]
    assert (await door.undo(sid, "t1", ME)).turns == ("t1",)
    (noted,) = tape.of(ev.Noted)
    assert noted.text == "1 turn undone.\nchanged: a.txt\nLinks were left alone."
    assert noted.data == {"checkpoint": "undone", "turns": ["t1"]}
    assert PutBack.of((await door.info(sid)).extra) == PutBack("undone", ("a.txt",), 0)
    with pytest.raises(BadInput, match="Nothing was undone"):
        await door.redo(sid)


async def test_the_words_of_a_prompt_undo_too() -> None:
    door, sid = await opened(Scripted(["never asked"]), Kept())
    said = []
    for words in ("/undo list", "/undo t1", "/undo", "/redo"):
        said.append((await (await door.prompt(sid, (Text(words),), ME)).done).text)
    assert said[0] == ("1. t1 (undone): a.txt (changed)\n2. t2: a.txt (changed), a.txt (changed)")
    assert said[1].startswith("1 turn undone.") and said[2].startswith("1 turn undone.")
    assert said[3] == "Nothing was undone."


async def test_a_running_turn_is_not_undone() -> None:
    door, sid = await opened(Scripted([hang()]), Kept())
    await door.prompt(sid, (Text("go"),), ME)
    with pytest.raises(Busy):
        await door.undo(sid)
    door.cancel(sid)
    await door.idle(sid)
    await door.undo(sid)


def test_what_is_said_of_many_files() -> None:
    files = tuple(TouchedFile(str(number), "made") for number in range(60))
    said = sentence(Restored(("a", "b"), files), "undone").splitlines()
    assert said[0] == "2 turns undone." and said[-1] == "and 10 more files" and len(said) == 52
    assert sentence(Restored(("a",), ()), "redone").endswith("All files were so already.")


def test_only_a_prompt_that_says_nothing_else_is_an_undo() -> None:
    def words(*messages: Message) -> tuple[str, str] | None:
        state = State("s")
        state.messages = list(messages)
        return words_of(state)

    assert words() is None
    assert words(Message("assistant", (Text("/undo"),))) is None
    assert words(Message("user", (Text("/undo"), Text("and more")))) is None
    assert words(Message("user", (Text("/undone"),))) is None
    assert words(Message("user", (Text("undo"),))) is None
    assert words(Message("user", (Text("/undo  t1 "),))) == ("undo", "t1")
    assert words(Message("user", (Text("/redo"),))) == ("redo", "")
