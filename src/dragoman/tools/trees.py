"""Walks a tree as people see it: without what .gitignore leaves out, newest names and all.

Only the standard library is used, and nothing of ours: `scan.py` runs it in a process of its own.
Directories are opened by descriptor and links are not followed, so that nothing leads outside.
"""

import errno
import os
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

# Nobody means these when they look for something, whether or not a .gitignore says so.
JUNK = frozenset(
    {".git", "node_modules", "__pycache__", ".venv", ".tox", ".mypy_cache", ".pytest_cache"}
    | {".ruff_cache", ".hg", ".svn"}
)
_RULES = 1 << 20  # bytes of one .gitignore that are read
_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_STARS = 3  # ** in one rule; with more it could cost time without end
_BLANK = (" ", "\t", "\r")
_CLASS = re.compile(r"\[([!^]?+)((?:\\.|[^\\])(?:\\.|[^\]\\])*)\]", re.DOTALL)
_IN_CLASS = re.compile(r"\\(.)|([\[&~|])", re.DOTALL)  # said by a backslash, or special to Python
_REMEMBERED = 4_096  # names
_HELD = 200  # directories on the way down that are held open; deeper ones are opened again


# What would end a line, steer a terminal, or is no text.
_ODD = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_QUOTED = re.compile('[\x00-\x1f"\\\\\x7f-\x9f\u2028\u2029\ud800-\udfff]')
_SIGNS = {"\n": "\\n", "\t": "\\t", "\r": "\\r", '"': '\\"', "\\": "\\\\"}


def shown(path: str) -> str:
    """A path as it stands on one line; an odd one in quotes, as bash reads it in $'…'."""
    return f'"{_QUOTED.sub(_escaped, path)}"' if _ODD.search(path) else path


def _escaped(found: re.Match[str]) -> str:
    sign = found.group()
    data = sign.encode("utf-8", "surrogateescape" if "\udc80" <= sign <= "\udcff" else "replace")
    return _SIGNS.get(sign) or "".join(f"\\{byte:03o}" for byte in data)


def way_to(top: str, cwd: str) -> str:
    """What is put before paths below the top, so that they lead there from a directory."""
    if top == cwd:
        return ""
    way = os.path.relpath(top, cwd) + "/"
    return f"{top}/" if way.startswith("../") else way


class IgnoreRules:
    """What one .gitignore says about names below its directory."""

    __slots__ = ("_named", "base", "groups")

    def __init__(self, text: str, base: str) -> None:
        """`base` is the directory relative to the top of the walk, with / at its end; may be ''.

        For a directory above the top it is '^' and what the top is called from there.
        """
        self.base = base
        self.groups: list[_Group] = []  # the last rule that matches counts
        self._named: dict[str, int] = {}  # the first group whose rules about names match
        waiting: list[tuple[str, bool]] = []
        negated = False
        # Other line ends than these are part of a rule.
        for line in text.split("\n"):
            made = _expression(line)
            if made is None:
                continue
            if made[0] != negated and waiting:
                self.groups.append(_grouped(negated, waiting))
                waiting = []
            negated = made[0]
            waiting.append(made[1:])
        if waiting:
            self.groups.append(_grouped(negated, waiting))
        self.groups.reverse()

    def says(self, path: str) -> bool | None:
        """Whether a path (relative to the top, / at the end of a directory) is left out."""
        if self.base.startswith("^"):
            path = self.base[1:] + path
        else:
            path = path[len(self.base) :]
        if not path.isascii():
            path = as_bytes(path)
        name = path[path.rfind("/", 0, -1) + 1 :]
        first = self._named.get(name)
        if first is None:
            first = self._by_name(name)
        for number, group in enumerate(self.groups):
            if number == first or (group.paths is not None and group.paths.fullmatch(path)):
                return not group.negated
        return None

    def _by_name(self, name: str) -> int:
        """Names come again and again in a tree: what is said of one is remembered."""
        found = len(self.groups)
        for number, group in enumerate(self.groups):
            if group.names is not None and group.names.fullmatch(name):
                found = number
                break
        if len(self._named) < _REMEMBERED:
            self._named[name] = found
        return found


class _Group(NamedTuple):
    """Rules that follow each other and say the same: leave out, or take back."""

    negated: bool
    names: re.Pattern[str] | None  # of rules without a slash: about the last name only
    paths: re.Pattern[str] | None


def _grouped(negated: bool, rules: list[tuple[str, bool]]) -> _Group:
    names = [made for made, anchored in rules if not anchored]
    paths = [made for made, anchored in rules if anchored]
    return _Group(negated, _any(names), _any(paths))


def _any(parts: list[str]) -> re.Pattern[str] | None:
    """One expression for all parts that are one."""
    good = []
    for part in parts:
        try:
            re.compile(part, re.DOTALL)
        except re.error:
            continue  # no pattern: the others still count
        good.append(part)
    return re.compile("|".join(good), re.DOTALL) if good else None


def _expression(line: str) -> tuple[bool, str, bool] | None:
    """A line of a .gitignore: whether it takes back, what it matches, whether a whole path."""
    stripped = line if line.isascii() else as_bytes(line)
    while stripped.endswith(_BLANK) and not stripped.endswith("\\ "):
        stripped = stripped[:-1]
    if not stripped or stripped.startswith("#"):
        return None
    negated = stripped.startswith("!")
    if negated:
        stripped = stripped[1:]
    only_directories = stripped.endswith("/")
    body = stripped.removesuffix("/")
    anchored = "/" in body
    body = body.removeprefix("/")
    if not body or body.count("**") > _STARS:
        return None
    # Braces are nothing special to git, but they are to rg: both ways have to find the same.
    made = "|".join(map(translated, alternatives(body) or [body]))
    return negated, f"(?:{made}){'/' if only_directories else '/?'}", anchored


def as_bytes(text: str) -> str:
    """A character for every byte: to rules, ? and [!a] stand for one byte, as they do to git."""
    return text.encode("utf-8", "surrogateescape").decode("latin-1")


def alternatives(pattern: str, most: int = 64) -> list[str]:
    """The patterns that braces stand for: `{a,b}c` is `ac` and `bc`; none: too many."""
    waiting, done = [pattern], []
    while waiting:
        text = waiting.pop(0)
        close = text.find("}")
        start = text.rfind("{", 0, close) if close >= 0 else -1
        if start < 0:
            done.append(text)
        else:
            inner = text[start + 1 : close].split(",")
            waiting += [text[:start] + part + text[close + 1 :] for part in inner]
        if len(waiting) + len(done) > most:
            return []
    return list(dict.fromkeys(done))


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
        elif char == "[" and (found := _CLASS.match(part, at)):
            inner = _IN_CLASS.sub(lambda one: re.escape(one[1] or one[2]), found[2])
            pieces[-1] += f"(?!/)[{'^' if found[1] else ''}{inner}]"
            at = found.end()
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


def rules_of(directory: int, base: str, below: str = "") -> IgnoreRules | None:
    """The rules of a directory, or of one below it; None when it has none that can be read."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    name = below + ".gitignore"
    try:
        with open(name, "rb", opener=lambda *_: os.open(name, flags, dir_fd=directory)) as file:
            found = IgnoreRules(file.read(_RULES).decode("utf-8", "replace"), base)
    except OSError:  # none, or a directory of that name
        return None
    return found if found.groups else None


class Above(NamedTuple):
    """What lies above the top of a walk."""

    rules: tuple[IgnoreRules, ...] = ()  # the outermost first
    repository: bool = True  # whether the top is in one; then others within it have their own rules


def rules_above(top: str) -> Above:
    """The rules of the directories above, up to the root of the repository when there is one."""
    found: list[IgnoreRules] = []
    directory, below = os.path.abspath(top), ""
    while not os.path.lexists(os.path.join(directory, ".git")):
        parent, name = os.path.split(directory)
        if parent == directory:
            return Above(tuple(reversed(found)), False)
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
    return Above(tuple(reversed(found)))


class TreeEntry(NamedTuple):
    """A name in the tree. `directory` is open while the walk stands here."""

    path: str  # relative to the top
    is_dir: bool
    entry: "os.DirEntry[str]"
    directory: int


def left_out(rules: Sequence[IgnoreRules], path: str) -> bool:
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
    above: Above = Above(),  # noqa: B008 (a tuple)
    named: Callable[[str], object] | None = None,
) -> Iterator[TreeEntry]:
    """All names below an open directory, but for junk and what is ignored or denied.

    `ignored`: those too. `named`: only files whose names it takes; most are done with by that.
    What cannot be read is passed over.
    """
    asked = _Asked(ignored, denied, above.repository, named)
    frames: list[_Frame] = []
    try:
        frame = _Frame(os.dup(top), "", list(above.rules))
        while True:
            frames.append(frame)
            yield from _names(frame, asked)
            following = None
            while frames and following is None:
                last = frames[-1]
                while last.below and following is None:
                    following = _entered(frames, last.below.pop())
                if following is None:
                    frames.pop().close()
            if following is None:
                return
            frame = following
    finally:
        for left in frames:
            left.close()


class _Asked(NamedTuple):
    """What a walk leaves out."""

    ignored: bool
    denied: frozenset[str]
    repository: bool
    named: Callable[[str], object] | None


class _Frame:
    """A directory on the way down."""

    __slots__ = ("below", "fd", "here", "rules")

    def __init__(self, fd: int, here: str, rules: list[IgnoreRules]) -> None:
        self.fd = fd  # -1: not open now
        self.here = here  # its path with / at the end; '' for the top
        self.rules = rules  # the outermost first; its own are added when it is read
        self.below: list[str] = []  # directories that are still to be entered

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


def _entered(frames: Sequence[_Frame], name: str) -> _Frame | None:
    """A directory in the last of the frames."""
    last = frames[-1]
    try:
        if last.fd < 0:
            held = frames[_HELD - 1]
            last.fd = opened(held.fd, last.here[len(held.here) : -1].split("/"))
        fd = os.open(name, _OPEN, dir_fd=last.fd)
    except OSError:
        return None
    if len(frames) > _HELD:
        last.close()
    return _Frame(fd, f"{last.here}{name}/", list(last.rules))


def opened(top: int, folders: Sequence[str]) -> int:
    """A directory below another, opened step by step: no link is followed, however long the way."""
    here = os.dup(top)
    for folder in folders:
        try:
            below = os.open(folder, _OPEN, dir_fd=here)
        finally:
            os.close(here)
        here = below
    return here


def modified(top: int, path: str) -> int:
    """When something below a directory was changed last. Raises OSError."""
    try:
        return os.stat(path, dir_fd=top, follow_symlinks=False).st_mtime_ns
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
    *folders, name = path.removesuffix("/").split("/")
    here = opened(top, folders)
    try:
        return os.stat(name, dir_fd=here, follow_symlinks=False).st_mtime_ns
    finally:
        os.close(here)


def _names(frame: _Frame, asked: _Asked) -> Iterator[TreeEntry]:
    fd, here, rules, below = frame.fd, frame.here, frame.rules, frame.below
    ignored, denied, repository, named = asked
    if not ignored:
        rules[:] = _with_own(fd, here, rules, repository)
    try:
        entries = os.scandir(fd)
    except OSError:
        return
    with entries:
        for entry in entries:
            name = entry.name
            is_dir = entry.is_dir(follow_symlinks=False)
            if named is not None and not is_dir and not named(name):
                continue
            path = here + name
            if name == ".git" or (denied and path in denied):
                continue
            if not ignored and (
                (is_dir and name in JUNK)
                or (rules and left_out(rules, path + "/" if is_dir else path))
            ):
                continue
            yield TreeEntry(path, is_dir, entry, fd)
            if is_dir:
                below.append(name)
    below.sort(reverse=True)


def _with_own(
    fd: int, here: str, rules: Sequence[IgnoreRules], repository: bool
) -> list[IgnoreRules]:
    """The rules for what is in an open directory: those above and its own."""
    own = rules_of(fd, here)
    # In a repository within a repository the rules of the outer one end.
    other = repository and here and rules and _exists(fd, ".git")
    kept = [] if other else list(rules)
    return kept if own is None else [*kept, own]


class Verdicts:
    """Says of single paths whether a walk would come to them."""

    def __init__(self, top: int, above: Above, ruled: Collection[str] | None = None) -> None:
        """`ruled`: the directories (with / at the end) that have rules; None: look into each."""
        self._top = top
        self._above = above
        self._ruled = ruled
        self._known: dict[str, Sequence[IgnoreRules] | None] = {}  # None: it is left out
        self._roots: dict[str, bool] = {}  # whether a repository begins in a directory

    def reached(self, path: str) -> bool:
        """Whether a file (relative to the top) is found by a walk that minds the rules."""
        here = path[: path.rfind("/") + 1]
        rules = self._inside(here)
        return rules is not None and not self._left_out(rules, path, here)

    def _inside(self, here: str) -> Sequence[IgnoreRules] | None:
        """The rules for what is in a directory, given with / at its end; '' is the top."""
        asked = [here]
        while asked[-1] and asked[-1] not in self._known:
            asked.append(_parent(asked[-1]))
        for one in reversed(asked):  # however deep it lies
            if one not in self._known:
                self._known[one] = self._rules(one)
        return self._known[here]

    def _rules(self, here: str) -> Sequence[IgnoreRules] | None:
        """Those of a directory whose parent is known."""
        rules: Sequence[IgnoreRules] | None = self._above.rules
        if here:
            parent = _parent(here)
            rules = self._known[parent]
            junk = here[len(parent) : -1] in JUNK
            if junk or (rules is not None and self._left_out(rules, here, parent)):
                rules = None
        if rules is not None and (self._ruled is None or here in self._ruled):
            own = rules_of(self._top, here, here)
            rules = rules if own is None else [*rules, own]
        return rules

    def _left_out(self, rules: Sequence[IgnoreRules], path: str, here: str) -> bool:
        """Whether rules leave out what is in a directory, as far as they reach it."""
        for one in reversed(rules):
            said = one.says(path)
            if said is not None:
                return said and not self._ends(one.base, here)
        return False

    def _ends(self, base: str, here: str) -> bool:
        """Whether a repository of its own begins on the way from rules to a directory.

        Few paths are left out of those we are given: only these are worth a look.
        """
        if not self._above.repository:
            return False
        base = "" if base.startswith("^") else base
        while len(here) > len(base):
            if here not in self._roots:
                self._roots[here] = _exists(self._top, here + ".git")
            if self._roots[here]:
                return True
            here = _parent(here)
        return False


def _parent(folder: str) -> str:
    """The directory above one; both with / at the end."""
    return folder[: folder.rfind("/", 0, -1) + 1]


def _exists(directory: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=directory, follow_symlinks=False)
    except OSError:
        return False
    return True
