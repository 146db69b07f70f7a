"""Undo as clients ask for it: words in a prompt, methods, the command line."""

import asyncio
import subprocess
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.living import Living
from tests.engine.tape import ME

from dragoman.checkpoints.keeper import Keeper
from dragoman.client import Plain
from dragoman.engine.content import Text, text_of
from dragoman.engine.faults import BadInput, Busy, Changed
from dragoman.engine.host import OpenSpec
from dragoman.engine.ports import Outcome
from dragoman.testing.host import EchoTool, host_of, memory_door
from dragoman.testing.script import Scripted, call, hang, say, turn


class Shell(EchoTool):
    """Runs its text, and then waits when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.waits = asyncio.Event()

    async def run(self, args: dict[str, Any], env: Any) -> Outcome:
        subprocess.run(args["text"], shell=True, cwd=env.cwd, check=True)
        if args.get("hangs"):
            self.waits.set()
            await asyncio.Event().wait()
        return await super().run(args, env)


class Scene:
    def __init__(self, folder: Path, *replies: Any) -> None:
        self.work = folder / "work"
        self.work.mkdir()
        (self.work / "a.txt").write_text("one")
        self.script = Scripted([turn(*parts) for parts in replies])
        self.tool = Shell()
        self.door = memory_door(self.script, [self.tool], mode="full")
        self.keeper = Keeper(str(folder / "c.db"))
        weakref.finalize(self, self.keeper.close)
        host_of(self.door).make_checkpoints = lambda: self.keeper

    async def open(self) -> str:
        return (await self.door.open(OpenSpec(cwd=str(self.work)), ME)).id

    async def say(self, session: str, text: str) -> Any:
        return await (await self.door.prompt(session, (Text(text),), ME)).done

    @property
    def text(self) -> str:
        return (self.work / "a.txt").read_text()


def changing(command: str, **more: Any) -> list[Any]:
    return [call("echo", text=command, **more)]


async def test_words_undo_and_redo_without_a_model(tmp_path: Path) -> None:
    scene = Scene(tmp_path, changing("printf two > a.txt"), [say("done")], [say("after")])
    session = await scene.open()
    await scene.say(session, "go")
    assert scene.text == "two"
    done = await scene.say(session, "/undo")
    assert done.outcome == "completed" and "changed: a.txt" in done.text
    assert scene.text == "one"
    assert "a.txt (changed)" in (await scene.say(session, "/undo list")).text
    assert "nothing to undo" in (await scene.say(session, "/undo")).text
    assert "redone" in (await scene.say(session, "/redo")).text
    assert scene.text == "two" and len(scene.script.requests) == 2
    await scene.say(session, "and now?")
    seen = [text_of(m.content) for m in scene.script.requests[-1].messages]
    assert any("1 turn undone" in text for text in seen)  # the model knows


async def test_the_door_undoes_only_what_rests_and_tells_everybody(tmp_path: Path) -> None:
    scene = Scene(tmp_path, changing("printf two > a.txt"), changing("true", hangs=True))
    session = await scene.open()
    work = await scene.door.prompt(session, (Text("go"),), ME)
    await asyncio.wait({work.started})
    await scene.tool.waits.wait()
    with pytest.raises(Busy):
        await scene.door.undo(session)
    scene.door.cancel(session)
    await work.done
    (one,) = await scene.door.checkpoints(session)
    assert one.turn == work.turn
    await scene.door.undo(session, by=ME)
    assert scene.text == "one"
    noted = [e.body for e in await scene.door.history(session) if type(e.body).__name__ == "Noted"]
    assert noted[-1].title == "Undone" and noted[-1].data["turns"] == [work.turn]  # type: ignore[index]
    assert scene.door.live(session).extra["restored"]["files"] == ["a.txt"]
    (scene.work / "a.txt").write_text("mine")
    with pytest.raises(Changed, match="mine"):
        await scene.door.redo(session)


async def test_a_cancelled_call_can_be_undone(tmp_path: Path) -> None:
    scene = Scene(tmp_path, changing("printf two > a.txt", hangs=True))
    session = await scene.open()
    work = await scene.door.prompt(session, (Text("go"),), ME)
    await scene.tool.waits.wait()
    scene.door.cancel(session)
    await work.done
    await scene.door.undo(session)
    assert scene.text == "one"


async def test_what_somebody_does_while_the_model_thinks_is_not_undone(tmp_path: Path) -> None:
    scene = Scene(
        tmp_path,
        changing("printf two > a.txt"),
        [hang(), *changing("printf ' and more' >> a.txt")],
        [say("done")],
    )
    session = await scene.open()
    work = await scene.door.prompt(session, (Text("go"),), ME)
    await scene.script.hanging.wait()
    (scene.work / "a.txt").write_text("two, mine")
    scene.script.release()
    await work.done
    with pytest.raises(Changed, match=r"\+two, mine"):
        await scene.door.undo(session)
    assert scene.text == "two, mine and more"
    assert "while that turn worked" in (await scene.say(session, "/undo")).text


async def test_work_goes_on_where_nothing_can_be_kept(tmp_path: Path) -> None:
    scene = Scene(tmp_path, changing("printf two > a.txt"), [say("done")])
    (tmp_path / "c.db").mkdir()
    session = await scene.open()
    assert (await scene.say(session, "go")).outcome == "completed" and scene.text == "two"
    host_of(scene.door)._checkpoints = None
    host_of(scene.door).make_checkpoints = lambda: None
    with pytest.raises(BadInput, match="No checkpoints"):
        await scene.door.undo(session)


@pytest.fixture(scope="module")
def living(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Living]:
    made = Living(tmp_path_factory.mktemp("d"))
    made.start()
    yield made
    made.stop()


def test_the_command_line_undoes_with_and_without_a_daemon(living: Living) -> None:
    with Plain(living.socket, "test") as host:
        opened = host.call("dragoman/open", {"cwd": str(living.work), "mode": "full"})
        session = opened["session"]["id"]
        host.call("dragoman/prompt", {"session_id": session, "text": 'write "x" to made.txt'})
    made = living.work / "made.txt"
    assert made.exists()
    assert "made.txt" in living.says("sessions", "undo", session, "--list")
    assert "made.txt" in living.says("sessions", "undo", session)
    assert not made.exists()
    assert living.json("sessions", "redo", session)["files"] == [
        {"path": "made.txt", "fate": "made"}
    ]
    made.write_text("mine")
    refused = living.run("sessions", "undo", session)
    assert refused.returncode != 0 and "+mine" in refused.stderr and made.read_text() == "mine"
    living.stop()
    made.unlink()
    refused = living.run("sessions", "undo", session, "nope")
    assert refused.returncode != 0 and "No turn nope" in refused.stderr
    assert living.json("sessions", "undo", session)["files"] == []  # it is gone already
