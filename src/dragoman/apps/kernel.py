"""The connection to the kernel: lines, requests and their answers, events."""

import asyncio
import os
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from uuid import uuid4

import msgspec

MAX_LINE = 262_144  # characters that the kernel takes in one line
_READ_LIMIT = 64 * 1024 * 1024
_NAMED = ("OPENCLAWOS_KERNEL_SOCKET", "OPENCLAW_KERNEL_SOCKET", "DRAGOMAN_KERNEL_SOCKET")
_DEFAULT = "/tmp/openclawos/kernel.sock"


class KernelError(Exception):
    """The kernel, or the app that it asked, said no."""

    def __init__(self, code: str, message: str, details: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.details = details


def socket_path(given: str | None = None) -> str:
    """Where the kernel listens: as given, by the environment, or the first usual place with one.

    The usual places are our daemon's data directory, then those of the protocol document; where
    no kernel is at any of them, it is our daemon's that is waited for.
    """
    env = os.environ
    named = given or next((env[name] for name in _NAMED if env.get(name)), "")
    if named:
        return named
    from dragoman.settings.places import places

    ours = os.path.join(places(env).data_dir, "kernel.sock")
    usual = [ours]
    if runtime := env.get("XDG_RUNTIME_DIR"):
        usual.append(os.path.join(runtime, "openclawos", "kernel.sock"))
    usual.append(_DEFAULT)
    return next((place for place in usual if os.path.exists(place)), ours)


class Kernel:
    """One connection. `on_event` is called with the name and payload of each event."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        on_event: Callable[[str, dict[str, Any]], None],
        on_chunk: Callable[[str, Any, bool], None],
    ) -> None:
        self.token = ""
        self._reader = reader
        self._writer = writer
        self._on_event = on_event
        self._on_chunk = on_chunk
        self._waiting: dict[str, asyncio.Future[Any]] = {}
        self.closed = asyncio.ensure_future(self._read())

    @classmethod
    async def connect(
        cls,
        path: str,
        on_event: Callable[[str, dict[str, Any]], None],
        on_chunk: Callable[[str, Any, bool], None] = lambda id, chunk, done: None,
    ) -> "Kernel":
        """Raises OSError."""
        reader, writer = await asyncio.open_unix_connection(path, limit=_READ_LIMIT)
        return cls(reader, writer, on_event, on_chunk)

    def send(self, method: str, params: Any, id: str = "") -> str:
        """Send a request without waiting; returns its id. Raises ValueError when too large."""
        request_id = id or uuid4().hex
        message: dict[str, Any] = {
            "id": request_id,
            "type": "request",
            "timestamp": time.time_ns() // 1_000_000,
            "method": method,
            "params": params,
        }
        if self.token:
            message["token"] = self.token
        line = msgspec.json.encode(message)
        if len(line) > MAX_LINE and len(line.decode().encode("utf-16-le")) // 2 > MAX_LINE:
            raise ValueError(f"{method}: the message is larger than {MAX_LINE} characters")
        if self._writer.is_closing():
            raise ConnectionError("the connection to the kernel is closed")
        self._writer.write(line + b"\n")
        return request_id

    async def request(
        self, method: str, params: Any = None, *, timeout: float = 30.0, id: str = ""
    ) -> Any:
        """Send a request and wait for its result.

        Raises KernelError, TimeoutError, ConnectionError.
        """
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        request_id = id or uuid4().hex
        self._waiting[request_id] = future
        try:
            self.send(method, params if params is not None else {}, request_id)
            await self._writer.drain()
            async with asyncio.timeout(timeout):
                return await future
        finally:
            self._waiting.pop(request_id, None)

    async def _read(self) -> None:
        try:
            while line := await self._reader.readline():
                with suppress(msgspec.DecodeError):  # a line that is no JSON is none of ours
                    self._take(msgspec.json.decode(line))
        except (ConnectionError, ValueError):
            return
        finally:
            for future in self._waiting.values():
                if not future.done():
                    future.set_exception(ConnectionError("the kernel closed the connection"))
                    future.exception()
            self._writer.close()

    def _take(self, message: Any) -> None:
        if not isinstance(message, dict):
            return
        match message.get("type"):
            case "response":
                future = self._waiting.get(message.get("requestId", ""))
                if future is None or future.done():
                    return
                if message.get("success"):
                    future.set_result(message.get("result"))
                    return
                error = message.get("error") or {}
                code, text = error.get("code", "UNKNOWN_ERROR"), error.get("message", "")
                future.set_exception(KernelError(code, text, error.get("details")))
            case "event":
                self._on_event(message.get("event", ""), message.get("payload") or {})
            case "stream":
                chunk = message.get("chunk")
                self._on_chunk(message.get("requestId", ""), chunk, bool(message.get("done")))

    async def close(self) -> None:
        self._writer.close()
        await asyncio.wait({self.closed}, timeout=5.0)
        self.closed.cancel()
        with suppress(OSError):
            await self._writer.wait_closed()
