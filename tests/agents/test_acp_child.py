"""A hosted agent in small: `acp_child`, `acp_process`, `acp_taking`, with a child
process of three lines and a turn that notes.
"""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import Raw

from dragoman.agents.acp_child import Asked, Child
from dragoman.agents.acp_process import AcpProcessAgent, HostedTools, _server
from dragoman.agents.acp_taking import ChildSeat, Taking, _asked_about, _text
from dragoman.agents.acp_words import HostedCall
from dragoman.engine.content import Text, ToolCall
from dragoman.engine.faults import BadInput, ProviderFailed, Refused
from dragoman.wire.calls import CallFailed

GREETS = """
import json, os, signal, sys
for line in sys.stdin:
    asked = json.loads(line)
    if asked.get("method") == "initialize":
        answer = {"protocolVersion": %s, "agentCapabilities": %s}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": answer}), flush=True)
    elif asked.get("method") == "leave":
        import os, subprocess
        left = subprocess.Popen(["sleep", "360"], start_new_session=True)
        print(left.pid, file=sys.stderr, flush=True)
        os._exit(3)
    elif asked.get("method") == "die":
        print("ANTHROPIC_API_KEY is missing", file=sys.stderr)
        sys.exit(3)
    elif asked.get("method") == "fall":
        os.kill(os.getpid(), signal.SIGRTMIN + 1)
    elif asked.get("method") == "huge":
        print('{"jsonrpc": "2.0", "id": "%%s", "result": {"x": 1e999}}' %% asked["id"], flush=True)
    elif "id" in asked:
        error = {"code": -32000, "message": "auth required", "data": {"details": "sign in"}}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "error": error}), flush=True)
"""


def command(version: int = 1, can: str = "{}") -> list[str]:
    return [sys.executable, "-c", GREETS % (version, can)]


@pytest.fixture
async def child(tmp_path: Path) -> AsyncIterator[Child]:
    can = '{"loadSession": True, "promptCapabilities": {"image": False, "audio": {}}}'
    made = await Child.start(command(can=can), str(tmp_path), {}, capabilities={})
    yield made
    await made.close()


# --- acp_child ---


async def test_child_knows_what_the_agent_can(child: Child) -> None:
    assert child.alive and child.can("loadSession")
    assert child.can("promptCapabilities", "audio")
    assert not child.can("promptCapabilities", "image") and not child.can("a", "b", "c")


async def test_child_that_answers_or_ends_oddly_is_told_in_words(child: Child) -> None:
    with pytest.raises(ProviderFailed, match="answered huge with what cannot be read"):
        await child.call("huge", {})
    assert "(" not in str(child.refusal("x", CallFailed(1, "no", Raw(b"1e999"))))
    with pytest.raises(ProviderFailed, match="was ended by signal [0-9]"):
        await child.call("fall", {})


async def test_child_is_ended_also_when_nobody_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.agents.acp_child._GRACE_SECONDS", 0.05)
    stays = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    words = [sys.executable, "-c", f"{stays}{GREETS % (1, '{}')}\nsignal.pause()"]
    made = await Child.start(words, str(tmp_path), {}, capabilities={})
    closing = asyncio.ensure_future(made.close())
    await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    try:
        async with asyncio.timeout(60):
            while made.alive:  # noqa: ASYNC110 - nothing tells of it
                await asyncio.sleep(0.01)
    finally:
        await made.close()


async def test_child_that_speaks_nothing_is_told_with_the_likely_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent that would need `--acp` waits at its prompt."""
    monkeypatch.setattr("dragoman.agents.acp_child._START_SECONDS", 0.2)
    with pytest.raises(ProviderFailed, match="did not answer initialize in 0.2 .* see `args`"):
        await Child.start(["sleep", "60"], str(tmp_path), {}, capabilities={})


async def test_child_tells_a_refusal_with_the_way_in(child: Child) -> None:
    with pytest.raises(ProviderFailed, match="auth required .sign in.") as found:
        await child.call("session/new", {})
    assert found.value.kind == "auth" and "Sign in" in found.value.hint
    plain = child.refusal("x", CallFailed(-32603, "broken", None))
    assert plain.kind == "server" and plain.hint == ""


async def test_child_that_dies_is_missed_though_what_it_left_holds_its_output(child: Child) -> None:
    with pytest.raises(ProviderFailed, match="ended with code 3") as failed:
        async with asyncio.timeout(60):
            await child.call("leave", {})
    left = int(str(failed.value).split("It said: ")[1].split(".")[0])
    try:
        assert not child.alive
        os.kill(left, 0)
    finally:
        os.kill(left, signal.SIGKILL)


async def test_child_that_dies_says_its_last_words(child: Child) -> None:
    with pytest.raises(ProviderFailed, match="ended with code 3.*API_KEY is missing") as found:
        await child.call("die", {})
    assert "pass_env" in found.value.hint and not child.alive
    assert await child.next() is None


async def test_child_that_speaks_another_version_is_not_kept(tmp_path: Path) -> None:
    began: list[int] = []
    ended: list[int] = []
    with pytest.raises(ProviderFailed, match="speaks version 9"):
        await Child.start(
            command(9), str(tmp_path), {}, capabilities={}, began=began.append, ended=ended.append
        )
    assert began == ended and len(began) == 1


async def test_child_that_is_not_there_or_too_deep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ProviderFailed, match="could not be started"):
        await Child.start([str(tmp_path / "no")], str(tmp_path), {}, capabilities={})
    for depth, begins in (("2", True), ("²", True), ("3", False)):
        monkeypatch.setenv("ACP_HOST_DEPTH", depth)
        wanted = "could not be started" if begins else "host each other 3 levels deep"
        with pytest.raises(ProviderFailed, match=wanted):
            await Child.start([str(tmp_path / "no")], str(tmp_path), {}, capabilities={})


async def test_child_drops_what_was_said_to_nobody_and_keeps_its_end(child: Child) -> None:
    child.waiting.put_nowait(Asked("fs/read_text_file", {}, 7))
    child.waiting.put_nowait(None)
    child.forget_waiting()
    assert await child.next() is None and child.waiting.empty()


# --- acp_taking: what the child asks ---


class Turn:
    """A turn that notes; `verdict` is what everybody answers."""

    id = "t1"

    def __init__(self, verdict: str = "allow") -> None:
        self.log: list[Any] = []
        self.verdict = verdict
        self.hosted = self

    def __getattr__(self, name: str) -> Any:
        return lambda *words: self.log.append((name, *words))

    async def ask(self, call: ToolCall, kind: str, summary: str, changes: Any = ()) -> Any:
        self.log.append(("ask", call.name, summary))
        return SimpleNamespace(verdict=self.verdict, comment="because", text="")

    async def question(self, id: str, title: str, names: list[str]) -> Any:
        self.log.append(("question", title, names))
        return SimpleNamespace(answered=self.verdict == "allow", text=names[0])

    async def spoke(self, step: int, content: Any, stop: str, *_: Any, **more: str) -> None:
        self.log.append(("spoke", content, stop))

    async def began(self, call: ToolCall, kind: str) -> None:
        self.log.append(("began", call.id))

    async def refined(self, call: ToolCall) -> None:
        self.log.append(("refined", call.args))

    async def ended(self, call: ToolCall, outcome: str, content: Any, detail: Any = None) -> None:
        self.log.append(("ended", call.id, outcome, content))

    def names(self) -> list[str]:
        return [words[0] for words in self.log]


class Ground:
    def __init__(self) -> None:
        self.files = {"/a": "1\n2\n3\n"}

    async def read(self, turn: Any, path: str) -> str:
        return self.files[path]

    async def write(self, turn: Any, path: str, text: str) -> None:
        self.files[path] = text

    async def run(self, turn: Any, params: Any) -> Any:
        return SimpleNamespace(output=lambda: ("out", False), exit_status=lambda: None)


class Quiet:
    """A child that only keeps what it is told."""

    session = "s"

    def __init__(self) -> None:
        self.said: list[Any] = []

    def answer(self, asked: Asked, value: Any) -> None:
        self.said.append((asked.id, value))

    def refuse(self, asked: Asked, code: int, message: str) -> None:
        self.said.append((asked.id, message))


def taking(verdict: str = "allow") -> Any:
    seat = ChildSeat(Quiet(), None)
    return Taking(Turn(verdict), seat, Ground())


async def served(made: Any, method: str, **params: Any) -> Any:
    await made._take(Asked(method, params, 1))
    await asyncio.gather(*made._requests)
    return made.child.said[-1][1]


@pytest.mark.parametrize(
    ("params", "content"),
    [
        ({}, "1\n2\n3\n"),
        ({"line": 2}, "2\n3\n"),
        ({"line": 2, "limit": 1}, "2\n"),
        ({"line": 9}, ""),
    ],
)
async def test_serving_reads_the_lines_that_are_asked_for(
    params: dict[str, Any], content: str
) -> None:
    assert await served(taking(), "fs/read_text_file", path="/a", **params) == {"content": content}


@pytest.mark.parametrize("params", [{"line": -5, "limit": 1}, {"limit": -1}, {"line": 1.5}])
async def test_serving_refuses_lines_that_are_no_numbers(params: dict[str, Any]) -> None:
    said = await served(taking(), "fs/read_text_file", path="/a", **params)
    assert "must be a whole number" in str(said)


async def test_serving_writes_only_what_was_permitted() -> None:
    made = taking("deny")
    said = await served(made, "fs/write_text_file", path="/a", content="new")
    assert (
        "Not permitted: Write /a (3 characters)" in said and made.ground.files["/a"] == "1\n2\n3\n"
    )
    call = made.calls["c"] = HostedCall("c")
    call.kind, call.granted = "edit", True
    assert await served(made, "fs/write_text_file", path="/a", content="") == {}
    assert made.ground.files["/a"] == ""


async def test_serving_refuses_what_lacks_something() -> None:
    assert "path is required" in await served(taking(), "fs/read_text_file")
    assert "Method not found" in await served_now(taking(), "fs/odd")
    assert "no such terminal" in await served(taking(), "terminal/output", terminalId="t")


async def served_now(made: Any, method: str) -> Any:
    await made._take(Asked(method, {}, 1))
    return made.child.said[-1][1]


async def test_serving_terminals_have_names_and_a_bound() -> None:
    made = taking()
    name = (await served(made, "terminal/create", command="ls", args=["-l", "a b"]))["terminalId"]
    assert ("ask", "execute", "$ ls -l 'a b'") in made.turn.log
    output = await served(made, "terminal/output", terminalId=name)
    assert output == {"output": "out", "truncated": False}
    made.seat.terminals.update({str(n): made.seat.terminals[name] for n in range(31)})
    assert "32 terminals are open" in await served(made, "terminal/create", command="ls")


def test_serving_finds_the_call_a_permission_is_about() -> None:
    calls = {"real": HostedCall("real")}
    beside = {"_meta": {"x": {"toolCallId": "real"}}}
    assert _asked_about(beside, {"toolCallId": "other"}, calls) == "real"
    assert _asked_about({"_meta": 5}, {"toolCallId": "other"}, calls) == "other"
    assert _asked_about({}, {}, calls) == "call"
    with pytest.raises(BadInput, match="m: n is required"):
        _text(Asked("m", {"n": 5}), "n")
    assert _text(Asked("m", {"n": ""}), "n", empty=True) == ""


async def test_serving_permission_is_asked_of_a_human() -> None:
    options = [{"kind": "allow_once", "optionId": "y"}, {"kind": "reject_once", "optionId": "n"}]
    call = {"toolCallId": "c1", "title": "Run", "kind": "execute", "rawInput": {"command": "ls"}}
    made = taking()
    said = await served(made, "session/request_permission", toolCall=call, options=options)
    assert said["outcome"]["optionId"] == "y" and made.calls["c1"].granted
    assert made.turn.names()[:3] == ["call_drafted", "call_args", "call_ready"]
    refused = taking("deny")
    said = await served(refused, "session/request_permission", toolCall=call, options=options)
    assert said["outcome"]["optionId"] == "n" and refused.calls["c1"].refused == "because"


# --- acp_taking: what the child says ---


async def told(taking: Any, update: Any) -> None:
    """What the hosted agent says of its session."""
    await taking._update(update)


async def test_taking_a_call_from_first_sight_to_its_end() -> None:
    made = taking()
    update = {"sessionUpdate": "tool_call", "toolCallId": "c1", "kind": "read", "title": "Read"}
    text = {"type": "content", "content": {"type": "text", "text": "body"}}
    await told(
        made, {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "I"}}
    )
    await told(made, update)
    more = {**update, "rawInput": {"path": "a"}, "status": "in_progress", "content": [text]}
    await told(made, more)
    await told(
        made, {"toolCallId": "c1", "sessionUpdate": "tool_call_update", "status": "completed"}
    )
    await told(made, {"toolCallId": "c1", "sessionUpdate": "tool_call_update", "status": "failed"})
    await told(made, {"sessionUpdate": "tool_call", "toolCallId": 5})
    names = made.turn.names()
    assert names.count("ended") == 1 and names.index("refined") < names.index("began")
    assert ("progress", "c1", "body") in made.turn.log
    assert made.turn.log[-1] == ("ended", "c1", "done", (Text("body"),))


async def test_taking_closes_what_was_left_open() -> None:
    made = taking()
    await told(made, {"sessionUpdate": "tool_call", "toolCallId": "c1", "kind": "read"})
    made.calls["no"] = HostedCall("no")
    made.calls["no"].refused = "not allowed"
    await made._close_calls()
    ended = {
        words[1]: (words[2], words[3][0].text) for words in made.turn.log if words[0] == "ended"
    }
    assert ended["c1"] == ("done", "(the agent said nothing more about this call)")
    assert ended["no"] == ("denied", "not allowed")


async def test_taking_counts_what_the_agent_says_it_cost_once() -> None:
    made = taking()
    for amount in (0.5, 0.75, 0.6, "x"):
        await told(made, {"sessionUpdate": "usage_update", "cost": {"amount": amount}})
    assert made._cost == 0.75 and made.seat.cost == 0.75
    await told(made, {"sessionUpdate": "unknown"})


# --- acp_process ---


def test_process_spells_servers_as_the_protocol_does() -> None:
    assert _server({"name": "a", "command": "x", "env": {"K": "v"}}) == {
        "name": "a", "command": "x", "args": [], "env": [{"name": "K", "value": "v"}],
    }  # fmt: skip
    assert _server({"url": "u", "transport": "sse"})["type"] == "sse"
    given = [{"name": "H", "value": "v"}]
    assert _server({"url": "u", "type": "odd", "headers": given})["headers"] == given


async def test_process_tools_are_known_by_their_kind_and_never_run() -> None:
    tools = HostedTools(AcpProcessAgent(Ground()), "s")
    found = tools.find("edit")
    assert found is not None and found.spec.kind == "edit" and tools.find("bash") is None
    with pytest.raises(BadInput, match="of the hosted agent itself"):
        await found.run({}, None)
    await tools.close()


async def test_process_keeps_its_own_history() -> None:
    with pytest.raises(BadInput, match="history itself"):
        await AcpProcessAgent(Ground()).compact(Turn())


async def test_process_a_permission_is_refused_with_the_reason() -> None:
    made = taking("deny")
    with pytest.raises(Refused, match="Not permitted: x"):
        await made._permit("write", "edit", {}, "x")
