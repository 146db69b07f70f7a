"""The tool `read`: text of any size by lines, and pictures."""

import os
from typing import Any

import msgspec

from dragoman.engine.content import Detail, Image, Location, Text, picture_type
from dragoman.engine.faults import BadInput
from dragoman.engine.ports import Outcome, ToolEnv
from dragoman.holding import Holder
from dragoman.policy.paths import Boundary

from . import told
from .args import brief, decode
from .disk import BoundsOf, Stamp, load, open_file, stamp_of
from .documents import extracted, notebook
from .nested import Nested, told_of
from .output import without_half
from .pictures import flaw
from .reads import Reads
from .wide import mark_of, narrowed
from .work import Halt, in_thread

MAX_LINES = 2000
MAX_BYTES = 51_200
MAX_IMAGE = 10 * 1024 * 1024
MAX_DOCUMENT = 32 * 1024 * 1024
_PIECE = 1 << 16
_LOOK = 8192
_PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".webp")
ALIASES = {"file_path": "path", "filePath": "path", "filename": "path", "file": "path"}


class ReadArgs(msgspec.Struct):
    path: str
    offset: int = 1
    limit: int | None = None
    column: int = 1


class Read(Holder):
    """Reads a file."""

    spec = told.READ

    _bounds: BoundsOf
    _reads: Reads = msgspec.field(default_factory=Reads)
    nested: Nested | None = None  # tells what the folders of a file say to agents

    def summary(self, args: dict[str, Any]) -> str:
        return f"Read {brief(args.get('path', '?'))}"

    async def run(self, args: dict[str, Any], env: ToolEnv) -> Outcome:
        asked = decode(ReadArgs, args, ALIASES)
        if asked.offset < 1 or asked.column < 1:
            raise BadInput("offset and column are counted from 1")
        if asked.limit is not None and asked.limit < 1:
            raise BadInput("limit must be at least 1")
        bounds = self._bounds(env)
        path = bounds.resolve(asked.path)
        detail = Detail(locations=(Location(path, asked.offset),))
        if path.lower().endswith(_PICTURES):
            picture = await in_thread(lambda halt: _picture(bounds, path, asked.path, halt))
            if picture is not None:
                note = () if env.vision else (Text("[this model cannot see images]"),)
                return Outcome((picture, *note), detail=detail)
        if path.lower().endswith((".pdf", ".ipynb")):
            shown, stamp = await self._document(bounds, path, asked)
            self._reads.saw(env, path, stamp)
            return Outcome((Text(_part(asked, shown.encode("utf-8", "replace"))),), detail=detail)
        if env.files is not None:
            whole_text = await env.files.read_text(path)
            shown = _part(asked, whole_text.encode("utf-8", "surrogatepass"))
        else:
            shown, stamp = await in_thread(lambda halt: _text(bounds, path, asked, halt))
            self._reads.saw(env, path, stamp)
        more = await told_of(self.nested, env, bounds, path)
        return Outcome((Text(shown), *more), detail=detail)

    async def _document(self, bounds: Boundary, path: str, asked: ReadArgs) -> tuple[str, Stamp]:
        found = await in_thread(lambda halt: load(bounds, path, asked.path, MAX_DOCUMENT, halt))
        if path.lower().endswith(".ipynb"):
            return notebook(found.data, asked.path), found.stamp
        return await extracted("pdf", found.data, MAX_DOCUMENT, asked.path), found.stamp


def _picture(bounds: Boundary, path: str, shown: str, halt: Halt) -> Image | None:
    """The picture in a file; None when the name says picture and the content does not."""
    fd, _ = open_file(bounds, path, shown)
    with os.fdopen(fd, "rb") as file:
        mime = picture_type(file.read(16))
    if not mime:
        return None
    data = load(bounds, path, shown, MAX_IMAGE, halt).data
    if wrong := flaw(mime, data):
        raise BadInput(f"{shown} cannot be shown as {mime}: {wrong}")
    return Image(mime, data)


def _text(bounds: Boundary, path: str, asked: ReadArgs, halt: Halt) -> tuple[str, Stamp]:
    fd, found = open_file(bounds, path, asked.path)
    lines = _Lines(asked)
    with os.fdopen(fd, "rb", buffering=0) as file:
        piece = file.read(_LOOK)
        wide = bool(mark_of(piece)[0])
        if wide:
            piece = narrowed(load(bounds, path, asked.path, MAX_DOCUMENT, halt).data)
        if b"\0" in piece[:_LOOK]:
            raise BadInput(f"{asked.path} looks binary; refusing to read as text")
        while piece and lines.feed(piece) and not wide:
            halt.check()
            piece = file.read(_PIECE)
    return lines.result(), stamp_of(found)


def _part(asked: ReadArgs, data: bytes) -> str:
    """What was asked for of a text."""
    lines = _Lines(asked)
    lines.feed(data)
    return lines.result()


class _Lines:
    """Takes a file in pieces, keeps the lines that were asked for, and knows when to stop."""

    def __init__(self, asked: ReadArgs) -> None:
        self.asked = asked
        self.wanted = min(asked.limit or MAX_LINES, MAX_LINES)
        self.skip = asked.offset - 1  # lines still to be skipped
        self.column = asked.column - 1  # bytes still to be skipped in the first line
        self.seen = 0  # line feeds so far
        self.kept = bytearray()
        self.lines = 0  # complete lines kept
        self.marker = ""
        self.any = False
        self.open = False  # the last line seen has no line feed

    def feed(self, piece: bytes) -> bool:
        """Take the next piece; False when no more is needed."""
        self.any = self.any or bool(piece)
        self.open = not piece.endswith(b"\n") if piece else self.open
        at = 0
        if self.skip:
            feeds = piece.count(b"\n")
            if feeds < self.skip or (feeds == self.skip and piece.endswith(b"\n")):
                self.skip -= feeds
                self.seen += feeds
                return True
            for _ in range(self.skip):
                at = piece.index(b"\n", at) + 1
            self.seen += self.skip
            self.skip = 0
        if self.column and not self.lines:
            end = piece.find(b"\n", at)
            step = min(self.column, (len(piece) if end < 0 else end) - at)
            at += step
            self.column = 0 if end >= 0 else self.column - step
        while at < len(piece):
            if self.lines >= self.wanted:
                if self.wanted == MAX_LINES:
                    self._stop(f"{MAX_LINES} lines", self.asked.offset + self.lines)
                return False
            end = piece.find(b"\n", at)
            stop = len(piece) if end < 0 else end + 1
            if len(self.kept) + stop - at > MAX_BYTES:
                self._full(piece[at:stop])
                return False
            self.kept += piece[at:stop]
            at = stop
            if end >= 0:
                self.lines += 1
                self.seen += 1
        return True

    def _stop(self, limit: str, offset: int, column: int = 0) -> None:
        more = f", column={column}" if column else ""
        self.marker = f"... [truncated at {limit}; read on with offset={offset}{more}]"

    def _full(self, rest: bytes) -> None:
        """No room for the rest of this line: end before the line, or inside it if it is alone."""
        start = self.kept.rfind(b"\n") + 1
        if start:
            del self.kept[start:]
            self._stop(f"{MAX_BYTES} bytes", self.asked.offset + self.lines)
            return
        self.kept += rest[: MAX_BYTES - len(self.kept)]
        del self.kept[len(without_half(bytes(self.kept))) :]
        column = self.asked.column + len(self.kept)
        self._stop(f"{MAX_BYTES} bytes", self.asked.offset, column)

    def result(self) -> str:
        text = self.kept.decode("utf-8", "replace")
        if self.marker:
            return f"{text}{'' if text.endswith(chr(10)) else chr(10)}{self.marker}"
        if text:
            return text if text.endswith("\n") else text + "\n"
        total = self.seen + self.open
        if not self.any:
            return "[the file is empty]"
        if self.lines:
            return text
        return f"[nothing there: the file has {total} line{'' if total == 1 else 's'}]"
