"""JSON-RPC 2.0: messages as typed structs, how they are written, and how lines are read.

Key order on the wire: jsonrpc, result or error, id; jsonrpc, method, params, id.

A well-formed request takes the fast path: one typed decode per line. Everything else (responses,
batches, malformed envelopes) is looked at member by member. Lines are decoded one by one because a
decoder for many lines also accepts two values on a line and one value over two lines.
"""

import re
from collections.abc import Callable
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Raw, UnsetType

from .codec import encode, is_deep, is_json, mend_text, mended

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


def notification(method: str, params: object = UNSET) -> bytes:
    """A notification of ours."""
    return encode(_Notice("2.0", method, params))


def request(id: Id, method: str, params: Any = UNSET) -> bytes:
    """A request of ours."""
    return encode(_Call("2.0", method, params, id))


class Rules(msgspec.Struct, frozen=True):
    """Where protocols built on JSON-RPC differ."""

    batches: bool = True  # False: an array is answered with one -32600
    null_params: bool = False  # `"params":null` counts as no params; else it is -32600
    scalar_params: bool = False  # params of any type are let through to the verb
    any_version: bool = False  # `jsonrpc` may be missing or anything
    any_id: bool = False  # the id may be any JSON value
    always_answered: bool = False  # a missing id counts as null: there are no notifications
    folded_keys: bool = False  # member names match whatever their case
    typed_parse: bool = False  # a member of the wrong type makes the line a parse error
    blank_lines: bool = False  # a line of only white space is a parse error, not skipped
    serves_only: bool = False  # no line is a response; one without a method asks for ""


_decode_request = msgspec.json.Decoder(Request).decode
_decode_members = msgspec.json.Decoder(dict[str, Raw]).decode
_decode_items = msgspec.json.Decoder(list[Raw]).decode
_decode_error = msgspec.json.Decoder(ErrorBody).decode
_decode_any = msgspec.json.Decoder().decode

_ID_KEY = rb'(?i)"id"\s*:'
_PARAMS_KEY = rb'(?i)"params"\s*:'
_OBJECT, _ARRAY, _NULL = b"{"[0], b"["[0], b"n"[0]
_NUMBER = frozenset(b"-0123456789")
_STRING = b'"'[0]
_STRUCTURED = frozenset((_OBJECT, _ARRAY))
_NAMELESS = Raw(b'""')
_LONG = 257  # a shorter line cannot nest too deep


class Reader:
    """Turns the lines of one dialect into messages."""

    __slots__ = ("_folded", "_loose", "dropped", "rules")

    def __init__(self, rules: Rules = Rules()) -> None:  # noqa: B008 - frozen
        self.rules = rules
        self.dropped = 0  # malformed responses that name no request
        self._folded = rules.folded_keys
        self._loose = rules.always_answered or rules.folded_keys

    def read(self, lines: list[bytes]) -> list[Message]:
        """What these lines say, in order; blank lines are left out, and answers to nothing."""
        messages: list[Message] = []
        decode, loose = _decode_request, self._loose
        for line in lines:
            # Only a long line can nest too deep, only one beyond ASCII can be broken UTF-8.
            plain = len(line) <= _LONG and line.isascii()
            if not plain and (broken := _unreadable(line)) is not None:
                messages.append(broken)
                continue
            try:
                message = decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                self._read_odd(line, messages)
                continue
            params = message.params
            if params:
                if (bytes if plain else memoryview)(params)[0] not in _STRUCTURED:
                    self._read_odd(line, messages)
                    continue
                complete = message.id is not UNSET
            else:
                complete = False
            if loose and not complete and self._misses(message, line):
                self._read_odd(line, messages)
            else:
                messages.append(message)
        return messages

    def _misses(self, message: Request, line: bytes) -> bool:
        """Whether the decoder did not see all that these rules want seen."""
        if self._folded:
            # Looking for the word first is several times quicker than the pattern.
            lowered = line.lower()
            if (
                message.id is UNSET
                and lowered.find(b'"id"') >= 0
                and re.search(_ID_KEY, lowered) is not None
            ) or (
                not message.params
                and lowered.find(b'"params"') >= 0
                and re.search(_PARAMS_KEY, lowered) is not None
            ):
                return True
        if self.rules.always_answered and message.id is UNSET:
            message.id = None
        return False

    def _read_odd(self, line: bytes, messages: list[Message]) -> None:
        if not line.strip():
            if self.rules.blank_lines:
                messages.append(_broken("json", "the line is blank"))
            return
        try:
            value = _raw(line)
        except RecursionError:
            messages.append(_broken("depth", "nesting is deeper than 128 levels"))
            return
        except msgspec.DecodeError as trouble:
            messages.append(_broken("json", str(trouble)))
            return
        if _first(value) == _ARRAY:
            messages.append(self._batch(value))
            return
        message = self._member_wise(value)
        if message is not None:
            messages.append(message)

    def _batch(self, value: Raw) -> Message:
        if not self.rules.batches:
            return _invalid("batch", None, "batches are not supported")
        items = _decode_items(value)
        if not items:
            return _invalid("shape", None, "a batch must not be empty")
        read = [
            self._member_wise(item)
            if _first(item) == _OBJECT
            else _invalid("shape", None, "a message must be a JSON object")
            for item in items
        ]
        return Batch([message for message in read if message is not None])

    def _member_wise(self, value: Raw) -> Request | Response | Invalid | None:
        """Judge one JSON value that is no plain request; None for a response to be dropped."""
        rules = self.rules
        kind = _first(value)
        if kind != _OBJECT:
            if rules.typed_parse and kind != _NULL:
                return _broken("shape", "a message must be a JSON object")
            return _invalid("shape", None, "a message must be a JSON object")
        members: dict[str, Raw] = _decode_members(value)
        if rules.folded_keys:
            members = {name.lower(): member for name, member in members.items()}
        has_method = "method" in members
        outcome = "result" in members or "error" in members
        if outcome and not has_method:
            if rules.serves_only:
                return _invalid("shape", self._known_id(members), "no response is expected")
            return self._response(members)
        if rules.serves_only and not has_method:
            members["method"] = _NAMELESS
            has_method = True

        wrong = self._wrong_type(members)
        if wrong is not None:
            return wrong
        if not has_method:
            id = self._known_id(members) if rules.typed_parse else None
            return _invalid("method", id, "the method is missing")
        if _first(members["method"]) != _STRING:
            return _invalid("method", None, "the method must be a string")
        if outcome:
            return _invalid("ambiguous", None, "a message is a request or a response, not both")
        if not rules.any_version and _text(members.get("jsonrpc")) != "2.0":
            return _invalid("version", self._known_id(members), 'jsonrpc must be "2.0"')
        if "id" in members and not self._good_id(members["id"]):
            return _invalid("id", None, "the id must be a string, a number or null")
        params = members.get("params", ABSENT)
        if params and _first(params) == _NULL and rules.null_params:
            params = ABSENT
        if params and not rules.scalar_params and _first(params) not in b"{[":
            return _invalid("params", self._known_id(members), "params must be an object or array")
        id = _decode_any(members["id"]) if "id" in members else UNSET
        if id is UNSET and rules.always_answered:
            id = None
        return Request("2.0", _decode_any(members["method"]), id, params)

    def _wrong_type(self, members: dict[str, Raw]) -> Invalid | None:
        if self.rules.typed_parse:
            for name in ("jsonrpc", "method"):
                if name in members and _first(members[name]) not in (_STRING, _NULL):
                    return _broken("shape", f"{name} must be a string")
        return None

    def _response(self, members: dict[str, Raw]) -> Response | None:
        """An answer. A malformed one that names a request of ours is that request's failure."""
        for empty, other in (("error", "result"), ("result", "error")):
            if other in members and _first(members.get(empty, ABSENT) or _NAMELESS) == _NULL:
                members.pop(empty)  # some libraries always write both
                break
        try:
            return self._good_response(members)
        except msgspec.DecodeError:
            id = self._known_id(members)
            if id is not None:
                return Response(id, error=ErrorBody(INVALID_REQUEST, "the answer is malformed"))
            self.dropped += 1
            return None

    def _good_response(self, members: dict[str, Raw]) -> Response:
        sound = (
            ("result" in members) != ("error" in members)
            and "params" not in members
            and "id" in members
            and self._good_id(members["id"])
            and (self.rules.any_version or _text(members.get("jsonrpc")) == "2.0")
        )
        if not sound:
            raise msgspec.DecodeError("malformed response")
        id = _decode_any(members["id"])
        if "error" in members:
            return Response(id, error=_decode_error(members["error"]))
        return Response(id, members["result"])

    def _good_id(self, id: Raw) -> bool:
        kind = _first(id)
        if kind == _STRING or kind == _NULL:
            return True
        return (self.rules.any_id or kind in _NUMBER) and _can_be_repeated(id)

    def _known_id(self, members: dict[str, Raw]) -> Id:
        id = members.get("id")
        return _decode_any(id) if id is not None and self._good_id(id) else None


class BatchReply:
    """Collects the answers to one batch and sends them as one array, in the batch's order.

    Give each item of the batch its `sink(item)`; an item that is not to be answered gets one that
    swallows. Nothing is sent when nothing was to be answered.
    """

    __slots__ = ("_answers", "_missing", "_send", "_slots")

    def __init__(self, batch: Batch, send: Callable[[bytes], None]) -> None:
        self._send = send
        self._slots = {
            id(item): place
            for place, item in enumerate(batch.items)
            if isinstance(item, Invalid) or (isinstance(item, Request) and not item.is_notification)
        }
        self._answers: list[bytes | None] = [None] * len(batch.items)
        self._missing = len(self._slots)

    def sink(self, item: Request | Response | Invalid) -> Callable[[bytes], None]:
        """Where the answer to this item goes."""
        place = self._slots.get(id(item))
        if place is None:
            return _swallow

        def take(answer: bytes, place: int = place) -> None:
            if self._answers[place] is not None:
                return
            self._answers[place] = answer
            self._missing -= 1
            if not self._missing:
                answers = [given for given in self._answers if given is not None]
                self._send(b"[" + b",".join(answers) + b"]")

        return take


def _swallow(answer: bytes) -> None:
    """Take an answer to something that wants none."""


def _raw(line: bytes) -> Raw:
    """The line as one undecoded JSON value; lone surrogate escapes are mended, not refused."""
    line = line.strip(b" \t\r")
    try:
        _decode_any(line)
    except msgspec.DecodeError:
        line = mend_text(line)
        try:
            _decode_any(line)
        except msgspec.DecodeError:
            if not is_json(line):  # else it has a number that no double can hold
                raise
    return Raw(line)


def _unreadable(line: bytes) -> Invalid | None:
    """What is wrong with a line before it is read as JSON."""
    try:
        line.decode()
    except UnicodeDecodeError:
        return _broken("utf8", "the line is not valid UTF-8")
    if is_deep(line):
        return _broken("depth", "nesting is deeper than 128 levels")
    return None


def _first(value: Raw) -> int:
    return memoryview(value)[0]


def _can_be_repeated(id: Raw) -> bool:
    """Whether all numbers in it are within the range of a double."""
    try:
        _decode_any(id)
    except msgspec.DecodeError:
        return False
    return True


def _text(value: Raw | None) -> object:
    if value is None or _first(value) != _STRING:
        return None
    return _decode_any(value)


def _broken(reason: Reason, detail: str) -> Invalid:
    return Invalid(PARSE_ERROR, None, f"Parse error: {detail}", reason)


def _invalid(reason: Reason, id: Id, detail: str) -> Invalid:
    return Invalid(INVALID_REQUEST, id, f"Invalid request: {detail}", reason)
