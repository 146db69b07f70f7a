"""One thing that was said or done in a session, as readers see it."""

from typing import Any, Literal

from dragoman.engine.content import Diff, Image, PlanEntry, text_of

Kind = Literal["you", "said", "thought", "call", "plan", "note", "ended", "shell"]


class Piece:
    """One thing that was said or done. `stamp` changes with it."""

    __slots__ = (
        "args", "at", "call_id", "diffs", "ended_at", "kind", "name", "opener", "outcome", "plan",
        "stamp", "text", "tight",
    )  # fmt: skip

    def __init__(self, kind: Kind, text: str = "", *, at: int = 0, name: str = "") -> None:
        self.kind = kind
        self.text = text
        self.at = at
        self.ended_at = 0
        self.name = name  # who spoke, which tool, which level
        self.opener = ""
        self.tight = False
        self.args: dict[str, Any] | None = None
        self.call_id = ""
        self.outcome = ""
        self.diffs: tuple[Diff, ...] = ()
        self.plan: tuple[PlanEntry, ...] = ()
        self.stamp = 0


def said_by(content: tuple[Any, ...], name: str, at: int) -> Piece:
    """A prompt as a piece; pictures are counted."""
    pictures = sum(isinstance(block, Image) for block in content)
    text = text_of(content)
    if pictures:
        text = f"{text}\n[{pictures} picture{'s' if pictures > 1 else ''}]".strip()
    return Piece("you", text, at=at, name=name)
