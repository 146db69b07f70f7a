"""The tool `grep`: lines that match a regular expression."""

import asyncio
import contextlib
import os
import re
import stat
import sys
from typing import Any

import msgspec

from dragoman.engine.content import Detail, Location, Text
from dragoman.engine.faults import BadInput
from dragoman.engine.ports import Outcome, ToolEnv
from dragoman.engine.visible import many
from dragoman.holding import Holder
from dragoman.policy.paths import Boundary

from . import told
from .args import brief, decode
from .disk import BoundsOf, os_fault
from .glob import alternatives
from .ripgrep import MOST, Tree, feed, only, wider
from .trees import rules_above, way_to
from .work import in_thread, started

MAX_BYTES = 51_200
_LARGEST = 16 * 1024 * 1024  # larger files are left out
_SECONDS = 20
_PIPE = 1 << 20
_PROGRAM = os.path.join(os.path.dirname(__file__), "scan.py")
# By its loader, because what is run by name is compiled anew each time.
_START = """
from importlib.machinery import SourceFileLoader
from sys import argv
about = {"__name__": "scan", "__file__": argv[1]}
exec(SourceFileLoader("scan", argv[1]).get_code("scan"), about)
about["main"]()
"""


class GrepArgs(msgspec.Struct):
    pattern: str
    path: str = "."
    glob: str = ""
    ignore_case: bool = False
    context: int = 0
    limit: int = 200
    ignored: bool = False


class _Found(msgspec.Struct):
    lines: list[str]
    matches: int
    files: int
    note: str


class Grep(Holder):
    """Searches files for a regular expression."""

    spec = told.GREP

    _bounds: BoundsOf
    seconds: int = _SECONDS

    def summary(self, args: dict[str, Any]) -> str:
        return f"Search for {brief(args.get('pattern', '?'))} in {brief(args.get('path', '.'))}"

    async def run(self, args: dict[str, Any], env: ToolEnv) -> Outcome:
        aliases = {"include": "glob", "-i": "ignore_case", "ignoreCase": "ignore_case"}
        asked = decode(GrepArgs, args, {**aliases, "regex": "pattern", "query": "pattern"})
        if not asked.pattern:
            raise BadInput("pattern is required")
        if not 0 <= asked.context <= told.MAX_CONTEXT:
            raise BadInput(f"context must be between 0 and {told.MAX_CONTEXT}")
        if asked.limit < 1:
            raise BadInput("limit must be at least 1")
        try:
            re.compile(asked.pattern)
        except (re.error, OverflowError, RecursionError) as error:
            raise BadInput(f"pattern: not a regular expression: {error}") from error
        bounds = self._bounds(env)
        path = bounds.resolve(asked.path or ".")
        opened: list[int] = []
        try:
            request = await in_thread(lambda halt: _request(bounds, path, asked, opened))
            found = await _scan(opened[0], asked, {**request, "seconds": self.seconds})
        finally:
            for fd in opened:
                os.close(fd)
        detail = Detail(locations=(Location(path),))
        if found is None:
            late = f"The search took longer than {self.seconds} s and was stopped."
            raise BadInput(late, "Use a simpler pattern, a glob or a smaller path.")
        return Outcome((Text(_shown(found)),), detail=detail)


def _request(bounds: Boundary, path: str, asked: GrepArgs, opened: list[int]) -> dict[str, Any]:
    """What to search, opened, and the request for the program that does it."""
    try:
        opened.append(bounds.open_inside(path, os.O_RDONLY))
    except OSError as error:
        raise os_fault(asked.path, error) from error
    single = not stat.S_ISDIR(os.fstat(opened[0]).st_mode)
    denied, hidden = bounds.withheld(path)
    limit = min(asked.limit, told.MAX_MATCHES)
    return {
        "fd": opened[0],
        "name": asked.path if single else "",
        "pattern": asked.pattern,
        "ignore_case": asked.ignore_case,
        "globs": alternatives(asked.glob) if asked.glob and not single else [],
        "context": asked.context,
        "limit": limit,
        "enough": f"... [stopped at {many(limit, 'match', 'matches')}]",
        "largest": _LARGEST,
        "denied": denied,
        "ignored": asked.ignored,
        "top": path,
        "prefix": "" if single else way_to(path, bounds.cwd),
        "repository": asked.ignored or single or rules_above(path).repository,
        "names": None,
        "most": MOST,
        "hidden": hidden,
    }


def _words(asked: GrepArgs, request: dict[str, Any]) -> list[str]:
    """What rg is asked for: the files that it finds something in; empty: it cannot be said."""
    pattern = wider(asked.pattern)
    if pattern is None or request["name"]:
        return []
    words = ["--files-with-matches", "--text"]
    words += ["--ignore-case"] if asked.ignore_case else ["--case-sensitive"]
    return [*words, f"--regexp={pattern}", *only(request["globs"])]


async def _scan(fd: int, asked: GrepArgs, request: dict[str, Any]) -> _Found | None:
    """Run the search in a process of its own; None when it took too long.

    What rg finds goes straight there, and is looked at while rg goes on.
    """
    import json  # what names may hold, other encoders refuse

    words = _words(asked, request)
    tree = Tree(fd, asked.ignored, request["denied"], request["repository"])
    named, given = os.pipe()
    _widen(given)
    try:
        async with started(_start(fd, named)) as process:
            assert process.stdin is not None
            request["names"] = named if words else None
            named = _closed(named)  # only it reads there: rg must not wait for us
            process.stdin.write(json.dumps(request).encode() + b"\n")
            whole = bool(words) and await feed(tree, words, request["seconds"], given, _LARGEST)
            given = _closed(given)
            async with asyncio.timeout(request["seconds"]):
                answer, errors = await process.communicate(b"1" if whole else b"0")
    except TimeoutError:
        return None
    finally:
        for end in (named, given):
            _closed(end)
    if process.returncode != 0:
        if process.returncode is None or process.returncode < 0:
            return None  # out of processor time
        reason = errors.decode("utf-8", "replace").strip().splitlines()[-1:]
        raise BadInput(f"The search failed: {' '.join(reason)}")
    return msgspec.json.decode(answer, type=_Found)


def _widen(pipe: int) -> None:
    """Room for many names, so that rg need not wait while others have the processor."""
    import fcntl  # not on every platform

    if (size := getattr(fcntl, "F_SETPIPE_SZ", None)) is not None:
        with contextlib.suppress(OSError):  # one's pipes are large enough in all
            fcntl.fcntl(pipe, size, _PIPE)


def _closed(fd: int) -> int:
    if fd >= 0:
        os.close(fd)
    return -1


async def _start(fd: int, named: int) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-S", "-X", "utf8", "-c", _START, _PROGRAM),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        pass_fds=(fd, named),
        env={},
        start_new_session=True,
    )


def _shown(found: _Found) -> str:
    if not found.lines:
        return found.note or "[nothing matches]"
    size = 0
    kept: list[str] = []
    for line in found.lines:
        size += len(line.encode("utf-8", "replace")) + 1
        if size > MAX_BYTES:
            kept.append(f"... [truncated at {MAX_BYTES} bytes; narrow the search]")
            break
        kept.append(line.encode("utf-8", "replace").decode("utf-8"))
    if found.note:
        kept.append(found.note)
    return "\n".join(kept)
