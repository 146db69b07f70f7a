"""The tool `glob`: files by the pattern of their path."""

import os
import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import msgspec

from dragoman.engine.content import Detail, Location, Text
from dragoman.engine.faults import BadInput
from dragoman.engine.ports import Outcome, ToolEnv, ToolSpec

from .args import brief, decode, flag, schema, text
from .bounds import Bounds, BoundsOf
from .ls import open_directory
from .ripgrep import names
from .trees import rules_above, translated, walk
from .work import Halt, in_thread

MAX_RESULTS = 1000
_SECONDS = 20.0


class GlobArgs(msgspec.Struct):
    pattern: str
    path: str = "."
    ignored: bool = False


class Glob:
    """Finds files below a directory."""

    spec = ToolSpec(
        name="glob",
        description=(
            "Find files and directories by pattern, the newest first. * and ? match within a "
            "name, ** any number of directories, {a,b} either. What .gitignore leaves out, "
            "node_modules and the like are not searched; links are not followed."
        ),
        schema=schema(
            "pattern",
            pattern=text("For example src/**/*.py"),
            path=text("Directory to start from; the working directory when left out."),
            ignored=flag("Search what is ignored too."),
        ),
        kind="search",
        repeatable=True,
    )

    def __init__(self, bounds: BoundsOf) -> None:
        self._bounds = bounds

    def summary(self, args: dict[str, Any]) -> str:
        return f"Find {brief(args.get('pattern', '?'))} in {brief(args.get('path', '.'))}"

    async def run(self, args: dict[str, Any], env: ToolEnv) -> Outcome:
        asked = decode(GlobArgs, args, {"glob": "pattern", "directory": "path", "dir": "path"})
        bounds = self._bounds(env)
        base, pattern = _split(asked)
        path = bounds.resolve(base)
        patterns = [tuple(p.split("/")) for p in alternatives(pattern)]
        wanted = _Wanted(bounds, path, base, patterns, asked.ignored)
        shown = await wanted.search()
        return Outcome((Text(shown),), detail=Detail(locations=(Location(path),)))


def _split(asked: GlobArgs) -> tuple[str, str]:
    """Where to start, and the pattern below; an absolute pattern brings its own start."""
    pattern = asked.pattern.strip()
    if not pattern or "\0" in pattern:
        raise BadInput("pattern is required")
    base = asked.path or "."
    parts = pattern.split("/")
    fixed: list[str] = []
    while len(parts) > 1 and not any(char in parts[0] for char in "*?[{"):
        fixed.append(parts.pop(0))
    if fixed:
        prefix = "/".join(fixed) or "/"
        base = prefix if prefix.startswith(("/", "~")) else os.path.join(base, prefix)
    return base, "/".join(part for part in parts if part) or "*"


def alternatives(pattern: str, limit: int = 64) -> list[str]:
    """The patterns that braces stand for: `{a,b}c` is `ac` and `bc`."""
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
        if len(waiting) + len(done) > limit:
            raise BadInput(f"pattern: it has more than {limit} alternatives")
    return list(dict.fromkeys(done))


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
        bounds: Bounds,
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
        self.deep = max(len(p) if "**" not in p else 1 << 16 for p in patterns)

    async def search(self) -> str:
        opened: list[int] = []
        try:
            denied = await in_thread(lambda halt: self._open(opened))
            named = None
            if self.deep > 1:  # a single folder needs no other program
                named = await names(
                    opened[0], ["--files"], ignored=self.ignored, denied=denied, seconds=_SECONDS
                )
            return await in_thread(
                lambda halt: self._found(opened[0], denied, named, halt), seconds=_SECONDS
            )
        finally:
            for fd in opened:
                os.close(fd)

    def _open(self, opened: list[int]) -> list[str]:
        opened.append(open_directory(self.bounds, self.top, self.shown))
        return self.bounds.withheld(self.top)[0]

    def _found(self, fd: int, denied: list[str], named: list[str] | None, halt: Halt) -> str:
        found: list[tuple[int, str]] = []
        note = ""
        files = self._walked(fd, denied) if named is None else iter(named)
        source = self._with_folders(files, frozenset(denied))
        for number, path in enumerate(source):
            if number % 256 == 0:
                halt.check()
                if halt.late:
                    note = f"... [stopped after {_SECONDS:g} s; narrow the pattern or the path]"
                    break
            if path not in denied and self.matches(path.rstrip("/")):
                try:
                    when = os.stat(path, dir_fd=fd, follow_symlinks=False).st_mtime_ns
                except OSError:
                    continue
                found.append((-when, path))
        found.sort()
        return self._shown([path for _, path in found], note)

    def _walked(self, fd: int, denied: list[str]) -> Iterator[str]:
        above = () if self.ignored else rules_above(self.top)
        for entry in walk(
            fd,
            ignored=self.ignored,
            denied=frozenset(denied),
            above=above,
            deepest=200,
        ):
            if not entry.is_dir:
                yield entry.path

    def _with_folders(self, found: Iterator[str], denied: frozenset[str]) -> Iterator[str]:
        """Files, and the directories that they lie in."""
        known: set[str] = set()
        for path in found:
            folder = path.rpartition("/")[0]
            while folder and folder not in known and folder not in denied:
                known.add(folder)
                yield folder + "/"
                folder = folder.rpartition("/")[0]
            yield path

    def _shown(self, found: list[str], note: str) -> str:
        prefix = "" if self.top == self.bounds.cwd else os.path.relpath(self.top, self.bounds.cwd)
        prefix = prefix and prefix + "/"
        if prefix.startswith("../"):
            prefix = self.top + "/"
        lines = [
            os.fsencode(prefix + name).decode("utf-8", "replace") for name in found[:MAX_RESULTS]
        ]
        if len(found) > MAX_RESULTS and not note:
            note = f"... [{len(found) - MAX_RESULTS} more of {len(found)} matches]"
        if note:
            lines.append(note)
        return "\n".join(lines) or "[nothing matches]"


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
