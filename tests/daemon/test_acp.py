"""`dragoman acp` as a process, and ACP on the daemon's socket."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.dialects.acp.oracle import check
from tests.timed import promised

COMMAND = str(Path(sys.executable).with_name("dragoman"))
HANG = 60  # seconds: of what takes a moment, or as long as a library takes to load
SERVER = str(Path(__file__).parents[1] / "tools" / "mcp_server.py")


class Wire:
    """A client of a process or of a socket."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.heard: list[dict[str, Any]] = []
        self.asked: dict[Any, str] = {}
        self.option = "allow-once"
        self.capabilities: dict[str, Any] = {}

    def send(self, message: dict[str, Any]) -> None:
        self.writer.write(json.dumps(message).encode() + b"\n")

    def ask(self, method: str, params: Any = None) -> int:
        id = len(self.asked) + 1
        self.asked[id] = method
        self.send({"jsonrpc": "2.0", "id": id, "method": method, "params": params or {}})
        return id

    async def next(self) -> dict[str, Any]:
        async with asyncio.timeout(HANG):
            line = await self.reader.readline()
        if not line:
            raise EOFError
        message = json.loads(line)
        check(message, self.asked)
        self.heard.append(message)
        if message.get("method") == "session/request_permission" and self.option:
            outcome = {"outcome": "selected", "optionId": self.option}
            self.send({"jsonrpc": "2.0", "id": message["id"], "result": {"outcome": outcome}})
        return message

    async def reply(self, id: int) -> Any:
        while True:
            message = await self.next()
            if message.get("id") == id and "method" not in message:
                return message.get("result", message.get("error"))

    async def call(self, method: str, params: Any = None) -> Any:
        return await self.reply(self.ask(method, params))

    async def prompt(self, session: str, text: str) -> Any:
        return await self.call("session/prompt", {"sessionId": session, "prompt": text})

    def updates(self, kind: str) -> list[dict[str, Any]]:
        found = [m["params"]["update"] for m in self.heard if m.get("method") == "session/update"]
        return [update for update in found if update["sessionUpdate"] == kind]

    def permissions(self) -> int:
        return sum(1 for m in self.heard if m.get("method") == "session/request_permission")

    def said(self, kind: str = "agent_message_chunk") -> str:
        return "".join(update["content"]["text"] for update in self.updates(kind))

    async def until(self, method: str) -> dict[str, Any]:
        while True:
            message = await self.next()
            if message.get("method") == method:
                return message


def environment(folder: Path, **more: str) -> dict[str, str]:
    kept = {key: os.environ[key] for key in ("PATH",)}
    return {**kept, "HOME": str(folder), "DRAGOMAN_CONFIG_DIR": str(folder / "c"), **more}


class Process(Wire):
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None and process.stdout is not None
        super().__init__(process.stdout, process.stdin)
        self.process = process

    async def exit(self) -> int:
        self.writer.close()
        async with asyncio.timeout(HANG):
            return await self.process.wait()


async def start(folder: Path, *words: str, **env: str) -> Process:
    return Process(
        await asyncio.create_subprocess_exec(
            COMMAND, "acp", *words, env=environment(folder, **env), cwd=folder, limit=64 << 20,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
    )  # fmt: skip


@pytest.fixture
async def agent(tmp_path: Path) -> AsyncIterator[Process]:
    process = await start(tmp_path)
    yield process
    if process.process.returncode is None:
        process.process.kill()
        await process.process.wait()


def project(tmp_path: Path) -> str:
    (tmp_path / "work").mkdir(exist_ok=True)
    return str(tmp_path / "work")


async def new(wire: Wire, cwd: str, **more: Any) -> str:
    return (await wire.call("session/new", {"cwd": cwd, "mcpServers": [], **more}))["sessionId"]


async def test_nothing_but_lines_of_json_on_standard_output(agent: Process, tmp_path: Path) -> None:
    await agent.call("initialize")
    session = await new(agent, project(tmp_path))
    # every line is checked as it comes: a child that prints to all it can reach must not show up
    result = await agent.prompt(session, "run echo loud; echo louder >&2")
    assert result["stopReason"] == "end_turn"
    assert "loud" in agent.updates("tool_call_update")[-1]["rawOutput"]
    assert await agent.exit() == 0
    assert await agent.reader.read() == b""


async def test_libraries_that_print_or_warn_do_not_reach_the_wire(tmp_path: Path) -> None:
    noise = tmp_path / "noise"
    noise.mkdir()
    (noise / "sitecustomize.py").write_text(
        "import asyncio, os, sys, warnings\n"
        "import dragoman.engine.turn as turn\n"
        "real = turn.Turn.spoke\n"
        "async def spoke(self, *args, **more):\n"
        "    print('printed'); sys.stdout.flush()\n"
        "    os.write(1, b'written\\n')\n"
        "    warnings.warn('warned')\n"
        "    return await real(self, *args, **more)\n"
        "turn.Turn.spoke = spoke\n"
    )
    agent = await start(tmp_path, PYTHONPATH=str(noise), DRAGOMAN_log__level="debug")
    session = await new(agent, project(tmp_path))
    assert (await agent.prompt(session, "list files"))["stopReason"] == "end_turn"
    assert await agent.exit() == 0
    assert agent.process.stderr is not None
    noise_heard = await agent.process.stderr.read()
    assert b"printed" in noise_heard and b"written" in noise_heard and b"warned" in noise_heard


async def test_history_survives_the_process(tmp_path: Path) -> None:
    first = await start(tmp_path)
    session = await new(first, project(tmp_path))
    await first.prompt(session, "say something memorable")
    assert await first.exit() == 0
    second = await start(tmp_path)
    await second.call("session/load", {"sessionId": session})
    assert second.said("user_message_chunk") == "say something memorable"
    assert (await second.prompt(session, "say more"))["stopReason"] == "end_turn"
    assert await second.exit() == 0


async def test_a_kill_leaves_the_last_complete_turn(tmp_path: Path) -> None:
    first = await start(tmp_path)
    session = await new(first, project(tmp_path))
    await first.prompt(session, "say one")
    first.ask("session/prompt", {"sessionId": session, "prompt": "count slowly to 1000"})
    await first.until("session/update")
    first.process.send_signal(signal.SIGKILL)
    await first.process.wait()
    second = await start(tmp_path)
    assert "modes" in await second.call("session/load", {"sessionId": session})
    assert second.said("user_message_chunk").startswith("say one")
    assert "one" in second.said()
    assert (await second.prompt(session, "say two"))["stopReason"] == "end_turn"
    assert await second.exit() == 0


@promised(2)
async def test_the_end_of_input_cancels_a_long_turn_and_kills_its_children(
    tmp_path: Path, within: float
) -> None:
    agent = await start(tmp_path)
    session = await new(agent, project(tmp_path))
    prompt = agent.ask(
        "session/prompt", {"sessionId": session, "prompt": "run echo $$ > pid; exec sleep 360"}
    )
    pid = Path(project(tmp_path), "pid")
    while True:
        update = await agent.until("session/update")
        if update["params"]["update"].get("status") == "in_progress":
            break
    async with asyncio.timeout(60):
        while not pid.exists() or not pid.read_text().strip():  # noqa: ASYNC110 - a file
            await asyncio.sleep(0.02)
    began = time.monotonic()
    agent.writer.close()
    result = await agent.reply(prompt)
    assert result["stopReason"] == "cancelled"
    assert await agent.process.wait() == 0
    assert time.monotonic() - began < within
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


async def test_a_tool_leaves_the_directory_only_when_a_human_agrees(
    agent: Process, tmp_path: Path
) -> None:
    (tmp_path / "secret.txt").write_text("the secret")
    cwd = project(tmp_path)
    (Path(cwd) / "link").symlink_to(tmp_path)
    session = await new(agent, f"{cwd}/../work")
    for path in ("../secret.txt", str(tmp_path / "secret.txt"), "link/secret.txt"):
        for option, status in (("reject-once", "failed"), ("allow-once", "completed")):
            agent.option, asked = option, agent.permissions()
            await agent.prompt(session, f"read {path}")
            last = agent.updates("tool_call_update")[-1]
            assert last["status"] == status and agent.permissions() == asked + 1, path
            assert ("the secret" in json.dumps(last)) is (status == "completed")


async def test_mcp_servers_of_the_client(agent: Process, tmp_path: Path) -> None:
    cwd = project(tmp_path)
    server = shutil.copy(SERVER, cwd)  # where it may be read, wherever we ourselves are
    servers = [
        {"name": "gone", "command": "/does/not/exist", "args": [], "env": []},
        {"name": "sums", "command": sys.executable, "args": [server], "env": []},
    ]
    params = {"protocolVersion": 1, "clientCapabilities": {"session": {"notices": {}}}}
    await agent.call("initialize", params)
    session = await new(agent, cwd, mcpServers=servers)
    while not agent.updates("notice"):
        await agent.next()
    notice = agent.updates("notice")[0]
    assert notice["severity"] == "warning" and "gone" in notice["title"]
    assert (await agent.prompt(session, "say hi"))["stopReason"] == "end_turn"
    titles = {one["title"] for one in agent.updates("notice")}
    assert not any("sums could not" in title for title in titles), agent.updates("notice")
    db = tmp_path / "c/data/sessions.db"
    assert b"mcp_server.py" not in db.read_bytes() + Path(f"{db}-wal").read_bytes()


async def test_flags_and_configuration(tmp_path: Path) -> None:
    agent = await start(tmp_path, "--max-sessions", "1", "--session-timeout", "7")
    about = (await agent.call("initialize"))["_meta"]["dragoman"]
    assert about["maxSessions"] == 1 and about["sessionTimeoutSecs"] == 7
    await new(agent, project(tmp_path))
    assert (await agent.call("session/new"))["code"] == -32001
    await agent.exit()
    agent = await start(tmp_path, "--max-sessions", "0")
    assert await agent.exit() == 1
    assert agent.process.stderr is not None
    assert b"max_sessions" in await agent.process.stderr.read()


async def test_two_clients_on_the_daemons_socket(tmp_path: Path) -> None:
    daemon = await asyncio.create_subprocess_exec(
        COMMAND, "daemon", "--no-gateway", env=environment(tmp_path), stderr=subprocess.PIPE
    )
    try:
        assert daemon.stderr is not None
        async with asyncio.timeout(HANG):
            while b"ready" not in await daemon.stderr.readline():
                continue
        path = str(tmp_path / "c/data/acp.sock")
        one = Wire(*await asyncio.open_unix_connection(path))
        two = Wire(*await asyncio.open_unix_connection(path))
        one.option = ""
        session = await new(one, project(tmp_path))
        await two.call("session/load", {"sessionId": session})
        prompt = one.ask("session/prompt", {"sessionId": session, "prompt": "run echo both"})
        request = await one.until("session/request_permission")
        await two.until("session/request_permission")  # and it answers
        withdrawn = await one.until("$/cancel_request")
        assert withdrawn["params"]["requestId"] == request["id"]
        assert (await one.reply(prompt))["stopReason"] == "end_turn"
        while len(two.said()) < len(one.said()):
            await two.next()
        assert two.said() == one.said() and "both" in two.said()
        assert two.said("user_message_chunk") == "run echo both"
        for wire in (one, two):
            wire.writer.close()
    finally:
        daemon.terminate()
        await daemon.wait()
