"""JSON out and in: one shared encoder and the spellings that single protocols need."""

import re
from _json import encode_basestring_ascii as _quoted_ascii
from typing import Any

import msgspec

_encode = msgspec.json.Encoder().encode
_encode_sorted = msgspec.json.Encoder(order="sorted").encode

# Compiled when they are first needed: most connections never are that odd.
_BEYOND_ASCII = r"[^\x00-\x7f]+"
_LONE = r"[\ud800-\udfff]"
# A surrogate escape with its context: pairs are taken whole and kept, what remains is alone.
_ESCAPES = (
    rb"(?s)\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    rb"|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)"
)
_STRING = rb'(?s)"[^"\\]*(?:\\.[^"\\]*)*"'
_NOT_BRACKETS = bytes(sorted(set(range(256)) - set(b"[]{}")))
_SQUARE = bytes.maketrans(b"{}", b"[]")

DEPTH = 128
_SHALLOW = 2 * DEPTH + 2  # a shorter text cannot nest deeper than DEPTH and be closed again


def encode(value: Any) -> bytes:
    """UTF-8 JSON without spaces; lone surrogates become U+FFFD."""
    try:
        return _encode(value)
    except UnicodeEncodeError:
        return _encode(mended(value))


def sorted_encode(value: object) -> bytes:
    """Like `encode`, keys in alphabetical order at every level."""
    try:
        return _encode_sorted(value)
    except UnicodeEncodeError:
        return _encode_sorted(mended(value))


def ascii_encode(value: object) -> bytes:
    """Like `encode`, everything beyond ASCII written as \\u escapes."""
    return to_ascii(encode(value))


def safe_encode(value: object) -> bytes:
    """Like `encode`, U+2028 and U+2029 escaped: some clients take them for line ends."""
    return to_safe(encode(value))


def to_ascii(text: bytes) -> bytes:
    """Rewrite encoded JSON so that it holds ASCII only."""
    if text.isascii():
        return text
    return re.sub(_BEYOND_ASCII, _escaped, text.decode()).encode("ascii")


def to_safe(text: bytes) -> bytes:
    """Rewrite encoded JSON so that it holds no U+2028 or U+2029."""
    if text.find(b"\xe2\x80") < 0:
        return text
    return text.replace(b"\xe2\x80\xa8", b"\\u2028").replace(b"\xe2\x80\xa9", b"\\u2029")


def _escaped(run: re.Match[str]) -> str:
    return _quoted_ascii(run[0])[1:-1]


def is_utf8(line: bytes) -> bool:
    """Whether these bytes are valid UTF-8."""
    if line.isascii():
        return True
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def is_json(text: bytes) -> bool:
    """Whether this is one JSON value, whatever the size of its numbers."""
    from json import loads

    try:
        loads(text.decode(), parse_int=len, parse_float=len, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return False
    return True


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def is_deep(text: bytes, depth: int = DEPTH) -> bool:
    """Whether this JSON text nests deeper than `depth`; False also for unbalanced brackets."""
    if len(text) < _SHALLOW and depth >= DEPTH:
        return False
    if text.count(b"[") + text.count(b"{") <= depth:
        return False
    brackets = re.sub(_STRING, b"", text).translate(_SQUARE, _NOT_BRACKETS)
    # Each pass takes away the innermost level, so the work is bounded by depth, at C speed.
    for _ in range(depth):
        size = len(brackets)
        brackets = brackets.replace(b"[]", b"")
        if not brackets:
            return False
        if len(brackets) == size:
            return False
    return True


def mend_text(line: bytes) -> bytes:
    """Replace what is not UTF-8 and lone surrogate escapes by U+FFFD."""
    if not is_utf8(line):
        line = line.decode("utf-8", "replace").encode()
    if b"\\u" in line:
        line = re.sub(_ESCAPES, lambda found: b"\\ufffd" if found[1] else found[0], line)
    return line


def mended(value: object) -> object:
    """A copy of a value with lone surrogates in its strings replaced by U+FFFD."""
    if isinstance(value, str):
        return re.sub(_LONE, "\ufffd", value)
    if isinstance(value, dict):
        return {mended(key): mended(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [mended(item) for item in value]
    if isinstance(value, msgspec.Struct):
        changed = {name: mended(getattr(value, name)) for name in value.__struct_fields__}
        return msgspec.structs.replace(value, **changed)
    return value
