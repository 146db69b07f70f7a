"""One call is stopped, and its turn goes on."""

import asyncio
from typing import Any

import pytest
from tests.engine.tape import ME

from dragoman.engine.content import Text, ToolResult
from dragoman.engine.door import Door
from dragoman.engine.faults import NothingRunning, UnknownSession
from dragoman.engine.host import OpenSpec
from dragoman.engine.ports import Outcome
from dragoman.testing.host import EchoTool, host_of, memory_door
from dragoman.testing.script import Scripted, call, turn


class Slow(EchoTool):
    """Waits; `stubborn` does not care that it is stopped, and `breaks` fails then."""

    def __init__(self, kind: Any = "execute", stubborn: bool = False, breaks: bool = False) -> None:
        super().__init__("slow", kind)
        self.begun: asyncio.Queue[str] = asyncio.Queue()
        self._stubborn, self._breaks = stubborn, breaks
        self.go = asyncio.Event()

    async def run(self, args: dict[str, Any], env: Any) -> Outcome:
        self.begun.put_nowait(env.call_id)
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            if self._breaks:
                raise ValueError("broke on its way out") from None
            if not self._stubborn:
                raise
        return Outcome((Text("came to its end"),))


async def begin(tool: Slow, *calls: Any) -> tuple[Door, str, Any]:
    script = Scripted([turn(*(calls or (call("slow"),))), "went on"])
    door = memory_door(script, [tool, EchoTool()], mode="full")
    session = (await door.open(OpenSpec(), ME)).id
    return door, session, await door.prompt(session, (Text("go"),), ME)


def results(door: Door, session: str) -> list[tuple[str, bool]]:
    view = door.live(session)
    assert view is not None
    found = [b for m in view.messages for b in m.content if isinstance(b, ToolResult)]
    return [(b.content[0].text, b.is_error) for b in found if isinstance(b.content[0], Text)]


async def test_the_model_is_told_and_goes_on() -> None:
    tool = Slow()
    door, session, work = await begin(tool)
    id = await tool.begun.get()
    view = door.live(session)
    assert view is not None and view.can_stop(id) and not view.can_stop("another")
    door.stop_call(session, id)
    door.stop_call(session, id)  # once more changes nothing
    finished = await work.done
    assert (finished.outcome, finished.text) == ("completed", "went on")
    ((text, is_error),) = results(door, session)
    assert text.startswith("stopped: the user stopped this call") and is_error
    assert not view.can_stop(id)
    with pytest.raises(NothingRunning):
        door.stop_call(session, id)
    with pytest.raises(UnknownSession):
        door.stop_call("ghost", id)


@pytest.mark.parametrize(
    ("how", "text"), [("stubborn", "came to its end"), ("breaks", "slow broke: ValueError")]
)
async def test_how_a_tool_takes_it_is_its_own_affair(how: str, text: str) -> None:
    tool = Slow(**{how: True})  # type: ignore[arg-type]
    door, session, work = await begin(tool)
    host_of(door).trouble = lambda *args, **data: None
    door.stop_call(session, await tool.begun.get())
    assert (await work.done).outcome == "completed"
    ((said, _),) = results(door, session)
    assert said.startswith(text)


async def test_others_beside_it_go_on() -> None:
    tool = Slow("read")
    door, session, work = await begin(tool, call("slow"), call("slow"))
    first = await tool.begun.get()
    await tool.begun.get()
    door.stop_call(session, first)
    await asyncio.sleep(0)
    tool.go.set()
    assert (await work.done).outcome == "completed"
    assert [is_error for _, is_error in results(door, session)] == [True, False]


async def test_the_turns_own_cancel_wins() -> None:
    tool = Slow()
    door, session, work = await begin(tool)
    door.stop_call(session, await tool.begun.get())
    door.cancel(session)
    assert (await work.done).outcome == "cancelled"


async def test_a_later_call_is_not_touched() -> None:
    tool = Slow(stubborn=True)
    script = Scripted([call("slow"), call("echo", text="x"), "end"])
    door = memory_door(script, [tool, EchoTool()], mode="full")
    session = (await door.open(OpenSpec(), ME)).id
    work = await door.prompt(session, (Text("go"),), ME)
    door.stop_call(session, await tool.begun.get())
    assert (await work.done).outcome == "completed"
    assert results(door, session) == [("came to its end", False), ("x", False)]
