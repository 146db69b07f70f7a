"""The client's files and terminals, slash commands, plans and notes."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from dragoman.agents.commands import find_commands
from dragoman.engine.content import PlanEntry, Text
from dragoman.engine.ports import Outcome, ToolSpec
from dragoman.testing.host import host_of, memory_door
from dragoman.testing.script import Scripted, call, turn

from .talking import Talker, talker


class Run:
    """A tool made of one function."""

    def __init__(self, act: Any, name: str = "run") -> None:
        self.spec = ToolSpec(name, "Run.", {"type": "object"}, "execute")
        self._act = act

    async def run(self, args: dict[str, Any], env: Any) -> Outcome:
        return Outcome((Text(str(await self._act(env))),))

    def summary(self, args: dict[str, Any]) -> str:
        return "run"


async def result_of(act: Any, answers: dict[str, Any], **capabilities: Any) -> tuple[str, Talker]:
    client = talker(memory_door(Scripted([call("run"), "ok"]), [Run(act)], mode="full"))
    await client.greet(**capabilities)
    client.answers.update({method: lambda p, a=a: a for method, a in answers.items()})  # type: ignore[misc]
    await client.prompt(await client.new())
    last = [u for u in client.updates() if u["sessionUpdate"] == "tool_call_update"][-1]
    output = last["rawOutput"]
    return output["output"] if isinstance(output, dict) else output, client


def sent(client: Talker, method: str) -> list[dict[str, Any]]:
    return [m["params"] for m in client.heard if m.get("method") == method]


async def test_the_clients_files_are_used_when_offered(tmp_path: Path) -> None:
    async def act(env: Any) -> str:
        await env.files.write_text(f"{tmp_path}/new.txt", "mine")
        return await env.files.read_text(f"{tmp_path}/a.txt")

    answers = {"fs/read_text_file": {"content": "unsaved"}, "fs/write_text_file": None}
    fs = {"readTextFile": True, "writeTextFile": True}
    output, client = await result_of(act, answers, fs=fs)
    assert output == "unsaved"
    assert sent(client, "fs/write_text_file")[0]["content"] == "mine"
    assert not (tmp_path / "new.txt").exists()


async def test_half_an_offer_is_half_used(tmp_path: Path) -> None:
    async def act(env: Any) -> str:
        await env.files.write_text(f"{tmp_path}/new.txt", "mine")
        return await env.files.read_text(f"{tmp_path}/new.txt")

    output, client = await result_of(
        act, {"fs/read_text_file": {"content": "theirs"}}, fs={"readTextFile": True}
    )
    assert output == "theirs" and (tmp_path / "new.txt").read_text() == "mine"
    assert sent(client, "fs/write_text_file") == []


async def test_nothing_is_asked_of_a_client_that_offers_nothing() -> None:
    async def act(env: Any) -> str:
        return f"{env.files} {env.terminals}"

    output, _ = await result_of(act, {})
    assert output == "None None"


async def run_command(env: Any) -> str:
    return str(
        await env.terminals.run(
            "echo hi", cwd="/tmp", env={"A": "1"}, timeout=5.0, limit=1000, opened=lambda i: None
        )
    )


async def test_the_clients_terminal_is_shown_and_released() -> None:
    answers = {
        "terminal/create": {"terminalId": "t1"},
        "terminal/wait_for_exit": {"exitCode": 3},
        "terminal/output": {"output": "hi\n", "truncated": False},
        "terminal/release": {},
    }
    output, client = await result_of(run_command, answers, terminal=True)
    assert output == "(3, 'hi\\n', False)"
    made = sent(client, "terminal/create")[0]
    assert made["args"] == ["-c", "echo hi"] and made["cwd"] == "/tmp"
    assert made["env"] == [{"name": "A", "value": "1"}]
    shown = [u for u in client.updates() if u.get("content") and u["sessionUpdate"] != "tool_call"]
    assert {"type": "terminal", "terminalId": "t1"} in shown[0]["content"]
    assert sent(client, "terminal/release")


async def test_a_cancelled_turn_kills_the_clients_terminal() -> None:
    client = talker(memory_door(Scripted([call("run"), "ok"]), [Run(run_command)], mode="full"))
    await client.greet(terminal=True)
    client.answers["terminal/create"] = lambda p: {"terminalId": "t1"}
    session = await client.new()
    waiting = client.ask("session/prompt", {"sessionId": session, "prompt": "x"})
    await client.until("terminal/wait_for_exit")
    client.tell("session/cancel", {"sessionId": session})
    assert (await client.reply(waiting))["result"]["stopReason"] == "cancelled"
    methods = [m.get("method") for m in client.heard]
    assert methods.index("terminal/kill") < methods.index("terminal/release")


async def test_a_terminal_that_is_opened_too_late_is_ended() -> None:
    client = talker(memory_door(Scripted([call("run"), "ok"]), [Run(run_command)], mode="full"))
    await client.greet(terminal=True)
    session = await client.new()
    waiting = client.ask("session/prompt", {"sessionId": session, "prompt": "x"})
    asked = await client.until("terminal/create")
    client.tell("session/cancel", {"sessionId": session})
    assert (await client.reply(waiting))["result"]["stopReason"] == "cancelled"
    assert sent(client, "$/cancel_request") == [{"requestId": asked["id"]}]
    client.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"terminalId": "late"}})
    for method in ("terminal/kill", "terminal/release"):
        assert (await client.until(method))["params"]["terminalId"] == "late"


@pytest.mark.parametrize("answer", [{"error": {"code": -32800, "message": "gone"}}, {"result": 5}])
async def test_a_terminal_that_was_never_opened_needs_no_end(answer: dict[str, Any]) -> None:
    client = talker(memory_door(Scripted([call("run"), "ok"]), [Run(run_command)], mode="full"))
    await client.greet(terminal=True)
    session = await client.new()
    waiting = client.ask("session/prompt", {"sessionId": session, "prompt": "x"})
    asked = await client.until("terminal/create")
    client.tell("session/cancel", {"sessionId": session})
    await client.reply(waiting)
    client.send({"jsonrpc": "2.0", "id": asked["id"], **answer})
    await client.silence()


@pytest.mark.parametrize(
    ("ended", "code"),
    [
        ({"exitCode": None, "signal": "SIGKILL"}, -9),
        ({"signal": "SIGNOTHING"}, None),
        ({"signal": ["SIGKILL"]}, None),
        ({"exitCode": True}, None),
        ({"exitCode": "3"}, None),
        ({"exitCode": 2**70}, None),
        (None, None),
        ([], None),
    ],
)
async def test_how_a_command_ended_is_read_with_care(ended: Any, code: int | None) -> None:
    answers = {
        "terminal/create": {"terminalId": "t1"},
        "terminal/wait_for_exit": ended,
        "terminal/output": {"output": 5, "truncated": "yes"},
        "terminal/release": None,
    }
    output, client = await result_of(run_command, answers, terminal=True)
    assert output == f"({code}, '', False)" and sent(client, "terminal/release")


@pytest.mark.parametrize(
    "answer",
    [
        {"result": {"terminalId": "t"}, "error": {"code": 1, "message": "both"}},
        {"error": "no"},
        {"error": None},
        {"error": {"code": "x", "message": 5}},
        {"result": {"terminalId": ""}},
    ],
)
async def test_an_answer_that_is_malformed_keeps_nobody_waiting(answer: dict[str, Any]) -> None:
    client = talker(memory_door(Scripted([call("run"), "ok"]), [Run(run_command)], mode="full"))
    await client.greet(terminal=True)
    session = await client.new()
    waiting = client.ask("session/prompt", {"sessionId": session, "prompt": "x"})
    asked = await client.until("terminal/create")
    client.send({"jsonrpc": "2.0", "id": asked["id"], **answer})
    assert (await client.reply(waiting))["result"]["stopReason"] == "end_turn"
    last = [u for u in client.updates() if u["sessionUpdate"] == "tool_call_update"][-1]
    assert last["status"] == "failed" and "opened no terminal" in last["rawOutput"]["output"]


async def test_the_clients_offer_ends_with_its_connection() -> None:
    door = memory_door(Scripted(["x"]))
    client = talker(door)
    await client.greet(terminal=True, fs={"readTextFile": True})
    session = await client.new()
    live = host_of(door).live[session]
    assert live.gear.terminals is not None and live.gear.files is not None
    client.end.drop()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert live.gear.terminals is None and live.gear.files is None


async def test_plans_are_shown() -> None:
    async def act(env: Any) -> str:
        await env.plan([PlanEntry("one", "high", "in_progress"), PlanEntry("two")])
        return "ok"

    _, client = await result_of(act, {})
    plan = [u for u in client.updates() if u["sessionUpdate"] == "plan"][0]
    assert plan["entries"] == [
        {"content": "one", "priority": "high", "status": "in_progress"},
        {"content": "two", "priority": "medium", "status": "pending"},
    ]


async def test_troubles_are_notices_where_the_client_shows_them() -> None:
    door = memory_door(Scripted(["x"]))
    client = talker(door)
    await client.greet(session={"notices": {}})
    session = await client.new()
    await door.note(session, "warning", "MCP server x could not be reached", "no such file")
    notice = await client.update("notice")
    assert notice["severity"] == "warning" and notice["description"] == "no such file"


async def test_troubles_come_with_the_next_turn_elsewhere() -> None:
    door = memory_door(Scripted(["x"]))
    client = talker(door)
    session = await client.new()
    await door.note(session, "warning", "MCP server x could not be reached", "no such file")
    await client.silence()
    await client.prompt(session)
    assert "no such file" in client.said("agent_thought_chunk")


# --- slash commands ---


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    work = tmp_path / "work"
    work.mkdir()
    return work


async def test_commands_and_skills_are_found_and_told(project: Path) -> None:
    head = "---\ndescription: Ship it\nargument-hint: where\n---\n"
    write(project / ".dragoman/commands/deploy.md", head + "Deploy to $ARGUMENTS now.")
    write(project / ".claude/skills/review/SKILL.md", "# Review the code\n\nLook well.")
    write(project.parent / "home/.claude/commands/deploy.md", "the user's own, hidden by the other")
    write(project.parent / "home/.dragoman/commands/mine.md", "First $1, then $2.")
    script = Scripted(["a", "b", "c"])
    client = talker(memory_door(script))
    result = await client.call("session/new", {"cwd": str(project)})
    listed = (await client.update("available_commands_update"))["availableCommands"]
    by_name = {one["name"]: one for one in listed}
    own = {"compact", "model", "clear", "undo", "redo", "status"}
    assert set(by_name) == own | {"deploy", "review", "mine"}
    assert by_name["deploy"] == {
        "name": "deploy", "description": "Ship it", "input": {"hint": "where"},
    }  # fmt: skip
    assert by_name["review"]["description"] == "Review the code"
    session = result["sessionId"]
    await client.prompt(session, "/deploy to the moon")
    await client.prompt(session, [{"type": "text", "text": "/review main.py"}])
    await client.prompt(session, "/mine a b c")
    said = [request.messages[-1].content[0].text for request in script.requests]
    assert said == [
        "Deploy to to the moon now.", "# Review the code\n\nLook well.\n\nmain.py",
        "First a, then b.",
    ]  # fmt: skip


def test_strange_files_are_no_commands(project: Path) -> None:
    write(project / ".dragoman/commands/a b.md", "no")
    write(project / ".dragoman/commands/notes.txt", "no")
    (project / ".dragoman/commands/folder.md").mkdir()
    (project / ".dragoman/commands/gone.md").symlink_to("/does/not/exist")
    before = len(os.listdir("/dev/fd"))
    for _ in range(3):
        assert find_commands(str(project)) == {}
    assert len(os.listdir("/dev/fd")) == before


async def test_status_and_model() -> None:
    client = talker(memory_door(Scripted(["x"])))
    session = await client.new()
    result = await client.prompt(session, "/status")
    assert result["stopReason"] == "end_turn" and f"Session: {session}" in result["content"]
    assert client.said() == result["content"]
    assert "scripted/test" in (await client.prompt(session, "/model"))["content"]
    assert "unknown model" in (await client.prompt(session, "/model no/such"))["content"]
    assert (await client.prompt(session, "/unknown thing"))["content"] == "x"


async def test_compact_and_what_is_used_after_it() -> None:
    long = "word " * 400
    script = Scripted([turn(long), turn(long), turn(long), turn(long), "a short summary"])
    client = talker(memory_door(script))
    session = await client.new()
    for _ in range(4):
        await client.prompt(session, long)
    before = [u["used"] for u in client.updates() if u["sessionUpdate"] == "usage_update"][-1]
    result = await client.prompt(session, "/compact")
    assert "summary" in result["content"]
    after = [u["used"] for u in client.updates() if u["sessionUpdate"] == "usage_update"][-1]
    assert after < before


async def test_compact_with_nothing_to_compact_says_so() -> None:
    client = talker(memory_door(Scripted(["x"])))
    result = await client.prompt(await client.new(), "/compact")
    assert result["stopReason"] == "end_turn" and result["content"]
