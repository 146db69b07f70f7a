"""What was changed and not committed in a session's folder when the session was opened.

It is said once, as it was then: a part that changes with every edit would have the provider read
the whole conversation anew. git is asked only where its configuration can run nothing.
"""

import asyncio
import os

from dragoman.engine.ports.agents import PromptTurn
from dragoman.engine.visible import brief
from dragoman.observe.programs import find
from dragoman.policy.repository import tame
from dragoman.tools.work import insist

from .worktrees import STILL, plain_env

_SECONDS = 2.0
_MOST = 256 * 1024  # bytes of names that are read
_SHOWN = 12
_LONG = 100  # characters of a name
_REMEMBERED = 1_024  # sessions
_WORDS = (
    *("--no-optional-locks", "status", "--porcelain=v1", "-z", "--no-renames"),
    *("--untracked-files=normal", "--ignore-submodules=all"),
)


class Changes:
    """Says of each session what its folder had changed at its start."""

    def __init__(self) -> None:
        self._said: dict[str, str] = {}

    async def said(self, turn: PromptTurn) -> tuple[str, ...]:
        """A part of the system prompt; none with a prompt of the user's own."""
        if turn.profile.system_prompt is not None:
            return ()
        found = self._said.get(turn.info.id)
        if found is None:
            found = await changes(turn.info.cwd)
            if len(self._said) >= _REMEMBERED:
                del self._said[next(iter(self._said))]
            self._said[turn.info.id] = found
        return (found,) if found else ()


async def changes(cwd: str) -> str:
    """The state of the repository around a folder, in a few lines; empty where there is none."""
    root, why_not = await asyncio.to_thread(_place, cwd)
    if not root or why_not:
        return why_not
    git = find("git", [root])
    data = await _asked(git, root) if git else None
    return "" if data is None else told(data)


def _place(cwd: str) -> tuple[str, str]:
    """The checkout around a folder, and what to say where git is not asked."""
    place = os.path.realpath(cwd)
    while not os.path.lexists(os.path.join(place, ".git")):
        above = os.path.dirname(place)
        if above == place:
            return "", ""
        place = above
    if os.path.isfile(os.path.join(place, ".git")):
        said = "This is a worktree or a submodule: what is uncommitted elsewhere is not in it."
        return place, said
    return place, "" if tame(cwd) else "Uncommitted changes: not looked at; git status shows them."


async def _asked(git: str, root: str) -> bytes | None:
    """What git says, at most so much of it; None when it fails or takes too long."""
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *(git, *STILL, *_WORDS),
            cwd=root,
            # Where this is no repository, git shall not take one further up.
            env=plain_env() | {"GIT_CEILING_DIRECTORIES": os.path.dirname(root)},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            limit=_MOST,
            start_new_session=True,
        )
    )
    try:
        process = await asyncio.shield(starting)
        assert process.stdout is not None
        async with asyncio.timeout(_SECONDS):
            data = await _read(process.stdout)
            if len(data) < _MOST and await process.wait():
                return None
        return data
    except (OSError, TimeoutError):
        return None
    finally:
        await insist(_stop(starting))


async def _read(stream: asyncio.StreamReader) -> bytes:
    data = b""
    while len(data) < _MOST and (piece := await stream.read(_MOST)):
        data += piece
    return data


async def _stop(starting: "asyncio.Future[asyncio.subprocess.Process]") -> None:
    await asyncio.wait({starting})
    if starting.exception() is None and (process := starting.result()).returncode is None:
        process.kill()
        await process.communicate()


def told(data: bytes) -> str:
    """The answer of git as lines for a model: how many, and the first of them."""
    lines = data.split(b"\0")
    last = lines.pop()
    if not lines:
        return "Uncommitted changes when this session was opened: none"
    cut = " or more" if last or len(data) >= _MOST else ""
    new = sum(line.startswith(b"??") for line in lines)
    counts = f"{len(lines) - new} changed, {new} untracked{cut}"
    shown = [
        f"{line[:2].decode('ascii', 'replace')} {brief(os.fsdecode(line[3:]), _LONG)}"
        for line in lines[:_SHOWN]
    ]
    if len(lines) > _SHOWN:
        shown.append(f"and {len(lines) - _SHOWN} more")
    head = "Uncommitted changes when this session was opened (git status has the present ones)"
    return "\n".join((f"{head}: {counts}", *shown))
