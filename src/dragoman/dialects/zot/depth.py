"""Lines that nest deeper than our reader goes: nothing that deep is looked at by any command."""

import re

DEEPEST = 10_000  # as far as zot's own reader goes
_KEPT = 64
_TOKENS = rb'(?s)"(?:[^"\\]|\\.)*"|[][{}]'
_CLOSING = {b"]": b"[", b"}": b"{"}


def flattened(line: bytes) -> bytes | None:
    """The line with null for all that nests very deeply; None when it is too deep or unbalanced."""
    open_now: list[bytes] = []
    kept: list[bytes] = []
    start = 0  # of what is not decided on yet
    for token in re.finditer(_TOKENS, line):
        mark = token[0]
        if mark in _CLOSING:
            if not open_now or open_now.pop() != _CLOSING[mark]:
                return None
            if len(open_now) == _KEPT:
                kept.append(b"null")
                start = token.end()
        elif len(mark) == 1:
            open_now.append(mark)
            if len(open_now) > DEEPEST:
                return None
            if len(open_now) == _KEPT + 1:
                kept.append(line[start : token.start()])
    if open_now:
        return None
    kept.append(line[start:])
    return b"".join(kept)
