"""One small client per protocol: it connects, follows a session, and does one random thing."""

import asyncio
import json
import os
import sys
import tempfile
from typing import Any

from tests.cross.fire.check import answered_id
from tests.cross.fire.trace import Deed, Frame, Message, Promise, Trace, Wire

_LIMIT = 64 * 1024 * 1024
_HOOKS = ("agent_starting", "agent_completed", "tool_completed")


class Client:
    """A connection that writes down all that passes."""

    dialect = ""
    socket = ""
    lasts = False  # it stays when the daemon ends
    since: int | None = None  # from where it watches; None: from now on
    returns = False  # it may come back with the place that it had before

    def __init__(self, trace: Trace, number: int, session: str, cwd: str) -> None:
        self.trace = trace
        self.session = session
        self.cwd = cwd
        self.name = f"{self.dialect}-{number}"
        self.wire = trace.wires[self.name] = Wire(self.name, self.dialect, session)
        self.reached: int | None = None  # the newest place that it was told
        self.asks: list[str] = []  # questions that it was shown and has not answered
        self.eager = False  # it answers questions at once
        self.open = False
        self._next = 0
        self._waiting: dict[str, asyncio.Future[Message]] = {}

    async def connect(self, path: str) -> None:
        reader, self._writer = await asyncio.open_unix_connection(path, limit=_LIMIT)
        self.open = True
        self._task = asyncio.ensure_future(self._read(reader))
        await self.greet()

    async def _read(self, reader: asyncio.StreamReader) -> None:
        try:
            while line := await reader.readline():
                message = json.loads(line)
                self.trace.frames.append(Frame(self.name, False, message))
                found = self._waiting.pop(answered_id(message) or "", None)
                if found is not None and not found.done():
                    found.set_result(message)
                self.hear(message)
                self.reached = self.place(message) or self.reached
                if self.eager and self.asks and (said := self.answer(self.asks.pop(), True)):
                    self.write(said)
        except ConnectionError:
            pass  # the daemon was killed: the end, like any other
        finally:
            self.open = False
            self.wire.cut = True
            for future in self._waiting.values():
                if not future.done():
                    future.set_exception(EOFError("the connection ended"))
                    future.exception()

    def write(self, *messages: Message) -> None:
        """All in one write, as clients that pipeline do."""
        if not self.open:
            return
        for message in messages:
            self.trace.frames.append(Frame(self.name, True, message))
        self._writer.write(b"".join(json.dumps(one).encode() + b"\n" for one in messages))

    async def close(self) -> None:
        self.wire.cut = True
        self._writer.close()
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    def id(self) -> str:
        self._next += 1
        return f"{self.name}-{self._next}"

    async def ask(self, method: str, params: Message, within: float = 30.0) -> Message:
        message = self.request(method, params)
        future = asyncio.get_running_loop().create_future()
        self._waiting[message["id"]] = future
        self.write(message)
        async with asyncio.timeout(within):
            return await future

    def promise(self, mark: str, kind: str, message: Message) -> Message:
        self.trace.promises.append(Promise(mark, self.session, self.name, message["id"], kind))
        return message

    # --- what each protocol says in its own words ---

    def request(self, method: str, params: Message) -> Message:
        return {"jsonrpc": "2.0", "id": self.id(), "method": method, "params": params}

    async def greet(self) -> None:
        """Say hello and follow the session."""

    def hear(self, message: Message) -> None:
        """Note questions."""

    def place(self, message: Message) -> int | None:
        """The place that a message names: this client has all up to it."""
        return None

    def prompt(self, mark: str, text: str, kind: str) -> Message | None:
        """A message that sends a prompt, or nothing when the protocol has no such word."""
        return None

    def cancel(self) -> Message | None:
        return None

    def answer(self, ask: str, allow: bool) -> Message | None:
        return None

    def noise(self) -> Message | None:
        """Something harmless that is answered."""
        return None

    def deed(self, kind: str) -> Message | None:
        """Something rare: take a prompt back, undo, close."""
        return None

    def deeds(self, kind: str, message: Message, about: str = "", verdict: str = "") -> Message:
        made = Deed(kind, self.session, self.name, message["id"], about, verdict)
        self.trace.deeds.append(made)
        return message


class Native(Client):
    dialect, socket = "native", "daemon"
    since: int | None = 0
    returns = True

    def __init__(self, trace: Trace, number: int, session: str, cwd: str) -> None:
        super().__init__(trace, number, session, cwd)
        self.marks: list[str] = []  # prompts that it queued
        self.last: Message = {}  # what it sent last

    async def greet(self) -> None:
        await self.ask("initialize", {"protocol_version": 1})
        of = {"session_id": self.session}
        await self.ask("dragoman/watch", of if self.since is None else {**of, "since": self.since})

    def place(self, message: Message) -> int | None:
        told = message.get("params") or {}
        return told["seq"] or None if message.get("method") == "dragoman/event" else None

    def hear(self, message: Message) -> None:
        event = (message.get("params") or {}).get("event") or {}
        if event.get("type") == "asked":
            self.asks.append(json.dumps([event["ask"]["id"], event["ask"].get("digest", "")]))

    def prompt(self, mark: str, text: str, kind: str) -> Message | None:
        of: Message = {"session_id": self.session, "text": text}
        if kind == "steer":
            return self.promise(mark, "steer", self.request("dragoman/steer", of))
        detach = kind == "queue"
        if detach:
            self.marks.append(mark)
        of |= {"detach": detach, "key": mark}
        self.last = of
        return self.promise(mark, kind, self.request("dragoman/prompt", of))

    def cancel(self) -> Message | None:
        return self.request("dragoman/cancel", {"session_id": self.session})

    def answer(self, ask: str, allow: bool) -> Message | None:
        id, digest = json.loads(ask)
        verdict = "allow" if allow else "deny"
        of = {"id": id, "verdict": verdict, "digest": digest}
        return self.deeds("answer", self.request("dragoman/answer", of), id, verdict)

    def deed(self, kind: str) -> Message | None:
        of = {"session_id": self.session}
        if kind == "retract" and self.marks:
            mark = self.marks.pop()
            if self.last.get("key") == mark:  # sent again, it would be another one
                self.last = {}
            wanted = self.request("dragoman/retract", {**of, "key": mark})
            return self.deeds("retract", wanted, mark)
        if kind == "again" and self.last:  # a client in doubt: it is one prompt all the same
            again = self.request("dragoman/prompt", self.last)
            return self.promise(self.last["key"], "again", again)
        if kind == "undo":
            return self.deeds("undo", self.request("dragoman/undo", of))
        return self.request("dragoman/close", of) if kind == "close" else None

    def noise(self) -> Message | None:
        return self.request("dragoman/session", {"session_id": self.session})


class Fresh(Native):
    """Watches from now on."""

    since = None
    returns = False


class All(Native):
    """Watches all sessions, from now on."""

    dialect = "all"
    since = None

    async def greet(self) -> None:
        await self.ask("initialize", {"protocol_version": 1})
        await self.ask("dragoman/watch", {} if self.since is None else {"since": self.since})

    def place(self, message: Message) -> int | None:
        told = message.get("params") or {}
        return told["gseq"] if super().place(message) else None


class Zeroclaw(Client):
    dialect, socket = "zeroclaw", "daemon"

    async def greet(self) -> None:
        await self.ask("initialize", {"protocolVersion": 1})
        await self.ask("session/new", {"agentAlias": "default", "sessionId": self.session})

    def hear(self, message: Message) -> None:
        told = message.get("params") or {}
        if told.get("type") == "approval_request":
            self.asks.append(told["requestId"])

    def prompt(self, mark: str, text: str, kind: str) -> Message | None:
        of = {"sessionId": self.session, "prompt": text}
        return self.promise(mark, "prompt", self.request("session/prompt", of))

    def cancel(self) -> Message | None:
        return self.request("session/cancel", {"sessionId": self.session})

    def answer(self, ask: str, allow: bool) -> Message | None:
        decision = "allow_once" if allow else "reject_once"
        of = {"sessionId": self.session, "requestId": ask, "decision": decision}
        return self.request("session/approve", of)

    def noise(self) -> Message | None:
        return self.request("session/messages", {"sessionId": self.session})

    def deed(self, kind: str) -> Message | None:
        if kind == "close":  # and back, in one write
            of = {"agentAlias": "default", "sessionId": self.session}
            leave = self.request("session/close", {"sessionId": self.session})
            self.write(leave, self.request("session/new", of))
        return None


class Acp(Client):
    dialect, socket = "acp", "acp"

    async def greet(self) -> None:
        await self.ask("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
        of = {"sessionId": self.session, "cwd": self.cwd, "mcpServers": []}
        load = self.request("session/load", of)
        mode = self.request("session/set_mode", {**of, "modeId": "supervised"})
        future = asyncio.get_running_loop().create_future()
        self._waiting[load["id"]] = future
        self.write(load, mode)  # in one write: they take effect in this order
        async with asyncio.timeout(60):
            self.wire.whole = "result" in await future  # else another process has the session

    def hear(self, message: Message) -> None:
        if message.get("method") == "session/request_permission":
            self.asks.append(json.dumps([message["id"], message["params"]["options"]]))

    def prompt(self, mark: str, text: str, kind: str) -> Message | None:
        of = {"sessionId": self.session, "prompt": [{"type": "text", "text": text}]}
        return self.promise(mark, "prompt", self.request("session/prompt", of))

    def cancel(self) -> Message | None:
        message = self.request("session/cancel", {"sessionId": self.session})
        del message["id"]
        return message

    def answer(self, ask: str, allow: bool) -> Message | None:
        id, options = json.loads(ask)
        wanted = "allow_once" if allow else "reject_once"
        fits = [one["optionId"] for one in options if one["kind"] == wanted]
        chosen = fits[0] if fits else options[-1]["optionId"]  # a question has choices of its own
        outcome = {"outcome": "selected", "optionId": chosen}
        return {"jsonrpc": "2.0", "id": id, "result": {"outcome": outcome}}

    def noise(self) -> Message | None:
        return self.request("session/list", {})

    def deed(self, kind: str) -> Message | None:
        if kind == "close":  # and back, in one write: it is shown everything once more
            self.wire.whole = False
            leave = self.request("session/close", {"sessionId": self.session})
            self.write(leave, self.back())
        return None

    def back(self) -> Message:
        of = {"sessionId": self.session, "cwd": self.cwd, "mcpServers": []}
        return self.request("session/load", of)


class Acp2(Acp):
    """Version 2: prompts are held until they begin."""

    dialect = "acp2"

    async def greet(self) -> None:
        about = {"name": self.name, "version": "1"}
        await self.ask("initialize", {"protocolVersion": 2, "capabilities": {}, "info": about})
        of = {"sessionId": self.session, "cwd": self.cwd, "mcpServers": []}
        again = await self.ask("session/resume", {**of, "replayFrom": {"type": "start"}})
        self.wire.whole = "result" in again

    def back(self) -> Message:
        of = {"sessionId": self.session, "cwd": self.cwd, "mcpServers": []}
        return self.request("session/resume", of)


class Piped(Client):
    """A program of ours between the client and the daemon, on its standard streams."""

    program: tuple[str, ...] = ()

    async def connect(self, path: str) -> None:
        """`path` is the configuration's folder."""
        env = {name: value for name, value in os.environ.items() if "DRAGOMAN" not in name}
        words = [one.replace("SESSION", self.session) for one in self.program]
        self._words = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the client
        self.process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "dragoman", *words, "--config-dir", path,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            stderr=self._words, env=env, cwd=self.cwd, limit=_LIMIT,
        )  # fmt: skip
        assert self.process.stdout is not None and self.process.stdin is not None
        self._writer = self.process.stdin
        self.open = True
        self._task = asyncio.ensure_future(self._read(self.process.stdout))
        await self.greet()

    def words(self) -> str:
        """What it said beside the wire."""
        self._words.seek(0)
        return self._words.read().decode()

    async def close(self) -> None:
        await super().close()
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()
        self._words.close()


class Relay(Piped, Acp):
    """`dragoman acp` joined to the daemon: it outlives every daemon of the fire."""

    dialect, program = "relay", ("acp",)
    lasts = True

    async def greet(self) -> None:
        await self.ask("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
        of = {"sessionId": self.session, "cwd": self.cwd, "mcpServers": []}
        await self.ask("session/load", of)

    def deed(self, kind: str) -> Message | None:
        return None  # what it showed is counted to its end


class Bridge(Relay):
    """`dragoman acp-bridge` between a client and the gateway: it outlives every daemon, too."""

    dialect, program = "bridge", ("acp-bridge",)


class Zot(Client):
    dialect, socket = "zot", "any"

    def request(self, method: str, params: Message) -> Message:
        return {"id": self.id(), "type": method, **params}

    async def greet(self) -> None:
        opened = await self.ask("open", {"session": self.session})
        if not opened["success"]:  # else its prompts would go to a session of their own
            self._writer.close()

    def hear(self, message: Message) -> None:
        if message.get("type") == "approval_request":
            self.asks.append(message["approval"])

    def prompt(self, mark: str, text: str, kind: str) -> Message | None:
        word = "steer" if kind == "steer" else "prompt"
        return self.promise(mark, word, self.request(word, {"message": text}))

    def cancel(self) -> Message | None:
        return self.request("abort", {})

    def answer(self, ask: str, allow: bool) -> Message | None:
        return self.request("approve", {"approval": ask, "allow": allow})

    def noise(self) -> Message | None:
        return self.request("get_state", {})


class Rpc(Piped, Zot):
    """`dragoman rpc --session ID` joined to the daemon."""

    program = ("rpc", "--session", "SESSION")

    async def greet(self) -> None:
        await self.ask("get_state", {})


class Humanlayer(Client):
    """Requests only: its events come over a connection that does nothing else."""

    dialect, socket = "humanlayer", "humanlayer"

    def hear(self, message: Message) -> None:
        result: Any = message.get("result")
        if isinstance(result, dict):
            self.asks += [one["id"] for one in result.get("approvals") or ()]

    def cancel(self) -> Message | None:
        return self.request("interruptSession", {"session_id": self.session})

    def answer(self, ask: str, allow: bool) -> Message | None:
        decision = "approve" if allow else "deny"
        of = {"call_id": ask, "type": "function_call", "decision": decision, "comment": "so"}
        return self.request("sendDecision", of)

    def noise(self) -> Message | None:
        return self.request("fetchApprovals", {"session_id": self.session})


class Subscriber(Humanlayer):
    """Its events, from the beginning of the session on; it says nothing more."""

    dialect = "subscriber"
    since = 0
    returns = True

    async def greet(self) -> None:
        await self.ask("Subscribe", {"session_id": self.session, "since": self.since})

    def place(self, message: Message) -> int | None:
        event = (message.get("result") or {}).get("event") or {}
        return event.get("seq")

    def cancel(self) -> Message | None:
        return None

    def noise(self) -> Message | None:
        return None


class App(Client):
    dialect, socket = "openclawos", "kernel"

    def request(self, method: str, params: Message) -> Message:
        return {
            "id": self.id(),
            "type": "request",
            "timestamp": 1,
            "method": method,
            "params": params,
        }

    async def greet(self) -> None:
        manifest = {
            "id": f"@fire/{self.name}", "name": self.name, "version": "1.0.0", "type": "app",
            "main": "index.js", "protocol": {"version": "1.0"},
            "capabilities": {"hooks": {"subscribes": list(_HOOKS)}},
        }  # fmt: skip
        await self.ask("app.register", {"manifest": manifest})
        await self.ask("hook.subscribe", {"events": list(_HOOKS)})
        await self.ask("app.ready", {})

    def prompt(self, mark: str, text: str, kind: str) -> Message | None:
        of = {"sessionKey": self.session, "text": text}
        return self.promise(mark, "queue", self.request("agent.queue", of))

    def noise(self) -> Message | None:
        return self.request("session.get", {"key": self.session})


KINDS: tuple[type[Client], ...] = (
    Native, Fresh, All, Zeroclaw, Acp, Acp2, Zot, Humanlayer, Subscriber, App,
)  # fmt: skip
