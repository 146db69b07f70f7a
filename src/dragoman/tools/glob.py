"""The tool `glob`: files by the pattern of their path."""

import os
import re
from collections.abc import Callable, Collection, Iterator
from functools import cache
from typing import Any, NamedTuple

import msgspec

from dragoman.engine.content import Detail, Location, Text
from dragoman.engine.faults import BadInput
from dragoman.engine.ports import Outcome, ToolEnv
from dragoman.holding import Holder
from dragoman.policy.paths import Boundary

from . import told, trees
from .args import brief, decode
from .disk import BoundsOf
from .ls import open_directory
from .ripgrep import RULED, Tree, names, only, ruled
from .trees import Above, Verdicts, modified, rules_above, shown, translated, walk, way_to
from .work import Halt, in_thread

MAX_RESULTS = 1000
_SECONDS = 20.0


class GlobArgs(msgspec.Struct):
    pattern: str
    path: str = "."
    ignored: bool = False


class Glob(Holder):
    """Finds files below a directory."""

    spec = told.GLOB

    _bounds: BoundsOf

    def summary(self, args: dict[str, Any]) -> str:
        return f"Find {brief(args.get('pattern', '?'))} in {brief(args.get('path', '.'))}"

    async def run(self, args: dict[str, Any], env: ToolEnv) -> Outcome:
        asked = decode(GlobArgs, args, {"glob": "pattern", "directory": "path", "dir": "path"})
        bounds = self._bounds(env)
        base, pattern = _split(asked)
        path = bounds.resolve(base)
        only_folders = asked.pattern.rstrip().endswith("/")
        patterns = [tuple(p.split("/")) for p in alternatives(pattern)]
        wanted = _Wanted(bounds, path, base, patterns, asked.ignored)
        lines = "" if only_folders else await wanted.search()
        lines = lines or await wanted.search(folders=True) or "[nothing matches]"
        return Outcome((Text(lines),), detail=Detail(locations=(Location(path),)))


def _split(asked: GlobArgs) -> tuple[str, str]:
    """Where to start, and the pattern below; an absolute pattern brings its own start."""
    pattern = asked.pattern.strip()
    if not pattern:
        raise BadInput("pattern is required")
    if "\0" in pattern:
        raise BadInput("pattern: it cannot contain a NUL character")
    base = asked.path or "."
    parts = pattern.split("/")
    fixed: list[str] = []
    while len(parts) > 1 and not any(char in parts[0] for char in "*?[{"):
        fixed.append(parts.pop(0))
    if fixed:
        prefix = "/".join(fixed) or "/"
        base = prefix if prefix.startswith(("/", "~")) else os.path.join(base, prefix)
    return base, "/".join(part for part in parts if part) or "*"


def alternatives(pattern: str) -> list[str]:
    """The patterns that braces stand for; raises BadInput when they are too many."""
    found = trees.alternatives(pattern)
    if not found:
        raise BadInput("pattern: it has too many alternatives")
    return found


def matches(path: str, pattern: tuple[str, ...]) -> bool:
    """Whether a path matches a pattern given by its parts, however many ** it has."""
    parts = path.split("/")

    @cache
    def from_here(at: int, part: int) -> bool:
        if part == len(pattern):
            return at == len(parts)
        if pattern[part] == "**":
            return from_here(at, part + 1) or (at < len(parts) and from_here(at + 1, part))
        return (
            at < len(parts)
            and re.fullmatch(translated(pattern[part]), parts[at], re.DOTALL) is not None
            and from_here(at + 1, part + 1)
        )

    return from_here(0, 0)


def _matcher(patterns: list[tuple[str, ...]]) -> Callable[[str], object]:
    """One expression for all: names are many, patterns are few."""
    if any(pattern.count("**") > 2 for pattern in patterns):
        return lambda path: any(matches(path, pattern) for pattern in patterns)
    return re.compile("|".join(map(_expression, patterns)), re.DOTALL).fullmatch


class _Wanted:
    """One search: where, for what."""

    def __init__(
        self,
        bounds: Boundary,
        top: str,
        shown: str,
        patterns: list[tuple[str, ...]],
        ignored: bool,
    ) -> None:
        self.bounds = bounds
        self.top = top
        self.shown = shown
        self.patterns = patterns
        self.ignored = ignored
        self.matches = _matcher(patterns)
        self.named = re.compile("|".join(f"(?:{translated(p[-1])})" for p in patterns), re.DOTALL)
        self.deep = max(len(p) if "**" not in p else 1 << 16 for p in patterns)

    async def search(self, *, folders: bool = False) -> str:
        """The files that match, one to a line, or the folders; empty when there are none."""
        opened: list[int] = []
        try:
            denied, above = await in_thread(lambda halt: self._open(opened))
            named = None
            last: list[str] = []
            if self.deep > 1:  # a single folder needs no other program
                if not folders and (last := only(parts[-1] for parts in self.patterns)):
                    last.append(RULED)
                tree = Tree(opened[0], self.ignored, denied, above.repository)
                named = await names(tree, ["--files", *last], _SECONDS)
            known = ruled(named, denied) if named is not None and last else None
            look = _Look(opened[0], frozenset(denied), above, folders, known)
            return await in_thread(lambda halt: self._found(look, named, halt), seconds=_SECONDS)
        finally:
            for fd in opened:
                os.close(fd)

    def _open(self, opened: list[int]) -> tuple[list[str], Above]:
        opened.append(open_directory(self.bounds, self.top, self.shown))
        above = Above() if self.ignored else rules_above(self.top)
        return self.bounds.withheld(self.top)[0], above

    def _found(self, look: "_Look", named: list[str] | None, halt: Halt) -> str:
        found: list[tuple[int, str]] = []
        verdicts = (
            None if named is None or self.ignored else Verdicts(look.fd, look.above, look.ruled)
        )
        files = self._walked(look, halt) if named is None else iter(named)
        for number, path in enumerate(_folders(files) if look.folders else files):
            if number % 256 == 0 and _over(halt):
                break
            if path in look.denied or not self.matches(path.rstrip("/")):
                continue
            if verdicts is not None and not verdicts.reached(path):
                continue
            try:
                when = modified(look.fd, path)
            except OSError:
                continue
            found.append((-when, path))
        found.sort()
        late = f"... [stopped after {_SECONDS:g} s; narrow the pattern or the path]"
        note = late if halt.late else ""
        return self._shown([path for _, path in found], note)

    def _walked(self, look: "_Look", halt: Halt) -> Iterator[str]:
        for entry in walk(
            look.fd,
            ignored=self.ignored,
            denied=look.denied,
            above=look.above,
            named=None if look.folders else self.named.fullmatch,
        ):
            if not entry.is_dir:
                yield entry.path
            elif _over(halt):  # there may be no file for long
                return

    def _shown(self, found: list[str], note: str) -> str:
        prefix = way_to(self.top, self.bounds.cwd)
        lines = [shown(prefix + name) for name in found[:MAX_RESULTS]]
        if len(found) > MAX_RESULTS and not note:
            note = f"... [{len(found) - MAX_RESULTS} more of {len(found)} matches]"
        if note:
            lines.append(note)
        return "\n".join(lines)


class _Look(NamedTuple):
    """An open directory, and what of it is looked at."""

    fd: int
    denied: frozenset[str]
    above: Above
    folders: bool  # the directories that files lie in, instead of those
    ruled: Collection[str] | None  # the directories that have rules; None: not known


def _over(halt: Halt) -> bool:
    """Whether the time is over; raises when the caller is gone."""
    halt.check()
    return halt.late


def _folders(files: Iterator[str]) -> Iterator[str]:
    """The directories that files lie in."""
    known: set[str] = set()
    for path in files:
        folder = path.rpartition("/")[0]
        while folder and folder not in known:
            known.add(folder)
            yield folder + "/"
            folder = folder.rpartition("/")[0]


def _expression(pattern: tuple[str, ...]) -> str:
    """A pattern as an expression over whole paths."""
    out: list[str] = []
    for number, part in enumerate(pattern):
        last = number == len(pattern) - 1
        if part == "**":
            out.append(".*" if last else "(?:[^/]*/)*")
        else:
            out.append(translated(part) + ("" if last else "/"))
    return "(?:" + "".join(out) + ")"
