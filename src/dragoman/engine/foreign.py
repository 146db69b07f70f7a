"""What a call that runs elsewhere would do to files: a hosted agent's, or one asked about from
outside. Whoever asks describes it; the files are looked at here, so that a human sees them as they
are, and an answer is about them as they were seen.
"""

import asyncio
import os
import stat
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from .ask import Change, Seen
from .ports import Preview

_PATHS = ("file_path", "path", "notebook_path", "filePath", "filename", "target_file", "abs_path")
_WHOLE = ("content", "contents", "new_content", "file_text", "newContent", "code_edit")
_OLD = ("old_string", "old_str", "oldText", "old_text", "oldString", "search")
_NEW = ("new_string", "new_str", "newText", "new_text", "newString", "replace", "new_source")
_LISTS = ("edits", "changes", "replacements")
_LARGEST = 2 * 1024 * 1024  # bytes of a file that are shown
_MOST = 64  # changes of one call that are looked at

_OTHERWISE = "(whoever asks describes this file otherwise than it is now)"
_REPLACES = "(replaces a file that is there already)"
_AWAY = "(it lies outside of the working directory: what it holds now is not shown)"
_MISSING = "(the file does not hold this text now)"


class DescribedChange(msgspec.Struct, frozen=True):
    """One change as it was described: of a part (`old` given) or of the whole file."""

    path: str
    old: str | None
    new: str
    part: bool
    every: bool = False


class File(msgspec.Struct, frozen=True):
    """A file as it is now. `text` is None when it cannot be shown, and `note` says why."""

    seen: Seen
    there: bool
    text: str | None
    note: str = ""


async def looked(args: dict[str, Any] | None, cwd: str, told: Sequence[Change] = ()) -> Preview:
    """As `look`, without holding anybody up."""
    if not told and not any(_described(args or {})):
        return Preview()
    return await asyncio.to_thread(look, args, cwd, told)


def look(args: dict[str, Any] | None, cwd: str, told: Sequence[Change] = ()) -> Preview:
    """The changes against the files as they are now; `told` are those that an agent drew itself."""
    wanted = [DescribedChange(one.path, one.old, one.new, bool(one.old)) for one in told]
    wanted = wanted or list(_described(args or {}))
    files: dict[str, File] = {}
    changes: list[Change] = []
    for one in wanted[:_MOST]:
        path = os.path.realpath(os.path.join(cwd, os.path.expanduser(one.path)))
        if path not in files:
            files[path] = _file(path, os.path.realpath(cwd))
        changes += _change(one, path, files[path])
    return Preview(tuple(changes), tuple(file.seen for file in files.values()))


def _described(args: dict[str, Any]) -> Iterator[DescribedChange]:
    """What the usual arguments of tools that write files say."""
    path = _text(args, _PATHS)
    for name in _LISTS:
        given = args.get(name)
        for one in given if isinstance(given, list) else ():
            if isinstance(one, dict):
                yield from _one({_PATHS[0]: path, **one})
    yield from _one(args)


def _one(args: dict[str, Any]) -> Iterator[DescribedChange]:
    path, old, new = _text(args, _PATHS), _text(args, _OLD), _text(args, _NEW)
    if not path or "\0" in path:
        return
    if new is not None:
        yield DescribedChange(path, old, new, bool(old), args.get("replace_all") is True)
    elif (whole := _text(args, _WHOLE)) is not None:
        yield DescribedChange(path, None, whole, False)


def _text(args: dict[str, Any], names: Sequence[str]) -> str | None:
    return next((args[name] for name in names if isinstance(args.get(name), str)), None)


def _change(one: DescribedChange, path: str, file: File) -> list[Change]:
    if not file.there:
        if not one.part:
            return [Change(path, None, one.new)]
        return [Change(path, one.old, one.new, note=_MISSING)]
    if file.text is None:
        return [Change(path, one.old or "", one.new, note=file.note)]
    if not one.part:
        # An agent that draws a new file may not know, or not say, that there is one.
        return [Change(path, file.text, one.new, note=_REPLACES if one.old is None else _OTHERWISE)]
    assert one.old is not None
    if one.old == file.text:
        return [Change(path, file.text, one.new)]
    at = file.text.find(one.old)
    if at < 0:
        return [Change(path, one.old, one.new, note=_MISSING)]
    found: list[Change] = []
    while at >= 0 and len(found) < _MOST:
        found.append(Change(path, one.old, one.new, line=file.text.count("\n", 0, at) + 1))
        at = file.text.find(one.old, at + len(one.old)) if one.every else -1
    return found


def _file(path: str, cwd: str) -> File:
    from hashlib import sha256

    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except FileNotFoundError:
        return File(Seen(path), False, None)
    except OSError as problem:
        return File(Seen(path, "?"), True, None, f"(it cannot be read: {problem.strerror})")
    try:
        about = os.fstat(fd)
        if not stat.S_ISREG(about.st_mode):
            return File(Seen(path, "?"), True, None, "(this is no ordinary file)")
        with os.fdopen(os.dup(fd), "rb") as file:
            data = file.read(_LARGEST + 1)
            sum_ = sha256(data)
            while more := file.read(1 << 20):
                sum_.update(more)
    finally:
        os.close(fd)
    seen = Seen(path, sum_.hexdigest())
    if path != cwd and not path.startswith(cwd.rstrip("/") + "/"):
        return File(seen, True, None, _AWAY)
    if len(data) > _LARGEST:
        return File(seen, True, None, f"(the file has {about.st_size:,} bytes: it is not shown)")
    if b"\0" in data:
        return File(seen, True, None, f"(changes a binary file of {len(data):,} bytes)")
    return File(seen, True, data.decode("utf-8", "replace"))
