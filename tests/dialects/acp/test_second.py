"""Version 2: negotiation, turns, tools, cancelling, resuming, several clients."""

import asyncio
import base64
import subprocess
from pathlib import Path
from typing import Any

import pytest

from dragoman.dialects.acp import changes
from dragoman.dialects.acp.changes import diff_of
from dragoman.engine.door import Door
from dragoman.store.sqlite import open_store
from dragoman.testing.host import EchoTool, host_of, memory_door
from dragoman.testing.script import Scripted, call, fail, hang, think, turn

from .talking import JOIN, Talker, desk_of, select, talker

INFO = {"name": "t", "version": "1"}


async def second(door: Door, **capabilities: Any) -> Talker:
    client = talker(door)
    await client.greet2(**capabilities)
    return client


def blocks(text: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": text}]


async def prompt(client: Talker, session: str, text: str = "hi") -> str:
    return (await client.call("session/prompt", {"sessionId": session, "prompt": blocks(text)}))[
        "messageId"
    ]


async def turned(client: Talker, session: str, text: str = "hi") -> dict[str, Any]:
    """A whole turn; returns its last state."""
    await prompt(client, session, text)
    last = client.updates()[-1]
    return last if last.get("state") == "idle" else await client.state("idle")


async def shown(client: Talker, kind: str) -> dict[str, Any]:
    """An update of this kind, which may have come already."""
    found = [u for u in client.updates() if u["sessionUpdate"] == kind]
    return found[-1] if found else await client.update(kind)


# --- negotiation ---


@pytest.mark.parametrize("asked", [2, 3, 65535])
async def test_version_2_is_spoken_with_who_asks_for_it(asked: int) -> None:
    client = talker(memory_door(Scripted([])))
    client.version = "v2"
    params = {"protocolVersion": asked, "info": INFO, "capabilities": {}}
    result = await client.call("initialize", params)
    assert result["protocolVersion"] == 2 and result["info"]["name"] == "dragoman"
    assert "agentCapabilities" not in result and result["authMethods"] == []
    assert {"prompt", "mcp", "delete"} <= set(result["capabilities"]["session"])


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ({"protocolVersion": 2}, -32602),
        ({"protocolVersion": 2, "clientInfo": INFO, "clientCapabilities": {}}, -32602),
        ({"protocolVersion": 2, "info": {"name": "x"}}, -32602),
        ({"protocolVersion": "2", "info": INFO}, -32602),
        ({"protocolVersion": 2.5, "info": INFO}, -32602),
        ({"protocolVersion": 70000, "info": INFO}, -32602),
        ({"protocolVersion": 0, "info": INFO}, -32022),
    ],
)
async def test_a_refused_greeting_may_be_repeated(params: Any, code: int) -> None:
    client = talker(memory_door(Scripted([])))
    error = await client.refused("initialize", params)
    assert error["code"] == code
    if code == -32022:
        assert error["data"] == {"requested": 0, "supported": [1, 2]}
    await client.greet2()


async def test_a_setting_turns_it_off() -> None:
    client = talker(memory_door(Scripted([])), version_2=False)
    params = {"protocolVersion": 2, "info": INFO, "capabilities": {"auth": {"terminal": {}}}}
    result = await client.call("initialize", params)
    assert result["protocolVersion"] == 1 and result["authMethods"][0]["type"] == "terminal"


async def test_rules_of_the_connection() -> None:
    client = await second(memory_door(Scripted([])))
    await client.greet2()  # nothing else was asked
    client.send({"jsonrpc": "2.0", "id": None, "method": "session/list"})
    answer = await client.next()
    assert answer["id"] is None and answer["error"]["code"] == -32600
    client.send([])  # type: ignore[arg-type]
    answer = await client.next()
    assert answer["id"] is None and answer["error"]["code"] == -32600
    await client.new2()
    again = {"protocolVersion": 2, "info": INFO}
    assert (await client.refused("initialize", again))["code"] == -32600
    for method in ("authenticate", "session/load", "session/set_mode", "logout"):
        assert (await client.refused(method, {}))["code"] == -32601


# --- turns ---


async def test_a_plain_turn() -> None:
    client = await second(memory_door(Scripted([turn(think("hm"), "Hel", "lo"), "again"])))
    made = await client.call("session/new", {"cwd": "/tmp"})
    session = made["sessionId"]
    assert made["configOptions"][0]["configId"] == "mode" and "modes" not in made
    assert {one["type"] for one in made["availableCommands"]} == {"command"}
    id = await prompt(client, session)
    idle = await client.state("idle")
    assert idle["stopReason"] == "end_turn"
    kinds = [k for k in client.kinds() if k not in ("session_info_update", "usage_update")]
    states = [u["state"] for u in client.updates() if u["sessionUpdate"] == "state_update"]
    assert kinds[0] == "user_message" and kinds[-1] == "state_update"
    assert states == ["running", "idle"]
    user = client.updates()[0]
    assert user["messageId"] == id and user["content"] == blocks("hi")
    chunks = [u for u in client.updates() if u["sessionUpdate"] == "agent_message_chunk"]
    assert "".join(u["content"]["text"] for u in chunks) == "Hello"
    assert len({u["messageId"] for u in chunks}) == 1
    other = await prompt(client, session, "more")
    assert other != id
    await client.state("idle")
    await client.silence()


async def test_messages_around_a_tool_have_ids_of_their_own() -> None:
    script = Scripted([turn("before", call("echo", text="x")), "after"])
    client = await second(memory_door(script, [EchoTool()], mode="full"))
    await turned(client, await client.new2())
    ids = [u["messageId"] for u in client.updates() if u["sessionUpdate"] == "agent_message_chunk"]
    assert len(set(ids)) == 2 and "tool_call" not in client.kinds()
    calls = [u for u in client.updates() if u["sessionUpdate"] == "tool_call_update"]
    assert calls[0]["title"] and calls[0]["status"] == "pending"
    assert calls[-1]["status"] == "completed"


@pytest.mark.parametrize(
    "given",
    [[], "text", [{"text": "x"}], [{"type": "_x"}], [{"type": "audio", "data": ""}], {}, None],
)
async def test_prompts_that_are_none(given: Any) -> None:
    client = await second(memory_door(Scripted([])))
    params = {"sessionId": await client.new2(), "prompt": given}
    assert (await client.refused("session/prompt", params))["code"] == -32602


async def test_a_failing_model_and_an_unknown_session() -> None:
    client = await second(memory_door(Scripted([fail("no model today")])))
    idle = await turned(client, await client.new2())
    assert idle["stopReason"] == "error" and idle["error"]["message"]
    params = {"sessionId": "ghost", "prompt": blocks("x")}
    error = await client.refused("session/prompt", params)
    assert error["code"] == -32002 and error["data"]["sessionId"] == "ghost"


async def test_our_own_commands_live_like_prompts() -> None:
    client = await second(memory_door(Scripted([])))
    idle = await turned(client, await client.new2(), "/status")
    assert idle["stopReason"] == "end_turn" and "Model:" in client.said()
    assert client.kinds()[0] == "user_message"


# --- tools ---


def options_of(params: dict[str, Any]) -> Any:
    return {"outcome": {"outcome": "selected", "optionId": "allow-once"}}


@pytest.mark.parametrize("text", ["/undo", "/undo list", "/redo"])
async def test_commands_of_the_engine_are_turns(text: str) -> None:
    client = await second(memory_door(Scripted(["a"])))
    session = await client.new2()
    await turned(client, session)
    id = await prompt(client, session, text)
    idle = await client.state("idle")
    assert idle["stopReason"] in ("end_turn", "error")
    said = [u for u in client.updates() if u["sessionUpdate"].startswith("agent_message")]
    assert said[-1]["messageId"].startswith(f"{id}.") or "error" in idle, said[-1]


async def test_our_own_commands_leave_the_state_of_a_running_turn_alone() -> None:
    desk = desk_of(memory_door(Scripted([turn("x", hang())])))
    first, other = Talker(desk), Talker(desk)
    await first.greet2()
    await other.greet2()
    session = await first.new2()
    await other.call("session/resume", {"sessionId": session, "cwd": "/tmp"})
    await prompt(first, session)
    await other.update("agent_message_chunk")
    before = len(other.updates())
    await prompt(other, session, "/status")
    assert "Mode: supervised" in (await other.update("agent_message_chunk"))["content"]["text"]
    other.tell("session/cancel", {"sessionId": session})
    idle = await other.state("idle")
    states = [u.get("state") for u in other.updates()[before:] if "state" in u]
    assert states == ["idle"] and idle["stopReason"] == "cancelled"


async def test_a_prompt_that_was_begun_is_not_called_cancelled() -> None:
    """Its session is left and entered anew before the client thinks better of it."""
    door = memory_door(Scripted(["a"] * 20, loop=True))
    client = await second(door)
    session = await client.new2()
    for late in range(6):
        text = f"prompt {late}"
        asked = client.ask("session/prompt", {"sessionId": session, "prompt": blocks(text)})
        for _ in range(late):
            await asyncio.sleep(0)
        client.ask("session/close", {"sessionId": session})
        again = client.ask("session/resume", {"sessionId": session, "cwd": "/tmp"})
        client.tell("$/cancel_request", {"requestId": asked})
        said = await client.reply(asked)
        if "result" not in await client.reply(again):
            session = await client.new2()  # it was gone before it could be entered
            continue
        kept = [m for m in await door.messages(session) if m.role == "user"]
        history = [block.text for m in kept for block in m.content]  # type: ignore[union-attr]
        assert ("result" in said) == (text in history), (late, said)


async def test_a_permission_has_a_subject_and_shows_as_a_state(tmp_path: Path) -> None:
    script = Scripted([call("write", path="a.txt", content="new\n"), "ok"])

    class Bounds:
        def resolve(self, path: str, write: bool = False) -> str:
            return str(tmp_path / path)

    client = await second(memory_door(script, [EchoTool("write", "edit")]))
    session = await client.new2(str(tmp_path))
    await prompt(client, session)
    asked = await client.until("session/request_permission")
    params = asked["params"]
    assert params["title"] and params["subject"]["type"] == "tool_call"
    assert params["subject"]["toolCall"]["locations"] == [{"path": f"{tmp_path}/a.txt"}]
    await client.state("requires_action")
    client.send({"jsonrpc": "2.0", "id": asked["id"], "result": options_of(params)})
    await client.state("running")
    assert (await client.state("idle"))["stopReason"] == "end_turn"


@pytest.mark.parametrize(
    "answer",
    [
        {"result": {"outcome": {"outcome": "selected", "optionId": "never offered"}}},
        {"result": {"outcome": {"outcome": "_later"}}},
        {"result": {"outcome": {"outcome": "cancelled"}}},
        {"error": {"code": -32603, "message": "no"}},
    ],
)
async def test_what_is_no_yes_is_a_no(answer: Any) -> None:
    tool = EchoTool()
    client = await second(memory_door(Scripted([call("echo", text="x"), "ok"]), [tool]))
    await prompt(client, await client.new2())
    asked = await client.until("session/request_permission")
    client.send({"jsonrpc": "2.0", "id": asked["id"], **answer})
    await client.state("idle")
    assert tool.ran == []


class Shell(EchoTool):
    def __init__(self) -> None:
        super().__init__("bash", "execute")

    async def run(self, args: dict[str, Any], env: Any) -> Any:
        for piece in ("grü", "ße\n"):
            env.progress(piece)
        return await super().run({"text": "grüße"}, env)


async def test_commands_run_in_terminals_of_ours(tmp_path: Path) -> None:
    script = Scripted([call("bash", command="say hi"), "ok"])
    client = await second(memory_door(script, [Shell()]))
    session = await client.new2(str(tmp_path))
    await prompt(client, session)
    asked = await client.until("session/request_permission")
    subject = asked["params"]["subject"]
    assert (subject["type"], subject["command"], subject["cwd"]) == (
        "command", "say hi", str(tmp_path),
    )  # fmt: skip
    client.send({"jsonrpc": "2.0", "id": asked["id"], "result": options_of({})})
    await client.state("idle")
    told = [u for u in client.updates() if u["sessionUpdate"].startswith("terminal_")]
    assert told[0]["command"] == "say hi" and told[0]["cwd"] == str(tmp_path)
    data = [u["data"] for u in told if u["sessionUpdate"] == "terminal_output_chunk"]
    assert b"".join(base64.b64decode(one) for one in data) == "grüße\n".encode()
    assert "exitStatus" in told[-1] and len({u["terminalId"] for u in told}) == 1
    shown = [u["content"] for u in client.updates() if u.get("content") and "toolCallId" in u]
    assert shown[-1] == [{"type": "terminal", "terminalId": told[0]["terminalId"]}]
    for method, key in (("tool_call/cancel", "toolCallId"), ("terminal/cancel", "terminalId")):
        error = await client.refused(method, {"sessionId": session, key: "x"})
        assert error["code"] == -32602


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a\nb\nc\n", "a\nB\nc\n"),
        (None, "one\ntwo"),
        ("x", "x\n"),
        ("x\n", "x"),
        ("", "now\n"),
        ("gone\n", None),
        ("\r\nä\u2028b\n" * 40, "\r\nä\u2028b\n" * 39 + "end"),
        ("a\n" * 3000, "a\n" * 2999 + "b\n"),
        ("a\n" * 3000, "b\n" + "a\n" * 2990 + "c\n"),
        ("a\nb\n" * 3, "a\nb\n" * 2),
        ("}\n".join(map(str, range(900))), "}\n".join(f"-{n}" for n in range(900))),
    ],
)
def test_a_patch_can_be_applied(tmp_path: Path, old: str | None, new: str | None) -> None:
    path = tmp_path / "fi le"
    if old is not None:
        path.write_bytes(old.encode())
    made = diff_of([(str(path), old, new)])
    word = "add" if old is None else "delete" if new is None else "modify"
    assert made["changes"][0]["operation"] == word and made["changes"][0]["path"] == str(path)
    text = made["patch"]["text"].replace(f"{tmp_path}/", "")  # git applies no absolute paths
    (tmp_path / "patch").write_bytes(text.encode())
    subprocess.run(["git", "apply", "-p0", "patch"], cwd=tmp_path, check=True)
    assert (path.read_bytes().decode() if path.exists() else None) == new


def test_what_would_take_long_to_compare_is_one_change(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*given: Any) -> Any:
        raise AssertionError("compared line by line")

    monkeypatch.setattr(changes, "SequenceMatcher", never)
    old, new = ("".join(f"{word}{n}\n}}\n" for n in range(900)) for word in ("a", "b"))
    patch = diff_of([("/x", old, new)])["patch"]["text"]
    assert patch.count("@@ -") == 1 and patch.count("\n-a") == patch.count("\n+b") == 900
    lines = [f"{n}\n" for n in range(50_000)]
    old, lines[20_000], lines[30_000] = "".join(lines), "x\n", "y\n"
    patch = diff_of([("/x", old, "".join(lines))])["patch"]["text"]
    assert "@@ -19998,10007 +19998,10007 @@" in patch  # and nothing of what is around it


def test_a_binary_file_has_no_text_in_its_patch() -> None:
    made = diff_of([("/x/é", None, "a\0b")])
    assert made["changes"][0]["fileType"] == "binary" and "a\0b" not in made["patch"]["text"]
    assert '"/x/\\303\\251"' in made["patch"]["text"]


# --- cancelling, and prompts that wait ---


async def test_cancelling_in_the_middle_and_when_idle() -> None:
    client = await second(memory_door(Scripted([turn("a", hang()), "next"])))
    session = await client.new2()
    client.tell("session/cancel", {"sessionId": session})
    await prompt(client, session)
    await shown(client, "agent_message_chunk")
    client.tell("session/cancel", {"sessionId": session})
    later = client.ask("session/prompt", {"sessionId": session, "prompt": blocks("more")})
    assert (await client.state("idle"))["stopReason"] == "cancelled"
    assert (await client.reply(later))["result"]["messageId"]
    assert (await client.state("idle"))["stopReason"] == "end_turn"


async def test_a_second_prompt_is_held_and_answered_when_it_begins() -> None:
    release = asyncio.Event()

    class Waits(EchoTool):
        async def run(self, args: dict[str, Any], env: Any) -> Any:
            await release.wait()
            return await super().run(args, env)

    door = memory_door(Scripted([call("echo", text="x"), "a", "b"]), [Waits()], mode="full")
    client = await second(door)
    session = await client.new2()
    await prompt(client, session)
    params = {"sessionId": session, "prompt": blocks("second")}
    held = client.ask("session/prompt", params)
    taken = client.ask("session/prompt", params)
    client.tell("$/cancel_request", {"requestId": taken})
    assert (await client.reply(taken))["error"]["code"] == -32800
    assert not any(m.get("id") == held and "result" in m for m in client.heard)
    release.set()
    id = (await client.reply(held))["result"]["messageId"]
    await client.state("idle")
    assert id in [u.get("messageId") for u in client.updates()]


async def test_a_cancel_ends_what_waits_too() -> None:
    client = await second(memory_door(Scripted([turn("a", hang()), "b"])))
    session = await client.new2()
    await prompt(client, session)
    await shown(client, "agent_message_chunk")
    held = client.ask("session/prompt", {"sessionId": session, "prompt": blocks("second")})
    await client.silence()
    client.tell("session/cancel", {"sessionId": session})
    assert (await client.reply(held))["error"]["code"] == -32800


async def test_cancelling_with_a_question_open() -> None:
    client = await second(memory_door(Scripted([call("echo", text="x"), "ok"]), [EchoTool()]))
    session = await client.new2()
    await prompt(client, session)
    asked = await client.until("session/request_permission")
    client.tell("session/cancel", {"sessionId": session})
    withdrawn = await client.until("$/cancel_request")
    assert withdrawn["params"]["requestId"] == asked["id"]
    assert (await client.state("idle"))["stopReason"] == "cancelled"
    ends = [u for u in client.updates() if u["sessionUpdate"] == "tool_call_update"]
    assert ends[-1]["status"] == "cancelled"
    client.send({"jsonrpc": "2.0", "id": asked["id"], "result": options_of({})})
    await client.silence()


async def test_closing_ends_the_work() -> None:
    client = await second(memory_door(Scripted([turn("a", hang())])))
    session = await client.new2()
    await prompt(client, session)
    await shown(client, "agent_message_chunk")
    closing = client.ask("session/close", {"sessionId": session})
    assert (await client.reply(closing))["result"] == {}
    assert client.updates()[-1] == {
        "sessionUpdate": "state_update", "state": "idle", "stopReason": "cancelled",
    }  # fmt: skip
    await client.silence()
    assert await client.call("session/close", {"sessionId": "ghost"}) == {}
    assert await client.call("session/delete", {"sessionId": "ghost"}) == {}


# --- resuming ---


async def test_resuming_with_and_without_the_past(tmp_path: Path) -> None:
    store, _ = open_store(str(tmp_path / "s.db"))
    script = Scripted([turn(think("hm"), "let me", call("bash", command="x")), "done"])
    door = memory_door(script, [Shell()], store=store, mode="full")
    client = await second(door)
    session = await client.new2(str(tmp_path))
    id = await prompt(client, session)
    await client.state("idle")
    await door.note(session, "warning", "careful")
    await client.update("notice")
    await client.call("session/close", {"sessionId": session})
    told = []
    for replay in (None, {"type": "start"}, {"type": "start"}):
        other = await second(door)
        params = {"sessionId": session, "cwd": str(tmp_path), "replayFrom": replay}
        result = await other.call("session/resume", params)
        assert result["configOptions"] and result["availableCommands"]
        told.append(other.updates())
        other.end.drop()
    plain, first, again = told
    assert plain == [{"sessionUpdate": "state_update", "state": "idle"}]
    kinds = [u["sessionUpdate"] for u in first]
    assert kinds == [
        "user_message", "agent_thought", "agent_message", "tool_call_update", "terminal_update",
        "agent_message", "usage_update", "state_update",
    ]  # fmt: skip
    assert first[0]["messageId"] == id and first == again
    assert first[3]["status"] == "completed" and first[3]["title"]
    other = await second(door)
    base = {"sessionId": session, "cwd": str(tmp_path)}
    for wrong in ({"replayFrom": {"type": "x"}}, {"cwd": "/"}, {"cwd": None}, {"replayFrom": "x"}):
        error = await other.refused("session/resume", {**base, **wrong})
        assert error["code"] == -32602, wrong
    assert (await other.refused("session/resume", {**base, "sessionId": "g"}))["code"] == -32002
    await host_of(door).stop(1.0)
    await store.close()


async def test_joining_while_it_runs() -> None:
    door = memory_door(Scripted([turn("Hel", hang())]))
    client = await second(door)
    session = await client.new2()
    id = await prompt(client, session)
    chunk = await shown(client, "agent_message_chunk")
    other = await second(door)
    params = {"sessionId": session, "cwd": "/tmp", "replayFrom": {"type": "start"}}
    await other.call("session/resume", params)
    told = other.updates()
    assert told[0]["messageId"] == id
    assert told[-1]["state"] == "running"
    words = [u for u in told if u["sessionUpdate"] == "agent_message_chunk"]
    assert [u["messageId"] for u in words] == [chunk["messageId"]]
    reset = {"sessionUpdate": "agent_message", "messageId": chunk["messageId"], "content": []}
    assert told.index(reset) < told.index(words[0])
    client.tell("session/cancel", {"sessionId": session})
    assert (await other.state("idle"))["stopReason"] == "cancelled"


# --- several clients, both versions ---


async def test_both_versions_share_a_session() -> None:
    door = memory_door(Scripted(["one", call("echo", text="x"), "two"]), [EchoTool()])
    desk = desk_of(door)
    new, old = Talker(desk), Talker(desk)
    await new.greet2()
    session = await new.new2()
    await old.greet("editor", fs={})
    await old.call("session/resume", {"sessionId": session, "cwd": "/tmp", "_meta": JOIN})
    await turned(new, session, "from two")
    await old.reply(old.ask("_test/barrier"))
    assert old.said("user_message_chunk") == "from two" and old.said() == "one"
    assert "state_update" not in old.kinds()
    old.answers["session/request_permission"] = select("allow-once")
    await old.prompt(session, "from one")
    await new.state("idle")
    assert blocks("from one") in [u.get("content") for u in new.updates()]
    asked = [m["id"] for m in new.heard if m.get("method") == "session/request_permission"]
    taken = [m["params"]["requestId"] for m in new.heard if m.get("method") == "$/cancel_request"]
    assert taken == asked
    old.end.drop()
    await new.silence()


async def test_options_by_type() -> None:
    client = await second(memory_door(Scripted([])))
    session = await client.new2()
    params = {"sessionId": session, "configId": "mode", "value": "full"}
    assert (await client.refused("session/set_config_option", params))["code"] == -32602
    found = await client.call("session/set_config_option", {**params, "type": "id"})
    assert found["configOptions"][0]["currentValue"] == "full"
    flag = {"sessionId": session, "configId": "auto_accept_edits", "type": "boolean", "value": True}
    found = await client.call("session/set_config_option", flag)
    assert found["configOptions"][-1]["currentValue"] is True


async def test_who_asks_for_a_terminal_may_log_in_there() -> None:
    client = talker(memory_door(Scripted([])))
    client.version = "v2"
    result = await client.greet2(auth={"terminal": {}})
    method = result["authMethods"][0]
    assert (method["type"], method["methodId"]) == ("terminal", "login")
    assert await client.call("auth/logout") == {}
    assert (await client.refused("session/new", {"cwd": "/tmp"}))["code"] == -32000
    assert (await client.call("auth/status"))["state"] == "unauthenticated"
    assert (await client.refused("auth/login", {"methodId": "login"}))["code"] == -32000
