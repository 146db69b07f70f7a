"""The client's own files and terminals, lent to a session while the client is attached."""

import asyncio
import signal
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.engine.faults import BadInput, WrongState
from dragoman.wire.calls import CallFailed, LinkLost, TooManyCalls

from .calls import terminal_content

if TYPE_CHECKING:
    from .attach import Attachment

_FILE_SECONDS = 30.0
_TERMINAL_SECONDS = 30.0
_LARGEST_CODE = 1 << 32  # as far as any system counts
_decode = msgspec.json.Decoder(dict[str, Any]).decode
Late = Callable[["asyncio.Future[msgspec.Raw]"], None]


async def _ask(
    attachment: "Attachment",
    method: str,
    params: dict[str, Any],
    within: float | None,
    late: Late | None = None,
) -> dict[str, Any]:
    """Ask the client. `late` takes an answer that comes when nobody waits for it any more."""
    outbound = attachment.connection.outbound
    params = {"sessionId": attachment.id, **params}
    try:
        key, future = outbound.begin(method, params)
        try:
            async with asyncio.timeout(within):
                return _read_answer(await asyncio.shield(future))
        except (TimeoutError, asyncio.CancelledError):
            if late is None:
                future.cancel()
            else:
                future.add_done_callback(late)
            outbound.notify("$/cancel_request", {"requestId": key})
            raise
    except (LinkLost, TooManyCalls) as gone:
        raise WrongState(f"The client went away during {method}.", "Try again.") from gone
    except TimeoutError as slow:
        raise WrongState(f"The client did not answer {method} in time.", "Try again.") from slow


def _read_answer(raw: msgspec.Raw) -> dict[str, Any]:
    try:
        return _decode(raw)
    except msgspec.DecodeError:
        return {}  # null is a fine answer where nothing is returned


class ClientFiles:
    """Implements `ports.Files` by `fs/*`: an editor's buffers, unsaved changes included."""

    def __init__(self, attachment: "Attachment") -> None:
        self._attachment = attachment

    async def read_text(self, path: str) -> str:
        if not self._attachment.connection.client.read_files:
            return await asyncio.to_thread(_read, path)
        try:
            answer = await _ask(
                self._attachment, "fs/read_text_file", {"path": path}, _FILE_SECONDS
            )
        except CallFailed as failure:
            # Editors refuse what is not part of their project; our own rules have judged the path.
            try:
                return await asyncio.to_thread(_read, path)
            except OSError:
                raise BadInput(f"{path} could not be read: {failure.message}") from None
        content = answer.get("content")
        if not isinstance(content, str):
            raise BadInput(f"{path} could not be read: the client sent no content")
        return content

    async def write_text(self, path: str, text: str) -> None:
        if not self._attachment.connection.client.write_files:
            await asyncio.to_thread(_write, path, text)
            return
        params = {"path": path, "content": text}
        try:
            await _ask(self._attachment, "fs/write_text_file", params, _FILE_SECONDS)
        except CallFailed as failure:
            raise BadInput(f"{path} could not be written: {failure.message}") from None


def _read(path: str) -> str:
    with open(path, encoding="utf-8", newline="") as file:
        return file.read()


def _write(path: str, text: str) -> None:
    import os

    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write(text)


class ClientTerminals:
    """Implements `ports.Terminals` by `terminal/*`: the human sees the command run."""

    def __init__(self, attachment: "Attachment") -> None:
        self._attachment = attachment
        self._ended: set[str] = set()  # shown by a call whose end the client was not told yet

    def has(self, terminal: str | None) -> bool:
        """Whether this is a terminal of this client that is not released."""
        return terminal in self._ended

    def release(self, terminal: str | None) -> None:
        """The client was told the end of the call: it may keep what it shows, or not."""
        if terminal is not None and terminal in self._ended:
            self._ended.discard(terminal)
            self._send("terminal/release", terminal)

    def release_all(self) -> None:
        for terminal in tuple(self._ended):
            self.release(terminal)

    @property
    def near(self) -> bool:
        return self._attachment.connection.who.peer.startswith(("unix", "stdio"))

    async def run(
        self,
        command: str,
        *,
        argv: Sequence[str] = (),
        cwd: str,
        env: dict[str, str],
        timeout: float | None,
        limit: int,
        opened: Callable[[str], None],
    ) -> tuple[int | None, str, bool]:
        attachment = self._attachment
        program, *words = argv or ("/bin/sh", "-c", command)
        params = {
            "command": program,
            "args": words,
            "cwd": cwd,
            "env": [{"name": name, "value": value} for name, value in env.items()],
            "outputByteLimit": limit,
        }
        terminal = await self._create(params)
        try:
            opened(terminal)
            if attachment.call_id:
                attachment.show(attachment.call_id, [terminal_content(terminal)])
            at = {"terminalId": terminal}
            try:
                async with asyncio.timeout(timeout):
                    ended = await _ask(attachment, "terminal/wait_for_exit", at, None)
            except TimeoutError:
                await _ask(attachment, "terminal/kill", at, _TERMINAL_SECONDS)
                ended = {}
            shown = await _ask(attachment, "terminal/output", at, _TERMINAL_SECONDS)
        except CallFailed as failure:
            self._send("terminal/release", terminal)
            raise WrongState(f"The client's terminal failed: {failure.message}") from None
        except BaseException as problem:  # its last update will have no terminal in it
            if isinstance(problem, asyncio.CancelledError):
                self._send("terminal/kill", terminal)
            self._send("terminal/release", terminal)
            raise
        if attachment.seat.gone:
            self._send("terminal/release", terminal)
        else:
            self._ended.add(terminal)
        output = shown.get("output")
        text = output if isinstance(output, str) else ""
        return _code_of(ended), text, shown.get("truncated") is True

    async def _create(self, params: dict[str, Any]) -> str:
        try:
            answer = await _ask(
                self._attachment, "terminal/create", params, _TERMINAL_SECONDS, self._too_late
            )
        except CallFailed as failure:
            raise WrongState(f"The client opened no terminal: {failure.message}") from None
        terminal = answer.get("terminalId")
        if not isinstance(terminal, str) or not terminal:
            raise WrongState("The client opened no terminal: it gave no id.")
        return terminal

    def _too_late(self, future: "asyncio.Future[msgspec.Raw]") -> None:
        """A terminal was opened for a command that is not wanted any more: end it."""
        if future.cancelled() or future.exception() is not None:
            return  # none was opened, or the client is gone
        terminal = _read_answer(future.result()).get("terminalId")
        if isinstance(terminal, str) and terminal:
            self._send("terminal/kill", terminal)
            self._send("terminal/release", terminal)

    def _send(self, method: str, terminal: str) -> None:
        """Send a request whose answer does not matter."""
        params = {"sessionId": self._attachment.id, "terminalId": terminal}
        try:
            _, future = self._attachment.connection.outbound.begin(method, params)
        except (LinkLost, TooManyCalls):
            return  # the client is gone, and its terminals with it
        future.add_done_callback(lambda done: done.cancelled() or done.exception())


def _code_of(ended: dict[str, Any]) -> int | None:
    """How a command ended: its code, or less than nothing for a signal; None: nobody knows."""
    code, name = ended.get("exitCode"), ended.get("signal")
    if type(code) is int and -_LARGEST_CODE < code < _LARGEST_CODE:
        return code
    known = signal.Signals.__members__.get(name) if isinstance(name, str) else None
    return -known if known is not None else None
