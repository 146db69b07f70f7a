"""One descriptor per dialect: all that the rest of the host knows of it is derived from here.

Ours stand in `dialects/<name>/__init__.py`. Other packages bring theirs by an entry point of the
group `dragoman.dialects`. Thin commands import this, so it imports next to nothing.
"""

import os
import sys
from importlib import import_module

from dragoman import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any

GROUP = "dragoman.dialects"
OURS = ("zeroclaw", "humanlayer", "openclawos", "acp", "zot")
MAIN = "zeroclaw"  # where our own clients connect; it answers every kind of nonsense with an error
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_")


def rpc_refusal(text: str) -> "dict[str, Any]":
    """What a JSON-RPC client is told that may not stay."""
    return {"jsonrpc": "2.0", "error": {"code": -32001, "message": text}, "id": None}


def method_of(message: "Mapping[str, Any]") -> str:
    """The method of a message that may be JSON-RPC."""
    method = message.get("method")
    return method if isinstance(method, str) and not has_type(message) else ""


def has_type(message: "Mapping[str, Any]") -> bool:
    """Whether a message says by a `type` what it is, and is no JSON-RPC."""
    return isinstance(message.get("type"), str) and "jsonrpc" not in message


def later(package: str, **where: str) -> "Callable[[str], Any]":
    """A package's `__getattr__`: its names are imported on first use, the descriptor alone at once.

    `where` says which module of the package has a name.
    """

    def find(name: str) -> "Any":
        if name not in where:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{where[name]}"), name)

    return find


class RestPlace:
    """A dialect's own HTTP interface, below one path of the gateway.

    The desk's `rest.answer(who, method, path, query, body)` answers. Its own clients look for it at
    a `port` of loopback, where they need no token; the number `setting` of the dialect's section
    chooses another. `origins` are those of pages that they bring along.
    """

    __slots__ = ("origins", "path", "port", "setting")

    def __init__(
        self, path: str, *, port: int = 0, setting: str = "", origins: tuple[str, ...] = ()
    ) -> None:
        self.path = path
        self.port = port
        self.setting = setting
        self.origins = origins


class Streams:
    """How a dialect of JSON-RPC is spoken over HTTP alone, at the first path of its WebSocket.

    Messages come by POST and leave by server-sent events: one stream for the connection, one for
    each session. `header` begins the names of `<header>-Connection-Id` and `<header>-Session-Id`.
    `of_sessions` are methods of one session whatever their params say; those in `replays` are
    answered on the connection's stream, after what the session's has had. An update called `child`
    announces a session that is told with its parent.
    """

    __slots__ = ("child", "header", "of_sessions", "replays")

    def __init__(
        self,
        header: str,
        *,
        of_sessions: "Iterable[str]" = (),
        replays: "Iterable[str]" = (),
        child: str = "",
    ) -> None:
        self.header = header
        self.of_sessions = frozenset(of_sessions)
        self.replays = frozenset(replays)
        self.child = child

    @property
    def connection(self) -> str:
        return f"{self.header}-Connection-Id"

    @property
    def session(self) -> str:
        return f"{self.header}-Session-Id"


class Dialect:
    """A protocol that clients can speak to this host.

    - `desk`: "module:Class"; made once per process with the door and the settings, its
      `hearer(link)` serves a connection.
    - `socket`: the file's name in the data directory; empty when it has no socket of its own.
      `env` are the variables that choose another path, `native` is where its own clients look
      (several paths: with `:` between them).
    - `websocket`: the gateway's path (several: with a blank between them; `/` is the bare
      address), and the subprotocol it may be asked for by.
    - `settings`: the section of the configuration; of other packages "module:Class", a struct for
      `[dialects.<name>]`.
    - `first_line`: how sure it is (0 to 3) that a connection's first message is of this dialect.
    - `refusal`: the message for a client that may not stay.
    - `answers`: whether its clients can answer the questions of others' turns.
    - `stdio`: the command that speaks it on stdin and stdout.
    - `rest`, `streams`: what the gateway serves of it beside WebSockets.
    - `remembers`: whether agents' memory has to do with its sessions.
    - `programs`: it has programs that the daemon keeps running, the `apps` of its section; this
      makes what the environment of one tells of us, from our socket and the program's id. The
      desk's `on_shutdown` is called by those that leave by themselves.
    """

    __slots__ = (
        "answers", "desk", "doc", "env", "first_line", "name", "native", "package", "programs",
        "refusal", "remembers", "rest", "settings", "socket", "stdio", "streams", "title",
        "websocket",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        title: str,
        *,
        desk: str,
        first_line: "Callable[[Mapping[str, Any]], int]",
        socket: str = "",
        env: tuple[str, ...] = (),
        native: str = "",
        websocket: tuple[str, str] | None = None,
        settings: str = "",
        refusal: "Callable[[str], Mapping[str, Any]]" = rpc_refusal,
        answers: bool = True,
        stdio: str = "",
        rest: RestPlace | None = None,
        streams: Streams | None = None,
        remembers: bool = True,
        programs: "Callable[[str, str], Mapping[str, str]] | None" = None,
        doc: str = "",
    ) -> None:
        if not name or name[0].isdigit() or not _LETTERS.issuperset(name):
            raise ValueError(f"a dialect's name has small letters, digits and _ only: {name!r}")
        if "/" in socket:
            raise ValueError(f"socket is a file's name, not a path: {socket!r}")
        self.name = name
        self.title = title
        self.desk = desk
        self.first_line = first_line
        self.socket = socket
        self.env = env
        self.native = native
        self.websocket = websocket
        self.settings = settings
        self.refusal = refusal
        self.answers = answers
        self.stdio = stdio or f"dragoman speak {name}"
        if streams is not None and websocket is None:
            raise ValueError(f"{name}: streams are served at a WebSocket's path, and it has none")
        self.rest = rest
        self.streams = streams
        self.remembers = remembers
        self.programs = programs
        self.doc = doc
        self.package = "dragoman"  # the distribution that brings it

    def make_desk(self, door: "Any", settings: "Any") -> "Any":
        """What the dialect keeps for the whole process."""
        return load(self.desk)(door, settings)


def load(where: str) -> "Any":
    """The object behind "module:name"."""
    module, _, name = where.partition(":")
    return getattr(import_module(module), name)


class Registry:
    """The dialects of this process: ours, and those that installed packages bring."""

    def __init__(self, path: "list[str] | None" = None) -> None:
        self._path = path
        self._known: dict[str, Dialect] = {}
        self._searched = False
        self.problems: list[str] = []  # packages whose dialect cannot be used, and why

    def find(self, name: str) -> Dialect | None:
        """One dialect; packages are looked at only when it is none of ours."""
        if name in OURS:
            return self._ours(name)
        self._search()
        return self._known.get(name)

    def all(self) -> list[Dialect]:
        """Every dialect, ours first."""
        ours = [self._ours(name) for name in OURS]
        self._search()
        return ours + [one for name, one in self._known.items() if name not in OURS]

    def which(self, message: "Any") -> str:
        """The name of the dialect that a connection's first message belongs to."""
        if isinstance(message, list) and message:
            message = message[0]
        if not isinstance(message, dict):
            return MAIN
        best, sure = MAIN, 0
        for one in self.all():
            try:
                found = one.first_line(message)
            except Exception as problem:
                if one.name in OURS:
                    raise
                self._complain(one.package, problem)
                continue
            if found > sure:
                best, sure = one.name, found
        return best

    def _ours(self, name: str) -> Dialect:
        known = self._known.get(name)
        if known is None:
            known = import_module(f"dragoman.dialects.{name}").DIALECT
            self._known[name] = known
        return known

    def _search(self) -> None:
        if self._searched:
            return
        self._searched = True
        for package, name, where in entries(sys.path if self._path is None else self._path):
            try:
                found = load(where)
                if not isinstance(found, Dialect):
                    raise TypeError(f"{where} is no Dialect")
                if found.name != name:
                    raise ValueError(f"the entry point is called {name}, its dialect {found.name}")
                if name in OURS or name == "any" or name in self._known:
                    raise ValueError(f"there is a dialect {name} already")
            except Exception as problem:
                self._complain(package, problem)
                continue
            found.package = package
            self._known[name] = found

    def _complain(self, package: str, problem: Exception) -> None:
        text = f"{package}: {type(problem).__name__}: {problem}"
        if text not in self.problems:
            self.problems.append(text)


def entries(path: "list[str]") -> "Iterator[tuple[str, str, str]]":
    """(package, name, "module:object") of every entry point of our group.

    Reads the files itself: with `importlib.metadata` it takes 4 times as long (decision 0073).
    """
    seen: set[str] = set()
    for folder in dict.fromkeys(path):
        try:
            with os.scandir(folder or ".") as found:
                names = sorted(one.name for one in found if one.name.endswith(".dist-info"))
        except OSError:
            continue
        for name in names:
            package = name.removesuffix(".dist-info").partition("-")[0]
            if package in seen:
                continue  # the first on the path is the one that is imported
            seen.add(package)
            yield from _entries(os.path.join(folder, name, "entry_points.txt"), package)


def _entries(file: str, package: str) -> "Iterator[tuple[str, str, str]]":
    try:
        with open(file, encoding="utf-8") as lines:
            text = lines.read()
    except (OSError, UnicodeDecodeError):
        return
    if GROUP not in text:
        return
    section = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            section = line.strip("[]").strip()
        elif section == GROUP and "=" in line and not line.startswith(("#", ";")):
            name, _, where = line.partition("=")
            yield package, name.strip(), where.partition("[")[0].strip()


REGISTRY = Registry()
