"""Calls of an agent that runs its tools itself: asked about like our own, and never run here."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.engine.tape import ME, Tape

from dragoman.engine import events as ev
from dragoman.engine.content import Text, ToolCall
from dragoman.engine.door import Door
from dragoman.engine.events import Settled
from dragoman.engine.faults import Refused
from dragoman.engine.hooks import Block, Executing, HookContext, Payload
from dragoman.engine.host import OpenSpec
from dragoman.engine.hosted import Shown, _as_ours
from dragoman.engine.ports import Judgement, ToolSpec, TurnPort, TurnResult
from dragoman.engine.question import ROUNDS
from dragoman.engine.traits import Waiver
from dragoman.testing.host import FixedAgents, KindPolicy, host_of, memory_door
from dragoman.testing.script import Scripted

Act = Callable[[TurnPort], Awaitable[None]]
RUN = ToolCall("c1", "Run", {"command": ["git", "commit", "-m", "two words"]})


class Own:
    """An agent that does what the test says."""

    def __init__(self, act: Act) -> None:
        self.act = act

    async def run(self, turn: TurnPort) -> TurnResult:
        await self.act(turn)
        return TurnResult()

    async def compact(self, turn: TurnPort) -> str:
        raise NotImplementedError


async def hosting(
    act: Act, cwd: str = "/", judge: KindPolicy | None = None, **more: Any
) -> tuple[Door, str, Tape]:
    door = memory_door(Scripted([]), **more)
    agents = host_of(door).agents
    assert isinstance(agents, FixedAgents)
    agents.judge = judge or agents.judge
    agents.backend = lambda profile: Own(act)
    info = await door.open(OpenSpec(cwd=cwd), ME)
    tape = Tape()
    await door.watch(info.id, ME, tape, lambda said: None)
    return door, info.id, tape


async def asking(
    call: ToolCall, kind: str = "execute", cwd: str = "/", **more: Any
) -> tuple[Door, str, Tape, list[Settled]]:
    """A turn in which the agent asks about one call."""
    heard: list[Settled] = []

    async def act(turn: TurnPort) -> None:
        heard.append(await turn.hosted.ask(call, kind, "it says so"))

    return (*await hosting(act, cwd, **more), heard)


class Interceptor:
    name = "guard"

    def __init__(self, answer: Block | None) -> None:
        self.answer = answer
        self.saw: list[Payload] = []

    def observe(self, hook: str, data: Payload, context: HookContext) -> None:
        return None

    async def intercept(self, hook: str, data: Any, context: HookContext) -> Any:
        self.saw.append(data)
        return self.answer


async def test_an_app_may_block_a_call_before_a_human_is_asked() -> None:
    door, sid, tape, heard = await asking(RUN)
    guard = Interceptor(Block("not here"))
    host_of(door).hooks.subscribe("tool_executing", guard, intercepts=True)
    await (await door.prompt(sid, (Text("go"),), ME)).done
    assert [(one.verdict, one.comment) for one in heard] == [("deny", "Blocked: not here")]
    assert tape.of(ev.Asked) == []
    (saw,) = guard.saw
    assert isinstance(saw, Executing) and saw.tool == "Run"


async def test_an_app_is_told_once_when_it_may_intercept() -> None:
    """What was told when the agent asked is not told again when it begins."""

    async def act(turn: TurnPort) -> None:
        await turn.hosted.ask(RUN, "execute", "it")
        await turn.hosted.began(RUN, "execute")
        await turn.hosted.ended(RUN, "done", (Text("fine"),))

    door, sid, _ = await hosting(act, mode="full")
    guard = Interceptor(None)
    host_of(door).hooks.subscribe("tool_executing", guard, intercepts=True)
    await (await door.prompt(sid, (Text("go"),), ME)).done
    assert len(guard.saw) == 1


async def test_a_waiver_covers_commands_of_other_agents_under_our_name() -> None:
    door, sid, tape, heard = await asking(RUN)
    await door.keep(sid, Waiver, tools=("bash",))
    await (await door.prompt(sid, (Text("go"),), ME)).done
    assert [one.verdict for one in heard] == ["allow"] and tape.of(ev.Asked) == []


async def test_a_remembered_answer_holds_for_the_same_call_again() -> None:
    door, sid, tape, heard = await asking(RUN)
    work = await door.prompt(sid, (Text("go"),), ME)
    ask = (await tape.until(ev.Asked)).body.ask
    settled = await door.answer(ask.id, "allow_always", ME)
    await work.done
    await (await door.prompt(sid, (Text("again"),), ME)).done
    assert len(tape.of(ev.Asked)) == 1
    assert (heard[1].verdict, heard[1].rule) == ("allow", settled.rule)
    assert settled.rule in heard[1].comment


class Never(KindPolicy):
    def judge(self, *args: Any, **how: Any) -> Judgement:
        return Judgement("deny", "never")


async def test_policy_says_no_in_its_words() -> None:
    door, sid, _, heard = await asking(RUN, judge=Never())
    await (await door.prompt(sid, (Text("go"),), ME)).done
    assert (heard[0].verdict, heard[0].comment) == ("deny", "never")


async def test_what_is_refused_while_it_is_asked_about_is_a_no(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def refuse(*given: Any) -> None:
        raise Refused("The budget is used up.")

    monkeypatch.setattr("dragoman.engine.hosted.remembered", refuse)
    door, sid, _, heard = await asking(RUN)
    await (await door.prompt(sid, (Text("go"),), ME)).done
    assert (heard[0].verdict, heard[0].comment) == ("deny", "The budget is used up.")


async def test_a_file_that_keeps_changing_is_not_agreed_to(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("0")
    call = ToolCall("c1", "Write", {"path": str(file), "content": "mine"})
    door, sid, tape, heard = await asking(call, "edit", str(tmp_path))
    work = await door.prompt(sid, (Text("go"),), ME)
    answered: list[str] = []
    for _ in range(ROUNDS):
        asked = await tape.until(ev.Asked, lambda e: e.body.ask.id not in answered)
        answered.append(asked.body.ask.id)
        file.write_text(f"changed {len(answered)} times")  # after it was shown, before the yes
        await door.answer(answered[-1], "allow", ME)
    await work.done
    assert heard[0].verdict == "deny" and "kept changing" in heard[0].comment
    assert len(tape.of(ev.Asked)) == ROUNDS


async def test_nothing_of_another_agent_is_run_here() -> None:
    shown = Shown(ToolSpec("Run", "", {}, "execute"), "its words")
    assert shown.summary({}) == "its words"
    with pytest.raises(TypeError):
        await shown.run({}, None)


@pytest.mark.parametrize(
    ("args", "kind", "name", "command"),
    [
        ({"command": ["git", "add", "a b"]}, "execute", "bash", "git add 'a b'"),
        ({"command": "ls | wc"}, "execute", "bash", "ls | wc"),
        ({"command": ["ls", 5]}, "execute", "Run", None),
        ({"command": "ls"}, "read", "Run", None),
        (None, "execute", "Run", None),
    ],
)
def test_commands_are_judged_by_the_name_that_policy_knows(
    args: dict[str, Any] | None, kind: str, name: str, command: str | None
) -> None:
    made = _as_ours(ToolCall("c", "Run", args), kind)
    assert made.name == name
    if command is not None:
        assert made.args is not None and made.args["command"] == command


async def test_half_a_character_is_asked_about() -> None:
    """What cannot be written as UTF-8 does not keep a call from being asked about."""
    door, sid, tape, heard = await asking(ToolCall("c1", "Say", {"text": "a\ud800b"}), "other")
    await door.prompt(sid, (Text("go"),), ME)
    ask = (await tape.until(ev.Asked)).body.ask
    await door.answer(ask.id, "allow", ME)
    await door.idle(sid)
    assert [one.verdict for one in heard] == ["allow"]
    assert (await door.ask(ask.id)).settled == heard[0]
