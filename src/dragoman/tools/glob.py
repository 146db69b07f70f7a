"""The tool `glob`: files by the pattern of their path."""

import os
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

import msgspec

from dragoman.engine.content import Detail, Location, Text
from dragoman.engine.faults import BadInput
from dragoman.engine.ports import Outcome, ToolEnv, ToolSpec

from .args import brief, decode, schema, text
from .bounds import Bounds, BoundsOf
from .ls import open_directory
from .work import Halt, in_thread

MAX_RESULTS = 1000
_SECONDS = 20.0
_SKIPPED = frozenset({".git"})


class GlobArgs(msgspec.Struct):
    pattern: str
    path: str = "."


class Glob:
    """Finds files below a directory."""

    spec = ToolSpec(
        name="glob",
        description=(
            "Find files and directories by pattern, sorted by path. * and ? match within a name, "
            "** any number of directories, {a,b} either. Links are not followed, .git is left out."
        ),
        schema=schema(
            "pattern",
            pattern=text("For example src/**/*.py"),
            path=text("Directory to start from; the working directory when left out."),
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
        shown = await in_thread(
            lambda halt: _search(bounds, path, base, patterns, halt), seconds=_SECONDS
        )
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


def matches(path: tuple[str, ...], pattern: tuple[str, ...]) -> bool:
    """Whether the parts of a path match the parts of a pattern."""

    @cache
    def from_here(at: int, part: int) -> bool:
        if part == len(pattern):
            return at == len(path)
        if pattern[part] == "**":
            return from_here(at, part + 1) or (at < len(path) and from_here(at + 1, part))
        return (
            at < len(path) and fnmatchcase(path[at], pattern[part]) and from_here(at + 1, part + 1)
        )

    return from_here(0, 0)


def _search(
    bounds: Bounds, top: str, shown: str, patterns: list[tuple[str, ...]], halt: Halt
) -> str:
    fd = open_directory(bounds, top, shown)
    deep = max(len(p) if "**" not in p else 1 << 16 for p in patterns)
    found: list[str] = []
    note = ""
    try:
        for root, directories, files, _ in os.fwalk(".", dir_fd=fd, follow_symlinks=False):
            halt.check()
            here = () if root == "." else tuple(root[2:].split("/"))
            if halt.late:
                note = f"... [stopped after {_SECONDS:g} s; narrow the pattern or the path]"
                break
            for name in (*directories, *files):
                parts = (*here, name)
                if any(matches(parts, pattern) for pattern in patterns):
                    found.append("/".join(parts) + ("/" if name in directories else ""))
            if len(found) > MAX_RESULTS * 20:
                note = "... [stopped: too many matches; narrow the pattern or the path]"
                break
            directories[:] = sorted(
                name
                for name in directories
                if name not in _SKIPPED
                and len(here) + 1 < deep
                and bounds.permits(os.path.join(top, *here, name))
            )
    except RecursionError:
        note = "... [stopped: the directories are nested too deeply; start further down]"
    finally:
        os.close(fd)
    found = sorted(name for name in found if not _SKIPPED & set(name.rstrip("/").split("/")))
    shown_names = found[:MAX_RESULTS]
    prefix = "" if top == bounds.cwd else os.path.relpath(top, bounds.cwd) + "/"
    if prefix.startswith("../"):
        prefix = top + "/"
    lines = [os.fsencode(prefix + name).decode("utf-8", "replace") for name in shown_names]
    if len(found) > MAX_RESULTS and not note:
        note = f"... [{len(found) - MAX_RESULTS} more of {len(found)} matches]"
    if note:
        lines.append(note)
    return "\n".join(lines) or "[nothing matches]"
