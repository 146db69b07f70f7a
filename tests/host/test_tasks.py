"""Children of sessions: opened by `task`, seen like all others, ended with their parent."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.engine.tape import ME

from dragoman.agents.roles import find_roles
from dragoman.engine.ask import Rule
from dragoman.engine.content import Text, ToolResult
from dragoman.engine.events import Opened
from dragoman.engine.host import OpenSpec
from dragoman.engine.info import SessionQuery
from dragoman.engine.rules import reaches
from dragoman.engine.state import State
from dragoman.engine.traits import Given, StartedBy, together
from dragoman.host.tasks import Tasks
from dragoman.testing.host import EchoTool, host_of, memory_door
from dragoman.testing.script import Scripted, call, hang, say, turn
from dragoman.tools.registry import Box


async def begin(script: Scripted, cwd: Path) -> tuple[Any, str]:
    door = memory_door(script, mode="full")
    host = host_of(door)
    tasks = Tasks(host)

    async def toolbox(profile: Any, info: Any) -> Any:
        found = await tasks.part(profile, info)
        return found or Box([EchoTool()])

    host.agents.toolbox = toolbox  # type: ignore[method-assign,assignment]
    return door, (await door.open(OpenSpec(cwd=str(cwd)), ME)).id


def results(door: Any, session: str) -> list[ToolResult]:
    messages = door.live(session).messages
    return [b for m in messages for b in m.content if isinstance(b, ToolResult)]


async def test_a_child_works_in_a_session_of_its_own(tmp_path: Path) -> None:
    script = Scripted([call("task", prompt="look for x", role="review"), say("found"), say("done")])
    door, parent = await begin(script, tmp_path)
    await (await door.prompt(parent, (Text("go"),), ME)).done
    (result,) = results(door, parent)
    assert result.content[0].text.startswith("found\n\n[session ")
    (child,) = (await door.list(SessionQuery(parent=parent))).sessions
    assert child.mode == "readonly" and child.title == "review: look for x"
    asked = script.requests[1]
    assert [m.content[0].text for m in asked.messages] == ["look for x"]
    assert "You review" in asked.system and "task" not in {t.name for t in asked.tools}


@pytest.mark.parametrize(
    ("listed", "parent", "child"),
    [
        ("", None, None),
        ("", ("read", "task"), ("read",)),
        ("bash, read", ("read", "task"), ("read",)),
        ("bash, task", None, ("bash",)),
        ("bash", ("read", "task"), ()),
    ],
)
async def test_no_role_has_more_than_its_parent(
    listed: str, parent: Any, child: Any, tmp_path: Path
) -> None:
    folder = tmp_path / ".agents/agents"
    folder.mkdir(parents=True)
    (folder / "helper.md").write_text(f"---\ntools: {listed}\n---\nHelp.")
    script = Scripted([call("task", prompt="x", role="helper"), say("found"), say("done")])
    door, id = await begin(script, tmp_path)
    host = host_of(door)
    profile = msgspec.structs.replace(
        host.agents.profile("default"), append_system_prompt=("Never lie.",), max_steps=9
    )
    host.agents.profile = lambda alias: profile  # type: ignore[method-assign]
    given = Given(tools=parent, approval_timeout=7.0)
    spec = OpenSpec(cwd=str(tmp_path), traits=(given,))
    id = (await door.open(spec, ME)).id
    await (await door.prompt(id, (Text("go"),), ME)).done
    (info,) = (await door.list(SessionQuery(parent=id))).sessions
    made = Given.of(info.extra)
    assert made.tools == child and made.max_steps == 9 and made.approval_timeout == 7.0
    assert made.append_system_prompt is not None
    assert made.append_system_prompt[0] == "Never lie."


async def test_several_at_once_and_cancelled_together(tmp_path: Path) -> None:
    calls = [call("task", prompt=f"p{n}") for n in range(3)]
    script = Scripted([turn(*calls), turn(hang()), turn(hang()), turn(hang())])
    door, parent = await begin(script, tmp_path)
    work = await door.prompt(parent, (Text("go"),), ME)
    async with asyncio.timeout(60):
        while len(script.requests) < 7:  # noqa: ASYNC110 - all three ask their model at once
            await asyncio.sleep(0.01)
    assert len(script.requests) == 7  # each session plays the script: parent 1, children 2
    door.cancel(parent)
    assert (await work.done).outcome == "cancelled"
    children = (await door.list(SessionQuery(parent=parent))).sessions
    assert len(children) == 3
    for child in children:
        await door.idle(child.id)
        assert (await door.info(child.id)).status in ("idle", "interrupted")


@pytest.mark.parametrize(
    ("answer", "told", "failed"),
    [
        (turn(stop="refusal"), "It refused to answer.", True),
        (turn("I will not.", stop="refusal"), "It refused to answer.\nI will not.", True),
        (turn("and then", stop="length"), "and then\n[cut here: it may write no more", False),
        (turn(), "It said nothing.", False),
    ],
)
async def test_a_child_that_gives_no_whole_answer_is_not_taken_for_one_that_does(
    answer: Any, told: str, failed: bool, tmp_path: Path
) -> None:
    script = Scripted([call("task", prompt="look"), answer, say("done")])
    door, parent = await begin(script, tmp_path)
    await (await door.prompt(parent, (Text("go"),), ME)).done
    (result,) = results(door, parent)
    assert result.content[0].text.startswith(told) and result.is_error is failed


class ByPrompt(Scripted):
    """Answers by the first words of a conversation: children play other parts than their parent."""

    def __init__(self, **parts: list[Any]) -> None:
        super().__init__([])
        self.parts = {word: Scripted(turns) for word, turns in parts.items()}
        self.asked = {word: asyncio.Event() for word in parts}

    def stream(self, request: Any) -> Any:
        word = request.messages[0].content[0].text
        self.asked[word].set()
        return self.parts[word].stream(request)


async def test_no_child_waits_for_the_children_before_it(tmp_path: Path) -> None:
    """The first comes to no end; the second uses tools, and ends."""
    script = ByPrompt(
        go=[turn(call("task", prompt="first"), call("task", prompt="second")), say("done")],
        first=[turn(hang())],
        second=[call("echo", text="x"), call("no_such_tool"), say("found")],
    )
    door, parent = await begin(script, tmp_path)
    work = await door.prompt(parent, (Text("go"),), ME)
    answers: dict[str, str] = {}
    async with asyncio.timeout(60):
        while not answers:
            found = (await door.list(SessionQuery(parent=parent))).sessions
            answers = {one.title: one.result for one in found if one.result}
            await asyncio.sleep(0.01)
        assert list(answers.values()) == ["found"]
        door.cancel(parent)
        await work.done


async def test_what_is_wrong_is_told(tmp_path: Path) -> None:
    script = Scripted(
        [turn(call("task", prompt="x", role="nobody"), call("task", prompt=" ")), "end"]
    )
    door, parent = await begin(script, tmp_path)
    await (await door.prompt(parent, (Text("go"),), ME)).done
    first, second = results(door, parent)
    assert "no role 'nobody'" in first.content[0].text and "explore" in first.content[0].text
    assert "prompt is required" in second.content[0].text


def test_roles_are_read_from_files(tmp_path: Path) -> None:
    folder = tmp_path / ".agents/agents"
    folder.mkdir(parents=True)
    (folder / "docs.md").write_text(
        "---\ndescription: writes docs\ntools: read, Write\n---\nBe kind."
    )
    (folder / "explore.md").write_text("---\ndescription: hides ours\n---\n")
    (folder / "no good.md").write_text("x")
    (folder / "dir.md").mkdir()
    found = find_roles(str(tmp_path))
    assert set(found) >= {"explore", "plan", "review", "docs"} and "no good" not in found
    assert found["docs"].tools == ("read", "write") and found["docs"].acts
    assert "Be kind." in found["docs"].prompt and "hides ours" not in found["explore"].description


@pytest.mark.parametrize(
    ("now", "then"), [("supervised", "supervised"), ("readonly", "readonly"), ("plan", "readonly")]
)
async def test_a_child_at_work_follows_its_parent_to_narrower_modes(
    tmp_path: Path, now: Any, then: str
) -> None:
    folder = tmp_path / ".agents/agents"
    folder.mkdir(parents=True)
    (folder / "helper.md").write_text("---\nacts: true\n---\nHelp.")
    script = ByPrompt(go=[turn(call("task", prompt="x", role="helper"))], x=[turn(hang())])
    door, parent = await begin(script, tmp_path)
    work = await door.prompt(parent, (Text("go"),), ME)
    async with asyncio.timeout(60):
        await script.asked["x"].wait()
    (child,) = (await door.list(SessionQuery(parent=parent))).sessions
    assert child.mode == "full"
    await door.set_mode(parent, now, ME)
    assert door.live(child.id).mode == then
    await door.set_mode(parent, "full", ME)
    assert door.live(child.id).mode == then  # nobody gave it more
    door.cancel(parent)
    await work.done


async def test_a_child_that_has_not_begun_follows_its_parent_to_narrower_modes(
    tmp_path: Path,
) -> None:
    folder = tmp_path / ".agents/agents"
    folder.mkdir(parents=True)
    (folder / "helper.md").write_text("---\nacts: true\n---\nHelp.")
    script = ByPrompt(go=[turn(call("task", prompt="x", role="helper"))], x=[turn(hang())])
    door, parent = await begin(script, tmp_path)
    changed: list[Any] = []

    class Narrows:
        """Somebody takes the parent's mode down when they see that a child was opened."""

        def speak(self, events: Any) -> None:
            if any(isinstance(event.body, Opened) for event in events):
                changed.append(asyncio.ensure_future(door.set_mode(parent, "readonly", ME)))

    door.watch_all(ME, Narrows(), lambda said: None)
    work = await door.prompt(parent, (Text("go"),), ME)
    async with asyncio.timeout(60):
        await script.asked["x"].wait()
        await asyncio.gather(*changed)
    (child,) = (await door.list(SessionQuery(parent=parent))).sessions
    assert len(changed) == 1 and door.live(child.id).mode == "readonly"
    door.cancel(parent)
    await work.done


def test_what_a_session_may_not_do_its_children_may_not_do_for_it() -> None:
    rule = Rule("r", "tool", "bash", "this tool: bash", "session", "default", session="parent")
    child = State("child", cwd="/", agent="default", extra=together(StartedBy("parent", "t")))
    assert not reaches(rule, child)
    assert reaches(msgspec.structs.replace(rule, deny=True), child)
