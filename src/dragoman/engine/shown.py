"""A question as people read it: whole, and with nothing hidden in it.

`parts` is for surfaces that lay it out themselves, `whole` for those that print text, `line` for
lists; whoever cuts a line learns by how much, and must not answer what it has not shown.
"""

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import msgspec

from .ask import LASTING, Ask, Change, Lasts, Scope
from .visible import many, on_a_line, visible

COMMANDS = frozenset({"command", "cmd", "script"})
_PATHS = frozenset({"path", "file_path", "filePath", "filename", "file"})
_TEXTS = frozenset({"content", "contents", "text"})
_OLD = ("oldText", "old_text", "old_string", "oldString", "old_str", "search")
_NEW = ("newText", "new_text", "new_string", "newString", "new_str", "replace")
_DIFFERING = _PATHS | _TEXTS | {"edits", *_OLD, *_NEW}  # what the changes of a call say already
_COMPARED = 400  # lines of a change that are compared one by one
_CONTEXT = 3
_UNENDED = "\n\\ No newline at end of file"  # told where a change puts it there, or takes it away
PLAIN = "\u0000value"  # holds an input that is no object: no tool has an argument of this name


class Part(NamedTuple):
    """One piece of a question. `kind` says how it wants to be drawn."""

    kind: Literal["command", "diff", "text", "note"]
    label: str
    text: str


def title(ask: Ask) -> str:
    return on_a_line(ask.title)


def parts(ask: Ask) -> list[Part]:
    """All that is asked, in order."""
    found: list[Part] = []
    if ask.kind == "question":
        if ask.summary and ask.summary != ask.title:
            found.append(Part("text", "", visible(ask.summary)))
        return found
    args = ask.args or {}
    # Left out when it says no more than one of the arguments, which is shown anyway.
    if ask.summary and ask.summary.removeprefix("$ ") not in args.values():
        found.append(Part("text", "", visible(ask.summary, strict=True)))
    found += [Part("diff", _label(change), diff_of(change)) for change in ask.changes]
    for name, value in args.items():
        if not (ask.changes and name in _DIFFERING):
            found.append(_argument(name, value))
    if ask.cwd:
        found.append(Part("note", "in", on_a_line(ask.cwd)))
    if ask.reason:
        found.append(Part("note", "why", visible(ask.reason)))
    return found


def whole(ask: Ask) -> str:
    """All that is asked, as text."""
    said: list[str] = []
    for kind, label, text in parts(ask):
        if kind == "note" or "\n" not in text and kind == "text":
            said.append(f"{label}: {text}" if label else text)
        elif kind == "command":
            said.append(f"$ {text}")
        else:
            said.append(f"{label}:\n{text}" if label else text)
    return "\n".join(said)


def line(ask: Ask, room: int = 160) -> tuple[str, int]:
    """The question on one line of at most `room` characters, and how many were left out."""
    told = [title(ask)]
    for kind, label, text in parts(ask):
        if kind == "note":
            continue
        flat = on_a_line(text)
        told.append(f"$ {flat}" if kind == "command" else f"{label}: {flat}" if label else flat)
    text = " ".join(told)
    if len(text) <= room:
        return text, 0
    # Counted twice, because the count takes room as well.
    for _ in range(2):
        left = len(text) - room
        tail = f"… ({many(left, 'more character')})"
        kept = max(room - len(tail), 0)
        left = len(text) - kept
        tail = f"… ({many(left, 'more character')})"
    return text[:kept] + tail, left


def offers(ask: Ask) -> Sequence[tuple[str, Scope]]:
    """What can be remembered, with its words made safe to show."""
    return [(on_a_line(scope.words), scope) for scope in ask.scopes]


def options(ask: Ask) -> list[tuple[str, Scope, Lasts]]:
    """What can be remembered and for how long, in words."""
    return [
        (f"{words}, {LASTING[lasts]}", scope, lasts)
        for words, scope in offers(ask)
        for lasts in scope.lasts
    ]


def _label(change: Change) -> str:
    path = on_a_line(change.path)
    if change.old is None:
        return f"new file {path}"
    return f"{path}, from line {change.line}" if change.line > 1 else path


def _argument(name: str, value: object) -> Part:
    label = "input" if name == PLAIN else on_a_line(name)
    if isinstance(value, str):
        if name in COMMANDS:
            return Part("command", label, visible(value, strict=True))
        return Part("text", label, visible(value, strict=name in _PATHS))
    edits = [value] if isinstance(value, dict) else value
    if isinstance(edits, list) and edits and all(_pair(edit) for edit in edits):
        pieces = [pair for edit in edits if (pair := _pair(edit))]
        return Part("diff", label, "\n".join(_compared(old, new) for old, new in pieces))
    return Part("text", label, visible(msgspec.json.encode(value).decode(), strict=True))


def _pair(edit: object) -> tuple[str, str] | None:
    if not isinstance(edit, dict) or len(edit) != 2:
        return None
    old = next((edit[key] for key in _OLD if isinstance(edit.get(key), str)), None)
    new = next((edit[key] for key in _NEW if isinstance(edit.get(key), str)), None)
    return None if old is None or new is None else (old, new)


# --- differences ---


def diff_of(change: Change) -> str:
    """A change by lines, with `-` before what goes and `+` before what comes."""
    said = [visible(change.note)] if change.note else []
    if change.old is not None and (change.old or not change.note):
        said.append(_compared(change.old, change.new))
    else:
        said += ["+" + line for line in _lines(change.new)]
    return "\n".join(said)


def _lines(text: str) -> list[str]:
    return [visible(line) for line in text.removesuffix("\n").split("\n")] if text else []


def _ended(text: str) -> list[str]:
    """The lines of a text; what is behind its last line feed is none."""
    return text.removesuffix("\n").split("\n") if text else []


def _compared(old: str, new: str) -> str:
    before, after = _ended(old), _ended(new)
    if old and new and old.endswith("\n") != new.endswith("\n"):
        (before if new.endswith("\n") else after)[-1] += _UNENDED
    head = 0
    while head < min(len(before), len(after)) and before[head] == after[head]:
        head += 1
    tail = 0
    while tail < min(len(before), len(after)) - head and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    said: list[str] = []
    first = max(0, head - _CONTEXT)
    if first:
        said.append(f"  ({many(first, 'line stays', 'lines stay')})")
    said += [" " + visible(line) for line in before[first:head]]
    said += _between(before[head : len(before) - tail], after[head : len(after) - tail])
    end = len(before) - tail
    last = min(len(before), end + _CONTEXT)
    said += [" " + visible(line) for line in before[end:last]]
    stay = len(before) - last
    if stay:
        said.append(f"  ({many(stay, 'line stays', 'lines stay')})")
    if old == new:
        said = ["(nothing changes)"]
    return "\n".join(said)


def _between(old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    if len(old) > _COMPARED or len(new) > _COMPARED:
        yield from ("-" + visible(line) for line in old)
        yield from ("+" + visible(line) for line in new)
        return
    import difflib

    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag == "equal":
            yield from (" " + visible(line) for line in old[a:b])
        else:
            yield from ("-" + visible(line) for line in old[a:b])
            yield from ("+" + visible(line) for line in new[c:d])
