"""The tool `edit`: exact replacements in a text file."""

from typing import Any, NamedTuple

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
from .diff import CONTEXT, MAX_SHOWN
from .disk import BoundsOf, Content, load, replace
from .read import ALIASES
from .reads import Reads, expect, seen
from .replacing import Pair, Replaced, replace_all
from .wide import mark_of
from .work import Halt, in_thread

MAX_BYTES = 10 * 1024 * 1024
_OLD = ("oldText", "old_text", "old_string", "oldString", "old_str", "search")
_NEW = ("newText", "new_text", "new_string", "newString", "new_str", "replace")


class EditArgs(msgspec.Struct):
    path: str
    edits: list[dict[str, str]] = []


class Edited(NamedTuple):
    """What was there, what comes in its place, and the file as it was read."""

    old: str
    result: Replaced
    data: bytes
    before: Content


class Edit(Holder):
    """Replaces parts of a file."""

    spec = told.EDIT

    _bounds: BoundsOf
    _confine: Confine = msgspec.field(default_factory=Unconfined)
    _reads: Reads = msgspec.field(default_factory=Reads)

    def summary(self, args: dict[str, Any]) -> str:
        edits = args.get("edits")
        count = len(edits) if isinstance(edits, list) else 1
        return f"Edit {brief(args.get('path', '?'))} ({count} change{'' if count == 1 else 's'})"

    def touches(self, args: dict[str, Any], env: ToolEnv) -> list[str]:
        return [self._bounds(env).resolve(_asked(args)[0].path, write=True)]

    async def preview(self, args: dict[str, Any], env: ToolEnv) -> Preview:
        asked, pairs = _asked(args)
        bounds = self._bounds(env)
        path = bounds.resolve(asked.path, write=True)
        if env.files is not None:
            old = await env.files.read_text(path)
            result = replace_all(old, pairs, asked.path)
            before = old.encode("utf-8", "replace")
        else:
            edited = await in_thread(lambda halt: _edited(bounds, path, asked, pairs, halt))
            self._reads.check(env, path, edited.before.stamp, asked.path)
            result, before = edited.result, edited.before.data
        return Preview(_hunks(path, result), (seen(path, before),))

    async def run(self, args: dict[str, Any], env: ToolEnv) -> Outcome:
        asked, pairs = _asked(args)
        bounds = self._bounds(env)
        path = bounds.resolve(asked.path, write=True)
        if env.files is not None:
            old = await env.files.read_text(path)
            expect(env, path, old.encode("utf-8", "replace"), asked.path)
            result = replace_all(old, pairs, asked.path)
            await env.files.write_text(path, result.new)
        else:
            edited = await in_thread(lambda halt: _edited(bounds, path, asked, pairs, halt))
            old, result, data, before = edited
            self._reads.check(env, path, before.stamp, asked.path)
            expect(env, path, before.data, asked.path)
            await in_thread(
                lambda halt: replace(bounds, path, asked.path, data, halt, before.stamp),
                guard=self._confine.guard(bounds, path),
            )
            await in_thread(lambda halt: self._reads.wrote(env, path))
        return Outcome((Text(_clean(result.shown)),), detail=_detail(path, old, result))


def _asked(args: dict[str, Any]) -> tuple[EditArgs, list[Pair]]:
    asked = decode(EditArgs, _gathered(args), ALIASES)
    return asked, [_pair(number, edit) for number, edit in enumerate(asked.edits, 1)]


def _hunks(path: str, result: Replaced) -> tuple[Change, ...]:
    """The changed lines, with some lines around them."""
    lines = result.old_lines
    found: list[Change] = []
    for start, end, new in result.changes:
        first, last = max(0, start - CONTEXT), min(len(lines), end + CONTEXT)
        old = lines[first:last]
        made = [*lines[first:start], *new, *lines[end:last]]
        found.append(Change(path, _clean("\n".join(old)), _clean("\n".join(made)), first + 1))
    return tuple(found)


def _gathered(args: dict[str, Any]) -> dict[str, Any]:
    """The arguments with a single old and new text, by any of their names, put into `edits`."""
    given = dict(args)
    single = {key: given.pop(key) for key in (*_OLD, *_NEW) if key in given}
    if isinstance(given.get("edits"), str):
        try:
            given["edits"] = msgspec.json.decode(given["edits"])
        except (msgspec.DecodeError, RecursionError) as error:
            raise BadInput("edits: expected a list of {oldText, newText}") from error
    if single and not given.get("edits"):
        given["edits"] = [single]
    return given


def _pair(number: int, edit: dict[str, str]) -> Pair:
    old = next((edit[key] for key in _OLD if key in edit), None)
    new = next((edit[key] for key in _NEW if key in edit), None)
    if old is None:
        raise BadInput(f"edit {number}: oldText is required")
    if new is None:
        raise BadInput(f"edit {number}: newText is required")
    return old, new


def _edited(bounds: Boundary, path: str, asked: EditArgs, pairs: list[Pair], halt: Halt) -> Edited:
    content = load(bounds, path, asked.path, MAX_BYTES, halt)
    mark, encoding = mark_of(content.data)
    # Bytes that are no text survive the way through a string.
    errors = "surrogateescape" if not mark else "surrogatepass"
    encoding = encoding or "utf-8"
    try:
        old = content.data[len(mark) :].decode(encoding, errors)
    except UnicodeDecodeError as error:
        raise BadInput(f"{asked.path} begins as {encoding} and is none") from error
    if "\0" in old[:8192]:
        raise BadInput(f"{asked.path} looks binary; refusing to edit it as text")
    result = replace_all(old, pairs, asked.path)
    try:
        data = mark + result.new.encode(encoding, errors)
    except UnicodeEncodeError as error:
        raise BadInput("newText: it has a character that UTF-8 cannot encode") from error
    return Edited(old, result, data, content)


def _clean(text: str) -> str:
    """A text that can be sent as JSON whatever bytes the file had."""
    try:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    except UnicodeEncodeError:  # half signs of UTF-16
        return text.encode("utf-8", "replace").decode()


def _detail(path: str, old: str, result: Replaced) -> Detail:
    diffs: tuple[Diff, ...] = ()
    if max(len(old), len(result.new)) <= MAX_SHOWN:
        diffs = (Diff(path, _clean(old), _clean(result.new)),)
    else:  # too much to send: the changed lines only
        diffs = tuple(
            Diff(path, _clean("\n".join(result.old_lines[start:end])), _clean("\n".join(new)))
            for start, end, new in result.changes
        )
        if sum(len(diff.old or "") + len(diff.new) for diff in diffs) > 2 * MAX_SHOWN:
            diffs = ()
    return Detail(diffs=diffs, locations=(Location(path, result.first_line),))
