"""Several exact replacements in one text: all of them against the original, or none.

Line ends: a text is searched with its CRLF seen as LF, because that is how models write it. What is
not replaced keeps every byte; what is put in gets the line end of the place it goes to.
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from dragoman.engine.faults import BadInput

from .diff import Change, render, trim
from .nearest import nearest

_BOM = "\ufeff"
Pair = tuple[str, str]


class Replaced(NamedTuple):
    """The new text, and how it differs from the old one."""

    new: str
    old_lines: list[str]
    changes: list[Change]

    @property
    def shown(self) -> str:
        return render(self.old_lines, self.changes)

    @property
    def first_line(self) -> int:
        return self.changes[0][0] + 1 if self.changes else 1


def replace_all(original: str, pairs: Sequence[Pair], shown: str) -> Replaced:
    """Apply all pairs (old text, new text); raises BadInput and changes nothing."""
    if not pairs:
        raise BadInput("at least one edit is required")
    bom = _BOM if original.startswith(_BOM) else ""
    body = original[len(bom) :]
    plain = body.replace("\r\n", "\n")
    spans: list[tuple[int, int, str]] = []
    for number, (old, new) in enumerate(pairs, 1):
        old = old.removeprefix(_BOM).replace("\r\n", "\n")
        new = new.removeprefix(_BOM).replace("\r\n", "\n")
        start = _find(plain, old, new, number, shown)
        spans.append((start, start + len(old), new))
    spans.sort()
    for before, after in zip(spans, spans[1:], strict=False):
        if after[0] < before[1]:
            raise BadInput("edits overlap; merge them into one edit")
    return Replaced(bom + _splice(body, plain, spans), plain.split("\n"), _changes(plain, spans))


def _find(plain: str, old: str, new: str, number: int, shown: str) -> int:
    if not old:
        raise BadInput(f"edit {number}: oldText must not be empty")
    if old == new:
        raise BadInput(f"edit {number}: oldText equals newText")
    start = plain.find(old)
    if start < 0:
        raise BadInput(f"edit {number}: oldText not found in {shown}", nearest(plain, old))
    count, at = 1, start
    while (at := plain.find(old, at + 1)) >= 0 and count < 1000:
        count += 1
    if count > 1:
        raise BadInput(
            f"edit {number}: oldText matches {count} times (must be unique) in {shown}",
            "Add lines around it.",
        )
    return start


def _splice(body: str, plain: str, spans: Sequence[tuple[int, int, str]]) -> str:
    """The body with the spans of `plain` replaced."""
    returns: list[int] = []  # where, in `plain`, a carriage return was taken out
    if len(body) != len(plain):
        at = body.find("\r\n")
        while at >= 0:
            returns.append(at - len(returns))
            at = body.find("\r\n", at + 2)
    mostly = "\r\n" if len(returns) * 2 > plain.count("\n") else "\n"
    feeds = set(returns)
    out: list[str] = []
    at = 0
    for start, end, new in spans:
        # A return taken out just before `start` belongs to the line feed at `start`.
        begin = start + bisect_right(returns, start - 1)
        finish = end + bisect_right(returns, end - 1)
        inside = plain.find("\n", start, end)
        ending = mostly if inside < 0 else "\r\n" if inside in feeds else "\n"
        out += (body[at:begin], new.replace("\n", ending) if ending != "\n" else new)
        at = finish
    out.append(body[at:])
    return "".join(out)


def _changes(plain: str, spans: Sequence[tuple[int, int, str]]) -> list[Change]:
    """The replacements as changes of whole lines."""
    found: list[Change] = []
    line = 0  # the line that `seen` is in
    seen = 0
    at = 0
    while at < len(spans):
        start = plain.rfind("\n", 0, spans[at][0]) + 1
        line += plain.count("\n", seen, start)
        seen = start
        new: list[str] = []
        position = start
        while True:
            begin, end, text = spans[at]
            new += (plain[position:begin], text)
            position = end
            stop = plain.find("\n", end)
            stop = len(plain) if stop < 0 else stop
            at += 1
            if at == len(spans) or spans[at][0] > stop:
                break
        new.append(plain[position:stop])
        old_lines = plain[start:stop].split("\n")
        found.append(trim(line, old_lines, "".join(new).split("\n")))
    return found
