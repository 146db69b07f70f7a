"""The published `humanlayer` command (npm), unmodified, against a running daemon."""

import asyncio
import json
import os
import re
import sys
from pathlib import Path

import pytest

NODE = Path(__file__).parent / "node"
BIN = NODE / "node_modules/.bin"
DRAGOMAN = str(Path(sys.executable).with_name("dragoman"))

pytestmark = [
    pytest.mark.interop,
    pytest.mark.skipif(
        not (BIN / "humanlayer").exists() and os.environ.get("CI") != "true",
        reason="needs make setup-node",
    ),
]


class Scene:
    """A daemon with a home of its own, and the CLI in a project beside."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.work = folder / "work"
        self.work.mkdir()
        self.socket = str(folder / "config/data/humanlayer.sock")
        self.env = {
            "PATH": f"{BIN}:{os.environ['PATH']}",
            "HOME": str(folder),
            "DRAGOMAN_CONFIG_DIR": str(folder / "config"),
        }

    async def start(self) -> None:
        self.daemon = await asyncio.create_subprocess_exec(
            DRAGOMAN, "daemon", "--no-gateway", env=self.env, stderr=asyncio.subprocess.PIPE
        )
        assert self.daemon.stderr is not None
        async with asyncio.timeout(60):
            while b"ready" not in (line := await self.daemon.stderr.readline()):
                assert line, "the daemon ended"

    async def stop(self) -> None:
        self.daemon.terminate()
        await asyncio.wait_for(self.daemon.communicate(), 60)

    async def cli(self, *words: str) -> tuple[int, str, str]:
        process = await asyncio.create_subprocess_exec(
            "humanlayer", *words, env=self.env, cwd=self.work,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        out, err = await asyncio.wait_for(process.communicate(), 60)
        assert process.returncode is not None
        return process.returncode, out.decode(), err.decode()

    async def call(self, method: str, **params):
        reader, writer = await asyncio.open_unix_connection(self.socket, limit=1 << 24)
        request = {"jsonrpc": "2.0", "method": method, "params": params, "id": 1}
        writer.write(json.dumps(request).encode() + b"\n")
        answer = json.loads(await asyncio.wait_for(reader.readline(), 60))
        writer.close()
        await writer.wait_closed()
        return answer["result"]

    async def subscribe(self, **params):
        """A function that waits for the next event of a kind."""
        reader, writer = await asyncio.open_unix_connection(self.socket, limit=1 << 24)
        request = {"jsonrpc": "2.0", "method": "Subscribe", "params": params, "id": 1}
        writer.write(json.dumps(request).encode() + b"\n")
        assert b"sub_" in await asyncio.wait_for(reader.readline(), 60)

        async def until(kind: str, **data):
            async with asyncio.timeout(60):
                while True:
                    event = json.loads(await reader.readline())["result"]["event"]
                    if event["type"] == kind and data.items() <= event["data"].items():
                        return event["data"]

        self.watcher = writer
        return until


@pytest.fixture
async def scene(tmp_path):
    scene = Scene(tmp_path)
    await scene.start()
    yield scene
    watcher = getattr(scene, "watcher", None)
    if watcher is not None:
        watcher.close()
    await scene.stop()


def launched(out: str) -> tuple[str, str]:
    session = re.search(r"Session ID: (\S+)", out)
    run = re.search(r"Run ID: (\S+)", out)
    assert session and run, out
    return session[1], run[1]


async def test_launch_starts_a_session_that_a_second_client_approves(scene):
    until = await scene.subscribe()
    code, out, err = await scene.cli(
        "launch", "--daemon-socket", scene.socket, "-t", "From the CLI", "run touch made.txt"
    )
    assert code == 0, err
    session, run = launched(out)
    asked = await until("new_approval", session_id=session)
    assert asked["run_id"] == run and not (scene.work / "made.txt").exists()
    decided = await scene.call(
        "sendDecision", approval_id=asked["approval_id"], decision="approve", comment="go on"
    )
    assert decided == {"success": True}
    await until("session_status_changed", session_id=session, new_status="completed")
    assert (scene.work / "made.txt").exists()
    state = (await scene.call("getSessionState", session_id=session))["session"]
    assert (state["title"], state["working_dir"]) == ("From the CLI", str(scene.work))
    assert (state["query"], state["status"]) == ("run touch made.txt", "completed")


async def test_launch_with_every_option(scene):
    until = await scene.subscribe()
    code, out, err = await scene.cli(
        "launch", "--daemon-socket", scene.socket, "-m", "opus", "-w", str(scene.work),
        "--max-turns", "7", "--dangerously-skip-permissions",
        "--dangerously-skip-permissions-timeout", "15", "--no-approvals", "run touch free.txt",
        "--add-dir", str(scene.folder),
    )  # fmt: skip
    assert code == 0, err
    session, _ = launched(out)
    await until("session_status_changed", session_id=session, new_status="completed")
    assert (scene.work / "free.txt").exists()
    state = (await scene.call("getSessionState", session_id=session))["session"]
    assert state["dangerously_skip_permissions"] is True
    assert "dangerously_skip_permissions_expires_at" in state


async def test_a_launch_that_cannot_be_done_says_why(scene):
    code, _, err = await scene.cli(
        "launch", "--daemon-socket", scene.socket, "-w", "/no/such/place", "hello"
    )
    assert code == 1
    assert "RPC error -32603: working directory does not exist: /no/such/place" in err


class Permissions:
    """`humanlayer mcp claude_approvals`, spoken to as an agent does."""

    def __init__(self, scene: Scene, session: str) -> None:
        self.scene = scene
        self.env = {
            **scene.env,
            "HUMANLAYER_DAEMON_SOCKET": scene.socket,
            "HUMANLAYER_SESSION_ID": session,
        }
        self.last = 0

    async def __aenter__(self):
        self.process = await asyncio.create_subprocess_exec(
            "humanlayer", "mcp", "claude_approvals", env=self.env, cwd=self.scene.work,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        hello = {"protocolVersion": "2025-06-18", "capabilities": {},
                 "clientInfo": {"name": "test", "version": "1"}}  # fmt: skip
        await self.answer(self.send("initialize", hello))
        self._write({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return self

    async def __aexit__(self, *error):
        if self.process.returncode is None:
            self.process.kill()
        await self.process.communicate()

    def _write(self, message):
        self.process.stdin.write(json.dumps(message).encode() + b"\n")

    def send(self, method, params):
        self.last += 1
        self._write({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params})
        return self.last

    async def answer(self, id):
        async with asyncio.timeout(60):
            while True:
                message = json.loads(await self.process.stdout.readline())
                if message.get("id") == id:
                    return message["result"]

    def request(self, **arguments):
        return self.send("tools/call", {"name": "request_permission", "arguments": arguments})


async def test_the_permission_server_asks_and_a_second_client_decides(scene):
    until = await scene.subscribe()
    _, out, _ = await scene.cli("launch", "--daemon-socket", scene.socket, "say hello")
    session, run = launched(out)
    await until("session_status_changed", session_id=session, new_status="completed")
    async with Permissions(scene, session) as agent:
        request = agent.request(tool_name="Bash", input={"command": "ls"}, tool_use_id="toolu_01")
        asked = await until("new_approval", session_id=session)
        assert (asked["tool_name"], asked["tool_use_id"]) == ("Bash", "toolu_01")
        shown = (await scene.call("fetchApprovals", session_id=session))["approvals"]
        assert [(a["id"], a["run_id"], a["tool_input"]) for a in shown] == [
            (asked["approval_id"], run, {"command": "ls"})
        ]
        await scene.call("sendDecision", approval_id=asked["approval_id"], decision="approve")
        answer = json.loads((await agent.answer(request))["content"][0]["text"])
        assert answer == {"behavior": "allow", "updatedInput": {"command": "ls"}}
        # without the id of a tool call the run id still carries the session: it is found too
        request = agent.request(tool_name="Write", input={"file_path": "x"})
        asked = await until("new_approval", session_id=session)
        await scene.call(
            "sendDecision", call_id=asked["call_id"], type="function_call", decision="deny",
            comment="not in my house",
        )  # fmt: skip
        answer = json.loads((await agent.answer(request))["content"][0]["text"])
        assert answer == {"behavior": "deny", "message": "not in my house"}
