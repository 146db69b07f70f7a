"""One question at a terminal: shown whole, page by page, and then answered.

Nothing can be allowed before its last page was on the screen. An answer for always names its
scope: the menu is made of what the question offers.
"""

import contextlib
import os
import sys
from typing import NamedTuple, TextIO

from dragoman.engine import shown
from dragoman.engine.ask import NOBODY, Ask, Verdict
from dragoman.engine.visible import many, visible

_HELD = 4  # lines of the screen that a page leaves free


def put(text: str, stream: TextIO) -> None:
    """Print all of it: a terminal that does not block would lose what it has no room for."""
    with contextlib.suppress(OSError, ValueError):  # no file behind it
        os.set_blocking(stream.fileno(), True)
    stream.write(text)
    stream.flush()


class Decision(NamedTuple):
    """What was decided; `skip` leaves the question to others."""

    verdict: Verdict
    text: str = ""
    scope: str = ""
    lasts: str = ""
    skip: bool = False
    comment: str = ""


class Dialogue:
    """What is printed next, and what a typed line means."""

    def __init__(
        self, ask: Ask, size: tuple[int, int] | None = None, *, may_skip: bool = False
    ) -> None:
        """`size`: columns and lines of the screen; None when it has no end."""
        self.ask = ask
        self._may_skip = may_skip
        self._pages = pages(head(ask) + body(ask), size)
        self._at = 0
        self._choosing = False
        self._options = shown.options(ask)

    def prompt(self) -> str:
        """What to print before the next line is typed."""
        if self._choosing:
            rows = "".join(f"\n  {n}. {words}" for n, (words, _, _) in enumerate(self._options, 1))
            return f"  always:{rows}\n  number, or Enter to go back: "
        page = ""
        if self._at < len(self._pages):
            page = "\n".join(self._pages[self._at]) + "\n"
            self._at += 1
        left = self._pages[self._at :]
        if left:
            lines = sum(len(one) for one in left)
            return f"{page}  ({many(lines, 'more line')}) [Enter] go on, [e]nd: all of it, [n]o: "
        if self.ask.kind == "question":
            return f"{page}> "
        skip = ", [s]kip" if self._may_skip else ""
        return f"{page}  [y]es, [a]lways…, [n]o{skip}: "

    def typed(self, said: str) -> Decision | None:
        """What a line decides; None: print the next prompt."""
        word = said.strip().lower()
        if self._choosing:
            return self._chosen(word)
        if self.ask.kind == "question":
            return self._replied(said.strip())
        if word in ("n", "no"):
            return Decision("deny")
        if self._may_skip and word in ("s", "skip"):
            return Decision("cancelled", skip=True)
        if self._at < len(self._pages):
            if word in ("e", "end"):
                rest = [line for page in self._pages[self._at :] for line in page]
                self._pages = [*self._pages[: self._at], rest]
            elif word:
                self._at -= 1  # not before all of it was seen: the same page again
            return None
        if word in ("y", "yes"):
            return Decision("allow")
        if word in ("a", "always"):
            if not self._options:
                return Decision("allow_always")  # the host says that it is for this time only
            self._choosing = True
        else:
            self._at = len(self._pages) - 1  # not understood: asked again
        return None

    def _chosen(self, word: str) -> Decision | None:
        self._choosing = False
        if word.isdecimal() and 0 < int(word) <= len(self._options):
            _, scope, lasts = self._options[int(word) - 1]
            return Decision("allow_always", scope=scope.id, lasts=lasts)
        return None

    def _replied(self, said: str) -> Decision | None:
        if self._at < len(self._pages):
            return None
        choices = self.ask.choices
        if said.isdecimal() and 0 < int(said) <= len(choices):
            return Decision("answer", choices[int(said) - 1])
        if said:
            return Decision("answer", said)
        self._at = len(self._pages) - 1
        return None


def by_rule(ask: Ask, rule: str) -> tuple[Decision, str]:
    """What is decided without a person, and the line that says so (empty: there is none).

    The rule is "all", "none", or "nobody": none was given, and nobody sits here.
    """
    if ask.kind == "question":
        if not ask.choices or rule != "all":
            return Decision("cancelled"), ""
        title, choice = visible(ask.title), visible(ask.choices[0])
        return Decision("answer", ask.choices[0]), f"? {title}  {choice} (nobody is asked here)"
    title = f"? {shown.line(ask)[0]}"
    if rule == "all":
        return Decision("allow"), f"{title}  yes (nobody is asked here)"
    if rule == "none":
        return Decision("deny"), f"{title}  no (--approve none)"
    said = f"{title}  no, {NOBODY} (use --approve all to allow it)"
    return Decision("deny", comment=NOBODY), said


def screen_size() -> tuple[int, int] | None:
    """Columns and lines of the terminal that questions are asked at; None when it is none."""
    if not sys.stderr.isatty():
        return None
    size = os.get_terminal_size(sys.stderr.fileno())
    return (size.columns, size.lines) if size.lines else None


def head(ask: Ask) -> list[str]:
    risk = f" ({ask.risk} risk)" if ask.risk else ""
    return [f"? {line}" if n == 0 else f"  {line}" for n, line in
            enumerate((visible(ask.title) + risk).split("\n"))]  # fmt: skip


def body(ask: Ask) -> list[str]:
    """All that is asked, in lines."""
    text = shown.whole(ask)
    lines = [f"  {line}" for line in text.split("\n")] if text else []
    for number, choice in enumerate(ask.choices, 1):
        lines.append(f"  {number}. {visible(choice)}")
    return lines


def pages(lines: list[str], size: tuple[int, int] | None) -> list[list[str]]:
    """The lines in pages that fit the screen, long lines counted as often as they wrap."""
    if size is None:
        return [lines]
    columns, height = max(size[0], 20), max(size[1] - _HELD, 5)
    found: list[list[str]] = [[]]
    used = 0
    for line in lines:
        for piece in _wrapped(line, columns, height):
            rows = max(1, -(-len(piece) // columns))
            if used + rows > height and found[-1]:
                found.append([])
                used = 0
            found[-1].append(piece)
            used += rows
    return found


def _wrapped(line: str, columns: int, height: int) -> list[str]:
    """A line that is longer than a whole page, in pieces of a page."""
    most = columns * (height - 1)
    return [line[at : at + most] for at in range(0, len(line), most)] or [""]
