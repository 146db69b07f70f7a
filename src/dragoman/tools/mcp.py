"""Tools of MCP servers, over the official client library.

Each connection is owned by one task of its own; the library is imported in a thread when the first
server is wanted, so nobody pays for it who has none. A server that cannot be reached costs its own
tools and a note, never the session.
"""

import asyncio
import os
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from importlib import import_module
from typing import Any, Protocol, TextIO

import msgspec

from dragoman.engine.content import Image, Text
from dragoman.engine.faults import BadInput, in_words
from dragoman.engine.ports import Outcome, Tool, ToolEnv, ToolSpec
from dragoman.engine.ports.schemas import accepted
from dragoman.holding import Holder
from dragoman.sandbox.program import Wrap, unwrapped

from .environ import staying
from .mcp_alive import Alive
from .mcp_elicit import Asking

CONNECT_SECONDS = 30.0
SIGN_IN_SECONDS = 300.0  # a human is at it
PATIENCE_SECONDS = 5.0  # how long a first turn waits for servers that are on their way
_CALL_SECONDS = 60.0
_GOODBYE_SECONDS = 2.0
_INSIST_SECONDS = 10.0  # a busy machine needs some of them, an idle one next to none
_NAME = 64  # what model providers accept
_MOST_TOOLS = 500
_LAST_WORDS = 400  # characters of a server's standard error
_GONE = frozenset(
    "BrokenResourceError ClosedResourceError EndOfStream ConnectError ReadError".split()
)
_ODD = re.compile(r"[^A-Za-z0-9_-]+")

_OAUTH = ("oauth_client_id", "oauth_client_secret", "oauth_issuer")
_MARK = "DRAGOMAN_SERVER"  # in the environment of every server that we start

Note = Callable[[str, str], None]  # title, text
Trust = Callable[[str], int | None]  # finds the process with this in its environment


class Server(msgspec.Struct, frozen=True):
    """How one server is reached, whatever spelling it was given in."""

    name: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    pass_env: tuple[str, ...] = ()  # names of ours that it gets too
    url: str = ""
    headers: dict[str, str] = {}
    transport: str = "stdio"  # stdio, http, sse, acp
    timeout: float = _CALL_SECONDS
    cwd: str = ""
    oauth_client_id: str = ""
    oauth_client_secret: str = ""
    oauth_issuer: str = ""
    channel: str = ""  # to a server that a client lends (`engine.ports.lent`)


def read_server(given: Mapping[str, Any], cwd: str = "", *, passing: bool = False) -> Server:
    """A server as ACP, or a configuration, describes it. Raises BadInput.

    Only with `passing` it can name variables of ours: the configuration may, a client may not.
    """
    name = str(given.get("name") or "")
    command = os.path.expanduser(str(given.get("command") or ""))
    url = str(given.get("url") or "")
    kind = str(given.get("type") or given.get("transport") or "auto")
    if kind in ("auto", ""):
        kind = "stdio" if command else "http"
    if kind in ("streamable-http", "streamable_http"):
        kind = "http"
    if kind == "acp" and given.get("channel"):
        return Server(name, transport=kind, channel=str(given["channel"]))
    if kind not in ("stdio", "http", "sse"):
        raise BadInput(f"MCP server {name}: unknown type {kind!r}", "Use stdio, http or sse.")
    if not (command if kind == "stdio" else url):
        raise BadInput(f"MCP server {name} has no {'command' if kind == 'stdio' else 'url'}")
    return Server(
        name,
        command,
        tuple(str(arg) for arg in given.get("args") or ()),
        _pairs(given.get("env")),
        tuple(given.get("pass_env") or ()) if passing else (),
        url,
        _pairs(given.get("headers")),
        kind,
        float(given.get("timeout_secs") or _CALL_SECONDS),
        cwd,
        **{key: str(given[key]) for key in _OAUTH if key in given},
    )


def _pairs(given: Any) -> dict[str, str]:
    """Names and values, from a table or from a list of {name, value}."""
    if isinstance(given, Mapping):
        return {str(name): str(value) for name, value in given.items()}
    found = {}
    for one in given if isinstance(given, list | tuple) else ():
        if isinstance(one, Mapping) and "name" in one:
            found[str(one["name"])] = str(one.get("value", ""))
    return found


def tool_name(server: str, tool: str) -> str:
    """`mcp__server__tool`, cut to what providers take."""
    name = f"mcp__{_ODD.sub('_', server)}__{_ODD.sub('_', tool)}"
    if len(name) <= _NAME:
        return name
    from zlib import crc32

    return f"{name[: _NAME - 9]}_{crc32(name.encode()):08x}"


class McpConnection:
    """A server and the task that owns the way to it."""

    def __init__(
        self,
        server: Server,
        note: Note,
        *,
        tokens: str = "",
        trust: Trust = lambda mark: None,
        wrap: Wrap = unwrapped,
        auth: Any = None,
        revives: bool = False,
    ) -> None:
        """`tokens` is a private directory; `trust` is told the mark of a process we start.

        `wrap` puts that process into its sandbox.
        `auth` signs the requests instead of what the tokens' directory has.
        One that `revives` keeps its tools when it is lost, and connects again for the next call.
        """
        self.server = server
        self.asking = Asking(server.name)
        self.tools: dict[str, Tool] = {}
        self.problem = ""
        self.ready = asyncio.Event()  # connected, or failed
        self._note = note
        self._tokens = tokens
        self._auth = auth
        self._trust = trust
        self._wrap = wrap
        self._revives = revives
        self._stop = asyncio.Event()  # somebody closed it, or it was found to be lost
        self._closed = False
        self._lost = ""
        self._session: Any = None
        self.alive = Alive()
        self._words = _Words()
        self._task = asyncio.create_task(self._run(), name=f"mcp {server.name}")

    @property
    def name(self) -> str:
        return self.server.name

    @property
    def over(self) -> bool:
        """Whether it failed, was lost or was closed."""
        return self._task.done()

    async def _run(self) -> None:
        try:
            await self._connected()
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # the library wraps failures in groups
            self.problem = _reason(error) + self._words.told()
            if self._lost or not self._stop.is_set():
                what = "could not be reached"
                if self._session is not None:
                    what, self._lost = "was lost", self._lost or self.problem
                self._note(f"MCP server {self.server.name} {what}", self.problem)
        finally:
            self._session = None
            if self._closed or not (self._revives and self._lost):
                self.tools = {}
            self.ready.set()

    async def _connected(self) -> None:
        await asyncio.to_thread(_library)
        from mcp import ClientSession

        async with AsyncExitStack() as stack:
            async with asyncio.timeout(CONNECT_SECONDS if self._auth is None else SIGN_IN_SECONDS):
                mark = secrets.token_hex(16)
                self.alive = Alive()
                streams = await _streams(self, stack, mark)
                heard = streams[0]
                if self.server.transport in ("stdio", "sse"):
                    heard = _Heard(heard, self._ended)
                session = ClientSession(heard, streams[1], elicitation_callback=self.asking.elicit)
                await stack.enter_async_context(session)
                await session.initialize()
                if self.server.transport == "stdio":  # it answers, so its environment is its own
                    await asyncio.to_thread(self._trust, f"{_MARK}={mark}")
                self.tools = await self._listed(session)
            self._session = session
            self.ready.set()
            await self.alive.until(session, self._stop)
            if self._lost:
                raise ConnectionError(self._lost)

    def _ended(self) -> None:
        """Nothing more comes from the server, whether somebody waits for it or not."""
        if self._session is not None and not self._stop.is_set():
            self._lost = "it ended"
            self._stop.set()

    async def _listed(self, session: Any) -> dict[str, Tool]:
        from mcp.types import PaginatedRequestParams

        found: dict[str, Tool] = {}
        params = None
        while len(found) < _MOST_TOOLS:
            page = await session.list_tools(params=params)
            for one in page.tools[: _MOST_TOOLS - len(found)]:
                tool = McpTool(self, one.name, one.description or "", one.input_schema)
                found[tool.spec.name] = tool
            if not page.next_cursor:
                break
            params = PaginatedRequestParams(cursor=page.next_cursor)
        return found

    async def _revived(self) -> None:
        """Connect again to a server that was lost, once for all who wait."""
        if self._task.done():
            self._lost, self.problem = "", ""
            self._stop, self.ready = asyncio.Event(), asyncio.Event()
            self._task = asyncio.create_task(self._run(), name=f"mcp {self.server.name}")
        await self.ready.wait()

    async def call(self, name: str, args: dict[str, Any]) -> Any:
        if self._session is None and self._revives and self._lost and not self._closed:
            await self._revived()
        session = self._session
        if session is None:
            raise BadInput(
                f"MCP server {self.server.name} is not connected: {self.problem or 'it stopped'}"
            )
        alive = self.alive
        alive.calls += 1
        try:
            return await session.call_tool(name, args)
        except Exception as error:  # the library has several words for "it is gone"
            text = _reason(error)
            if type(error).__name__ in _GONE or "closed" in text.lower() or alive.over:
                self._lost = text or "the connection is closed"
                self._stop.set()
            raise
        finally:
            alive.calls -= 1

    async def close(self) -> None:
        """Say goodbye, then insist.

        The library ends its own tasks in order; who stops the loop before that leaves coroutines
        behind that nobody has awaited.
        """
        self._closed = True
        self._stop.set()
        if not self.ready.is_set():  # it is not connected yet: there is nobody to say goodbye to
            self._task.cancel()
        await asyncio.wait({self._task}, timeout=_GOODBYE_SECONDS)
        if not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=_INSIST_SECONDS)
        self.tools = {}


class _Words(Holder):
    """The last words of a server on its standard error, for whoever asks why it is gone."""

    _said: bytearray = msgspec.field(default_factory=bytearray)

    def told(self) -> str:
        said = " ".join(self._said.decode(errors="replace").split())
        return f"; it said: {said[-_LAST_WORDS:]}" if said else ""

    def heard(self, stack: AsyncExitStack) -> TextIO:
        """The end of a pipe that a server gets; ours is read until the stack is closed."""
        end, given = os.pipe()
        os.set_blocking(end, False)
        loop = asyncio.get_running_loop()

        def read() -> None:
            try:
                data = os.read(end, 65536)
            except BlockingIOError:
                return
            self._said += data
            del self._said[: -4 * _LAST_WORDS]
            if not data:
                loop.remove_reader(end)

        def close() -> None:
            read()  # what came with its end
            loop.remove_reader(end)
            os.close(end)

        loop.add_reader(end, read)
        stack.callback(close)
        return os.fdopen(given, "w")


class _Heard:
    """What comes from a server; tells when nothing more does."""

    def __init__(self, stream: Any, ended: Callable[[], None]) -> None:
        self._stream = stream
        self._told = ended

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    async def __aenter__(self) -> "_Heard":
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *problem: Any) -> Any:
        return await self._stream.__aexit__(*problem)

    def __aiter__(self) -> "_Heard":
        return self

    async def __anext__(self) -> Any:
        try:
            return await self._stream.__anext__()
        except StopAsyncIteration:
            self._told()
            raise


class McpTool:
    """One tool of a server (`ports.Tool`)."""

    def __init__(self, connection: McpConnection, name: str, description: str, schema: Any) -> None:
        self._connection = connection
        self._name = name
        self.spec = ToolSpec(
            tool_name(connection.server.name, name),
            description or f"{name} of the MCP server {connection.server.name}.",
            accepted(schema),
            "other",
        )

    def summary(self, args: dict[str, Any]) -> str:
        text = msgspec.json.encode(args).decode()
        shown = text if len(text) <= 300 else text[:300] + "…"
        return f"{self._name} of {self._connection.server.name}: {shown}"

    async def run(self, args: dict[str, Any], env: ToolEnv) -> Outcome:
        server = self._connection.server
        try:
            async with asyncio.timeout(server.timeout) as deadline:
                self._connection.asking.begin(env, deadline, server.timeout)
                result = await self._connection.call(self._name, args)
        except TimeoutError:
            self._connection.alive.doubt()
            raise BadInput(
                f"{self._name}: no answer from MCP server {server.name} in {server.timeout:g} s"
            ) from None
        except (BadInput, asyncio.CancelledError):
            raise
        except Exception as error:  # whatever the server or the library came up with
            raise BadInput(f"{self._name} of {server.name} failed: {_reason(error)}") from error
        finally:
            self._connection.asking.end(env)
        return Outcome(_content(result), bool(result.is_error))


def _content(result: Any) -> tuple[Text | Image, ...]:
    found: list[Text | Image] = []
    for block in result.content:
        match block.type:
            case "text":
                found.append(Text(block.text))
            case "image":
                from base64 import b64decode

                found.append(Image(block.mime_type, b64decode(block.data)))
            case "resource":
                text = getattr(block.resource, "text", None)
                found.append(Text(text if text is not None else f"[{block.resource.uri}]"))
            case "resource_link":
                found.append(Text(f"[{block.name}]({block.uri})"))
            case kind:
                found.append(Text(f"[{kind} that cannot be shown here]"))
    structured = result.structured_content
    if not found and structured is not None:
        found.append(Text(msgspec.json.encode(structured).decode()))
    return tuple(found) or (Text("(no output)"),)


def _library() -> None:
    """Import the client library. Slow: call it in a thread."""
    try:
        for name in ("sse", "stdio", "streamable_http"):
            import_module(f"mcp.client.{name}")
    except ImportError as missing:
        from dragoman.observe.extras import adding

        raise BadInput(
            f"MCP needs a package that is not installed ({missing.name})",
            f"Install it: {adding('mcp')}",
        ) from missing


async def _streams(way: McpConnection, stack: AsyncExitStack, mark: str) -> Any:
    """Both directions to a server; what they stand on is closed with the stack."""
    server = way.server
    if server.transport == "acp":
        from dragoman.engine.ports.lent import find

        from .mcp_lent import lent

        channel = find(server.channel)
        if channel is None:
            raise ConnectionError("the client that lent it is gone")
        return await stack.enter_async_context(lent(channel))
    if server.transport == "stdio":
        from mcp.client.stdio import StdioServerParameters, stdio_client

        env = staying(server.pass_env, {**server.env, _MARK: mark})
        cwd = server.cwd or os.getcwd()
        words, env = way._wrap((server.command, *server.args), cwd, env)
        parameters = StdioServerParameters(command=words[0], args=list(words[1:]), env=env, cwd=cwd)
        if os.name != "posix":
            return await stack.enter_async_context(stdio_client(parameters))
        way._words = _Words()
        with way._words.heard(stack) as errlog:
            return await stack.enter_async_context(stdio_client(parameters, errlog))
    headers = dict(server.headers) or None
    from .mcp_auth import auth_of

    auth = way._auth or auth_of(server, way._tokens)
    if server.transport == "sse":
        from mcp.client.sse import sse_client

        opened = sse_client(server.url, headers=headers, auth=auth)
        return await stack.enter_async_context(opened)
    from mcp.client import streamable_http as http

    client = await stack.enter_async_context(http.create_mcp_http_client(headers, auth=auth))
    way.alive = Alive(http.httpx2.AsyncByteStream)
    client.event_hooks = {"response": [way.alive.heard]}
    opened = http.streamable_http_client(server.url, http_client=client)
    return await stack.enter_async_context(opened)


def _reason(error: BaseException) -> str:
    """The innermost failure in one line."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if not str(error) and type(error).__name__ in _GONE:
        return "the connection broke off"
    return in_words(error)[:500]


class Leads(Protocol):
    """A way to a server: a connection of one's own, or a share in one."""

    @property
    def ready(self) -> asyncio.Event: ...

    @property
    def tools(self) -> Mapping[str, Tool]: ...

    async def close(self) -> None: ...


class McpTools(Holder):
    """The tools of a session's servers (`ports.Toolbox`); grows as servers connect."""

    _connections: Sequence[Leads]
    _only: tuple[str, ...] | None

    async def ready(self, seconds: float | None = None) -> None:
        """Wait until every server is there or has failed, but not for long."""
        seconds = PATIENCE_SECONDS if seconds is None else seconds
        waiting = [asyncio.ensure_future(one.ready.wait()) for one in self._connections]
        if waiting:
            _, late = await asyncio.wait(waiting, timeout=seconds)
            for task in late:
                task.cancel()

    def _tools(self) -> dict[str, Tool]:
        found: dict[str, Tool] = {}
        for connection in self._connections:
            for name, tool in connection.tools.items():
                if self._only is None or name in self._only:
                    found.setdefault(name, tool)
        return found

    def specs(self) -> Sequence[ToolSpec]:
        return [tool.spec for tool in self._tools().values()]

    def find(self, name: str) -> Tool | None:
        return self._tools().get(name)

    async def close(self) -> None:
        await asyncio.gather(*(connection.close() for connection in self._connections))


def connections(
    servers: Sequence[Mapping[str, Any]], note: Note, *, cwd: str = "", wrap: Wrap = unwrapped
) -> list[McpConnection]:
    """Begin to connect; what cannot be understood is noted and left out."""
    made = []
    for given in servers:
        try:
            server = read_server(given, cwd)
        except BadInput as fault:
            note(f"MCP server {given.get('name', '?')} was left out", str(fault))
            continue
        made.append(McpConnection(server, note, wrap=wrap, revives=True))
    return made
