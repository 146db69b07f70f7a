"""Walks a tree as people see it: without what .gitignore leaves out, newest names and all.

Only the standard library is used, and nothing of ours: `scan.py` runs it in a process of its own.
Directories are opened by descriptor and links are not followed, so that nothing leads outside.
"""

import os
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

# Nobody means these when they look for something, whether or not a .gitignore says so.
JUNK = frozenset(
    {".git", "node_modules", "__pycache__", ".venv", ".tox", ".mypy_cache", ".pytest_cache"}
    | {".ruff_cache", ".hg", ".svn"}
)
_RULES = 1 << 20  # bytes of one .gitignore that are read
_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_STARS = 3  # ** in one rule; with more it could cost time without end
_DEEPEST = 200  # directories within each other; each is held open on the way


class Rules:
    """What one .gitignore says about names below its directory."""

    __slots__ = ("base", "groups")

    def __init__(self, text: str, base: str) -> None:
        """`base` is the directory relative to the top of the walk, with / at its end; may be ''.

        For a directory above the top it is '^' and what the top is called from there.
        """
        self.base = base
        self.groups: list[tuple[bool, re.Pattern[str]]] = []  # the last rule that matches counts
        waiting: list[str] = []
        negated = False
        for line in text.splitlines():
            made = _expression(line)
            if made is None:
                continue
            if made[0] != negated and waiting:
                self._group(negated, waiting)
                waiting = []
            negated = made[0]
            waiting.append(made[1])
        if waiting:
            self._group(negated, waiting)
        self.groups.reverse()

    def _group(self, negated: bool, parts: list[str]) -> None:
        try:
            self.groups.append((negated, re.compile("|".join(parts), re.DOTALL)))
        except re.error:  # one of them is no pattern: the others still count
            for part in parts:
                try:
                    self.groups.append((negated, re.compile(part, re.DOTALL)))
                except re.error:
                    continue

    def says(self, path: str) -> bool | None:
        """Whether a path (relative to the top, / at the end of a directory) is left out."""
        if self.base.startswith("^"):
            path = self.base[1:] + path
        else:
            path = path[len(self.base) :]
        for negated, expression in self.groups:
            if expression.fullmatch(path):
                return not negated
        return None


def _expression(line: str) -> tuple[bool, str] | None:
    """A line of a .gitignore: whether it takes back, and what it matches."""
    stripped = line.rstrip("\r\n")
    while stripped.endswith(" ") and not stripped.endswith("\\ "):
        stripped = stripped[:-1]
    if not stripped or stripped.startswith("#"):
        return None
    negated = stripped.startswith("!")
    if negated:
        stripped = stripped[1:]
    only_directories = stripped.endswith("/")
    body = stripped.rstrip("/") if only_directories else stripped
    anchored = "/" in body
    body = body.lstrip("/") if body.startswith("/") else body
    if not body or body.count("**") > _STARS:
        return None
    made = translated(body)
    start = "" if anchored else "(?:.*/)?"
    return negated, f"{start}{made}{'/' if only_directories else '/?'}"


def translated(pattern: str) -> str:
    """A glob as an expression over paths: * and ? stay within a name.

    A hostile pattern must not cost more than others: of several stars in a name all but the last
    take the first place that fits, and never another (that finds a match when there is one).
    """
    parts = pattern.split("/")
    out: list[str] = []
    for number, part in enumerate(parts):
        last = number == len(parts) - 1
        if part == "**":
            out.append(".+" if last and number else ".*" if last else "(?:.*/)?")
        else:
            out.append(_name(part) + ("" if last else "/"))
    return "".join(out)


def _name(part: str) -> str:
    """The expression of one name."""
    pieces: list[str] = [""]
    at, end = 0, len(part)
    while at < end:
        char = part[at]
        if char == "*":
            if pieces[-1] or len(pieces) == 1:
                pieces.append("")
            at += 1
        elif char == "?":
            pieces[-1] += "[^/]"
            at += 1
        elif char == "[" and (close := part.find("]", at + 2)) > 0:
            inner = part[at + 1 : close].replace("\\", "\\\\").replace("[", "\\[")
            inner = "^" + inner[1:] if inner[0] in "!^" else inner
            pieces[-1] += f"(?!/)[{inner}]"
            at = close + 1
        elif char == "\\" and at + 1 < end:
            pieces[-1] += re.escape(part[at + 1])
            at += 2
        else:
            pieces[-1] += re.escape(char)
            at += 1
    if len(pieces) == 1:
        return pieces[0]
    first, *middle, last = pieces
    return first + "".join(f"(?>[^/]*?{piece})" for piece in middle) + "[^/]*" + last


def rules_of(directory: int, base: str) -> Rules | None:
    """The rules of a directory; None when it has none that can be read."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        fd = os.open(".gitignore", flags, dir_fd=directory)
    except OSError:
        return None
    try:
        with open(fd, "rb") as file:
            found = Rules(file.read(_RULES).decode("utf-8", "replace"), base)
    except OSError:  # a directory of that name
        return None
    return found if found.groups else None


def rules_above(top: str) -> tuple[Rules, ...]:
    """The rules of the directories above, up to the root of the repository when there is one."""
    found: list[Rules] = []
    directory, below = os.path.abspath(top), ""
    while not os.path.lexists(os.path.join(directory, ".git")):
        parent, name = os.path.split(directory)
        if parent == directory:
            break
        directory, below = parent, f"{name}/{below}"
        try:
            fd = os.open(directory, _OPEN)
        except OSError:
            continue
        try:
            rules = rules_of(fd, "^" + below)
        finally:
            os.close(fd)
        if rules is not None:
            found.append(rules)
    return tuple(reversed(found))


class Entry(NamedTuple):
    """A name in the tree. `directory` is open while the walk stands here."""

    path: str  # relative to the top
    is_dir: bool
    entry: "os.DirEntry[str]"
    directory: int


def left_out(rules: Sequence[Rules], path: str) -> bool:
    """Whether the rules, the innermost first, leave a path out."""
    for one in reversed(rules):
        said = one.says(path)
        if said is not None:
            return said
    return False


def walk(
    top: int,
    *,
    ignored: bool = False,
    denied: frozenset[str] = frozenset(),
    above: tuple[Rules, ...] = (),
    deepest: int = _DEEPEST,
) -> Iterator[Entry]:
    """All names below an open directory, but for junk and what is ignored or denied.

    `ignored`: those too. What cannot be read is passed over.
    """
    frames: list[_Frame] = []
    try:
        frame = _Frame(os.dup(top), "", list(above), [])
        while True:
            frames.append(frame)
            yield from _names(frame, ignored, denied)
            following = None
            while frames and following is None:
                last = frames[-1]
                while last.below and following is None and len(frames) < deepest:
                    following = _entered(last, last.below.pop())
                if following is None:
                    os.close(frames.pop().fd)
            if following is None:
                return
            frame = following
    finally:
        for left in frames:
            os.close(left.fd)


class _Frame(NamedTuple):
    """An open directory on the way down."""

    fd: int
    here: str  # its path with / at the end; '' for the top
    rules: list[Rules]  # the outermost first; its own are added when it is read
    below: list[str]  # directories that are still to be entered


def _entered(frame: _Frame, name: str) -> _Frame | None:
    try:
        fd = os.open(name, _OPEN, dir_fd=frame.fd)
    except OSError:
        return None
    return _Frame(fd, f"{frame.here}{name}/", list(frame.rules), [])


def _names(frame: _Frame, ignored: bool, denied: frozenset[str]) -> Iterator[Entry]:
    fd, here, rules, below = frame
    if not ignored:
        own = rules_of(fd, here)
        if here and rules and _exists(fd, ".git"):
            rules.clear()  # another repository: the rules of this one end here
        if own is not None:
            rules.append(own)
    try:
        entries = os.scandir(fd)
    except OSError:
        return
    with entries:
        for entry in entries:
            name = entry.name
            path = here + name
            if path in denied or name == ".git":
                continue
            is_dir = entry.is_dir(follow_symlinks=False)
            if not ignored and (
                (is_dir and name in JUNK)
                or (rules and left_out(rules, path + "/" if is_dir else path))
            ):
                continue
            yield Entry(path, is_dir, entry, fd)
            if is_dir:
                below.append(name)
    below.sort(reverse=True)


def _exists(directory: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=directory, follow_symlinks=False)
    except OSError:
        return False
    return True
