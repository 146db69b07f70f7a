"""Frames as zot writes them: keys in alphabetical order, and the escapes of its JSON library."""

from datetime import UTC, datetime
from typing import Any

from dragoman.wire.codec import encode, sorted_encode, to_safe

_LESS, _MORE, _AND = b"<>&"  # numbers, which are found far quicker than bytes
_PONG = b'{"command":"ping","data":{"pong":true},"success":true,"type":"response"}'


def frame(value: object) -> bytes:
    """One line: sorted keys, `<` `>` `&` and the two line separators as escapes."""
    return _escaped(sorted_encode(value))


def _escaped(text: bytes) -> bytes:
    if _LESS in text:
        text = text.replace(b"<", b"\\u003c")
    if _MORE in text:
        text = text.replace(b">", b"\\u003e")
    if _AND in text:
        text = text.replace(b"&", b"\\u0026")
    return to_safe(text)


def text_delta(text: str) -> bytes:
    """The commonest event, without a dictionary."""
    return b'{"delta":%b,"type":"text_delta"}' % _escaped(encode(text))


def pong(request_id: str) -> bytes:
    if not request_id:
        return _PONG
    return (
        b'{"command":"ping","data":{"pong":true},"id":%b,"success":true,"type":"response"}'
        % _escaped(encode(request_id))
    )


def success(command: str, request_id: str, data: dict[str, Any] | None = None) -> bytes:
    made: dict[str, Any] = {"command": command, "success": True, "type": "response"}
    if data is not None:
        made["data"] = data
    if request_id:
        made["id"] = request_id
    return frame(made)


def failure(command: str, request_id: str, error: str) -> bytes:
    made = {"command": command, "error": error, "success": False, "type": "response"}
    if request_id:
        made["id"] = request_id
    return frame(made)


def clock_time(at: int) -> str:
    """RFC 3339 in local time, `Z` for UTC, without zeros at the end of the fraction."""
    moment = datetime.fromtimestamp(at / 1000, UTC).astimezone()
    text = moment.strftime("%Y-%m-%dT%H:%M:%S")
    if at % 1000:
        text += f".{at % 1000:03d}".rstrip("0")
    offset = moment.strftime("%z")
    return f"{text}Z" if offset == "+0000" else f"{text}{offset[:3]}:{offset[3:5]}"


def money(cost: float) -> float | int:
    """A sum in USD; whole numbers without a fraction."""
    return int(cost) if cost == int(cost) else cost
