"""Changes of files as version 2 shows them: what was done to which path, and a Git patch."""

from collections import Counter
from collections.abc import Iterable
from difflib import SequenceMatcher
from typing import Any

Fields = dict[str, Any]
Opcode = tuple[str, int, int, int, int]
_CONTEXT = 3
_COMPARED = 2_000  # lines between the first and the last that differ; more are one change
_WORK = 16_000_000  # pairs of equal lines, times lines: half a second at worst
_QUOTED = {'"': '\\"', "\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}


def diff_of(changes: Iterable[tuple[str, str | None, str | None]]) -> Fields:
    """One `diff` of (path, before, after); None: there is no such file."""
    listed: list[Fields] = []
    patch: list[str] = []
    found = list(changes)
    for before, after in _moves(found):
        found.remove(before)
        found.remove(after)
        source, path, text = before[0], after[0], before[1] or ""
        kind = "binary" if "\0" in text else "text"
        moved = {"operation": "move", "oldPath": source, "path": path, "fileType": kind}
        listed.append(moved)
        patch.append(_renamed(source, path))
    for path, old, new in found:
        operation = "add" if old is None else "delete" if new is None else "modify"
        binary = "\0" in (old or "") or "\0" in (new or "")
        kind = "binary" if binary else "text"
        listed.append({"operation": operation, "path": path, "fileType": kind})
        patch.append(_section(path, old, new, binary))
    return {
        "type": "diff",
        "changes": listed,
        "patch": {"format": "git_patch", "text": "".join(patch)},
    }


Changed = tuple[str, str | None, str | None]


def _moves(changes: list[Changed]) -> list[tuple[Changed, Changed]]:
    """Files that went from one path to another as they were."""
    gone = {old: one for one in changes if (old := one[1]) and one[2] is None}
    pairs = []
    for one in changes:
        if one[1] is None and one[2] in gone:
            pairs.append((gone.pop(one[2]), one))
    return pairs


def _renamed(source: str, path: str) -> str:
    old, new = _quoted(source), _quoted(path)
    head = f"diff --git {old} {new}\nsimilarity index 100%\n"
    return f"{head}rename from {old}\nrename to {new}\n"


def _section(path: str, old: str | None, new: str | None, binary: bool) -> str:
    name = _quoted(path)
    before = "/dev/null" if old is None else name
    after = "/dev/null" if new is None else name
    head = f"diff --git {name} {name}\n"
    if old is None:
        head += "new file mode 100644\n"
    elif new is None:
        head += "deleted file mode 100644\n"
    if binary:
        return head + f"Binary files {before} and {after} differ\n"
    hunks = _hunks(_lines(old or ""), _lines(new or ""))
    return head + (f"--- {before}\n+++ {after}\n{hunks}" if hunks else "")


def _lines(text: str) -> list[str]:
    """Lines with their ends; only LF ends one, as Git sees it."""
    found = [line + "\n" for line in text.split("\n")]
    last = found.pop()[:-1]
    return [*found, last] if last else found


def _hunks(old: list[str], new: list[str]) -> str:
    if old == new:
        return ""
    head, tail = _same(old, new)
    start, cut = max(head - _CONTEXT, 0), max(tail - _CONTEXT, 0)
    old, new = old[start : len(old) - cut], new[start : len(new) - cut]
    out: list[str] = []
    for group in _groups(old, new, head - start, tail - cut):
        before = _range(start + group[0][1], start + group[-1][2])
        after = _range(start + group[0][3], start + group[-1][4])
        out.append(f"@@ -{before} +{after} @@\n")
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                out += (_line(" ", line) for line in old[i1:i2])
            else:
                out += (_line("-", line) for line in old[i1:i2])
                out += (_line("+", line) for line in new[j1:j2])
    return "".join(out)


def _same(old: list[str], new: list[str]) -> tuple[int, int]:
    """How many lines at the beginning and at the end are the same."""
    most = min(len(old), len(new))
    head = next((n for n in range(most) if old[n] != new[n]), most)
    rest = most - head
    return head, next((n for n in range(rest) if old[-1 - n] != new[-1 - n]), rest)


def _groups(old: list[str], new: list[str], head: int, tail: int) -> list[list[Opcode]]:
    """What differs, with its surroundings; where comparing would take long, as one change."""
    lines = max(len(old), len(new))
    before = Counter(old)
    if lines <= _COMPARED and sum(before[line] for line in new) * lines <= _WORK:
        return list(SequenceMatcher(None, old, new, False).get_grouped_opcodes(_CONTEXT))
    i, j = len(old) - tail, len(new) - tail
    parts: list[Opcode] = [
        ("equal", 0, head, 0, head),
        ("replace", head, i, head, j),
        ("equal", i, len(old), j, len(new)),
    ]
    return [[one for one in parts if one[2] > one[1] or one[4] > one[3]]]


def _range(start: int, end: int) -> str:
    size = end - start
    if size == 1:
        return f"{start + 1}"
    return f"{start + 1 if size else start},{size}"


def _line(mark: str, line: str) -> str:
    if line.endswith("\n"):
        return mark + line
    return f"{mark}{line}\n\\ No newline at end of file\n"


def _quoted(path: str) -> str:
    """A path as Git writes it: in quotes when it holds something unusual."""
    if path.isascii() and path.isprintable() and '"' not in path and "\\" not in path:
        return path
    out = []
    for char in path:
        if char in _QUOTED:
            out.append(_QUOTED[char])
        elif char.isascii() and char.isprintable():
            out.append(char)
        else:
            out += (f"\\{byte:03o}" for byte in char.encode("utf-8", "surrogateescape"))
    return f'"{"".join(out)}"'
