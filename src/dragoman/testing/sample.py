"""A text that a regular expression matches, for placeholders that have to be spoken."""

import re

from .talk import TalkError

_ESCAPES = {"d": "0", "w": "a", "s": " ", "D": "x", "W": "-", "S": "x", "n": "\n", "t": "\t"}


def sample(pattern: str) -> str:
    """A short text that matches. Raises TalkError for what is too clever."""
    try:
        text, end = _branch(pattern, 0)
        while end < len(pattern):  # the other branches of `a|b`
            if pattern[end] != "|":
                raise IndexError
            _, end = _branch(pattern, end + 1)
        fits = re.fullmatch(pattern, text, re.DOTALL) is not None
    except (IndexError, re.error):
        fits, text = False, ""
    if not fits:
        raise TalkError(f"no text can be made for <re:{pattern}>")
    return text


def _branch(pattern: str, at: int) -> tuple[str, int]:
    """One branch: its text, and where it ends (at `|`, `)` or the end)."""
    made = ""
    while at < len(pattern) and pattern[at] not in "|)":
        one, at = _item(pattern, at)
        count, at = _count(pattern, at)
        made += one * count
    return made, at


def _item(pattern: str, at: int) -> tuple[str, int]:
    char = pattern[at]
    if char == "\\":
        return _ESCAPES.get(pattern[at + 1], pattern[at + 1]), at + 2
    if char == ".":
        return "x", at + 1
    if char in "^$":
        return "", at + 1
    if char == "[":
        return _member(pattern, at)
    if char == "(":
        start = at + 1
        if pattern.startswith("?:", start):
            start += 2
        made, end = _branch(pattern, start)
        while pattern[end] == "|":
            _, end = _branch(pattern, end + 1)
        return made, end + 1
    return char, at + 1


def _member(pattern: str, at: int) -> tuple[str, int]:
    end = pattern.index("]", at + 2)
    inside = pattern[at + 1 : end]
    if inside[0] == "^":
        return ("x" if "x" not in inside else "-"), end + 1
    return (_ESCAPES.get(inside[1], inside[1]) if inside[0] == "\\" else inside[0]), end + 1


def _count(pattern: str, at: int) -> tuple[int, int]:
    """How often the item before is repeated: as seldom as possible."""
    rest = pattern[at:]
    if rest[:1] in ("*", "?"):
        return 0, at + 1
    if rest[:1] == "+":
        return 1, at + 1
    found = re.match(r"\{(\d+)(,\d*)?\}", rest)
    return (int(found[1]), at + found.end()) if found else (1, at)
