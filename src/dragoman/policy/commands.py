"""What a shell command is: low, medium, high, or unknown; by its worst part.

Safety is known, not guessed: low is a command that both readers understand (`reading`) and whose
programs are all in the table of those that only look (`programs`). What cannot be read, and what
runs something that is not on the line, is unknown: no list allows it, and a human is asked.
"""

import fnmatch
import os
import re
from collections.abc import Iterable
from typing import Literal

import msgspec

from .programs import (
    BUILTINS,
    DANGEROUS,
    DANGEROUS_PREFIXES,
    SHELLS,
    WRAPPERS,
    common,
    git,
    hides,
    only_looks,
    runs,
    shapes,
)
from .reading import Simple, Unknown, Word, read

Kind = Literal["low", "medium", "high", "unknown"]
_RANK: dict[str, int] = {"low": 0, "medium": 1, "high": 2, "unknown": 3}
_BIN = frozenset(
    {"/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin", "/usr/local/sbin"}
    | {"/opt/homebrew/bin"}
)
_QUIET = frozenset({"/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr"})
_NETWORK = ("/dev/tcp/", "/dev/udp/")
_DURATION = re.compile(r"\d+(\.\d+)?[smhd]?")
_INTERPRETER = re.compile(r"(python|pypy|node|nodejs|ruby|perl|php|lua|bash|sh|dash|zsh|ksh)[\d.]*")
_CODE_MODULES = frozenset(
    """
    timeit code pdb runpy trace cprofile profile asyncio idlelib sqlite3 webbrowser ipdb pudb bdb
    debugpy pyperf kernprof line_profiler memory_profiler xonsh
    """.split()
)
_DEEPEST = 4
GOES = frozenset({"cd", "pushd", "chdir"})
MOST_MOVES = 3  # each may fail, so there are twice as many places after it
_SHOWN = 80


class ProgramRun(msgspec.Struct, frozen=True):
    """One program that the command runs."""

    name: str  # without its directory
    argv: tuple[str, ...]
    kind: Kind
    reason: str = ""
    plain: bool = True  # called by its bare name, or from a directory of the system
    passes: bool = False  # it only runs the next part: `timeout 5 ...`
    pattern: bool = False  # files stand for some of its words


class Assessment(msgspec.Struct, frozen=True):
    """What is known about a whole command."""

    kind: Kind
    reason: str
    parts: tuple[ProgramRun, ...]
    writes: tuple[str, ...] = ()  # the files that redirections write, as they are said
    reads: tuple[str, ...] = ()
    readable: bool = True  # False: nobody knows what it runs; `parts` says nothing

    @property
    def risk(self) -> Literal["low", "medium", "high"]:
        """The class as a human is told it: what is unknown may be as bad as anything."""
        return "high" if self.kind == "unknown" else self.kind


def assess(command: str) -> Assessment:
    """The class of a command and the programs in it."""
    try:
        simples = read(command)
        parts = [part for simple in simples for part in _parts(simple.words, 0)]
        writes, reads = _files(simples)
        if sum(part.name in GOES for part in parts) > MOST_MOVES:
            raise Unknown("It changes its folder too often.")
    except Unknown as why:
        return Assessment("unknown", f"What it runs is not known. {why}", (), readable=False)
    kind: Kind = "medium" if writes else "low"
    reason = f"It writes to {writes[0]}." if writes else ""
    for part in parts:
        if _RANK[part.kind] > _RANK[kind]:
            kind, reason = part.kind, part.reason
    return Assessment(kind, reason, tuple(parts), writes, reads)


def matches(part: ProgramRun, patterns: Iterable[str], *, strict: bool) -> str:
    """The first pattern whose words a program's words begin with; empty when none's do.

    Each word of a pattern is a glob for one word. `strict` (for lists that permit) wants the
    system's own program: `./git` is not `git`.
    """
    for pattern in patterns:
        wanted = pattern.split()
        if not wanted:
            continue
        first = wanted[0]
        by_path = "/" in first
        if strict and not part.plain and not by_path and first != "*":
            continue
        name = part.argv[0] if by_path else part.name
        if not strict:
            name, first = name.lower(), first.lower()
        words = (name, *part.argv[1:])
        # `git status *` is also plain `git status`.
        least = len(wanted) - 1 if wanted[-1] == "*" and len(wanted) > 1 else len(wanted)
        if len(words) < least or (strict and part.pattern and len(wanted) > 1):
            continue
        if all(map(fnmatch.fnmatchcase, words, (first, *wanted[1:]))):
            return pattern
    return ""


def forbids(part: ProgramRun, patterns: Iterable[str]) -> str:
    """The pattern that names this program, or one that it is told to run, as far as it shows."""
    patterns = tuple(patterns)
    if not patterns:
        return ""
    found = matches(part, patterns, strict=False) or _given(part, patterns)
    if found or part.kind != "unknown":
        return found
    words = [piece for word in part.argv for piece in word.split()]
    for at in range(1, len(words)):
        name = os.path.basename(words[at].strip("'\"")) or words[at]
        inner = ProgramRun(name, (name, *words[at + 1 :]), "unknown")
        if found := matches(inner, patterns, strict=False):
            return found if found != "*" else ""
    return ""


def _given(part: ProgramRun, patterns: tuple[str, ...]) -> str:
    """The pattern that names the script or module that an interpreter is given: python -m pip."""
    rest = part.argv[1:]
    if not _INTERPRETER.fullmatch(part.name) or not _script(part.name, rest):
        return ""
    given = rest[1:] if rest[0] == "-m" else rest
    name = os.path.basename(given[0])
    inner = ProgramRun(name, (name, *given[1:]), "medium")
    found = matches(inner, patterns, strict=False)
    return found if found != "*" else ""


def _files(simples: Iterable[Simple]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    writes: list[str] = []
    reads: list[str] = []
    for simple in simples:
        for redirect in simple.redirects:
            if redirect.target.startswith(_NETWORK):
                raise Unknown("It opens the network: bash knows these names.")
            if not redirect.copies and redirect.target not in _QUIET:
                (reads if redirect.operator == "<" else writes).append(redirect.target)
    return tuple(writes), tuple(reads)


def _parts(words: tuple[Word, ...], depth: int) -> list[ProgramRun]:
    """A program, and the one that it runs when it is of those that do nothing else."""
    if depth > _DEEPEST:
        raise Unknown("Programs run programs too deeply.")
    if words[0].glob:
        raise Unknown("Which program it runs depends on the files here.")
    part = _part(words)
    rest = words[1:]
    inner: list[ProgramRun] = []
    if part.plain and part.name in SHELLS and len(rest) == 2 and rest[0].text == "-c":
        if rest[1].glob:
            raise Unknown("Which program it runs depends on the files here.")
        inner = [p for simple in read(rest[1].text) for p in _nested(simple, depth + 1)]
    elif part.plain and part.name in ("nohup", "nice", "setsid", "env", "command"):
        if rest and "=" not in rest[0].text and not rest[0].text.startswith("-"):
            inner = _parts(rest, depth + 1)
    elif part.plain and part.name in ("timeout", "gtimeout"):
        if len(rest) > 1 and _DURATION.fullmatch(rest[0].text) and rest[1].text[:1] != "-":
            inner = _parts(rest[1:], depth + 1)
    if not inner and part.plain and rest and rest[0].text in WRAPPERS.get(part.name, ()):
        return _wrapped(part, rest[1:], depth)
    if not inner:
        return [part]
    return [msgspec.structs.replace(part, kind="low", reason="", passes=True), *inner]


def _wrapped(part: ProgramRun, words: tuple[Word, ...], depth: int) -> list[ProgramRun]:
    """A program that starts another one in its own way: both count, and lists name the first."""
    if not words or words[0].text.startswith(("-", "+")) or "=" in words[0].text:
        reason = f"It runs what {part.name} is told to: {shown(part.argv)}."
        return [msgspec.structs.replace(part, kind="unknown", reason=reason)]
    inner = _parts(words, depth + 1)
    return [part, *(msgspec.structs.replace(one, passes=True) for one in inner)]


def _nested(simple: Simple, depth: int) -> list[ProgramRun]:
    if any(not r.copies and r.target not in _QUIET for r in simple.redirects):
        raise Unknown("A shell in the shell opens files.")
    return _parts(simple.words, depth)


def _part(words: tuple[Word, ...]) -> ProgramRun:
    argv = tuple(word.text for word in words)
    name = os.path.basename(argv[0])
    directory = os.path.dirname(argv[0])
    plain = bool(name) and (not directory or directory in _BIN)
    pattern = any(word.glob for word in words)
    kind, reason = _class(name, argv, plain, pattern)
    return ProgramRun(name, argv, kind, reason, plain, False, pattern)


def _class(name: str, argv: tuple[str, ...], plain: bool, pattern: bool) -> tuple[Kind, str]:
    rest = argv[1:]
    if not name:
        return "unknown", "It runs a program without a name."
    if plain and only_looks(name, rest) and not (pattern and _counts(name)):
        return "low", ""
    if name in BUILTINS or name == "cd":
        return "unknown", f"{name} changes how the shell goes on."
    if name == "git" and plain:
        return git(rest)  # type: ignore[return-value]  # one of the four words
    if runs(name) or _INTERPRETER.fullmatch(name):
        if _script(name, rest):
            return "medium", f"It runs the script {' '.join(rest[:2])}."
        return "unknown", f"It runs what {name} is told to: {shown(argv)}."
    if hides(name, rest):
        return "unknown", f"{name} is told to run something else."
    if common(name) in DANGEROUS or name.startswith(DANGEROUS_PREFIXES):
        return "high", f"{name} can do lasting harm."
    if not plain:
        return "medium", f"It runs the program {argv[0]}."
    if name in shapes():
        return "unknown", f"{name} is called with words that are not known to be harmless."
    return "medium", f"{name} may change something."


def shown(argv: tuple[str, ...]) -> str:
    """Words for a sentence; a question shows all of them elsewhere."""
    text = " ".join(argv)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _counts(name: str) -> bool:
    """Whether it matters how many words a pattern becomes."""
    shape = shapes().get(name)
    return shape is None or shape.most >= 0 or name in ("cd", "test", "awk", "sed", "find")


def _runs_code(module: str, words: tuple[str, ...]) -> bool:
    """Whether a module of Python, which may be a program too, runs what it is told to."""
    names = (module, module.partition(".")[0])
    if any(name in _CODE_MODULES or runs(name) for name in names):
        return True
    return hides(module, words) or hides(names[1], words)


def _script(name: str, rest: tuple[str, ...]) -> bool:
    """Whether an interpreter is given a file, or a module, to run."""
    if not rest or not _INTERPRETER.fullmatch(name):
        return False
    if rest[0] == "-m" and name.startswith(("python", "pypy")):
        return len(rest) > 1 and not _runs_code(rest[1].casefold(), rest[2:])
    # What comes by a pipe or a descriptor is not on the line.
    given = re.sub("^/+", "/", os.path.normpath(rest[0]))
    return bool(rest[0]) and not given.startswith(("-", "+", "/dev", "/proc"))
