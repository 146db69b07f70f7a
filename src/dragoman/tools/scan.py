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
from typing import Any

_LOOK = 8192
_LONG = 500  # characters of a line that are shown


class Search:
    def __init__(self, request: dict[str, Any]) -> None:
        flags = re.IGNORECASE if request["ignore_case"] else 0
        self.expression = re.compile(request["pattern"], flags)
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

    def tree(self, top: int) -> None:
        for root, directories, files, fd in os.fwalk(".", dir_fd=top, follow_symlinks=False):
            here = "" if root == "." else root[2:] + "/"
            directories[:] = sorted(
                d for d in directories if d != ".git" and here + d not in self.denied
            )
            for name in sorted(files):
                if here + name in self.denied or not self.wanted(here + name):
                    continue
                try:
                    self.file(name, fd, here + name)
                except OSError:
                    continue  # gone, or not readable: nothing to find in it
                if self.matches >= self.limit:
                    self.note = f"... [stopped at {self.limit} matches]"
                    return

    def wanted(self, path: str) -> bool:
        if not self.globs:
            return True
        name = path.rpartition("/")[2]
        return any(
            fnmatch.fnmatchcase(path if "/" in glob else name, glob)
            or ("**/" in glob and fnmatch.fnmatchcase(path, glob.replace("**/", "")))
            for glob in self.globs
        )

    def file(self, name: str, directory: int, shown: str) -> None:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        self.descriptor(os.open(name, flags, dir_fd=directory), shown)

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
            search.tree(request["fd"])
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
