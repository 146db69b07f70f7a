"""The paths that a shell command names, as far as its text shows them.

A guess in both directions: a pattern may look like a path, and a path may be put together when the
command runs. It catches what is said plainly; the sandbox holds against the rest.
"""

import os
import re
from collections.abc import Iterator
from typing import NamedTuple

from .commands import GOES, MOST_MOVES, Assessment

_HOME = re.compile(r"\$HOME(?!\w)|\$\{HOME\}")
_HERE = re.compile(r"\$PWD(?!\w)|\$\{PWD\}")
_GLOB = re.compile(r"[*?\[{$`]")
_PIECES = re.compile(r"[=:,@\s'\"();|&<>]+")
_TOKENS = re.compile(r"[^\s'\"();|&<>`]+")
_QUIET = re.compile(r"/dev/(null|stdin|stdout|stderr|tty|urandom|random|zero|full|fd(/\d+)?)$")
_CONFIGURES = frozenset({"config", "remote", "submodule", "lfs", "sparse-checkout"})
_PLACES = 2**MOST_MOVES  # working directories that one command may have


class Mention(NamedTuple):
    """A path in a command: absolute, not yet resolved."""

    path: str
    write: bool = False  # a redirection writes it
    may: bool = False  # a program that is not known to only look may write it
    program: bool = False  # the program itself


def mentioned(found: Assessment, command: str, cwd: str, home: str) -> Iterator[Mention]:
    """Every path that a command names, in order."""
    places = _Places(cwd, home)
    if not found.readable:
        yield from _in_text(command, places)
        return
    changes = any(part.kind != "low" for part in found.parts)
    for part in found.parts:
        writes = part.kind != "low" or (changes and part.name in GOES)
        if not part.plain and "/" in part.argv[0]:
            for here in places.all:
                path = os.path.join(here, places.expand(part.argv[0], here))
                yield Mention(path, program=True)
        for word in part.argv[1:]:
            for path in places.paths(word):
                yield Mention(path, may=writes)
        if part.name == "git" and writes and len(part.argv) > 1 and part.argv[1] in _CONFIGURES:
            for here in places.all:
                yield Mention(os.path.join(here, ".git/config"), may=True)
        if part.name in GOES and len(part.argv) > 1:
            places.go(part.argv[1])
    for targets, write in ((found.reads, False), (found.writes, True)):
        for target in targets:
            for path in places.everywhere(target):
                yield Mention(path, write)


def folders(found: Assessment, cwd: str, home: str) -> list[str]:
    """The folders that the programs of a command may run in."""
    known = _Places(cwd, home)
    for part in found.parts:
        if part.name in GOES and len(part.argv) > 1:
            known.go(part.argv[1])
    return known.all


def _in_text(command: str, places: "_Places") -> Iterator[Mention]:
    goes = False
    for match in _TOKENS.finditer(command):
        token = match.group()
        for path in places.paths(token):
            yield Mention(path, may=True)
        if goes:
            places.go(token)
        goes = token in GOES


class _Places:
    """The working directories that a command may have by now."""

    def __init__(self, cwd: str, home: str) -> None:
        self.home = home
        self.all = [cwd]

    def go(self, target: str) -> None:
        # Nobody knows whether a `cd` succeeds, so the places before it stay possible.
        for here in tuple(self.all):
            there = os.path.normpath(os.path.join(here, self.expand(target, here)))
            if there not in self.all and len(self.all) < _PLACES:
                self.all.append(there)

    def expand(self, text: str, here: str) -> str:
        text = _HERE.sub(lambda _: here, _HOME.sub(lambda _: self.home, text))
        if text == "~" or text.startswith("~/"):
            return self.home + text[1:]
        return text

    def everywhere(self, target: str) -> list[str]:
        return [os.path.join(here, target) for here in self.all if not _QUIET.match(target)]

    def paths(self, word: str) -> Iterator[str]:
        for here in tuple(self.all):
            yield from self._paths(word, here)

    def _paths(self, word: str, here: str) -> Iterator[str]:
        word = self.expand(word, here)
        pieces = {word, *_PIECES.split(word)}
        if word.startswith("-") and "/" in word:
            pieces.add(word[word.index("/") :])  # -I/usr/include
        if "://" in word and not word.startswith("file:"):
            pieces = {word.partition("?")[2]}  # an address is no path
        for piece in sorted(pieces):
            path = self.expand(piece, here)
            if path.startswith("~") or "\0" in path:
                yield path
                continue
            if match := _GLOB.search(path):
                path = path[: match.start()]
            if not path or path.startswith("-") or len(path) > 4096 or _QUIET.match(path):
                continue
            absolute = os.path.join(here, path)
            # A relative word matters when it exists: it may be a link that leads away. It also
            # matters when it has a name that is guarded, so that it is not made.
            if "/" in path or "." in path or os.path.lexists(absolute):
                yield absolute
