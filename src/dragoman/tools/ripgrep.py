"""`rg`, where it is there: finds candidates quickly. What is shown is decided by us either way."""

import asyncio
import os
from collections.abc import Iterable
from functools import cache

from .trees import JUNK
from .work import insist

_MOST = 64 * 1024 * 1024  # bytes of names that are taken
_DENIED = 500  # places more than these are not worth an argument each
# Only what .gitignore files say, in a repository or not: the same as our own walk.
_SAME = (
    *("--no-config", "--no-messages", "--hidden", "--null", "--color=never"),
    *("--no-ignore-dot", "--no-ignore-global", "--no-ignore-exclude", "--no-require-git"),
)


@cache
def program() -> str:
    """Where rg is; empty: not here."""
    from shutil import which

    return which("rg") or ""


def _left_out(ignored: bool, denied: Iterable[str]) -> list[str]:
    words = ["--glob=!.git"]
    if ignored:
        return [*words, "--no-ignore", *(f"--glob=!/{_plain(path)}" for path in denied)]
    words += [f"--glob=!{name}/" for name in sorted(JUNK - {".git"})]
    return [*words, *(f"--glob=!/{_plain(path)}" for path in denied)]


def _plain(path: str) -> str:
    return "".join(f"\\{char}" if char in "*?[]{}!\\" else char for char in path)


async def names(
    top: int, words: Iterable[str], *, ignored: bool, denied: list[str], seconds: float
) -> list[str] | None:
    """The paths that rg names below an open directory; None when it cannot be used for this."""
    path = program()
    if not path or len(denied) > _DENIED:
        return None
    argv = [path, *_SAME, *_left_out(ignored, denied), *words, "./"]
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env={},
            preexec_fn=lambda: os.fchdir(top),
            start_new_session=True,
        )
    )
    try:
        process = await asyncio.shield(starting)
        async with asyncio.timeout(seconds):
            assert process.stdout is not None
            data = await process.stdout.read(-1)
            await process.wait()
    except (OSError, TimeoutError):
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
