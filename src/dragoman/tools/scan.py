"""The search behind `grep`, run as a program of its own.

A regular expression can keep the interpreter busy for hours, and no thread of the same process
could do anything meanwhile. Here it can be ended. Only the standard library is used; the request
comes as JSON on standard input, the directory as an open descriptor, the answer leaves as JSON.
"""

import gc
import json
import os
import re
import stat
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from heapq import heapify, heappop
from importlib import import_module
from importlib.machinery import SourceFileLoader
from types import ModuleType
from typing import Any


def _beside(name: str) -> ModuleType:
    """A module of this folder; the folder itself is no place to import from."""
    loader = SourceFileLoader(name, os.path.join(os.path.dirname(__file__), f"{name}.py"))
    module = ModuleType(name)
    module.__file__ = loader.path
    sys.modules[name] = module
    code = loader.get_code(name)  # compiled already, as a rule
    assert code is not None
    exec(code, module.__dict__)
    return module


trees = _beside("trees")
wide = _beside("wide")
_LOOK = 8192
_LONG = 500  # characters of a line that are shown
_PIECE = 1 << 16
_GATHER = 0.002  # seconds
_COMMON = 2_000  # files with a match, after which it is not worth while to look into all of them
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
# What looks beyond its line, or gives nothing back once taken, may find less in a whole text.
_LINE_ONLY = re.compile(r"\(\?(?!:)|\\[AZzWD]|\[\^|[*+?}]\+")


Candidate = tuple[int, str]  # a file that may have something in it: the younger, the smaller


class Sieve:
    """Tells quickly of most files that nothing is in them. It may err on the other side only."""

    def __init__(self, pattern: str, ignore_case: bool) -> None:
        self.needle = required(pattern, ignore_case).encode("utf-8", "surrogatepass")
        self.lower = ignore_case
        self.whole: re.Pattern[str] | None = None
        if not self.needle and not _LINE_ONLY.search(pattern):
            flags = re.MULTILINE | (re.IGNORECASE if ignore_case else 0)
            self.whole = re.compile(pattern, flags)

    def passes(self, data: bytes) -> bool:
        if self.needle:
            if not self.lower:
                return self.needle in data
            # Beyond ASCII there are letters with several small or large ones.
            return not data.isascii() or self.needle in data.lower()
        if self.whole is None or len(data) > _PIECE or b"\r" in data:
            return True
        return self.whole.search(data.decode("utf-8", "replace")) is not None


def required(pattern: str, ignore_case: bool) -> str:
    """The longest text that every match has in it; empty when there is none to be sure of."""
    parsed = import_module("re._parser").parse(pattern)
    if parsed.state.flags & re.IGNORECASE:
        return ""
    found = max(_runs(parsed), key=len, default="")
    if "\ufffd" in found:
        return ""  # stands for any byte that is no text
    if ignore_case:
        return found.lower() if found.isascii() else ""
    return found


def _runs(parsed: Any) -> Iterator[str]:
    """The texts of an expression that must be there, one after the other."""
    run = ""
    for what, value in parsed:
        if str(what) == "LITERAL":
            run += chr(value)
            continue
        yield run
        run = ""
        if str(what) == "SUBPATTERN" and not value[1] and not value[2]:
            yield from _runs(value[3])
    yield run


class Search:
    def __init__(self, request: dict[str, Any]) -> None:
        flags = re.IGNORECASE if request["ignore_case"] else 0
        self.expression = re.compile(request["pattern"], flags)
        self.sieve = Sieve(request["pattern"], request["ignore_case"])
        self.prefix: str = request["prefix"]  # the way from the working directory to the top
        self.wanted = _named(request["globs"], self.prefix)
        self.context: int = request["context"]
        self.limit: int = request["limit"]
        self.enough: str = request["enough"]
        self.largest: int = request["largest"]
        self.denied = frozenset(request["denied"])  # relative to the top
        self.hidden = {tuple(pair) for pair in request["hidden"]}  # device and inode
        self.lines: list[str] = []
        self.matches = 0
        self.files = 0
        self.note = ""
        self.passed_over = ""  # why the last file was not searched

    def tree(self, top: int, request: dict[str, Any]) -> None:
        """Search the newest files first; what nobody wants is not even entered."""
        above = trees.Above() if request["ignored"] else trees.rules_above(request["top"])
        found: list[Candidate] | None = None
        verdicts = None
        if request["names"] is not None:
            found = self.given(top, request)
            verdicts = None if request["ignored"] else trees.Verdicts(top, above)
        if found is None:
            found, verdicts = list(self.walked(top, above, request["ignored"])), None
        heapify(found)  # the newest few are enough, as a rule
        done: set[str] = set()
        while found:
            _, path = heappop(found)
            if path in done:
                continue  # named twice
            done.add(path)
            if verdicts is not None and not verdicts.reached(path):
                continue  # our own walk would not come here
            try:
                self.file(top, path)
            except OSError:
                continue  # gone, or not readable: nothing to find in it
            if self.stopped():
                return

    def single(self, fd: int, shown: str) -> None:
        """Search one file, which somebody named: what is not searched is told."""
        self.descriptor(fd, shown)
        if not self.stopped() and self.passed_over:
            self.note = f"[not searched: {self.passed_over}]"

    def stopped(self) -> bool:
        if self.matches >= self.limit:
            self.note = self.enough
        return bool(self.note)

    def walked(self, top: int, above: Any, ignored: bool) -> Iterator[Candidate]:
        """Looks into every file on the way, where its directory is open; when many have a match,
        the newest of the rest are enough to look into."""
        passed = 0
        for entry in trees.walk(top, ignored=ignored, denied=self.denied, above=above):
            if not entry.entry.is_file(follow_symlinks=False):
                continue
            if self.wanted is not None and not self.wanted(entry.path):
                continue
            try:
                if passed < _COMMON and not self.promising(entry.entry.name, entry.directory):
                    continue
                found = entry.entry.stat(follow_symlinks=False)
            except OSError:
                continue
            passed += 1
            yield -found.st_mtime_ns, entry.path

    def given(self, top: int, request: dict[str, Any]) -> list[Candidate] | None:
        """Those that another program names; None when it turns out that it did not name all."""
        denied, wanted, stat_of = self.denied, self.wanted, os.stat
        found: list[Candidate] = []
        room = request["most"]
        for names in _read_names(request["names"]):
            room -= sum(map(len, names))
            for path in names if room >= 0 else ():
                if path in denied or (wanted is not None and not wanted(path)):
                    continue
                try:
                    when = stat_of(path, dir_fd=top, follow_symlinks=False).st_mtime_ns
                except OSError:
                    continue
                found.append((-when, path))
        return found if sys.stdin.buffer.read(1) == b"1" and room >= 0 else None

    def promising(self, name: str, directory: int) -> bool:
        """Whether a file can have a match, by its bytes."""
        fd = os.open(name, _OPEN, dir_fd=directory)
        try:
            data = os.read(fd, _PIECE)
            if b"\0" in data[:_LOOK] and not wide.mark_of(data)[0]:
                return False
            if len(data) == _PIECE:
                found = os.fstat(fd)
                if not stat.S_ISREG(found.st_mode) or found.st_size > self.largest:
                    return False
                while piece := os.read(fd, self.largest):
                    data += piece
        finally:
            os.close(fd)
        return self.sieve.passes(wide.narrowed(data))

    def file(self, top: int, path: str) -> None:
        """Open it step by step: a link on the way is not followed."""
        *folders, name = path.split("/")
        here = trees.opened(top, folders)
        try:
            fd = os.open(name, _OPEN, dir_fd=here)
        finally:
            os.close(here)
        self.descriptor(fd, self.prefix + path)

    def descriptor(self, fd: int, shown: str) -> None:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):  # no file can be made of a directory
            return os.close(fd)
        with open(fd, "rb") as file:
            if found.st_size > self.largest:
                self.passed_over = f"{found.st_size} bytes are too many to search here: use bash"
                return
            if (found.st_dev, found.st_ino) in self.hidden:
                return
            data = wide.narrowed(file.read(self.largest))
        if b"\0" in data[:_LOOK]:
            self.passed_over = "it looks binary: use bash"
        elif self.sieve.passes(data):
            self.text(data.decode("utf-8", "replace"), shown)

    def text(self, text: str, shown: str) -> None:
        shown = trees.shown(shown)
        lines = text.split("\n")
        if lines[-1] == "":
            lines.pop()
        hits = []
        for number, line in enumerate(lines):
            if self.expression.search(line.rstrip("\r")):
                hits.append(number)
                if self.matches + len(hits) >= self.limit:
                    break
        if not hits:
            return
        self.matches += len(hits)
        self.files += 1
        last = -1
        wanted = set(hits)
        for hit in hits:
            start = max(last + 1, hit - self.context)
            if self.context and last >= 0 and start > last + 1:
                self.lines.append("--")
            for number in range(start, min(len(lines), hit + self.context + 1)):
                mark = ":" if number in wanted else "-"
                line = lines[number].rstrip("\r")
                line = line if len(line) <= _LONG else line[:_LONG] + "…"
                self.lines.append(f"{shown}{mark}{number + 1}{mark} {line}")
                last = number


def _read_names(pipe: int) -> Iterator[list[str]]:
    """Paths from a pipe, NUL at the end of each, as they come."""
    rest = b""
    while piece := os.read(pipe, _PIECE):
        whole, end, rest = (rest + piece).rpartition(b"\0")
        if end:
            named = whole.decode("utf-8", "surrogateescape").split("\0")
            yield [name.removeprefix("./") for name in named]
        if len(piece) < _PIECE // 2:
            time.sleep(_GATHER)  # whoever wakes for every name takes the processor from the finder


def _named(globs: Sequence[str], prefix: str) -> Callable[[str], object] | None:
    """Whether a path is meant: by its name, from the top, or from the working directory."""
    if not globs:
        return None
    matches = re.compile("|".join(f"(?:{_path(glob)})" for glob in globs), re.DOTALL).fullmatch
    return lambda path: matches(path) or (prefix and matches(prefix + path))


def _path(glob: str) -> str:
    """A glob as an expression over paths; without a slash it is about the name."""
    if "/" not in glob:
        return "(?:.*/)?" + str(trees.translated(glob))
    return str(trees.translated(glob.removeprefix("./").removeprefix("/")))


def main() -> None:
    gc.disable()  # nothing here refers back to itself, and it ends soon
    request = json.loads(sys.stdin.buffer.readline())
    try:
        import resource
    except ImportError:  # not on this platform; the parent watches the clock anyway
        pass
    else:
        resource.setrlimit(resource.RLIMIT_CPU, (request["seconds"] + 1, request["seconds"] + 2))
    search = Search(request)
    if request["name"]:
        search.single(request["fd"], request["name"])
    else:
        search.tree(request["fd"], request)
    answer = {
        "lines": search.lines,
        "matches": search.matches,
        "files": search.files,
        "note": search.note,
    }
    sys.stdout.buffer.write(json.dumps(answer).encode("utf-8"))


if __name__ == "__main__":
    main()
