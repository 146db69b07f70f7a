"""Command lines of earlier versions: understood until a date, which is told.

A command, a sub-command or a flag that gets another name is written down here for at least six
months (GOVERNANCE.md). The table is looked at only when a line is not understood, so a name that is
used again for something else must not be in it. After its date a line is told what it is now.
"""

import sys
from collections.abc import Sequence
from datetime import date
from typing import NamedTuple

from .parse import Usage

_VALUED = ("--config-dir",)  # may stand between the words of a command


class Retired(NamedTuple):
    """`("sessions", "purge")`, or with a flag as its last word, `("run", "--autonomy")`."""

    words: tuple[str, ...]
    until: date
    instead: tuple[str, ...]  # the same with a flag as its last word, if `words` has one


RETIRED: tuple[Retired, ...] = ()


def renew(
    words: Sequence[str], today: date | None = None, table: Sequence[Retired] | None = None
) -> list[str] | None:
    """The line in today's words, once it was told; None when nothing of it is known from before.

    Raises Usage after the date.
    """
    for one in RETIRED if table is None else table:
        found = _renewed(list(words), one)
        if found is None:
            continue
        old, new = " ".join(one.words), " ".join(one.instead)
        if (today or date.today()) >= one.until:
            raise Usage(f"`{old}` was understood until {one.until}; it is `{new}` now")
        print(
            f"dragoman: `{old}` is `{new}` now; the old name works until {one.until}.",
            file=sys.stderr,
        )
        return found
    return None


def _renewed(words: list[str], one: Retired) -> list[str] | None:
    is_flag = one.words[-1].startswith("--")
    path = one.words[:-1] if is_flag else one.words
    places = _places(words, path)
    if places is None:
        return None
    if not is_flag:
        kept = [word for at, word in enumerate(words) if at not in places]
        return [*one.instead, *kept]
    end = words.index("--") if "--" in words else len(words)
    for at in range(places[-1] + 1 if places else 0, end):
        name, equals, value = words[at].partition("=")
        if name == one.words[-1]:
            words[at] = f"{one.instead[-1]}{equals}{value}"
            return words
    return None


def _places(words: list[str], path: tuple[str, ...]) -> list[int] | None:
    """Where the words of a command stand in a line, flags in between left out."""
    found: list[int] = []
    at = 0
    for part in path:
        while at < len(words) and words[at].startswith("-"):
            at += 2 if words[at] in _VALUED else 1
        if at >= len(words) or words[at] != part:
            return None
        found.append(at)
        at += 1
    return found
