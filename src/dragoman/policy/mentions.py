"""The paths that a shell command names, as far as its text shows them.

A guess in both directions: a pattern may look like a path, and a path may be put together when the
command runs. It catches what is said plainly; the sandbox holds against the rest.
"""

import os
import re
from collections.abc import Iterable, Iterator

from .commands import Part

_HOME = re.compile(r"\$HOME(?!\w)|\$\{HOME\}")
_HERE = re.compile(r"\$PWD(?!\w)|\$\{PWD\}")
_GLOB = re.compile(r"[*?\[{$`]")
_PIECES = re.compile(r"[=:,@\s'\"();|&<>]+")
_QUIET = re.compile(r"/dev/(null|stdin|stdout|stderr|tty|urandom|random|zero|full|fd(/\d+)?)$")
_CHANGES = frozenset({"cd", "pushd", "chdir"})


def mentioned(parts: Iterable[Part], cwd: str, home: str) -> Iterator[str]:
    """Every path in the parts of a command: absolute, not yet resolved, in order."""
    here = cwd
    for part in parts:
        # Where the program itself lies is no concern: it could be called by its bare name.
        words = part.words[1:] if part.plain and part.name not in ("=", "<", ">") else part.words
        for word in words:
            yield from _paths(word, here, home)
        if part.name in _CHANGES:
            target = next((w for w in part.words[1:] if not w.startswith("-")), "~")
            here = os.path.normpath(os.path.join(here, _expand(target, here, home)))


def _expand(text: str, here: str, home: str) -> str:
    text = _HERE.sub(lambda _: here, _HOME.sub(lambda _: home, text))
    if text == "~" or text.startswith("~/"):
        return home + text[1:]
    return text


def _paths(word: str, here: str, home: str) -> Iterator[str]:
    word = _expand(word, here, home)
    pieces = {word, *_PIECES.split(word)}
    if word.startswith("-") and "/" in word:
        pieces.add(word[word.index("/") :])  # -I/usr/include
    if "://" in word and not word.startswith("file:"):
        pieces = {word.partition("?")[2]}  # an address is no path
    for piece in sorted(pieces):
        path = _expand(piece, here, home)
        if path.startswith("~") or "\0" in path:
            yield path
            continue
        if match := _GLOB.search(path):
            path = path[: match.start()]
            if not path:
                continue
        if not path or path.startswith("-") or len(path) > 4096 or _QUIET.match(path):
            continue
        absolute = os.path.join(here, path)
        if path.startswith("/") or ".." in path.split("/") or here_differs(here, path):
            yield absolute


def here_differs(here: str, path: str) -> bool:
    """A relative word matters when it exists: it may be a link that leads away."""
    return os.path.lexists(os.path.join(here, path))
