"""A route as data: what it takes and gives back, so that the OpenAPI document cannot differ."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from dragoman.engine.events import Who

from ..http import EVENTS, JSON, Answer, Refusal, Request

if TYPE_CHECKING:
    from dragoman.engine.door import Door

    from ..gate import Gate

B = TypeVar("B")  # type of the JSON body
Q = TypeVar("Q")  # type of the query
SMALL = 256 * 1024
LARGE = 16 * 1024 * 1024


class Route(msgspec.Struct, Generic[B, Q], frozen=True):
    """One method at one path. `{name}` stands for one part, `{name...}` for all that follow."""

    method: str
    path: str
    run: "Callable[[Call[B, Q]], Awaitable[object]]"
    summary: str
    tag: str = ""
    body: type[B] | None = None
    raw_body: bool = False  # taken as it is
    optional_body: bool = False
    query: type[Q] | None = None  # all fields with defaults
    returns: Any = None  # type of the JSON answer
    status: int = 200
    streams: bool = False  # may answer with server-sent events
    media: str = JSON
    other_media: tuple[str, ...] = ()  # which a query may ask for
    open: bool = False  # no token needed
    local: bool = False  # no token needed on loopback
    limit: int = SMALL
    may_fail: tuple[int, ...] = ()
    hidden: bool = False  # not in the OpenAPI document

    @property
    def pattern(self) -> tuple[str, ...]:
        return tuple(self.path.strip("/").split("/")) if self.path != "/" else ("",)

    def match(self, parts: tuple[str, ...]) -> dict[str, str] | None:
        """The values of the path's names, when the path is of this form."""
        found: dict[str, str] = {}
        pattern = self.pattern
        for at, piece in enumerate(pattern):
            if piece.startswith("{") and piece.endswith("...}"):
                found[piece[1:-4]] = "/".join(parts[at:])
                return found
            if at >= len(parts):
                return None
            if piece.startswith("{"):
                if not parts[at]:
                    return None
                found[piece[1:-1]] = parts[at]
            elif piece != parts[at]:
                return None
        return found if len(parts) == len(pattern) else None


class Call(Generic[B, Q]):
    """One request on its way through a route."""

    __slots__ = ("_query", "body", "door", "gate", "path", "request", "route", "who")

    def __init__(
        self, gate: "Gate", route: Route[B, Q], request: Request, path: dict[str, str]
    ) -> None:
        self.gate = gate
        self.door: Door = gate.door
        self.route = route
        self.request = request
        self.path = path
        self.who = who_of(request)
        self.body: B = _body(route, request)
        self._query: Q | None = None

    @property
    def query(self) -> Q:
        if self._query is None:
            self._query = _query(self.route, self.request)
        return self._query

    def wants_events(self) -> bool:
        """Whether the client asked for server-sent events."""
        return EVENTS in self.request.header("accept")


Plain = Call[None, None]  # neither a body nor a query
AnyRoute = Route[Any, Any]


def who_of(request: Request) -> Who:
    """The client as others see it: the dashboard by its cookie, everybody else as REST."""
    dialect = "dashboard" if request.via == "cookie" or request.header("x-dragoman") else "rest"
    scheme = "https" if request.secure else "http"
    id = request.token_id or request.peer
    return Who(dialect, f"{scheme}:{request.peer}", request.header("x-client-name")[:100], id)


def _body(route: AnyRoute, request: Request) -> Any:
    if route.body is None:
        return None
    if not request.body and route.optional_body:
        return route.body()
    kind = request.header("content-type").partition(";")[0].strip().lower()
    if request.body and kind != JSON and not kind.endswith("+json"):
        raise Refusal(415, "bad_media", "The body must be application/json.")
    try:
        return msgspec.json.decode(request.body, type=route.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as trouble:
        raise Refusal(400, "bad_input", f"The body cannot be read: {trouble}") from None


def _query(route: AnyRoute, request: Request) -> Any:
    given = {name: value for name, value in request.query.items() if name != "token"}
    try:
        return msgspec.convert(given, route.query, strict=False)
    except msgspec.ValidationError as trouble:
        raise Refusal(400, "bad_query", f"The query cannot be used: {trouble}") from None


def find(routes: list[AnyRoute], request: Request) -> tuple[AnyRoute, dict[str, str]]:
    """The route of a request. Raises Refusal: 404, or 405 with what is allowed."""
    allowed: list[str] = []
    method = "GET" if request.method == "HEAD" else request.method
    for route in routes:
        values = route.match(request.parts)
        if values is None:
            continue
        if route.method in (method, "*"):
            return route, values
        allowed.append(route.method)
    if allowed:
        names = ", ".join(sorted({*allowed, *(["HEAD"] if "GET" in allowed else [])}))
        raise Refusal(405, "bad_method", f"Use {names} here.", headers={"allow": names})
    raise Refusal(404, "not_found", "There is nothing at this path.")


async def run(call: Call[Any, Any]) -> Answer:
    """Run a route and turn its result into an answer."""
    from ..http import Response, Stream, Takeover, reply

    result = await call.route.run(call)
    if isinstance(result, Response | Stream | Takeover):
        return result
    if result is None:
        return Response(204)
    return reply(result, call.route.status)
