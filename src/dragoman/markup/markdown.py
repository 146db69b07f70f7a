"""A session as Markdown."""

import re
from collections.abc import Sequence
from typing import Any

from .story import Part, facts_of, story, title_of

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|])")
_TICKS = re.compile(r"`+")
_NAMES = {"user": "", "call": "Tool call: ", "result": "Result of "}


def markdown(info: dict[str, Any], events: Sequence[dict[str, Any]]) -> str:
    """The whole document."""
    rows = [f"| {name} | {_plain(value)} |" for name, value in facts_of(info)]
    parts = [f"# {_plain(title_of(info))}", "\n".join(["| | |", "|---|---|", *rows])]
    parts += [_part(part) for part in story(events)]
    return "\n\n".join(parts) + "\n"


def _part(part: Part) -> str:
    if part.kind == "user":
        return f"## {_plain(part.title)}\n\n{_quoted(part.text)}"
    if part.kind == "agent":
        return part.text.strip()  # it is Markdown already
    if part.kind == "thought":
        return f"*Thinking:*\n\n{_quoted(part.text)}"
    title = f"**{_NAMES.get(part.kind, '')}{_plain(part.title)}**"
    if not part.text:
        return title
    return f"{title}\n\n{_fenced(part.text) if part.code else _quoted(part.text)}"


def _plain(text: str) -> str:
    """The text on one line, without any meaning to Markdown."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.strip().split("\n"))


def _fenced(text: str) -> str:
    """A code block whose fence is longer than any in the text."""
    longest = max((len(found) for found in _TICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text.rstrip()}\n{fence}"
