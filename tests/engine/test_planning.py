"""Plan mode through the engine: what is offered, who leads out of it, and what is told."""

from pathlib import Path
from typing import Any

import pytest
from tests.engine.tape import ME, Tape

from dragoman.engine.content import Text, ToolResult
from dragoman.engine.events import Asked
from dragoman.engine.faults import BadInput
from dragoman.engine.host import OpenSpec
from dragoman.engine.info import plan_file
from dragoman.engine.planning import STAY, after, offered
from dragoman.engine.ports import ToolSpec
from dragoman.policy.autonomy import AutonomyPolicy
from dragoman.testing.host import EchoTool, host_of, memory_door
from dragoman.testing.script import Scripted, call, say, turn
from dragoman.tools.plan import ProposePlan
from dragoman.tools.read import Read
from dragoman.tools.registry import NAMES, Registry


def planning(script: Scripted, tmp: Path, **profile: Any) -> Any:
    policy = AutonomyPolicy()
    tools = Registry(lambda env: policy.boundary(env.mode, env.cwd, env.roots, env.reach))
    door = memory_door(script, [tool for name in NAMES if (tool := tools.find(name))], **profile)
    agents: Any = host_of(door).agents
    agents.judge = policy
    return door


async def asked(door: Any, session: str) -> Any:
    """The question that is open, as soon as there is one."""
    tape = Tape()
    watch = await door.watch(session, ME, tape, lambda said: None, since=0)
    try:
        await tape.until(Asked, lambda event: event.body.ask.id in door.live(session).asks)
    finally:
        watch.close()
    return next(iter(door.live(session).asks.values()))


def results(door: Any, session: str) -> list[str]:
    return [
        block.content[0].text
        for message in door.live(session).messages
        for block in message.content
        if isinstance(block, ToolResult)
    ]


async def begun(door: Any, tmp: Path, **more: Any) -> tuple[str, Any]:
    session = (await door.open(OpenSpec(cwd=str(tmp), mode="plan", **more), ME)).id
    return session, await door.prompt(session, (Text("mend it"),), ME)


async def test_only_the_plan_is_written_and_a_yes_leads_out(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    seen: list[Any] = []

    class Watching(Scripted):
        def stream(self, request: Any) -> Any:
            seen.append((request.system, {tool.name for tool in request.tools}))
            return super().stream(request)

    plan = tmp_path / ".agents" / "plans" / "s-1.md"
    script = Watching(
        [
            turn(
                call("read", path="a.py"),
                call("write", path="b.py", content="no"),
                call("edit", path="a.py", old_text="x", new_text="y"),
                call("bash", command="touch c"),
                call("write", path=str(plan), content="1. change x\n"),
            ),
            say("That is the plan."),
            turn(call("write", path="done.py", content="yes")),
            say("Done."),
        ]
    )
    door = planning(script, tmp_path, mode="full")
    session, work = await begun(door, tmp_path, id="s-1")
    ask = await asked(door, session)
    assert ask.kind == "question" and "1. change x" in ask.title
    assert ask.choices == ("Go on (full)", STAY)
    assert door.live(session).mode == "plan"
    await door.answer(ask.id, "answer", ME, text="Go on (full)")
    assert (await work.done).outcome == "completed"
    assert door.live(session).mode == "full"
    assert plan.read_text() == "1. change x\n"
    assert (tmp_path / "done.py").read_text() == "yes"
    assert sorted(path.name for path in tmp_path.iterdir()) == [".agents", "a.py", "done.py"]
    assert (tmp_path / "a.py").read_text() == "x = 1\n"
    said = results(door, session)
    assert [("plan mode" in text) for text in said[1:4]] == [True, True, True]
    assert "propose_plan" in seen[0][1] and "bash" not in seen[0][1]
    assert str(plan) in seen[0][0] and "Plan mode" not in seen[2][0]
    assert "bash" in seen[2][1] and "propose_plan" not in seen[2][1]


async def test_no_is_told_once_and_the_mode_stays(tmp_path: Path) -> None:
    script = Scripted([say("First change a, then b."), say("I wait.")])
    door = planning(script, tmp_path)
    session, work = await begun(door, tmp_path)
    ask = await asked(door, session)
    await door.answer(ask.id, "answer", ME, text=STAY)
    assert (await work.done).text == "I wait."
    assert door.live(session).mode == "plan" and not door.live(session).asks
    assert "does not agree" in results(door, session)[0]


async def test_words_lead_to_another_plan_and_another_question(tmp_path: Path) -> None:
    script = Scripted(
        [say("Plan A."), turn(call("read", path="x")), say("Plan B."), say("Waiting.")]
    )
    door = planning(script, tmp_path)
    session, work = await begun(door, tmp_path)
    first = await asked(door, session)
    await door.answer(first.id, "answer", ME, text="Use a queue instead.")
    second = await asked(door, session)
    assert second.id != first.id
    await door.answer(second.id, "cancelled", ME)
    await work.done
    assert "Use a queue instead." in results(door, session)[0]
    assert "Not agreed" in results(door, session)[2]
    assert door.live(session).mode == "plan"


@pytest.mark.parametrize("said", ["no", "Go on (supervised) later", "go away", "", "full"])
async def test_only_a_clear_yes_counts(said: str, tmp_path: Path) -> None:
    door = planning(Scripted([say("Plan."), say("ok")]), tmp_path)
    session, work = await begun(door, tmp_path)
    await door.answer((await asked(door, session)).id, "answer", ME, text=said)
    await work.done
    assert door.live(session).mode == "plan"


async def test_a_link_in_place_of_the_plans_leads_nowhere(tmp_path: Path) -> None:
    work_dir, elsewhere = tmp_path / "work", tmp_path / "work" / "src"
    elsewhere.mkdir(parents=True)
    (work_dir / ".agents").mkdir()
    (work_dir / ".agents" / "plans").symlink_to(elsewhere)
    script = Scripted(
        [turn(call("write", path=".agents/plans/s-1.md", content="x")), say("p"), say("q")]
    )
    door = planning(script, work_dir)
    session, work = await begun(door, work_dir, id="s-1")
    await door.answer((await asked(door, session)).id, "answer", ME, text=STAY)
    await work.done
    assert not list(elsewhere.iterdir())
    assert "nothing is written" in results(door, session)[0]


async def test_outside_of_plan_mode_there_is_nothing_to_leave(tmp_path: Path) -> None:
    door = planning(Scripted([turn(call("propose_plan")), say("x")]), tmp_path)
    session = (await door.open(OpenSpec(cwd=str(tmp_path)), ME)).id
    await (await door.prompt(session, (Text("go"),), ME)).done
    assert "not in plan mode" in results(door, session)[0]
    assert door.live(session).mode == "supervised"


async def test_where_nobody_is_asked_it_simply_ends(tmp_path: Path) -> None:
    policy = AutonomyPolicy()
    bounds = lambda env: policy.boundary(env.mode, env.cwd, env.roots)  # noqa: E731
    door = memory_door(Scripted([say("Plan.")]), [Read(bounds)])
    session, work = await begun(door, tmp_path)
    assert (await work.done).text == "Plan."


def test_what_is_offered_and_what_comes_after() -> None:
    spec = lambda name, kind: ToolSpec(name, "", {}, kind)  # noqa: E731
    specs = [spec("bash", "execute"), spec("read", "read"), ProposePlan.spec, spec("rm", "delete")]
    assert [one.name for one in offered(specs)] == ["read", "propose_plan"]
    assert [after(mode) for mode in ("plan", "readonly", "supervised", "full")] == [
        "supervised", "supervised", "supervised", "full",
    ]  # fmt: skip


def test_a_session_of_any_name_has_a_plan_inside_of_its_folder(tmp_path: Path) -> None:
    for name in ("../../etc/passwd", "a/b", "", "x" * 300, "ä\0"):
        path = Path(plan_file(str(tmp_path), name))
        assert path.parent == tmp_path.resolve() / ".agents" / "plans" and len(path.name) < 80


async def test_an_unknown_mode_is_refused(tmp_path: Path) -> None:
    door = planning(Scripted([]), tmp_path)
    session = (await door.open(OpenSpec(cwd=str(tmp_path)), ME)).id
    with pytest.raises(BadInput, match="plan"):
        await door.set_mode(session, "planning", ME)


@pytest.mark.parametrize(
    ("mode", "told"), [("plan", ["look", "propose_plan"]), ("full", ["look", "run"])]
)
async def test_the_model_is_told_of_the_tools_of_its_mode(mode: Any, told: list[str]) -> None:
    script = Scripted(["ok"], loop=True)
    tools = [EchoTool("look", "read"), EchoTool("run"), EchoTool("propose_plan", "other")]
    door = memory_door(script, tools, mode=mode)
    sid = (await door.open(OpenSpec(cwd="/"), ME)).id
    await (await door.prompt(sid, (Text("go"),), ME)).done
    assert [tool.name for tool in script.requests[0].tools] == told
