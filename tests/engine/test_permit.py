"""Whether a call may run: what was denied, what cannot be looked at, what moves meanwhile."""

from typing import Any

import pytest
from tests.engine.tape import ME
from tests.engine.test_calls import results, start

from dragoman.engine import events as ev
from dragoman.engine.ask import Seen
from dragoman.engine.content import Text
from dragoman.engine.faults import BadInput
from dragoman.engine.ports import Judgement, Preview, ToolEnv
from dragoman.testing.host import EchoTool, FixedAgents, KindPolicy, host_of, memory_door
from dragoman.testing.script import Scripted, call


async def test_a_tool_that_was_denied_for_the_session_is_not_asked_about_again() -> None:
    script = Scripted([call("echo", text="a"), "ok"])
    door = memory_door(script, [EchoTool()])
    sid, _ = await start(door)
    state = host_of(door).live[sid].state
    state.denied = state.denied | {"echo"}
    await (await door.prompt(sid, (Text("go"),), ME)).done
    assert await results(door, sid) == ["Denied by user: echo is refused for this session."]


class Previews(EchoTool):
    """Shows what it would do, or breaks while it does so."""

    def __init__(self, *looks: Exception | Preview) -> None:
        super().__init__()
        self.looks = list(looks)

    async def preview(self, args: dict[str, Any], env: ToolEnv) -> Preview:
        look = self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]
        if isinstance(look, Exception):
            raise look
        return look


@pytest.mark.parametrize(
    ("problem", "said"),
    [
        (RuntimeError("no disk"), "echo broke: RuntimeError: no disk"),
        (BadInput("No such file."), "No such file."),
    ],
)
async def test_a_call_that_cannot_be_looked_at_is_not_asked_about(
    problem: Exception, said: str
) -> None:
    tool = Previews(problem)
    door = memory_door(Scripted([call("echo", text="a"), "ok"]), [tool])
    troubles: list[str] = []
    host_of(door).on_trouble = lambda what, error, **data: troubles.append(what)
    sid, tape = await start(door)
    await (await door.prompt(sid, (Text("go"),), ME)).done
    assert await results(door, sid) == [said]
    assert tape.of(ev.Asked) == [] and tool.ran == []
    assert troubles == (["tool failed"] if isinstance(problem, RuntimeError) else [])


class Touching(KindPolicy):
    """Asks about calls, which touch one known file."""

    def judge(self, *args: Any, **how: Any) -> Judgement:
        return Judgement("ask", files=("/here",))


async def test_a_link_that_moved_while_it_was_judged_is_looked_at_again() -> None:
    elsewhere = Preview(seen=(Seen("/there", "1"),))
    here = Preview(seen=(Seen("/here", "1"),))
    tool = Previews(elsewhere, here, here)
    door = memory_door(Scripted([call("echo", text="a"), "ok"]), [tool])
    agents = host_of(door).agents
    assert isinstance(agents, FixedAgents)
    agents.judge = Touching()
    sid, tape = await start(door)
    work = await door.prompt(sid, (Text("go"),), ME)
    ask = (await tape.until(ev.Asked)).body.ask
    await door.answer(ask.id, "allow", ME)
    await work.done
    assert len(tape.of(ev.Asked)) == 1 and tool.ran == [{"text": "a"}]


async def test_a_link_that_never_rests_is_not_run() -> None:
    tool = Previews(Preview(seen=(Seen("/there", "1"),)))
    door = memory_door(Scripted([call("echo", text="a"), "ok"]), [tool])
    agents = host_of(door).agents
    assert isinstance(agents, FixedAgents)
    agents.judge = Touching()
    sid, tape = await start(door)
    await (await door.prompt(sid, (Text("go"),), ME)).done
    (said,) = await results(door, sid)
    assert said.startswith("Not run: what echo works on kept changing")
    assert tape.of(ev.Asked) == [] and tool.ran == []
