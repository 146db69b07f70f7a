"""The search behind `grep`, run as a program of its own.

A regular expression can keep the interpreter busy for hours, and no thread of the same process
could do anything meanwhile. Here it can be ended. Only the standard library is used; the request
comes as JSON on standard input, the directory as an open descriptor, the answer leaves as JSON.
"""

import fnmatch
import json
import os
import re
import stat
import sys
from importlib.machinery import SourceFileLoader
from types import ModuleType
from typing import Any


def _beside(name: str) -> ModuleType:
    """A module of this folder; the folder itself is no place to import from."""
    loader = SourceFileLoader(name, os.path.join(os.path.dirname(__file__), f"{name}.py"))
    module = ModuleType(name)
    module.__file__ = loader.path
    sys.modules[name] = module
    exec(compile(loader.get_data(loader.path), loader.path, "exec"), module.__dict__)
    return module


trees = _beside("trees")
_LOOK = 8192
_LONG = 500  # characters of a line that are shown


class Search:
    def __init__(self, request: dict[str, Any]) -> None:
        flags = re.IGNORECASE if request["ignore_case"] else 0
        self.expression = re.compile(request["pattern"], flags)
        # Plain words are looked for in the bytes first, which is much quicker.
        plain = not flags and re.fullmatch(r"[\w /=<>\",;:@#%&~-]+", request["pattern"])
        self.needle = request["pattern"].encode() if plain else b""
        self.globs: list[str] = request["globs"]
        self.context: int = request["context"]
        self.limit: int = request["limit"]
        self.largest: int = request["largest"]
        self.denied: set[str] = set(request["denied"])  # relative to the top
        self.hidden = {tuple(pair) for pair in request["hidden"]}  # device and inode
        self.lines: list[str] = []
        self.matches = 0
        self.files = 0
        self.note = ""

    def tree(self, top: int, request: dict[str, Any]) -> None:
        """Search the newest files first; what nobody wants is not even entered."""
        files = self.candidates(top, request)
        for _, path in sorted(files, key=lambda one: (-one[0], one[1])):
            try:
                self.file(top, path)
            except OSError:
                continue  # gone, or not readable: nothing to find in it
            if self.matches >= self.limit:
                self.note = f"... [stopped at {self.limit} matches]"
                return

    def candidates(self, top: int, request: dict[str, Any]) -> list[tuple[int, str]]:
        """When each file that may be meant was changed, and its path."""
        if request["names"] is None:
            ignored = request["ignored"]
            above = () if ignored else trees.rules_above(request["top"])
            denied = frozenset(self.denied)
            found = []
            for entry in trees.walk(top, ignored=ignored, denied=denied, above=above):
                if not entry.is_dir and self.wanted(entry.path):
                    try:
                        when = entry.entry.stat(follow_symlinks=False).st_mtime_ns
                    except OSError:
                        continue
                    found.append((when, entry.path))
            return found
        found = []
        for path in request["names"]:
            if self.wanted(path) and path not in self.denied:
                try:
                    when = os.stat(path, dir_fd=top, follow_symlinks=False).st_mtime_ns
                except OSError:
                    continue
                found.append((when, path))
        return found

    def wanted(self, path: str) -> bool:
        if not self.globs:
            return True
        name = path.rpartition("/")[2]
        return any(
            fnmatch.fnmatchcase(path if "/" in glob else name, glob)
            or ("**/" in glob and fnmatch.fnmatchcase(path, glob.replace("**/", "")))
            for glob in self.globs
        )

    def file(self, top: int, path: str) -> None:
        """Open it step by step: a link on the way is not followed."""
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        *folders, name = path.split("/")
        here = os.dup(top)
        try:
            for folder in folders:
                below = os.open(folder, flags | os.O_DIRECTORY, dir_fd=here)
                os.close(here)
                here = below
            fd = os.open(name, flags, dir_fd=here)
        finally:
            os.close(here)
        self.descriptor(fd, path)

    def descriptor(self, fd: int, shown: str) -> None:
        with open(fd, "rb") as file:
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode) or found.st_size > self.largest:
                return
            if (found.st_dev, found.st_ino) in self.hidden:
                return
            data = file.read(self.largest)
        if b"\0" in data[:_LOOK]:
            return
        if self.needle and self.needle not in data:
            return
        self.text(data.decode("utf-8", "replace"), shown)

    def text(self, text: str, shown: str) -> None:
        shown = os.fsencode(shown).decode("utf-8", "replace")
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


def main() -> None:
    request = json.load(sys.stdin.buffer)
    try:
        import resource
    except ImportError:  # not on this platform; the parent watches the clock anyway
        pass
    else:
        resource.setrlimit(resource.RLIMIT_CPU, (request["seconds"] + 1, request["seconds"] + 2))
    search = Search(request)
    if request["name"]:
        search.descriptor(request["fd"], request["name"])
    else:
        try:
            search.tree(request["fd"], request)
        except RecursionError:
            search.note = "... [stopped: the directories are nested too deeply]"
    answer = {
        "lines": search.lines,
        "matches": search.matches,
        "files": search.files,
        "note": search.note,
    }
    sys.stdout.buffer.write(json.dumps(answer).encode("utf-8"))


if __name__ == "__main__":
    main()
