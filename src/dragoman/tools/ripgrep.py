"""`rg`, where it is there: finds candidates quickly. What is shown is decided by us either way."""

import asyncio
import os
import re
from collections.abc import Iterable

from dragoman.observe.programs import find

from .trees import JUNK
from .work import insist

_MOST = 64 * 1024 * 1024  # bytes of names that are taken
_DENIED = 500  # places more than these are not worth an argument each
# Only what .gitignore files say: the same as our own walk.
_SAME = (
    *("--no-config", "--no-messages", "--hidden", "--null", "--color=never"),
    *("--no-ignore-dot", "--no-ignore-global", "--no-ignore-exclude"),
)
_PROC = os.path.isdir("/proc/self/fd")  # then nothing has to run between fork and exec
_STUCK = 64
_stuck: dict[tuple[int, int], None] = {}  # the directories in which rg came to no end
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


async def names(
    top: int,
    words: Iterable[str],
    *,
    ignored: bool,
    denied: list[str],
    repository: bool,
    seconds: float,
) -> list[str] | None:
    """The paths that rg names below an open directory; None when it cannot be used for this."""
    path = program()
    about = os.fstat(top)
    place = (about.st_dev, about.st_ino)
    if not path or len(denied) > _DENIED or place in _stuck:
        return None
    # Of words about names the last that fits counts.
    argv = [path, *_SAME, *words, *_left_out(ignored, denied, repository), "./"]
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env={},
            cwd=f"/proc/self/fd/{top}" if _PROC else None,
            preexec_fn=None if _PROC else lambda: os.fchdir(top),
            start_new_session=True,
        )
    )
    try:
        process = await asyncio.shield(starting)
        async with asyncio.timeout(seconds):
            assert process.stdout is not None
            data = await process.stdout.read(-1)
            await process.wait()
    except TimeoutError:  # perhaps a .gitignore that is a pipe: it would wait again
        _stuck[place] = None
        if len(_stuck) > _STUCK:
            del _stuck[next(iter(_stuck))]
        return None
    except OSError:
        return None
    finally:
        await insist(_stop(starting))
    if process.returncode not in (0, 1) or len(data) > _MOST:
        return None  # a pattern that it does not know, or it was ended
    found = data.decode("utf-8", "surrogateescape").split("\0")
    return [name.removeprefix("./") for name in found if name]


async def _stop(starting: "asyncio.Future[asyncio.subprocess.Process]") -> None:
    await asyncio.wait({starting})
    if starting.exception() is None and (process := starting.result()).returncode is None:
        process.kill()
        await process.communicate()
