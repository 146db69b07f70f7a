"""What was changed and not committed in a session's folder when the session was opened.

It is said once, as it was then: a part that changes with every edit would have the provider read
the whole conversation anew. git is asked only where its configuration can run nothing.
"""

import asyncio
import os
import signal
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from dragoman.engine.info import SessionInfo
from dragoman.engine.ports import AgentProfile
from dragoman.engine.ports.agents import PromptTurn
from dragoman.engine.visible import brief
from dragoman.observe.programs import find
from dragoman.policy.repository import tame

from .git import STILL, checkout_of, plain_env

_SECONDS = 2.0
_MOST = 256 * 1024  # bytes of names that are read
_SHOWN = 12
_AT_ONCE = 4  # folders that are looked at
_LONG = 100  # characters of a name
_REMEMBERED = 1_024  # sessions
_WORDS = (
    *("--no-optional-locks", "status", "--porcelain=v1", "-z", "--no-renames"),
    *("--untracked-files=normal", "--ignore-submodules=all"),
)


class Changes:
    """Says of each session what its folder had changed at its start.

    git is asked from threads of its own, as soon as the session gets its tools: it works while the
    rest of the first turn is put together. A folder is looked at once at a time, and whoever comes
    meanwhile shares the next look: a thousand sessions in a folder are a few looks at it.
    """

    def __init__(self) -> None:
        self._said: dict[str, asyncio.Future[str]] = {}
        self._looking: dict[str, asyncio.Future[str]] = {}
        self._next: dict[str, asyncio.Task[str]] = {}
        self._threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="git")

    def begin(self, profile: AgentProfile, info: SessionInfo) -> None:
        """Look, unless this was done; not with a prompt of the user's own."""
        if profile.system_prompt is None and info.id not in self._said:
            if len(self._said) >= _REMEMBERED:
                del self._said[next(iter(self._said))]
            self._said[info.id] = self._look(info.cwd)

    def _look(self, cwd: str) -> asyncio.Future[str]:
        """A look at the folder that begins after this call."""
        if cwd in self._next:
            return self._next[cwd]
        if under_way := self._looking.get(cwd):
            self._next[cwd] = asyncio.create_task(self._look_after(under_way, cwd))
            return self._next[cwd]
        look = asyncio.get_running_loop().run_in_executor(self._threads, changes, cwd)
        self._looking[cwd] = look
        look.add_done_callback(lambda _: self._looking.pop(cwd))
        return look

    async def _look_after(self, under_way: asyncio.Future[str], cwd: str) -> str:
        await asyncio.wait([under_way])
        del self._next[cwd]
        return await self._look(cwd)

    async def said(self, turn: PromptTurn) -> tuple[str, ...]:
        """A part of the system prompt; none with a prompt of the user's own."""
        self.begin(turn.profile, turn.info)
        found = self._said.get(turn.info.id)
        text = await asyncio.shield(found) if found is not None else ""
        return (text,) if text else ()


def changes(cwd: str) -> str:
    """The state of the repository around a folder, in a few lines; empty where there is none."""
    root, why_not = _place(cwd)
    if not root or why_not:
        return why_not
    git = find("git", [root])
    data = _asked(git, root) if git else None
    return "" if data is None else told(data)


def _place(cwd: str) -> tuple[str, str]:
    """The checkout around a folder, and what to say where git is not asked."""
    place = checkout_of(cwd)
    if not place:
        return "", ""
    if os.path.isfile(os.path.join(place, ".git")):
        said = "This is a worktree or a submodule: what is uncommitted elsewhere is not in it."
        return place, said
    return place, "" if tame(cwd) else "Uncommitted changes: not looked at; git status shows them."


def _asked(git: str, root: str) -> bytes | None:
    """What git says, at most so much of it; None when it fails or takes too long."""
    try:
        process = subprocess.Popen(
            (git, *STILL, *_WORDS),
            cwd=root,
            # Where this is no repository, git shall not take one further up.
            env=plain_env() | {"GIT_CEILING_DIRECTORIES": os.path.dirname(root)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:
        return None
    with process:
        patience = threading.Timer(_SECONDS, _end, (process,))
        patience.daemon = True
        patience.start()
        try:
            assert process.stdout is not None
            data = process.stdout.read(_MOST)
            if len(data) >= _MOST:
                return data
            return None if process.wait() else data
        finally:
            patience.cancel()
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """With all it started, or the pipe might stay open."""
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


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
