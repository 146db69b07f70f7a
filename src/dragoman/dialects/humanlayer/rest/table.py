"""Operations as data, so that requests, answers and the OpenAPI document cannot differ."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

import msgspec

from dragoman.engine.events import Who
from dragoman.engine.faults import Fault
from dragoman.wire.codec import encode

from ..faults import Failed, Wrong

if TYPE_CHECKING:
    from ..desk import Desk

_STATUS = {"bad_input": 400, "unknown_model": 400, "unknown_agent": 400, "unknown_session": 404,
           "unknown_approval": 404, "already_settled": 400, "limit": 429, "busy": 409,
           "wrong_state": 409, "in_use": 409, "nothing_running": 400}  # fmt: skip
_CODES = {400: "HLD-301", 404: "HLD-102", 405: "HLD-302", 409: "HLD-103", 422: "HLD-303",
          429: "HLD-304"}  # fmt: skip


class Refused(Exception):
    """The request is answered with this status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Asked(msgspec.Struct, frozen=True):
    """One request, as an operation sees it."""

    desk: "Any"  # a `Desk`
    who: Who
    path: Mapping[str, str]
    query: Any
    body: Any


class Operation(msgspec.Struct, frozen=True):
    """One method at one path; further paths are other spellings of the same."""

    method: str
    paths: tuple[str, ...]
    id: str
    summary: str
    run: Callable[[Asked], Awaitable[Any]]
    body: Any = None
    query: Any = None
    returns: Any = None
    wraps: str = ""  # the document's name of the object that has the result as its `data`
    status: int = 200
    streams: bool = False


class RestAnswer(msgspec.Struct, frozen=True):
    """What goes back: a body, or the shape of a stream of events."""

    status: int
    body: bytes = b""
    shape: Any = None  # an `engine.hub.Shape`; there is no body then


class Rest:
    """Answers requests below `/api/v1`."""

    def __init__(self, desk: "Desk") -> None:
        from .approvals import OPERATIONS as APPROVALS
        from .files import OPERATIONS as FILES
        from .host import OPERATIONS as HOST
        from .sessions import OPERATIONS as SESSIONS

        self._desk = desk
        self.operations: Sequence[Operation] = (*HOST, *SESSIONS, *APPROVALS, *FILES)

    async def answer(
        self, who: Who, method: str, path: Sequence[str], query: str, body: bytes
    ) -> RestAnswer:
        """One request to its answer; every failure is one, too."""
        try:
            if method in ("GET", "HEAD") and list(path) == ["openapi.json"]:
                from .document import document

                return RestAnswer(200, encode(document(self.operations)))
            operation, values = self._find(method, path)
            asked = Asked(self._desk, who, values, _query(operation, query), _body(operation, body))
            result = await operation.run(asked)
        except Refused as refused:
            return failure(refused.status, str(refused))
        except Failed as problem:
            return failure(404 if "not found" in problem.message else 400, problem.message)
        except Wrong as problem:
            return failure(400, problem.message)
        except Fault as fault:
            return failure(_STATUS.get(fault.code, 500), str(fault))
        if operation.streams:
            return RestAnswer(200, shape=result)
        if result is None:
            return RestAnswer(204)
        if isinstance(result, RestAnswer):
            return result
        return RestAnswer(operation.status, encode({"data": result} if operation.wraps else result))

    def _find(self, method: str, path: Sequence[str]) -> tuple[Operation, dict[str, str]]:
        method = "GET" if method == "HEAD" else method
        others: list[str] = []
        # Paths that are written out win over those with names in them.
        for named in (False, True):
            for one in self.operations:
                for pattern in one.paths:
                    values = _match(pattern, path)
                    if values is None or bool(values) != named:
                        continue
                    if one.method == method:
                        return one, values
                    others.append(one.method)
        if others:
            raise Refused(405, f"use {', '.join(sorted(set(others)))} here")
        raise Refused(404, f"there is nothing at /api/v1/{'/'.join(path)}")


def failure(status: int, message: str) -> RestAnswer:
    error = {"code": _CODES.get(status, "HLD-401"), "message": message}
    return RestAnswer(status, encode({"error": error}))


def _match(pattern: str, path: Sequence[str]) -> dict[str, str] | None:
    pieces = pattern.strip("/").split("/")
    if len(pieces) != len(path):
        return None
    found: dict[str, str] = {}
    for piece, part in zip(pieces, path, strict=True):
        if piece.startswith("{"):
            if not part:
                return None
            found[piece[1:-1]] = part
        elif piece != part:
            return None
    return found


def _query(operation: Operation, text: str) -> Any:
    if operation.query is None:
        return None
    given = parse_qs(text, keep_blank_values=True)
    lists = {field.name for field in msgspec.structs.fields(operation.query)
             if "list" in str(field.type)}  # fmt: skip
    values = {name: found if name in lists else found[-1] for name, found in given.items()}
    try:
        return msgspec.convert(values, operation.query, strict=False)
    except msgspec.ValidationError as error:
        raise Refused(400, f"the query cannot be used: {error}") from None


def _body(operation: Operation, body: bytes) -> Any:
    if operation.body is None:
        return None
    try:
        return msgspec.json.decode(body or b"{}", type=operation.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refused(400, f"the body cannot be used: {error}") from None
