"""The tool `write`: a whole file at once."""

import os
from typing import Any

import msgspec

from dragoman.engine.ask import Change
from dragoman.engine.content import Detail, Diff, Location, Text
from dragoman.engine.faults import BadInput
from dragoman.engine.ports import Outcome, Preview, ToolEnv
from dragoman.holding import Holder
from dragoman.policy.paths import Boundary
from dragoman.sandbox.launch import Confine, Unconfined

from . import told
from .args import brief, decode
from .diff import MAX_SHOWN
from .disk import BoundsOf, Content, Stamp, load, replace, stamp_of
from .nested import Nested, told_of
from .read import ALIASES
from .reads import Reads, expect, seen
from .work import Halt, in_thread

MAX_BYTES = 10 * 1024 * 1024


class WriteArgs(msgspec.Struct):
    path: str
    content: str


class Write(Holder):
    """Makes a file, or replaces all that was in it."""

    spec = told.WRITE

    _bounds: BoundsOf
    _confine: Confine = msgspec.field(default_factory=Unconfined)
    _reads: Reads | None = None
    nested: Nested | None = None

    def summary(self, args: dict[str, Any]) -> str:
        size = len(str(args.get("content", "")))
        return f"Write {brief(args.get('path', '?'))} ({size} character{'' if size == 1 else 's'})"

    def touches(self, args: dict[str, Any], env: ToolEnv) -> list[str]:
        return [self._bounds(env).resolve(_asked(args)[0].path, write=True)]

    async def preview(self, args: dict[str, Any], env: ToolEnv) -> Preview:
        asked, _ = _asked(args)
        bounds = self._bounds(env)
        path = bounds.resolve(asked.path, write=True)
        if env.files is not None:
            data = await _buffer(env, path)
        else:
            found = await in_thread(lambda halt: _found(bounds, path, asked.path, halt))
            data = found.data if found is not None else None
        change = _change(path, data, asked.content)
        return Preview((change,), (seen(path, data),))

    async def run(self, args: dict[str, Any], env: ToolEnv) -> Outcome:
        asked, data = _asked(args)
        bounds = self._bounds(env)
        path = bounds.resolve(asked.path, write=True)
        if env.files is not None:
            before = await _buffer(env, path)
            expect(env, path, before, asked.path)
            old = None if before is None else before.decode()
            await env.files.write_text(path, asked.content)
        else:
            if env.seen is not None:  # a human saw what is replaced: nothing else is
                found = await in_thread(lambda halt: _found(bounds, path, asked.path, halt))
                before, stamp = (found.data, found.stamp) if found else (None, None)
                expect(env, path, before, asked.path)
                old = None if before is None else before.decode("utf-8", "replace")
            else:
                old = await in_thread(lambda halt: _old(bounds, path, asked.path, halt))
                stamp = await in_thread(lambda halt: _stamp(path))
                self._known(env, path, stamp, asked.path)
            # Judged, looked at, and now behind the same walls as a command.
            await in_thread(
                lambda halt: replace(
                    bounds, path, asked.path, data, halt, stamp, new=stamp is None
                ),
                guard=self._confine.guard(bounds, path),
            )
            if (reads := self._reads) is not None:
                await in_thread(lambda halt: reads.wrote(env, path))
        lines = asked.content.count("\n") + (not asked.content.endswith("\n") and bool(data))
        verb = "Created" if old is None else "Replaced"
        size = f"{len(data)} byte{'' if len(data) == 1 else 's'}"
        said = f"{verb} {path}: {lines} line{'' if lines == 1 else 's'}, {size}."
        diffs: tuple[Diff, ...] = ()
        if max(len(old or ""), len(asked.content)) <= MAX_SHOWN:
            diffs = (Diff(path, old, asked.content),)
        more = await told_of(self.nested, env, bounds, path)
        detail = Detail(diffs=diffs, locations=(Location(path),))
        return Outcome((Text(said), *more), detail=detail)

    def _known(self, env: ToolEnv, path: str, stamp: Stamp | None, shown: str) -> None:
        """Raise BadInput when there is a file that the session has not read as it is.

        Not asked where a human saw what is replaced.
        """
        if self._reads is not None and stamp is not None and stamp.size:
            self._reads.check(env, path, stamp, shown, must=True)


def _stamp(path: str) -> Stamp | None:
    try:
        return stamp_of(os.stat(path, follow_symlinks=False))
    except OSError:
        return None


def _asked(args: dict[str, Any]) -> tuple[WriteArgs, bytes]:
    asked = decode(WriteArgs, args, {**ALIASES, "text": "content", "contents": "content"})
    try:
        data = asked.content.encode("utf-8")
    except UnicodeEncodeError as error:
        raise BadInput("content: it has a character that UTF-8 cannot encode") from error
    if len(data) > MAX_BYTES:
        raise BadInput(f"content: {len(data)} bytes are more than the limit of {MAX_BYTES}")
    return asked, data


async def _buffer(env: ToolEnv, path: str) -> bytes | None:
    """What a client's editor has of a file; None when there is none."""
    assert env.files is not None
    if not await in_thread(lambda halt: os.path.exists(path)):
        return None
    return (await env.files.read_text(path)).encode("utf-8", "replace")


def _found(bounds: Boundary, path: str, shown: str, halt: Halt) -> Content | None:
    """The file to be replaced, whole; None when there is none."""
    if not os.path.lexists(path):
        return None
    return load(bounds, path, shown, MAX_BYTES, halt)


def _change(path: str, data: bytes | None, new: str) -> Change:
    if data is None:
        return Change(path, None, new)
    if b"\0" in data:
        return Change(path, "", new, note=f"(replaces a binary file of {len(data)} bytes)")
    return Change(path, data.decode("utf-8", "replace"), new)


def _old(bounds: Boundary, path: str, shown: str, halt: Halt) -> str | None:
    """What is in the file; None when there is no such file."""
    old: str | None = None
    if os.path.lexists(path):
        try:
            old = load(bounds, path, shown, MAX_SHOWN, halt).data.decode("utf-8", "replace")
        except BadInput as fault:
            old = f"[not shown: {fault.message}]"
            if os.path.isdir(path):
                raise
    return old
