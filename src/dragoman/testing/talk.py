"""Readable conversations between a client and a server, read from `.talk` files.

One step per line:

    # a comment; the first line of a file is its title
    C> {"id": "1", "type": "ping"}      the client says this
    S> {"type": "pong", "id": "<any>"}  the server says this next
    S? {...}                            ... or it does not
    S* {...}                            ... any number of times
    S= {"exactly":"these bytes"}
    {                                   what stands between braces comes in any order
    }
    ! word the rest                     a stage direction (see `play.py`)

What the server says is compared as JSON, key order apart. A string in an expectation may be
`<any>`, `<int>`, `<number>`, `<text>`, `<time>`, `<re:PATTERN>`, or `<id:NAME>`: the first of a
name is remembered, later ones must be equal, and the client may say it. The key `"...": "<more>"`
permits further keys; `"<more>"` at the end of a list permits further items.
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dragoman.engine.visible import many

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)")
_MARK = re.compile(r'"<id:([^">]+)>"')
_MORE = "<more>"


class TalkError(AssertionError):
    """A talk went another way than written, or cannot be read."""


@dataclass(frozen=True, slots=True)
class Say:
    """What the client sends."""

    line: int
    text: str

    def filled(self, names: dict[str, Any]) -> str:
        """The text with every remembered name put in."""

        def put(mark: re.Match[str]) -> str:
            if mark[1] not in names:
                raise TalkError(f"line {self.line}: nothing was remembered as {mark[1]!r}")
            return json.dumps(names[mark[1]], ensure_ascii=False)

        return _MARK.sub(put, self.text)


@dataclass(frozen=True, slots=True)
class Expect:
    """What the server sends. `kind` is one of `>` `?` `*` `=`."""

    line: int
    text: str
    kind: str = ">"
    pattern: Any = None

    def difference(self, got: bytes, names: dict[str, Any]) -> str:
        """Why this line is not the one that is expected; empty when it is."""
        if self.kind == "=":
            said = got.decode("utf-8", "replace")
            return "" if said == self.text else "the bytes differ"
        try:
            value = json.loads(got)
        except ValueError as trouble:
            return f"not JSON: {trouble}"
        found = dict(names)
        trouble_at = differ(self.pattern, value, found)
        if not trouble_at:
            names.update(found)
        return trouble_at


@dataclass(frozen=True, slots=True)
class AnyOrder:
    """Lines that the server sends in any order."""

    line: int
    parts: tuple[Expect, ...]


@dataclass(frozen=True, slots=True)
class Direct:
    """A stage direction."""

    line: int
    word: str
    rest: str


Step = Say | Expect | AnyOrder | Direct


@dataclass(slots=True)
class Talk:
    """A file that was read."""

    path: Path
    title: str
    steps: list[Step] = field(default_factory=list)

    def directions(self, word: str) -> list[Direct]:
        return [step for step in self.steps if isinstance(step, Direct) and step.word == word]


def read(path: Path) -> Talk:
    """Read a talk. Raises TalkError with the line that is wrong."""
    rows = path.read_text(encoding="utf-8").split("\n")
    if not rows[0].startswith("# "):
        raise TalkError(f"{path}:1: a talk begins with its title: # TITLE")
    talk = Talk(path, rows[0][2:].strip())
    group: list[Expect] | None = None
    opened = 0
    for number, row in enumerate(rows[1:], 2):
        text = row.strip()
        if not text or text.startswith("#"):
            continue
        if text == "{" and group is None:
            group, opened = [], number
            continue
        if text == "}" and group is not None:
            talk.steps.append(AnyOrder(opened, tuple(group)))
            group = None
            continue
        step = _step(path, number, text)
        if group is None:
            talk.steps.append(step)
        elif isinstance(step, Expect) and step.kind in ">=":
            group.append(step)
        else:
            raise TalkError(f"{path}:{number}: only S> and S= lines may stand between braces")
    if group is not None:
        raise TalkError(f"{path}:{opened}: the brace is never closed")
    return talk


def _step(path: Path, number: int, text: str) -> Step:
    mark, _, rest = text.partition(" ")
    rest = rest.strip()
    if mark == "C>":
        return Say(number, rest)
    if mark == "!":
        word, _, rest = rest.partition(" ")
        return Direct(number, word, rest.strip())
    if mark == "S=":
        return Expect(number, rest, "=")
    if mark in ("S>", "S?", "S*"):
        try:
            return Expect(number, rest, mark[1], json.loads(rest))
        except ValueError as trouble:
            raise TalkError(f"{path}:{number}: not JSON: {trouble}") from None
    raise TalkError(f"{path}:{number}: a line begins with C> S> S? S* S= ! # {{ or }}: {text}")


def differ(pattern: Any, value: Any, names: dict[str, Any], at: str = "$") -> str:
    """Where and how a value differs from what is expected; empty when it does not."""
    if isinstance(pattern, str) and pattern.startswith("<") and pattern.endswith(">"):
        return _differ_placeholder(pattern[1:-1], value, names, at)
    if isinstance(pattern, dict) and isinstance(value, dict):
        return _differ_object(pattern, value, names, at)
    if isinstance(pattern, list) and isinstance(value, list):
        return _differ_list(pattern, value, names, at)
    number = isinstance(pattern, int | float) and not isinstance(pattern, bool)
    if number and isinstance(value, int | float) and not isinstance(value, bool):
        near = abs(pattern - value) <= 1e-9 * max(1, abs(pattern))
        return "" if near else _other(pattern, value, at)
    if type(pattern) is not type(value) or pattern != value:
        return _other(pattern, value, at)
    return ""


def _other(pattern: Any, value: Any, at: str) -> str:
    return f"at {at}: expected {_short(pattern)}, got {_short(value)}"


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 200 else text[:200] + "…"


def _differ_object(
    pattern: dict[str, Any], value: dict[str, Any], names: dict[str, Any], at: str
) -> str:
    more = pattern.get("...") == _MORE
    for key, expected in pattern.items():
        if key == "..." and more:
            continue
        if key not in value:
            return f"at {at}: {key!r} is missing"
        if trouble := differ(expected, value[key], names, f"{at}.{key}"):
            return trouble
    extra = [key for key in value if key not in pattern]
    return f"at {at}: {', '.join(map(repr, extra))} not expected" if extra and not more else ""


def _differ_list(pattern: list[Any], value: list[Any], names: dict[str, Any], at: str) -> str:
    more = bool(pattern) and pattern[-1] == _MORE
    wanted = pattern[:-1] if more else pattern
    if len(value) < len(wanted) or len(value) > len(wanted) and not more:
        return f"at {at}: expected {many(len(wanted), 'item')}, got {len(value)}: {_short(value)}"
    for index, (expected, item) in enumerate(zip(wanted, value, strict=False)):
        if trouble := differ(expected, item, names, f"{at}[{index}]"):
            return trouble
    return ""


_KINDS: dict[str, Callable[[Any], bool]] = {
    "any": lambda value: True,
    "int": lambda value: type(value) is int,
    "number": lambda value: type(value) in (int, float),
    "text": lambda value: isinstance(value, str) and value != "",
    "time": lambda value: isinstance(value, str) and _TIME.fullmatch(value) is not None,
}


def _differ_placeholder(word: str, value: Any, names: dict[str, Any], at: str) -> str:
    if word in _KINDS:
        return "" if _KINDS[word](value) else f"at {at}: expected <{word}>, got {_short(value)}"
    kind, _, rest = word.partition(":")
    if kind == "re":
        matches = isinstance(value, str) and re.fullmatch(rest, value, re.DOTALL) is not None
        return "" if matches else f"at {at}: {_short(value)} does not match {rest}"
    if kind == "id" and rest in names:
        return "" if names[rest] == value else _other(names[rest], value, at)
    if kind == "id":
        names[rest] = value
        return ""
    literal = f"<{word}>"
    return "" if value == literal else _other(literal, value, at)


def collect(folder: Path) -> Sequence[Path]:
    """All talks under a folder, in order."""
    return sorted(folder.rglob("*.talk"))
