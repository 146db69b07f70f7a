"""One thing that was said or done in a session, as readers see it."""

import re
from collections.abc import Sequence
from typing import Any, Literal

from dragoman.engine.content import Diff, Image, PlanEntry
from dragoman.engine.visible import many
from dragoman.holding import Holder

_CONTEXT = re.compile(r'\n\n<context name="([^"\n]*)">\n')
Kind = Literal["you", "said", "thought", "call", "plan", "note", "ended", "shell"]

SUMMARY = "the summary of the history"  # what is waited for while it is made short


def at_work(names: Sequence[str]) -> str:
    """The calls that run, in words; the model when there are none."""
    if len(set(names)) < 2:
        return f"{names[0]} ×{len(names)}" if len(names) > 1 else "".join(names) or "the model"
    return f"{names[0]} and {len(names) - 1} more"


class Piece(Holder):
    """One thing that was said or done. `stamp` changes with it."""

    kind: Kind
    text: str = ""
    at: int = 0
    ended_at: int = 0
    name: str = ""  # who spoke, which tool, which level
    opener: str = ""
    tight: bool = False
    grows: bool = False  # its end is still being written
    args: dict[str, Any] | None = None
    call_id: str = ""
    outcome: str = ""
    diffs: tuple[Diff, ...] = ()
    plan: tuple[PlanEntry, ...] = ()
    stamp: int = 0
    words: int = 0  # of a thought that was counted as it came


def said_by(content: tuple[Any, ...], name: str, at: int) -> Piece:
    """A prompt as a piece; what went along is named, not shown."""
    lines, along = [], []
    for block in content:
        if isinstance(block, Image):
            along.append("▣ picture")
        elif match := _CONTEXT.match(block.text):
            along.append(f"≡ {match[1]} ({_lines(block.text)})")
        else:
            lines.append(block.text)
    return Piece(
        "you", "\n".join(["".join(lines).strip("\n"), *along]).strip("\n"), at=at, name=name
    )


def _lines(context: str) -> str:
    count = context.count("\n") - 3
    return many(count, "line")
