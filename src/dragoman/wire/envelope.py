"""JSON-RPC 2.0 messages as typed structs, and how they are written.

Key order on the wire: jsonrpc, result or error, id; jsonrpc, method, params, id.
"""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Raw, UnsetType

from .codec import encode, mended

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603

Id = Any
"""A request's id as decoded: int, float, str or None; any JSON value under `Rules.any_id`."""

ABSENT = Raw()

_encode = msgspec.json.Encoder().encode  # without the call between, on the hottest path


Never = Annotated[str, msgspec.Meta(min_length=1, max_length=0)]
"""A member that no value fits."""


class Request(msgspec.Struct, gc=False):
    """A request, or a notification when `id` is UNSET.

    `params` is the undecoded object or array; it is empty (falsy) when there were none.
    """

    jsonrpc: Literal["2.0"]
    method: str
    id: int | float | str | None | UnsetType = UNSET
    params: Raw = ABSENT
    # Only here to tell a request from something that claims to be both: that does not decode.
    result: Never = ""
    error: Never = ""

    @property
    def is_notification(self) -> bool:
        return self.id is UNSET


class ErrorBody(msgspec.Struct, frozen=True, gc=False):
    """The `error` member of a response."""

    code: int
    message: str
    data: Raw | UnsetType = UNSET


class Response(msgspec.Struct, frozen=True, gc=False):
    """The other side's answer to a request of ours: `result`, or `error` when it is not None."""

    id: Id
    result: Raw = ABSENT
    error: ErrorBody | None = None


Reason = Literal[
    "json", "utf8", "depth", "shape", "batch", "version", "method", "id", "params", "ambiguous"
]


class Invalid(msgspec.Struct, frozen=True, gc=False):
    """Something that is no valid message and must be answered with this error."""

    code: int
    id: Id
    message: str
    reason: Reason

    def reply(self) -> bytes:
        """The error response."""
        return error(self.id, self.code, self.message)


class Batch(msgspec.Struct, frozen=True):
    """A JSON-RPC batch: its messages are answered together in one array."""

    items: list[Request | Response | Invalid]


Message = Request | Response | Invalid | Batch


class _Result(msgspec.Struct, gc=False):
    jsonrpc: str
    result: Any
    id: Any


class _Error(msgspec.Struct, gc=False):
    code: int
    message: str
    data: Any = UNSET


class _Refusal(msgspec.Struct, gc=False):
    jsonrpc: str
    error: _Error
    id: Any


class _Notice(msgspec.Struct, gc=False):
    jsonrpc: str
    method: str
    params: Any


class _Call(msgspec.Struct, gc=False):
    jsonrpc: str
    method: str
    params: Any
    id: Any


def reply(id: Id, value: Any) -> bytes:
    """A success response."""
    try:
        return _encode(_Result("2.0", value, id))
    except UnicodeEncodeError:
        return _encode(_Result("2.0", mended(value), mended(id)))


def error(id: Id, code: int, message: str, data: Any = UNSET) -> bytes:
    """An error response; without `data` the member is left out."""
    return encode(_Refusal("2.0", _Error(code, message, data), id))


def notification(method: str, params: Any = UNSET) -> bytes:
    """A notification of ours."""
    return encode(_Notice("2.0", method, params))


def request(id: Id, method: str, params: Any = UNSET) -> bytes:
    """A request of ours."""
    return encode(_Call("2.0", method, params, id))
