"""A real daemon process, and one small client per protocol, for tests that need them all."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

WITHIN = 60.0
_LIMIT = 16 * 1024 * 1024


class House:
    """A daemon in a folder of its own, which can be killed and started again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config = folder / "config"
        self.work = folder / "work"
        self.config.mkdir()
        self.work.mkdir()
        self.more: dict[str, str] = {}  # of the environment
        self.gateway = False
        self.process: asyncio.subprocess.Process | None = None
        self._speakers: list[Speaker] = []

    def socket(self, name: str) -> str:
        return str(self.config / "data" / f"{name}.sock")

    async def start(self) -> None:
        env = {name: value for name, value in os.environ.items() if "API_KEY" not in name}
        env |= {"DRAGOMAN_agents__default__model": "demo/demo", "PYTHONUNBUFFERED": "1"} | self.more
        flags = () if self.gateway else ("--no-gateway",)
        self.process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "dragoman", "daemon", *flags, "--config-dir", str(self.config),
            stdin=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE, env=env,
        )  # fmt: skip
        assert self.process.stderr is not None
        said = []
        async with asyncio.timeout(120):  # as a rule one second; not on a crowded machine
            while (line := await self.process.stderr.readline()).strip() != b"ready":
                said.append(line)
                assert line, b"".join(said).decode()

    async def kill(self) -> None:
        """As a crash would: no chance to put anything in order."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        await self.process.wait()
        await self.leave()

    async def leave(self) -> None:
        """Let all clients go."""
        for speaker in self._speakers:
            await speaker.close()
        self._speakers.clear()

    async def close(self) -> None:
        await self.leave()
        if self.process is not None and self.process.returncode is None:
            self.process.terminate()
            async with asyncio.timeout(60):
                await self.process.wait()

    async def speaker(self, socket: str) -> "Speaker":
        made = await Speaker.connect(self.socket(socket))
        self._speakers.append(made)
        return made

    # --- one client per protocol, ready to work ---

    async def acp(self, socket: str = "acp") -> "Speaker":
        speaker = await self.speaker(socket)
        capabilities = {"fs": {"readTextFile": False, "writeTextFile": False}}
        params = {"protocolVersion": 1, "clientCapabilities": capabilities}
        await speaker.call("initialize", params)
        return speaker

    async def zeroclaw(self, socket: str = "daemon") -> "Speaker":
        speaker = await self.speaker(socket)
        await speaker.call("initialize", {"protocolVersion": 1})
        return speaker

    async def humanlayer(self, socket: str = "humanlayer", **wanted: Any) -> "Speaker":
        """A connection that only subscribes; requests go over another one."""
        speaker = await self.speaker(socket)
        await speaker.call("Subscribe", wanted)
        return speaker

    async def zot(self, session: str, socket: str = "any") -> "Speaker":
        speaker = await self.speaker(socket)
        await speaker.command("open", session=session)
        return speaker

    async def app(self, socket: str = "kernel", **capabilities: Any) -> "Speaker":
        """An OpenClawOS app that has registered, subscribed to its hooks, and is ready."""
        speaker = await self.speaker(socket)
        manifest = {
            "id": "@test/app", "name": "Test", "version": "1.0.0", "type": "app",
            "main": "index.js", "protocol": {"version": "1.0"}, "capabilities": capabilities,
        }  # fmt: skip
        await speaker.request("app.register", {"manifest": manifest})
        hooks = capabilities.get("hooks", {})
        names = [*hooks.get("subscribes", ()), *hooks.get("intercepts", ())]
        if names:
            await speaker.request("hook.subscribe", {"events": names})
        await speaker.request("app.ready", {})
        return speaker


class Speaker:
    """One connection; everything that comes is kept in `seen`, in order."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self.seen: list[dict[str, Any]] = []
        self.ended = False
        self._news = asyncio.Event()
        self._next = 0
        self._task = asyncio.ensure_future(self._read(reader))

    @classmethod
    async def connect(cls, path: str) -> "Speaker":
        return cls(*await asyncio.open_unix_connection(path, limit=_LIMIT))

    async def _read(self, reader: asyncio.StreamReader) -> None:
        try:
            while line := await reader.readline():
                self.seen.append(json.loads(line))
                self._news.set()
        except ConnectionError:
            pass  # the daemon was killed: the end, like any other
        finally:
            self.ended = True
            self._news.set()

    def send(self, message: dict[str, Any]) -> None:
        self._writer.write(json.dumps(message).encode() + b"\n")

    async def until(
        self, found: Callable[[dict[str, Any]], bool], since: int = 0
    ) -> dict[str, Any]:
        """The first message that fits, waiting for it."""
        at = since
        try:
            async with asyncio.timeout(WITHIN):
                while True:
                    while at < len(self.seen):
                        if found(self.seen[at]):
                            return self.seen[at]
                        at += 1
                    if self.ended:
                        raise EOFError(f"the connection ended after {self.seen[-3:]}")
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            order = [one.get("params", {}).get("seq") for one in self.seen if "params" in one]
            raise AssertionError(
                f"nothing that fits; numbers {order}; the last were {self.seen[-5:]}"
            ) from None

    async def call(self, method: str, params: dict[str, Any] | None = None) -> Any:
        """A JSON-RPC request and its result."""
        id = self.begin(method, params)
        return (await self.answer(id))["result"]

    def begin(self, method: str, params: dict[str, Any] | None = None) -> str:
        self._next += 1
        id = f"q{self._next}"
        self.send({"jsonrpc": "2.0", "id": id, "method": method, "params": params or {}})
        return id

    async def answer(self, id: str) -> dict[str, Any]:
        found = await self.until(lambda m: m.get("id") == id and "method" not in m)
        assert "error" not in found, found
        return found

    async def command(self, kind: str, **fields: Any) -> Any:
        """A zot command and its data."""
        self._next += 1
        id = f"z{self._next}"
        self.send({"id": id, "type": kind, **fields})
        found = await self.until(lambda m: m.get("type") == "response" and m.get("id") == id)
        assert found["success"], found
        return found.get("data")

    async def request(self, method: str, params: dict[str, Any]) -> Any:
        """An OpenClawOS request and its result."""
        self._next += 1
        id = f"r{self._next}"
        message = {"id": id, "type": "request", "timestamp": 1, "method": method}
        self.send({**message, "params": params})
        found = await self.until(lambda m: m.get("type") == "response" and m.get("requestId") == id)
        assert found["success"], found
        return found["result"]

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self._writer.close()
        await asyncio.gather(self._writer.wait_closed(), return_exceptions=True)
