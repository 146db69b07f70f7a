"""Using what apps offer: an event `capability:invoke`, answered through `hook.result`.

An answer whose result is an object with `"done": false` is a part; the next one is waited for.
Anything else is the end. Each part gives the app its full time again. When the caller gives up,
the app is told by `capability:cancel`, and what it still says goes nowhere.
"""

import asyncio
import binascii
import re
from base64 import b64decode, b64encode
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, get_args

from msgspec import UNSET

from dragoman.engine.content import Image, Text, ToolKind
from dragoman.engine.hooks import HookContext, Outgoing
from dragoman.engine.offers import Invoke
from dragoman.engine.ports import Outcome, ToolEnv, ToolSpec
from dragoman.engine.ports.schemas import accepted
from dragoman.observe.log import get_log
from dragoman.wire.codec import encode

from . import hooks
from .faults import Wrong, reported

if TYPE_CHECKING:
    from .grants import Grant

log = get_log("apps")

_MOST_PARTS = 10_000
_KINDS = frozenset(get_args(ToolKind))
_NAME = 64  # what model providers accept
_ODD = re.compile(r"[^A-Za-z0-9_-]+")


class CapabilityUse:
    """One use of a capability. It waits for its `hook.result`, in parts."""

    __slots__ = ("_grant", "_id", "_said")

    def __init__(self, grant: "Grant") -> None:
        self._grant = grant
        self._id = grant.seat.desk.voice.new_id("evt")
        self._said: asyncio.Queue[Any] = asyncio.Queue()

    def answer(self, result: Any) -> None:
        if self._said.qsize() >= _MOST_PARTS:
            result = Wrong("CONFLICT", f"{self._grant.seat.name} sends parts faster than they go")
        if not is_part(result):
            self._grant.seat.pending.pop(self._id, None)
        self._said.put_nowait(result)

    def gone(self) -> None:
        self._said.put_nowait(
            Wrong("CONNECTION_CLOSED", f"{self._grant.seat.name} left before it answered")
        )

    async def results(self, params: object, context: dict[str, Any]) -> AsyncGenerator[Any]:
        """Every part, then the last word. Raises Wrong."""
        grant, seat = self._grant, self._grant.seat
        if not seat.ready:
            raise Wrong("CONNECTION_CLOSED", f"{seat.name} is not ready")
        desk = seat.desk
        payload = {
            "eventId": self._id,
            "capabilityId": grant.id,
            "type": grant.kind,
            "name": grant.name,
            "params": params,
            "context": {**context, "timestamp": desk.now()},
        }
        seat.pending[self._id] = self
        seat.send("capability:invoke", payload)
        limit = desk.settings.invoke_timeout_ms / 1000
        try:
            while True:
                try:
                    async with asyncio.timeout(limit):
                        said = await self._said.get()
                except TimeoutError:
                    text = f"{seat.name} did not answer within {limit:g} s"
                    raise Wrong("TIMEOUT", text) from None
                if isinstance(said, Wrong):
                    raise said
                grant.answered = True
                if isinstance(said, dict) and said.get("error") and said.get("done") is not False:
                    raise reported(said["error"])
                yield None if said is UNSET else said
                if not is_part(said):
                    return
        finally:
            if seat.pending.pop(self._id, None) is not None:  # the caller gave up
                seat.send("capability:cancel", {"eventId": self._id, "capabilityId": grant.id})


def is_part(result: object) -> bool:
    return isinstance(result, dict) and result.get("done") is False


async def once(grant: "Grant", params: object, context: dict[str, Any]) -> object:
    """Use a capability whose parts do not matter; returns the last word. Raises Wrong."""
    last = None
    async with aclosing(CapabilityUse(grant).results(params, context)) as results:
        async for said in results:
            last = said
    return last


# --- tools ---


def tool_name(name: str) -> str:
    """A tool's name as model providers accept it."""
    return _ODD.sub("_", name)[:_NAME]


class AppTool:
    """A tool of an app, as sessions use it."""

    def __init__(self, grant: "Grant") -> None:
        self._grant = grant
        config = grant.config
        schema = config.get("parameters") or config.get("inputSchema")
        kind = config.get("kind")
        description = config.get("description")
        self.spec = ToolSpec(
            tool_name(grant.name),
            description if isinstance(description, str) else f"A tool of {grant.seat.name}.",
            accepted(schema),
            kind if isinstance(kind, str) and kind in _KINDS else "other",  # type: ignore[arg-type]
            repeatable=config.get("repeatable") is True,
        )

    def summary(self, args: dict[str, Any]) -> str:
        shown = encode(args).decode() if args else ""
        return f"{self.spec.name} {shown}".strip()[:200]

    async def run(self, args: dict[str, Any], env: ToolEnv) -> Outcome:
        context = {
            "agentId": env.agent,
            "sessionKey": self._grant.seat.desk.key_of(env.session),
            "runId": env.turn,
            "callId": env.call_id,
            "cwd": env.cwd,
        }
        last: Any = None
        try:
            results = CapabilityUse(self._grant).results(args, context)
            async with aclosing(results) as found:
                async for last in found:
                    if is_part(last) and isinstance(last.get("progress"), str):
                        env.progress(last["progress"])
        except Wrong as wrong:
            if wrong.wire == "TIMEOUT" and not self._grant.answered:
                return await self._withdrawn(env, wrong)
            return Outcome((Text(wrong.message),), is_error=True)
        return outcome(last)

    async def _withdrawn(self, env: ToolEnv, wrong: Wrong) -> Outcome:
        """The app offers a tool and does not serve it: nobody shall wait for it again."""
        grant = self._grant
        grant.withdraw()
        title = f"The tool {grant.name} of {grant.seat.name} was withdrawn"
        log.warning("withdrew a tool that is not served", app=grant.seat.name, tool=grant.name)
        await grant.seat.desk.door.note(env.session, "warning", title, wrong.message)
        return Outcome((Text(f"{wrong.message}. The tool is not offered any more."),), True)


def outcome(result: Any) -> Outcome:
    """What a tool's answer means: a text, `{content, isError}`, or any other JSON."""
    if isinstance(result, str):
        return Outcome((Text(result),))
    if isinstance(result, dict) and "content" in result:
        is_error = result.get("isError") is True
        return Outcome(_blocks(result["content"]), is_error)
    return Outcome((Text("" if result is None else encode(result).decode()),))


def _blocks(content: object) -> tuple[Text | Image, ...]:
    if isinstance(content, str):
        return (Text(content),)
    made: list[Text | Image] = []
    for block in content if isinstance(content, list) else [content]:
        if isinstance(block, dict) and isinstance(block.get("text"), str):
            made.append(Text(block["text"]))
        elif isinstance(block, dict) and block.get("type") == "image":
            try:
                data = b64decode(str(block.get("data") or ""), validate=True)
            except (ValueError, binascii.Error):
                made.append(Text("[an image that is no base64]"))
            else:
                made.append(Image(str(block.get("mimeType") or "image/png"), data))
        else:
            made.append(Text(block if isinstance(block, str) else encode(block).decode()))
    return tuple(made) or (Text(""),)


# --- methods, routes, channels ---


def caller(grant: "Grant") -> Invoke:
    """How to call a gateway method: parameters in, its result out. Raises Wrong, a Fault."""

    async def call(params: Any) -> Any:
        return await once(grant, params, {})

    return call


def router(grant: "Grant") -> Invoke:
    """How to serve an HTTP route: `{method, path, query, headers, body}` in, `{status, headers,
    body}` out; `body` is text or bytes. Never raises: an app's failure is a status of its own.
    """

    async def call(request: dict[str, Any]) -> dict[str, Any]:
        body = request.get("body")
        asked = {**request}
        if isinstance(body, bytes | bytearray):
            try:
                asked["body"] = bytes(body).decode()
            except UnicodeDecodeError:
                asked["body"] = None
                asked["bodyBase64"] = b64encode(body).decode()
        try:
            result = await once(grant, asked, {})
        except Wrong as wrong:
            status = {"TIMEOUT": 504, "CONNECTION_CLOSED": 502, "NOT_FOUND": 404,
                      "FORBIDDEN": 403, "UNAUTHORIZED": 401, "INVALID_PARAMS": 400}  # fmt: skip
            return _page(status.get(wrong.wire, 500), {"error": wrong.message})
        return _response(result)

    return call


def _response(result: object) -> dict[str, Any]:
    if not isinstance(result, dict) or not ({"status", "body", "bodyBase64"} & result.keys()):
        return _page(200, result)
    status = result.get("status", 200)
    if type(status) is not int or not 200 <= status <= 599:
        return _page(502, {"error": f"the app gave no usable status: {status!r}"})
    given = result.get("headers")
    headers = {str(k).lower(): str(v) for k, v in given.items()} if isinstance(given, dict) else {}
    body = result.get("body")
    if isinstance(result.get("bodyBase64"), str):
        try:
            body = b64decode(result["bodyBase64"], validate=True)
        except (ValueError, binascii.Error):
            return _page(502, {"error": "the app's bodyBase64 is no base64"})
        headers.setdefault("content-type", "application/octet-stream")
    elif isinstance(body, str) or body is None:
        body = body or ""
        headers.setdefault("content-type", "text/plain; charset=utf-8")
    else:
        page = _page(status, body)
        return {**page, "headers": {**page["headers"], **headers}}
    return {"status": status, "headers": headers, "body": body}


def _page(status: int, value: object) -> dict[str, Any]:
    headers = {"content-type": "application/json"}
    return {"status": status, "headers": headers, "body": encode(value).decode()}


def sender(grant: "Grant") -> Invoke:
    """How to send through a channel: `{target, content, metadata}` in; True when it was told."""

    async def call(message: dict[str, Any]) -> bool:
        seat = grant.seat
        if not seat.ready:
            return False
        data = hooks.changed(Outgoing(content="", channel=grant.name, metadata={}), message)
        seat.push("message_sending", data, HookContext(channel=grant.name))
        return True

    return call
