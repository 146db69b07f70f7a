"""A piece of the story as rows of the screen."""

import difflib
import os
from collections import Counter
from typing import Any

import msgspec
from rich.text import Text

from dragoman.engine.content import Diff
from dragoman.engine.visible import many, unpainted
from dragoman.holding import Holder

from . import prose
from .piece import Piece
from .rows import Row, beside, cut, plain, safe, wrap

GUTTER = 2
_OUTPUT_LINES = 6
_HEAD_LINES = 6  # that the first line of what a call does may fill in a closed card
_SCRIPT_LINES = 20  # of a command that is shown in a closed card
_DIFF_LINES = 40
_MOST_LINES = 2_000  # of one opened card; the rest is in the export
_LONGEST_COPY = 10_000  # characters of one line of output that are copied
_PAIRS = 50_000  # equal lines in two files; with more, lines that are everywhere are not compared
_WRITTEN = 4_000  # characters of a thought that are shown while it is being thought
_MARKS = {
    "": ("○", "dim"),
    "running": ("◐", "yellow"),
    "done": ("●", "green"),
    "failed": ("✗", "red"),
    "denied": ("⊘", "red"),
    "cancelled": ("⊘", "yellow"),
    "unknown": ("?", "yellow"),
}
_NO_GUTTER = Text("  ")


class Look(Holder):
    """What the reader has chosen to see."""

    open_thoughts: bool = False
    open_all: bool = False
    open_calls: set[int] = set()  # ids of pieces that were opened one by one

    def opened(self, piece: Piece) -> bool:
        return self.open_all != (id(piece) in self.open_calls)


def estimate(piece: Piece, width: int) -> int:
    """Roughly how many rows a piece needs; the truth is known when it is drawn."""
    text = piece.text
    if piece.kind == "said":
        return text.count("\n") + len(text) // max(width, 10) + 1 + (not piece.tight)
    if piece.kind == "you":
        return text.count("\n") + len(text) // max(width, 10) + 2
    if piece.kind == "call":
        return 2 + min(text.count("\n") + bool(text), _OUTPUT_LINES + 1)
    if piece.kind == "plan":
        return len(piece.plan) + 2
    return 2


def rows(piece: Piece, width: int, look: Look) -> list[Row]:
    """The rows of a piece, with a blank one before where it begins something."""
    drawn = _PAINTERS[piece.kind](piece, max(width - GUTTER, 8), look)
    return drawn if piece.tight or not drawn else [Row(Text(""), ""), *drawn]


def _you(piece: Piece, width: int, look: Look) -> list[Row]:
    text = Text(safe(piece.text), "bold")
    found = beside(wrap(text, width), Text("› ", "bold cyan"), _NO_GUTTER)
    said = piece.name and f"from {piece.name}"
    if piece.outcome == "steered":
        said = f"{said}, into the running turn" if said else "into the running turn"
    if said:
        found.append(Row(Text(cut(f"  {' '.join(safe(said).split())}", width + GUTTER), "dim"), ""))
    return found


def _said(piece: Piece, width: int, look: Look) -> list[Row]:
    drawn = prose.rows(piece.text, width, piece.opener, grows=piece.grows)
    return beside(drawn, _NO_GUTTER, _NO_GUTTER)


def _thought(piece: Piece, width: int, look: Look) -> list[Row]:
    if not look.open_thoughts:
        verb = "thought" if piece.outcome else "thinking"
        words = piece.words or len(piece.text.split())
        return [
            Row(Text(cut(f"∴ {verb}, {many(words, 'word')}", width + GUTTER), "dim italic"), "")
        ]
    text = piece.text
    if piece.grows and len(text) > _WRITTEN:
        text = f"… {text[-_WRITTEN:].partition(' ')[2]}"
    body = wrap(Text(safe(text.strip()), "dim italic"), width)
    return beside(body, Text("∴ ", "dim"), _NO_GUTTER)


def _call(piece: Piece, width: int, look: Look) -> list[Row]:
    mark, style = _MARKS.get(piece.outcome, ("●", ""))
    head = Text(safe(piece.name), "bold")
    opened = look.opened(piece)
    first, _, more = safe(told(piece.name, piece.args)).partition("\n")
    room = (_MOST_LINES if opened else _HEAD_LINES) * width
    left = max(len(first) - room, 0)
    if first:
        head = Text.assemble(head, f" {first[:room]}")
    if took := _took(piece):
        head.append(f"  {took}", "dim")
    found = beside(wrap(head, width), Text(f"{mark} ", style), _NO_GUTTER)
    if left:
        found += beside([_more(left, width, opened, "character")], _NO_GUTTER, _NO_GUTTER)
    if more:
        found += _script(more, width, opened)
    bar = Text("│ ", "dim")
    if piece.diffs:
        for diff in piece.diffs:
            found += beside(
                diff_rows(diff, width, _MOST_LINES if opened else _DIFF_LINES), bar, bar
            )
        return found
    found += beside(_output(piece, width, opened), bar, bar)
    return found


def _script(text: str, width: int, whole: bool) -> list[Row]:
    """The further lines of a command."""
    lines = text.split("\n")
    room = _MOST_LINES if whole else _SCRIPT_LINES
    found = beside(prose.code("\n".join(lines[:room]), "", width - 2), _NO_GUTTER, _NO_GUTTER)
    if len(lines) > room:
        found += beside([_more(len(lines) - room, width, whole)], _NO_GUTTER, _NO_GUTTER)
    return found


def _took(piece: Piece) -> str:
    seconds = (piece.ended_at - piece.at) / 1000 if piece.ended_at and piece.at else 0
    return f"{seconds:.1f} s" if seconds >= 1 else ""


def _output(piece: Piece, width: int, whole: bool) -> list[Row]:
    text = piece.text
    if isinstance(command := (piece.args or {}).get("command"), str):
        text = text.removeprefix(f"$ {command}\n")  # the card's head says it
    text = text.strip("\n")
    if not text:
        return []
    style = "red" if piece.outcome == "failed" else "dim"
    # What comes last is the newest, and says why something failed.
    ending = piece.outcome in ("", "running", "failed")
    room = _MOST_LINES if whole else _OUTPUT_LINES
    shown = text.rsplit("\n", room)[-room:] if ending else text.split("\n", room)[:room]
    found: list[Row] = []
    for line in (safe(unpainted(one)) for one in shown):
        if whole:
            found += wrap(Text(line, style), width)
        else:
            found.append(Row(Text(cut(line[: 4 * width], width), style), line[:_LONGEST_COPY]))
    left = text.count("\n") + 1 - len(shown)
    if left > 0:
        row = _more(left, width, whole)
        found = [row, *found] if ending else [*found, row]
    return found


def _more(left: int, width: int, whole: bool, what: str = "line") -> Row:
    hint = f"… {many(left, f'more {what}')}{'' if whole else ', ctrl+o opens'}"
    return plain(cut(hint, width), "dim italic")


def told(name: str, args: dict[str, Any] | None) -> str:
    """What a call does, as people would say it: the command, the path, the pattern."""
    if not args:
        return ""
    if isinstance(raw := args.get(""), str):
        return raw  # what was no JSON
    for key in ("command", "pattern", "path", "file_path", "query", "url", "question", "prompt"):
        value = args.get(key)
        if isinstance(value, str) and value:
            rest = args.get("path") if key == "pattern" else None
            return f"{value} in {rest}" if isinstance(rest, str) and rest else value

    return msgspec.json.encode(args).decode()


def diff_rows(diff: Diff, width: int, most: int = _MOST_LINES) -> list[Row]:
    """The difference as lines with their numbers."""
    name = os.path.relpath(diff.path) if os.path.isabs(diff.path) else diff.path
    name = diff.path if name.startswith("..") else name
    old = (diff.old or "").splitlines()
    new = diff.new.splitlines()
    body: list[Row] = []
    added = removed = left = 0
    for line, style, number in _changes(old, new):
        added += style == "green"
        removed += style == "red"
        if len(body) >= most:
            left += 1
            continue
        label = f"{number:>4} " if number else "     "
        for at, row in enumerate(wrap(Text(safe(line), style), width - 5)):
            mark = Text(label if at == 0 else "     ", "dim")
            body.append(Row(Text.assemble(mark, row.shown), row.copy, row.joins))
    verb = "new file" if diff.old is None else f"+{added} −{removed}"
    head = Text(cut(safe(name), max(width - 14, 10)), "bold")
    head.append(f"  {verb}", "dim")
    found = [Row(head, name), *body]
    if left:
        found.append(_more(left, width, most == _MOST_LINES))
    return found


def _changes(old: list[str], new: list[str]) -> "list[tuple[str, str, int]]":
    """(line, style, its number in the new file or the old) of what differs, with surroundings."""
    if len(old) + len(new) > 20_000:  # comparing would take seconds
        return [(f"-{line}", "red", n) for n, line in enumerate(old, 1)] + [
            (f"+{line}", "green", n) for n, line in enumerate(new, 1)
        ]
    found: list[tuple[str, str, int]] = []
    coarse = _alike(old, new) > _PAIRS
    for group in difflib.SequenceMatcher(None, old, new, coarse).get_grouped_opcodes(3):
        if found:
            found.append(("⋯", "dim", 0))
        for tag, a, b, c, d in group:
            if tag == "equal":
                found += ((f" {line}", "", n) for n, line in enumerate(new[c:d], c + 1))
                continue
            found += ((f"-{line}", "red", n) for n, line in enumerate(old[a:b], a + 1))
            found += ((f"+{line}", "green", n) for n, line in enumerate(new[c:d], c + 1))
    return found


def _alike(old: list[str], new: list[str]) -> int:
    """How many pairs of equal lines there are: what comparing costs."""
    before = Counter(old)
    return sum(before[line] for line in new)


def _plan(piece: Piece, width: int, look: Look) -> list[Row]:
    done = sum(entry.status == "completed" for entry in piece.plan)
    found = [
        Row(
            Text.assemble(
                ("☰ ", "magenta"), ("plan", "bold"), (f" {done}/{len(piece.plan)}", "dim")
            ),
            "plan",
        )
    ]
    for entry in piece.plan:
        mark, style = {
            "completed": ("✓", "dim"),
            "in_progress": ("▸", "bold"),
        }.get(entry.status, ("·", ""))
        body = wrap(Text(safe(entry.content), style), width - 2)
        found += beside(body, Text(f"  {mark} ", "magenta"), Text("    "), (f"{mark} ", ""))
    return found


def _note(piece: Piece, width: int, look: Look) -> list[Row]:
    style = {"error": "red", "warning": "yellow"}.get(piece.name, "dim")
    mark = Text("! " if style != "dim" else "· ", style)
    return beside(wrap(Text(safe(piece.text), style), width), mark, _NO_GUTTER)


def _ended(piece: Piece, width: int, look: Look) -> list[Row]:
    if piece.name == "failed":
        return beside(
            wrap(Text(safe(f"failed: {piece.text}"), "red"), width), Text("✗ ", "red"), _NO_GUTTER
        )
    return beside([plain(piece.name, "yellow")], Text("■ ", "yellow"), _NO_GUTTER)


def _shell(piece: Piece, width: int, look: Look) -> list[Row]:
    head = Text(safe(piece.name), "bold")
    if piece.outcome == "running":
        head = Text.assemble(head, ("  runs, esc stops it", "dim"))
    elif piece.outcome not in ("done", ""):
        head = Text.assemble(head, (f"  {piece.outcome}", "red"))
    bar = Text("│ ", "dim")
    found = beside(wrap(head, width), Text("! ", "magenta"), _NO_GUTTER)
    return found + beside(_output(piece, width, look.opened(piece)), bar, bar)


_PAINTERS = {
    "you": _you,
    "said": _said,
    "thought": _thought,
    "call": _call,
    "plan": _plan,
    "note": _note,
    "ended": _ended,
    "shell": _shell,
}
