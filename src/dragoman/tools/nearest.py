"""What an edit may have meant: the same words with other white space, or the most similar lines."""

import re
from collections.abc import Callable

from dragoman.engine.visible import many

_LINES = 20_000  # of a file that are compared
_SHOWN = 12  # lines that are shown
_LONG = 400  # characters of a line
_SIGNS = {
    **dict.fromkeys(map(ord, "\u2018\u2019\u201a\u201b\u2032\u00b4`"), "'"),
    **dict.fromkeys(map(ord, "\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb"), '"'),
    **dict.fromkeys(map(ord, "\u2010\u2011\u2012\u2013\u2014\u2015\u2212"), "-"),
    **dict.fromkeys(map(ord, "\u200b\u200c\u200d\u2060\ufeff\u00ad"), None),
}
_PLAIN = "It must match exactly, white space and indentation included. Read the file again."
_ODD = re.compile("[\udc80-\udcff]")  # bytes that are no UTF-8, as they come through a string
_NO_TEXT = (
    "The file has bytes that are no UTF-8 and are shown as \ufffd: no text that has this sign can "
    "be found. Take text around them, or use bash with the file's own encoding."
)


def nearest(text: str, wanted: str) -> str:
    """A hint for the model: how the text it wanted differs from the nearest there is."""
    if "\ufffd" in wanted and _ODD.search(text):
        return _NO_TEXT
    lines = text.split("\n")[:_LINES]
    old = wanted.strip("\n").split("\n")
    if not any(line.strip() for line in old):
        return _PLAIN
    at = _found(lines, old, str.strip)
    if at is not None:
        here = lines[at : at + len(old)]
        same = [a.rstrip() == b.rstrip() for a, b in zip(here, old, strict=False)]
        what = "white space at line ends or blank lines" if all(same) else "indentation"
        return f"It is there with other {what}, {_shown(lines, at, len(old))}"
    at = _found(lines, old, lambda line: "".join(line.split()))
    if at is not None:
        return f"It is there with other spaces within lines, {_shown(lines, at, len(old))}"
    at = _found(lines, old, _alike)
    if at is not None:
        other = _other(lines[at : at + len(old)], old)
        return f"It is there with characters that look alike{other}, {_shown(lines, at, len(old))}"
    at = _similar(lines, old)
    if at is None:
        return f"Nothing similar is there. {_PLAIN}"
    return f"The nearest text is in {_shown(lines, at, len(old))}"


def _found(lines: list[str], old: list[str], alike: Callable[[str], str]) -> int | None:
    """Where the lines are when all are made alike."""
    wanted = [alike(line) for line in old]
    have = [alike(line) for line in lines]
    first = wanted[0]
    for at in range(len(have) - len(wanted) + 1):
        if have[at] == first and have[at : at + len(wanted)] == wanted:
            return at
    return None


def _alike(line: str) -> str:
    """A line without white space, with one sign for all that look like it."""
    from unicodedata import normalize

    return "".join(normalize("NFKC", line).translate(_SIGNS).split())


def _other(here: list[str], old: list[str]) -> str:
    """The first character of the file that differs, beside what was asked for."""
    for have, want in zip(here, old, strict=False):
        for mine, yours in zip(have.strip(), want.strip(), strict=False):
            if mine != yours:
                return f" (U+{ord(mine):04X} where you have U+{ord(yours):04X})"
    return ""


def _similar(lines: list[str], old: list[str]) -> int | None:
    """Where the lines are that resemble these most."""
    from difflib import SequenceMatcher, get_close_matches

    key = max(old, key=lambda line: len(line.strip()))
    stripped = key.strip()[:_LONG]
    pool = {line.strip()[:_LONG] for line in lines if line.strip()}
    found = get_close_matches(stripped, sorted(pool)[:5_000], n=1, cutoff=0.6)
    if not found:
        return None
    places = [at for at, line in enumerate(lines) if line.strip()[:_LONG] == found[0]][:20]
    before = old.index(key)
    around = [max(0, at - before) for at in places]
    text = "\n".join(old)[:4_000]
    return max(
        around,
        key=lambda at: SequenceMatcher(
            None, text, "\n".join(lines[at : at + len(old)])[:4_000], autojunk=False
        ).quick_ratio(),
    )


def _shown(lines: list[str], at: int, count: int) -> str:
    here = lines[at : at + count]
    end = f"-{at + len(here)}" if len(here) > 1 else ""
    shown = "\n".join(line[:_LONG] for line in here[:_SHOWN])
    more = "" if len(here) <= _SHOWN else f"\n[{many(len(here) - _SHOWN, 'more line')}]"
    return f"line{'s' if end else ''} {at + 1}{end}:\n{shown}{more}"
