"""Cuts Markdown that is still being written into pieces that will not change any more.

A piece ends at a blank line outside a code block. What has no such place (a long paragraph, a long
code block) is cut all the same, so that no piece is large: each is drawn by itself, and only when
it can be seen.
"""

import re
from typing import NamedTuple

from dragoman.holding import Holder

MOST = 4_000  # characters of one piece; a longer one is cut at a line, or at a space

_FENCE = re.compile(r"[ \t]*(?:[-*+] |\d+[.)] |> ?)*[ \t]*(`{3,}|~{3,})([^`\n]*)")
_BLANK = re.compile(r"\n[ \t]*\n(?=\S)")


class Chunk(NamedTuple):
    """A piece of an answer. `opener` is the fence that it is inside of when it begins."""

    text: str
    opener: str = ""
    tight: bool = False  # it goes on where the piece before was cut


class Splitter(Holder):
    """Takes text as it comes; `tail` is what may still change."""

    tail: str = ""
    opener: str = ""  # the fence around the beginning of the tail
    tight: bool = False

    @property
    def last(self) -> Chunk:
        return Chunk(self.tail, self.opener, self.tight)

    def feed(self, text: str) -> list[Chunk]:
        """More text; returns the pieces that are ready now."""
        self.tail += text
        tail = self.tail
        if "\n" not in tail and len(tail) <= MOST:
            return []
        ready: list[Chunk] = []
        start = at = 0
        opener, tight, inside = self.opener, self.tight, self.opener
        while (end := tail.find("\n", at)) >= 0:
            if at == start and len(tail) - start > MOST:
                place, at_blank = _quick_cut(tail, start, bool(inside))
                if place:
                    ready.append(Chunk(tail[start:place], opener, tight))
                    start = at = place
                    opener, tight = inside, not at_blank
                    continue
            line, before = tail[at : end + 1], inside
            begin, at = at, end + 1
            mark = _FENCE.match(line) if "``" in line or "~~" in line else None
            if mark is not None:
                if not inside:
                    inside = f"{mark[1]}{mark[2].strip()}"
                elif mark[1][0] == inside[0] and not mark[2].strip():
                    inside = "" if len(mark[1]) >= _ticks(inside) else inside
            if at - start > MOST and begin > start:
                ready.append(Chunk(tail[start:begin], opener, tight))
                start, opener, tight = begin, before, True
            if at - start > MOST:
                cut = _spaces(tail, start, at)
                ready += (Chunk(tail[a:b], opener, tight or a > start) for a, b in cut)
                start, opener, tight = at, inside, True
            elif not inside and not line.strip() and at < len(tail) and not tail[at].isspace():
                if tail[start:at].strip():
                    ready.append(Chunk(tail[start:at], opener, tight))
                start, opener, tight = at, "", False
        if len(tail) - start > 2 * MOST:  # one line without an end
            *whole, (begin, _) = _spaces(tail, start, len(tail))
            for a, b in whole:
                ready.append(Chunk(tail[a:b], opener, tight or a > start))
                tight = True
            start = begin
        self.tail, self.opener, self.tight = tail[start:], opener, tight
        return ready

    def end(self) -> list[Chunk]:
        """The rest, when no more comes."""
        rest = [self.last] if self.tail.strip() else []
        self.tail, self.opener, self.tight = "", "", False
        return rest


def _quick_cut(text: str, start: int, inside: bool) -> tuple[int, bool]:
    """Where a piece of a long text ends, and whether at a blank line; 0 where lines must be read.

    No fence begins or ends in it, so that its lines need not be looked at one by one.
    """
    end = start + MOST
    if text.find("```", start, end) >= 0 or text.find("~~~", start, end) >= 0:
        return 0, False
    blank = None if inside else _BLANK.search(text, start, end)
    if blank is not None and text[start : blank.end()].strip():
        return blank.end(), True
    return text.rfind("\n", start, end) + 1, False


def split(text: str) -> list[Chunk]:
    """A whole text in pieces."""
    splitter = Splitter()
    return [*splitter.feed(text), *splitter.end()]


def _ticks(opener: str) -> int:
    return len(opener) - len(opener.lstrip(opener[0]))


def _spaces(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Parts of at most `MOST` characters, cut at spaces where there are any."""
    found = []
    while end - start > MOST:
        cut = text.rfind(" ", start + MOST // 2, start + MOST) + 1 or start + MOST
        found.append((start, cut))
        start = cut
    found.append((start, end))
    return found
