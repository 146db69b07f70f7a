"""What calls change is kept around them, and that it cannot be stops no work."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from tests.engine.tape import ME
from tests.engine.test_undoing import Kept, opened

from dragoman.engine.content import Text
from dragoman.engine.faults import BadInput
from dragoman.engine.ports import Outcome, ToolEnv
from dragoman.testing.host import EchoTool, host_of
from dragoman.testing.script import Scripted, call


class Edits(EchoTool):
    """Knows which files it touches, or says that it was asked for nonsense."""

    def touches(self, args: dict[str, Any], env: ToolEnv) -> Sequence[str]:
        if args["text"] == "bad":
            raise BadInput("No such file.")
        return ["/x"] if args["text"] == "x" else []


@pytest.mark.parametrize(
    ("tool", "text", "told"),
    [
        (Edits(), "x", [("before", ["/x"]), ("after", ["/x"])]),
        (Edits(), "nothing", []),
        (Edits(), "bad", []),
        (EchoTool(), "x", [("before", None), ("after", None)]),
        (EchoTool(kind="read"), "x", []),
    ],
)
async def test_what_a_call_touches_is_kept_around_it(
    tool: EchoTool, text: str, told: list[Any]
) -> None:
    keeper = Kept()
    door, sid = await opened(Scripted([call("echo", text=text), "ok"]), keeper, [tool], mode="full")
    await (await door.prompt(sid, (Text("go"),), ME)).done
    assert keeper.told == told and len(tool.ran) >= 1


async def test_what_cannot_be_kept_stops_no_work() -> None:
    keeper, tool = Kept(broken=True), EchoTool()
    door, sid = await opened(Scripted([call("echo", text="x"), "ok"]), keeper, [tool], mode="full")
    troubles: list[str] = []
    host_of(door).on_trouble = lambda what, error, **data: troubles.append(what)
    done = await (await door.prompt(sid, (Text("go"),), ME)).done
    assert done.text == "ok" and tool.ran == [{"text": "x"}]
    assert troubles == ["changes are not kept"] and keeper.told == [("before", None)]


async def test_a_deleted_session_is_forgotten_with_its_files() -> None:
    keeper = Kept()
    door, sid = await opened(Scripted(["ok"]), keeper)
    assert await door.delete(sid)
    assert keeper.told == [("forget", sid)]


async def test_what_nobody_keeps_any_more_is_no_trouble() -> None:
    """Checkpoints that were taken away while a call ran: the call ends all the same."""
    keeper = Kept()

    class Last(EchoTool):
        async def run(self, args: dict[str, Any], env: ToolEnv) -> Outcome:
            host_of(door)._checkpoints = None
            host_of(door).make_checkpoints = lambda: None
            return await super().run(args, env)

    door, sid = await opened(
        Scripted([call("echo", text="x"), "ok"]), keeper, [Last()], mode="full"
    )
    assert (await (await door.prompt(sid, (Text("go"),), ME)).done).text == "ok"
    assert keeper.told == [("before", None)]


async def test_a_call_that_is_stopped_while_its_files_are_kept_leaves_nothing_open() -> None:
    reached, goes_on, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    class Slow(Kept):
        async def before(self, session: Any, turn: str, paths: Any) -> None:
            reached.set()
            await goes_on.wait()
            await super().before(session, turn, paths)

        async def after(self, session: Any, turn: str, paths: Any) -> None:
            await super().after(session, turn, paths)
            ended.set()

    keeper, tool = Slow(), EchoTool()
    door, sid = await opened(Scripted([call("echo", text="x"), "ok"]), keeper, [tool], mode="full")
    work = await door.prompt(sid, (Text("go"),), ME)
    await reached.wait()
    door.cancel(sid)
    assert (await work.done).outcome == "cancelled"
    goes_on.set()
    async with asyncio.timeout(60):
        await ended.wait()
    assert keeper.told == [("before", None), ("after", None)] and tool.ran == []
