"""On which line each key of a TOML text stands, to name it beside what is wrong with it.

The text has been read by `tomllib` before, so this scanner may trust that it is well formed.
"""

from collections.abc import Iterator

import msgspec

Path = tuple[str, ...]


class KeyLine(msgspec.Struct, frozen=True):
    """A table header or a key."""

    path: Path
    table: bool
    line: int  # from 1


def scan(text: str) -> list[KeyLine]:
    """All headers and keys, in order."""
    return list(_places(text))


def line_of(text: str, path: Path) -> int:
    """The line of a key, or of the nearest thing around it; 0 when there is none."""
    places = scan(text)
    for length in range(len(path), 0, -1):
        for place in places:
            if place.path[:length] == path[:length]:
                return place.line
    return 0


def _places(text: str) -> Iterator[KeyLine]:
    table: Path = ()
    at, line = 0, 1
    while at < len(text):
        start = at
        at = _blanks(text, at)
        if at >= len(text):
            return
        if text[at] in "\r\n#":
            end = _line_end(text, at)
            at, line = end, line + 1
            continue
        if text[at] == "[":
            at += 2 if text.startswith("[[", at) else 1
            table, at = _key(text, at)
            end = _line_end(text, at)
            yield KeyLine(table, True, line)
        else:
            path, at = _key(text, at)
            value = _blanks(text, at + 1)  # after the "="
            value_end = _value(text, value)
            end = _line_end(text, value_end)
            yield KeyLine((*table, *path), False, line)
        line += text.count("\n", start, end)
        at = end


def _blanks(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t":
        at += 1
    return at


def _line_end(text: str, at: int) -> int:
    found = text.find("\n", at)
    return len(text) if found < 0 else found + 1


def _key(text: str, at: int) -> tuple[Path, int]:
    """A dotted key; stops at "=" or "]"."""
    parts: list[str] = []
    while True:
        at = _blanks(text, at)
        if text[at] in "\"'":
            end = _string(text, at)
            parts.append(_unquoted(text[at:end]))
        else:
            end = at
            while end < len(text) and text[end] not in " \t.=]":
                end += 1
            parts.append(text[at:end])
        at = _blanks(text, end)
        if at >= len(text) or text[at] != ".":
            return tuple(parts), at
        at += 1


def _unquoted(quoted: str) -> str:
    import tomllib

    return str(tomllib.loads(f"value = {quoted}")["value"])


def _string(text: str, at: int) -> int:
    """The offset after a string of any of the four kinds."""
    quote = text[at]
    mark = quote * 3 if text.startswith(quote * 3, at) else quote
    at += len(mark)
    while not text.startswith(mark, at):
        if at >= len(text):
            return at
        at += 2 if quote == '"' and text[at] == "\\" else 1
    at += len(mark)
    if len(mark) == 3:  # up to two quotes may stand before the closing three
        while text.startswith(quote, at):
            at += 1
    return at


def _value(text: str, at: int) -> int:
    """The offset after a value, without what follows it on the line."""
    depth = 0
    while at < len(text):
        char = text[at]
        if char in "\"'":
            at = _string(text, at)
            if not depth:
                return at
            continue
        if char in "[{":
            depth += 1
        elif char in "]}":
            depth -= 1
            if not depth:
                return at + 1
        elif char == "#":
            if not depth:
                break
            at = _line_end(text, at)
            continue
        elif char == "\n" and not depth:
            break
        at += 1
    return len(text[:at].rstrip())
