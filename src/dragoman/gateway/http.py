"""What an HTTP exchange is made of: the request as routes see it, and the three kinds of answer."""

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote_to_bytes

import msgspec

from dragoman.holding import Holder

if TYPE_CHECKING:
    from .routes.table import AnyRoute

JSON = "application/json"
EVENTS = "text/event-stream"
REASONS = {
    101: "Switching Protocols", 200: "OK", 201: "Created", 202: "Accepted", 204: "No Content",
    301: "Moved Permanently", 304: "Not Modified", 400: "Bad Request", 401: "Unauthorized",
    403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed", 406: "Not Acceptable",
    408: "Request Timeout", 409: "Conflict", 410: "Gone", 411: "Length Required",
    413: "Content Too Large",
    415: "Unsupported Media Type", 421: "Misdirected Request", 422: "Unprocessable Content",
    426: "Upgrade Required", 429: "Too Many Requests", 431: "Request Header Fields Too Large",
    500: "Internal Server Error", 502: "Bad Gateway", 503: "Service Unavailable",
    505: "HTTP Version Not Supported",
}  # fmt: skip
_encode = msgspec.json.Encoder().encode


class Refusal(Exception):
    """The request is answered with this status and nothing is done."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        hint: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.hint = hint
        self.headers = dict(headers or {})

    def response(self) -> "Response":
        return problem(self.status, self.code, self.message, self.hint, headers=self.headers)


async def _nobody() -> bool:
    return False


async def _no_user() -> int:
    return -1


def joined(fields: list[tuple[str, str]]) -> dict[str, str]:
    """The fields of a head by name: those that come several times have become one."""
    found: dict[str, str] = {}
    for name, value in fields:
        before = found.get(name)
        joint = "; " if name == "cookie" else ", "
        found[name] = value if before is None else f"{before}{joint}{value}"
    return found


class Request(Holder):
    """One request: its head, and its body once that has arrived."""

    method: str
    target: str
    headers: dict[str, str]
    peer: str = ""
    local: bool = False
    secure: bool = False
    is_owner: Callable[[], Awaitable[bool]] = _nobody  # asks who is at the other end
    is_tools: Callable[[], Awaitable[bool]] = _nobody
    user: Callable[[], Awaitable[int]] = _no_user
    body: bytes = b""
    path: str = ""
    parts: tuple[str, ...] = ()
    query: dict[str, str] = {}
    route: "AnyRoute | None" = None  # what was found for it
    values: dict[str, str] = {}
    authed: bool = False
    token_id: str = ""  # of the token it came with
    via: str = ""  # header | protocol | query | cookie | open

    def __post_init__(self) -> None:
        self.path, self.parts, self.query = split_target(self.target)

    def header(self, name: str, default: str = "") -> str:
        return self.headers.get(name, default)

    def cookie(self, name: str) -> str:
        for pair in self.header("cookie").split(";"):
            key, _, value = pair.strip().partition("=")
            if key == name:
                return value
        return ""

    @property
    def mutates(self) -> bool:
        return self.method not in ("GET", "HEAD", "OPTIONS")

    @property
    def upgrades(self) -> bool:
        return self.header("upgrade").lower() == "websocket"


def split_target(target: str) -> tuple[str, tuple[str, ...], dict[str, str]]:
    """A request target as path, its decoded parts and its query. Raises Refusal for tricks.

    Parts are decoded once, after splitting, so an encoded slash never makes a new part; what would
    mean another place on a disk (dots, NUL, backslash, empty parts) is refused, not tidied up.
    """
    raw, _, rest = target.partition("?")
    rest = rest.partition("#")[0]
    if not raw.startswith("/"):
        raise Refusal(400, "bad_path", "The request target is not a path.")
    parts: list[str] = []
    for piece in raw[1:].split("/"):
        try:
            part = unquote_to_bytes(piece).decode()
        except UnicodeDecodeError:
            raise Refusal(400, "bad_path", "The path is not UTF-8.") from None
        if part in (".", "..") or any(ord(char) < 32 or char in "\\\x7f" for char in part):
            raise Refusal(400, "bad_path", "The path has parts that are not allowed.")
        if "/" in part:
            raise Refusal(400, "bad_path", "The path has an encoded slash.")
        parts.append(part)
    if "" in parts[:-1]:
        raise Refusal(400, "bad_path", "The path has empty parts.")
    try:
        query = dict(parse_qsl(rest, keep_blank_values=True, errors="strict", max_num_fields=64))
    except ValueError:
        raise Refusal(400, "bad_query", "The query cannot be read.") from None
    return "/" + "/".join(parts), tuple(parts), query


class Response(Holder):
    """A whole answer."""

    status: int = 200
    body: bytes = b""
    content_type: str = ""
    headers: dict[str, str] = {}

    def __post_init__(self) -> None:
        first = {"content-type": self.content_type} if self.content_type else {}
        self.headers = {**first, **self.headers}


class Stream(Holder):
    """An answer that goes on: `begin` gets an outlet to write to for as long as it likes."""

    begin: Callable[[Any], None]
    headers: dict[str, str] = {}
    status: int = 200

    def __post_init__(self) -> None:
        self.headers = {"content-type": EVENTS, "cache-control": "no-store", **self.headers}


class Takeover(msgspec.Struct, frozen=True):
    """The connection becomes something else: `begin` gets the transport and what was read."""

    begin: Callable[[Any, bytes], None]
    headers: Mapping[str, str]


Answer = Response | Stream | Takeover


def reply(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A value as JSON."""
    return Response(status, _encode(value), JSON, dict(headers or {}))


def text(
    value: str, status: int = 200, content_type: str = "text/plain; charset=utf-8"
) -> Response:
    return Response(status, value.encode(), content_type)


def problem(
    status: int,
    code: str,
    message: str,
    hint: str = "",
    data: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """A failure as JSON: what was wrong and what to do."""
    error: dict[str, Any] = {"code": code, "message": message}
    if hint:
        error["hint"] = hint
    if data:
        error["data"] = data
    return reply({"error": error}, status, headers)
