"""What an app does when the kernel calls: tools, methods, routes, providers, hooks."""

import inspect
import sys
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import msgspec

Send = Callable[[Any], None]


class Block(msgspec.Struct, frozen=True):
    """An interceptor's no."""

    reason: str = ""


class Invocation:
    """The call that a function serves: for those that have a parameter named `call`."""

    def __init__(self, payload: dict[str, Any], send: Send) -> None:
        self.name: str = payload.get("name", "")
        self.context: dict[str, Any] = payload.get("context") or {}
        self._send = send

    @property
    def session(self) -> str:
        """The key of the session that called."""
        return str(self.context.get("sessionKey", ""))

    def progress(self, text: str) -> None:
        """Tell how far it is; gives the call its full time again."""
        self._send({"done": False, "progress": text})


class Request(msgspec.Struct, frozen=True):
    """An HTTP request to a route."""

    method: str = "GET"
    path: str = "/"
    query: dict[str, Any] = {}
    headers: dict[str, str] = {}
    body: str | None = None
    bodyBase64: str | None = None

    def json(self) -> Any:
        """The body as JSON. Raises ValueError."""
        return msgspec.json.decode((self.body or "").encode())


def report(what: str, error: BaseException) -> None:
    """A failure of the app's own code, for its log."""
    print(f"{what} failed: {error}", file=sys.stderr)
    traceback.print_exception(error, file=sys.stderr)


async def run(offer: "Offered", payload: dict[str, Any], send: Send) -> None:
    """Serve one call, and send its answer."""
    try:
        result = await offer.serve(payload, send)
    except Exception as error:
        report(f"{offer.kind} {offer.name}", error)
        send({"error": {"message": f"{type(error).__name__}: {error}"}})
    else:
        send(result)


class Offered:
    """One capability and the function behind it."""

    kind = ""

    def __init__(self, name: str, function: Callable[..., Any], config: dict[str, Any]) -> None:
        self.name = name
        self.function = function
        self.config = config

    async def serve(self, payload: dict[str, Any], send: Send) -> Any:
        raise TypeError(f"{self.kind} {self.name} is not called")


async def outcome(result: Any) -> Any:
    """What a function returned, awaited if it must be: apps may use plain functions."""
    return await result if inspect.isawaitable(result) else result


class OfferedTool(Offered):
    kind = "tool"

    async def serve(self, payload: dict[str, Any], send: Send) -> Any:
        given = dict(payload.get("params") or {})
        if "call" in inspect.signature(self.function).parameters:
            given["call"] = Invocation(payload, send)
        result = await outcome(self.function(**given))
        if isinstance(result, dict) and ("content" in result or "error" in result):
            return result
        text = result if isinstance(result, str) else msgspec.json.encode(result).decode()
        return {"content": "" if result is None else text}


class OfferedMethod(Offered):
    kind = "gateway_method"

    async def serve(self, payload: dict[str, Any], send: Send) -> Any:
        return await outcome(self.function(payload.get("params")))


class OfferedRoute(Offered):
    kind = "http_route"

    async def serve(self, payload: dict[str, Any], send: Send) -> Any:
        request = msgspec.convert(payload.get("params") or {}, Request, strict=False)
        result = await outcome(self.function(request))
        return result if isinstance(result, dict) else {"status": 200, "body": result}


class OfferedProvider(Offered):
    """Its function is an async generator of texts or of parts: `{"text"}`, `{"thinking"}`,
    `{"toolCall"}`, `{"usage"}`, `{"stop"}`.
    """

    kind = "provider"

    async def serve(self, payload: dict[str, Any], send: Send) -> Any:
        stream: AsyncIterator[Any] = self.function(payload.get("params") or {})
        async for part in stream:
            send({**({"text": part} if isinstance(part, str) else part), "done": False})
        return {"done": True}


Listener = Callable[[dict[str, Any], dict[str, Any]], Awaitable[Any]]


async def intercept(
    listeners: list[Listener], data: dict[str, Any], context: dict[str, Any]
) -> dict[str, Any]:
    """Ask each function; returns the answer's `result` part, empty for no opinion."""
    changed: dict[str, Any] = {}
    for listener in listeners:
        try:
            said = await outcome(listener({**data, **changed}, context))
        except Exception as error:
            report("interceptor", error)
            return {"result": {"error": {"message": f"{type(error).__name__}: {error}"}}}
        if isinstance(said, Block):
            return {"result": {"block": True, "blockReason": said.reason}}
        if isinstance(said, dict):
            changed |= said
    return {"result": changed} if changed else {}
