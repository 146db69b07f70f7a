"""One session, five protocols, at the same time: python examples/together.py

Starts a daemon of its own in a new folder, attaches one client per protocol to one session, and
shows what each of them says and sees. Standard library only; no key and no network.
"""

import asyncio
import json
import os
import shlex
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

COLOURS = {"acp": 36, "zeroclaw": 34, "zot": 32, "humanlayer": 33, "openclawos": 35}
PROMPT = 'write "violet" to colour.txt, then read colour.txt'
Message = dict[str, Any]


def show(who: str, arrow: str, what: str) -> None:
    name = f"{who:<11}"
    if sys.stdout.isatty() and not os.environ.get("NO_COLOR"):
        name = f"\x1b[{COLOURS[who]}m{name}\x1b[0m"
    print(f"{name} {arrow} {what}", flush=True)


class Client:
    """One connection of one protocol."""

    def __init__(self, who: str, see: Callable[[Message], str]) -> None:
        self.who = who
        self.see = see
        self.seen: list[Message] = []
        self.news = asyncio.Event()

    async def connect(self, path: str) -> None:
        reader, self.writer = await asyncio.open_unix_connection(path, limit=1 << 24)
        self.task = asyncio.ensure_future(self.listen(reader))

    async def listen(self, reader: asyncio.StreamReader) -> None:
        while line := await reader.readline():
            message = json.loads(line)
            what = self.see(message)
            if what:
                show(self.who, "←", what)
            self.seen.append(message)
            self.news.set()

    def say(self, message: Message) -> None:
        self.writer.write(json.dumps(message).encode() + b"\n")

    async def until(self, found: Callable[[Message], bool]) -> Message:
        async with asyncio.timeout(10):
            while True:
                for message in self.seen:
                    if found(message):
                        return message
                self.news.clear()
                await self.news.wait()

    async def call(self, method: str, params: Message) -> Any:
        """A JSON-RPC request."""
        number = f"{method}-{len(self.seen)}"
        self.say({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        return (await self.until(lambda m: m.get("id") == number))["result"]


# --- what each protocol shows, in one line ---


def acp(message: Message) -> str:
    if message.get("method") == "session/request_permission":
        return "session/request_permission: may I?"
    if message.get("method") == "$/cancel_request":
        return "$/cancel_request: somebody else has answered"
    update = message.get("params", {}).get("update", {})
    kind = update.get("sessionUpdate", "")
    if kind == "tool_call":
        return f"tool_call: {update['title']}"
    if kind == "tool_call_update":
        return f"tool_call_update: {update['toolCallId']} {update['status']}"
    return "user_message_chunk" if kind == "user_message_chunk" else ""


def zeroclaw(message: Message) -> str:
    kind = message.get("params", {}).get("type", "")
    return kind if kind in ("approval_request", "tool_call", "tool_result") else ""


def zot(message: Message) -> str:
    kind = message.get("type", "")
    return kind if kind in _ZOT else ""


_ZOT = ("user_message", "approval_request", "approval_settled", "tool_result", "done")


def humanlayer(message: Message) -> str:
    event = (message.get("result") or {}).get("event") or {}
    if event.get("type") == "session_status_changed" and "reason" not in event["data"]:
        return f"session_status_changed: {event['data']['new_status']}"
    return event.get("type", "") if "approval" in event.get("type", "") else ""


def openclawos(message: Message) -> str:
    return message.get("event", "")


async def main() -> None:
    with tempfile.TemporaryDirectory(prefix="dragoman-") as folder:
        env = {**os.environ, "DRAGOMAN_CONFIG_DIR": folder}
        env["DRAGOMAN_agents__default__model"] = "demo/demo"
        program = shlex.split(os.environ.get("DRAGOMAN", f"{sys.executable} -m dragoman"))
        daemon = await asyncio.create_subprocess_exec(
            *program, "daemon", "--no-gateway", env=env, stderr=asyncio.subprocess.PIPE
        )
        assert daemon.stderr is not None
        while (line := await daemon.stderr.readline()).strip() != b"ready":
            if not line:
                raise SystemExit("the daemon did not start")
        try:
            await together(os.path.join(folder, "data"), folder)
        finally:
            daemon.terminate()
            await daemon.wait()


async def together(sockets: str, folder: str) -> None:
    clients = {see.__name__: Client(see.__name__, see)
               for see in (acp, zeroclaw, zot, humanlayer, openclawos)}  # fmt: skip
    names = ("acp.sock", "daemon.sock", "any.sock", "humanlayer.sock", "kernel.sock")
    for client, name in zip(clients.values(), names, strict=True):
        await client.connect(os.path.join(sockets, name))
    editor, terminal, script, inbox, app = clients.values()

    await editor.call("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
    new = await editor.call("session/new", {"cwd": folder, "mcpServers": []})
    session = new["sessionId"]
    show("acp", "→", "session/new: the editor begins a session")
    await terminal.call("initialize", {"protocolVersion": 1})
    await terminal.call("session/new", {"agentAlias": "default", "sessionId": session})
    show("zeroclaw", "→", "session/new: a terminal joins it")
    await inbox.call("Subscribe", {"session_id": session})
    show("humanlayer", "→", "Subscribe: a human's inbox listens")
    hooks = {"hooks": {"subscribes": ["tool_completed", "agent_completed"]}}
    manifest = {
        "id": "@demo/app",
        "name": "Demo",
        "version": "1.0.0",
        "type": "app",
        "main": "app.py",
        "protocol": {"version": "1.0"},
        "capabilities": hooks,
    }
    events = {"events": hooks["hooks"]["subscribes"]}
    for method, params in (("app.register", {"manifest": manifest}), ("hook.subscribe", events),
                           ("app.ready", {})):  # fmt: skip
        app.say({"id": method, "type": "request", "timestamp": 1, "method": method,
                 "params": params})  # fmt: skip
        await app.until(lambda m, method=method: m.get("requestId") == method)
    show("openclawos", "→", "hook.subscribe: an app hears what tools do")
    script.say({"id": "1", "type": "open", "session": session})
    await script.until(lambda m: m.get("id") == "1")
    show("zot", "→", f"prompt: {PROMPT}")
    script.say({"id": "2", "type": "prompt", "message": PROMPT})

    asked = await inbox.until(lambda m: humanlayer(m) == "new_approval")
    await editor.until(lambda m: m.get("method") == "session/request_permission")
    await terminal.until(lambda m: zeroclaw(m) == "approval_request")
    answers = Client("humanlayer", lambda m: "")
    await answers.connect(os.path.join(sockets, "humanlayer.sock"))
    call = asked["result"]["event"]["data"]["approval_id"]
    show("humanlayer", "→", "sendDecision: approve")
    decision = {"call_id": call, "type": "function_call", "decision": "approve"}
    await answers.call("sendDecision", decision)

    await script.until(lambda m: m.get("type") == "done")
    await app.until(lambda m: openclawos(m) == "hook:agent_completed")
    await inbox.until(lambda m: humanlayer(m) == "session_status_changed: completed")
    print(f"\ncolour.txt says: {Path(folder, 'colour.txt').read_text().strip()}")
    for client in (*clients.values(), answers):
        client.task.cancel()
        client.writer.close()


if __name__ == "__main__":
    asyncio.run(main())
