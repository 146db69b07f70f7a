"""The tool `ls`: what is in a directory."""

import os
import stat
from typing import Any

import msgspec

from dragoman.engine.content import Detail, Location, Text
from dragoman.engine.faults import BadInput
from dragoman.engine.ports import Outcome, ToolEnv
from dragoman.holding import Holder
from dragoman.policy.paths import Boundary

from . import told
from .args import brief, decode
from .disk import BoundsOf, os_fault
from .trees import shown
from .work import Halt, in_thread

_ALIASES = {"directory": "path", "dir": "path"}


class LsArgs(msgspec.Struct):
    path: str = "."
    limit: int = told.MAX_ENTRIES


class Ls(Holder):
    """Lists a directory, sorted by name."""

    spec = told.LS

    _bounds: BoundsOf

    def summary(self, args: dict[str, Any]) -> str:
        return f"List {brief(args.get('path', '.'))}"

    async def run(self, args: dict[str, Any], env: ToolEnv) -> Outcome:
        asked = decode(LsArgs, args, _ALIASES)
        if asked.limit < 1:
            raise BadInput("limit must be at least 1")
        bounds = self._bounds(env)
        path = bounds.resolve(asked.path or ".")
        lines = await in_thread(lambda halt: _list(bounds, path, asked, halt))
        return Outcome((Text(lines),), detail=Detail(locations=(Location(path),)))


def _list(bounds: Boundary, path: str, asked: LsArgs, halt: Halt) -> str:
    fd = open_directory(bounds, path, asked.path)
    try:
        names: list[str] = []
        with os.scandir(fd) as entries:
            for entry in entries:
                halt.check()
                names.append(_marked(entry))
    finally:
        os.close(fd)
    names.sort()
    limit = min(asked.limit, told.MAX_ENTRIES)
    lines = names[:limit]
    if len(names) > limit:
        lines.append(f"... [{len(names) - limit} more of {len(names)} entries; use glob to narrow]")
    return "\n".join(lines) or "[the directory is empty]"


def open_directory(bounds: Boundary, path: str, named: str) -> int:
    """Open a directory for listing; raises BadInput, Refused."""
    try:
        return bounds.open_inside(path, os.O_RDONLY | os.O_DIRECTORY)
    except NotADirectoryError as error:
        raise BadInput(f"{named} is not a directory", "Use read for a file.") from error
    except OSError as error:
        raise os_fault(named, error) from error


def _marked(entry: "os.DirEntry[str]") -> str:
    name = shown(entry.name)
    try:
        mode = entry.stat(follow_symlinks=False).st_mode
    except OSError:
        return name
    if stat.S_ISDIR(mode):
        return name + "/"
    if stat.S_ISLNK(mode):
        return name + "@"
    return name + "*" if mode & 0o111 else name
