"""`rg`, where it is there: finds candidates quickly. What is shown is decided by us either way."""

import asyncio
import os
import re
import stat
from collections.abc import Awaitable, Callable, Iterable
from typing import NamedTuple

from dragoman.observe.programs import find

from .trees import JUNK
from .work import started

MOST = 64 * 1024 * 1024  # bytes of names that are taken
_DENIED = 500  # places more than these are not worth an argument each
# Only what .gitignore files say: the same as our own walk.
_SAME = (
    *("--no-config", "--no-messages", "--hidden", "--null", "--color=never"),
    *("--no-ignore-dot", "--no-ignore-global", "--no-ignore-exclude"),
)
_PROC = os.path.isdir("/proc/self/fd")  # then nothing has to run between fork and exec
_REMEMBERED = 64
Place = tuple[int, int]  # device and inode of a directory
_stuck: dict[Place, None] = {}  # the directories in which rg came to no end
_heavy: dict[Place, None] = {}  # those in which it read a file that is too large for us
_LOOK = 1.0  # seconds between two looks at what it reads
_PLAIN = re.compile(r"[A-Za-z0-9_.*-]+")  # globs of a name that mean the same to everybody


def program() -> str:
    """Where rg is; empty: not here."""
    return find("rg")


def _left_out(ignored: bool, denied: Iterable[str], repository: bool) -> list[str]:
    words = ["--glob=!.git", *(f"--glob=!/{_plain(path)}" for path in denied)]
    if ignored:
        return [*words, "--no-ignore"]
    words += [f"--glob=!{name}/" for name in sorted(JUNK - {".git"})]
    # Outside of a repository the rules count all the same; within one, it says where they end.
    return words if repository else [*words, "--no-require-git"]


def only(globs: Iterable[str]) -> list[str]:
    """Words that leave files of other names out, where that can be said of names alone.

    rg takes such files also where rules leave them out: whoever gets the names has to mind those.
    """
    last = {glob.rpartition("/")[2] for glob in globs}
    if not last or not all(_PLAIN.fullmatch(name) and "**" not in name for name in last):
        return []
    return [f"--glob={name}" for name in sorted(last)]


RULED = "--glob=.gitignore"  # beside others: files of rules are named, too


def ruled(named: Iterable[str], denied: Iterable[str]) -> set[str]:
    """The directories that have rules, by the names that rg gave when it was asked for them."""
    found = {name[:-10] for name in named if name.endswith(".gitignore")}
    # rg minds rules also where it was told not to name their file.
    return found | {name[:-10] for name in denied if name.endswith(".gitignore")}


# A byte that is no text is U+FFFD to us, which . and the like match; to rg it is nothing such.
_BYTES = r"(?-u:[\x80-\xff]{1,3})"
_TOKEN = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\.", re.DOTALL)
_WIDE = frozenset((".", r"\w", r"\W", r"\S", r"\D"))
# Verbose ones, that very character, and what means something else to rg: sets within sets, word
# ends, and repetitions with a blank.
_OTHER = re.compile(r"\(\?[a-zA-Z]*x|\ufffd|\0|\\[uUN<>]|\[[^]]*\[|&&|--|~~|\{[\d,]*\s")


def wider(pattern: str) -> str | None:
    """An expression for rg that finds at least what ours finds; None: it cannot be said."""
    try:
        pattern.encode()
    except UnicodeEncodeError:
        return None
    return None if _OTHER.search(pattern) else _TOKEN.sub(_widened, pattern)


def _widened(token: re.Match[str]) -> str:
    found = token.group()
    if found in _WIDE or (found[0] == "[" and (found[1] == "^" or not found.isascii())):
        return f"(?:{found}|{_BYTES})"
    if found == r"\s" or (found[0] == "[" and "\\" in found):
        return rf"(?:{found}|[\x1c-\x1f]|{_BYTES})"
    return found


def _plain(path: str) -> str:
    return "".join(f"\\{char}" if char in "*?[]{}!\\" else char for char in path)


class Tree(NamedTuple):
    """An open directory, and what is left out below it."""

    fd: int
    ignored: bool  # what rules leave out is taken, too
    denied: list[str]
    repository: bool


async def names(tree: Tree, words: Iterable[str], seconds: float) -> list[str] | None:
    """The paths that rg names below a directory; None when it cannot be used for this."""

    async def all_of(process: asyncio.subprocess.Process) -> bytes:
        assert process.stdout is not None
        return await process.stdout.read(-1)

    data = await _run(tree, words, seconds, asyncio.subprocess.PIPE, all_of)
    if data is None or len(data) > MOST:
        return None
    found = data.decode("utf-8", "surrogateescape").split("\0")
    return [name.removeprefix("./") for name in found if name]


class _ReadsLargeFile(Exception):
    """rg reads a file that is left out of searches."""


async def feed(tree: Tree, words: Iterable[str], seconds: float, pipe: int, largest: int) -> bool:
    """Let rg write the paths it names to a pipe, some perhaps twice; whether these are all.

    Files over `largest` bytes need not be searched. To have rg mind that costs a tenth of its time,
    for a question about every file: it is told only where it is seen to read such a file.
    """
    bounded = [f"--max-filesize={largest}", *words]

    async def watched(process: asyncio.subprocess.Process) -> bytes:
        ended = asyncio.ensure_future(process.wait())
        try:
            while not (await asyncio.wait({ended}, timeout=_LOOK))[0]:
                if await asyncio.to_thread(_reads_large, process.pid, largest):
                    raise _ReadsLargeFile
        finally:
            ended.cancel()
        return b""

    async def waited(process: asyncio.subprocess.Process) -> bytes:
        return b""

    place = _place(tree)
    if _PROC and place not in _heavy:
        try:
            return await _run(tree, words, seconds, pipe, watched) is not None
        except _ReadsLargeFile:
            _remember(_heavy, place)
    return await _run(tree, bounded, seconds, pipe, waited) is not None


def _reads_large(process: int, largest: int) -> bool:
    """Whether a process has a file open that is larger."""
    folder = f"/proc/{process}/fd"
    try:
        found = [os.stat(f"{folder}/{name}") for name in os.listdir(folder)]
    except OSError:  # gone, or one of them closed meanwhile: there is another look
        return False
    return any(stat.S_ISREG(one.st_mode) and one.st_size > largest for one in found)


def _place(tree: Tree) -> Place:
    about = os.fstat(tree.fd)
    return about.st_dev, about.st_ino


def _remember(places: dict[Place, None], place: Place) -> None:
    places[place] = None
    if len(places) > _REMEMBERED:
        del places[next(iter(places))]


async def _run(
    tree: Tree,
    words: Iterable[str],
    seconds: float,
    stdout: int,
    taken: Callable[[asyncio.subprocess.Process], Awaitable[bytes]],
) -> bytes | None:
    """Run rg; what was taken of it, None when it is not here or did not end well."""
    path = program()
    place = _place(tree)
    if not path or len(tree.denied) > _DENIED or place in _stuck:
        return None
    # Of words about names the last that fits counts.
    left_out = _left_out(tree.ignored, tree.denied, tree.repository)
    argv = [path, *_SAME, *words, *left_out, "./"]
    starting = asyncio.create_subprocess_exec(
        *argv,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=stdout,
        stderr=asyncio.subprocess.DEVNULL,
        env={},
        cwd=f"/proc/self/fd/{tree.fd}" if _PROC else None,
        preexec_fn=None if _PROC else lambda: os.fchdir(tree.fd),
        start_new_session=True,
    )
    try:
        async with started(starting) as process, asyncio.timeout(seconds):
            data = await taken(process)
            await process.wait()
    except TimeoutError:  # perhaps a .gitignore that is a pipe: it would wait again
        _remember(_stuck, place)
        return None
    except OSError:
        return None
    # Others: a pattern that it does not know, or it was ended.
    return data if process.returncode in (0, 1) else None
