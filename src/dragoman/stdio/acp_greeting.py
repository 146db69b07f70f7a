"""Greets an ACP client while the host is still being put together.

When nothing is configured, all that `initialize` asks for is known without the engine, so it is
answered before the host is put together, which takes 1.4 times as long (decision 0073). Everything
else waits for the host.
"""

import os
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from dragoman import __version__
from dragoman.dialects.acp.hello import (
    LATEST,
    MAX_LINE,
    VERSION,
    hello,
    hello2,
    is_info,
    is_modern,
    login_method,
)
from dragoman.holding import Holder
from dragoman.settings.places import Places
from dragoman.standing import in_place_of_file
from dragoman.stdio.joining import has_settings
from dragoman.wire.lines import READ_ON, UNSEEN, Ends
from dragoman.wire.link import Hearer, Link, tell_overlong

_SQLITE = b"SQLite format 3\0"
# A variable with one of these in its name may choose a provider: then the host must be asked.
_CHOOSING = ("API_KEY", "OLLAMA_HOST")
_OLLAMA = ("127.0.0.1", 11434)
_MODEL = "demo/demo"
_MAX_SESSIONS, _TIMEOUT = 10, 3600


def is_plain(env: Mapping[str, str], where: Places) -> bool:
    """Whether nothing at all is configured, so that the agent is the default one on the demo."""
    if _is_configured(where) or os.path.exists(os.path.join(where.data_dir, "login.json")):
        return False
    if any(env[name] and part in name for name in env for part in _CHOOSING):
        return False
    return not has_settings(env) and not _is_listening()


def _is_configured(where: Places) -> bool:
    """Also by a link that leads nowhere, which the host refuses."""
    return os.path.lexists(where.config_file)


def _is_listening() -> bool:
    import socket

    with socket.socket() as probe:
        probe.settimeout(0.05)
        return probe.connect_ex(_OLLAMA) == 0


def keeps(where: Places) -> bool | None:
    """Whether the usual store can be opened: the file is ours to write, or could be made.

    None: only the store itself can tell, or the settings, which may have put it elsewhere.
    """
    if _is_configured(where) or has_settings(os.environ):
        return None
    path = os.path.join(where.data_dir, "sessions.db")
    if in_place_of_file(path) is not None:  # a pipe, say, which would never be read to its end
        return False
    if os.path.exists(path):
        try:
            with open(path, "r+b") as file:
                return True if file.read(16) in (b"", _SQLITE) else None
        except OSError:
            return False
    folder = where.data_dir
    while not os.path.lexists(folder) and os.path.dirname(folder) != folder:
        folder = os.path.dirname(folder)
    return os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK)


class Greeter(Holder):
    """A `Hearer` that answers the first `initialize` and keeps the rest for the real one."""

    max_line = MAX_LINE
    limit_counts_newline = False
    max_pending = READ_ON * MAX_LINE
    wants_ends = True

    link: Link
    _where: Places
    _limits: Mapping[str, Any]  # acp.max_sessions, acp.session_timeout_secs of the command line
    _wake: Callable[[], None]
    _plain: bool
    _met: bytes | None = None
    _notes: list[list[bytes]] = []  # of the relay, before the editor said anything
    _kept: list[Callable[[Hearer], None]] = []
    _real: Hearer | None = None

    def hear(self, lines: list[bytes]) -> None:
        if self._real is not None:
            self._real.hear(lines)
            return
        if lines[0].startswith(_NOTE) and self._met is None and not self._kept:
            self._notes.append(lines)  # nobody waits for an answer: the host is not needed yet
            return
        first = self._plain and self._met is None and not self._kept
        if first and not _is_configured(self._where) and self._greet(lines[0]):
            lines = lines[1:]
        if lines:
            self._kept.append(lambda hearer: hearer.hear(lines))
        self._wake()

    def _greet(self, line: bytes) -> bool:
        """Answer an `initialize` that is beyond doubt."""
        try:
            message = msgspec.json.decode(line)
        except (msgspec.DecodeError, RecursionError):
            return False
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            return False
        if message.get("method") != "initialize" or not message.keys() <= _MEMBERS:
            return False
        number, params = message.get("id"), message.get("params", {})
        if type(number) not in (int, str) or not isinstance(params, dict):
            return False
        result = self._hello(params)
        if result is None:
            return False
        answer = {"jsonrpc": "2.0", "result": result, "id": number}
        self.link.send(msgspec.json.encode(answer))
        self._met = msgspec.json.encode(params)
        return True

    def _hello(self, params: dict[str, Any]) -> dict[str, Any] | None:
        """The answer, in the version that is asked for; None: the host must judge."""
        asked = params.get("protocolVersion")
        if asked is not None and type(asked) is not int:
            return None
        if asked == LATEST and params.keys() <= _SECOND and is_info(params.get("info")):
            login = login_method(params.get("capabilities"), second=True)
            about = {"defaultModel": _MODEL}
            return hello2(vision=False, version=__version__, login=login, about=about)
        if asked not in (None, VERSION) or not params.keys() <= _FIRST:
            return None
        kept = keeps(self._where)
        if kept is None:
            return None
        return hello(
            keeps=kept,
            model=_MODEL,
            vision=False,
            max_sessions=self._limits.get("acp.max_sessions", _MAX_SESSIONS),
            timeout=self._limits.get("acp.session_timeout_secs", _TIMEOUT),
            version=__version__,
            login=login_method(params.get("clientCapabilities")),
            more=is_modern(asked),
        )

    def overlong(self, size: int, ends: Ends = UNSEEN) -> None:
        self._pass(lambda hearer: tell_overlong(hearer, size, ends))

    def ended(self) -> None:
        self._pass(lambda hearer: hearer.ended())

    def lost(self) -> None:
        self._pass(lambda hearer: hearer.lost())

    def _pass(self, act: Callable[[Hearer], None]) -> None:
        if self._real is not None:
            act(self._real)
        else:
            self._kept.append(act)
            self._wake()

    def hand_over(self, real: Any) -> None:
        """The host is there: its hearer takes over, beginning with what was kept."""
        self._real = real
        for lines in self._notes:
            real.hear(lines)
        if self._met is not None:
            real.met(self._met)
        kept, self._kept = self._kept, []
        for act in kept:
            act(real)


# What a plain greeting of each version says; the host judges everything else.
_FIRST = {"protocolVersion", "clientCapabilities", "clientInfo"}
_SECOND = {"protocolVersion", "capabilities", "info"}
_MEMBERS = {"jsonrpc", "id", "method", "params"}
_NOTE = b'{"jsonrpc":"2.0","method":"_dragoman/'
