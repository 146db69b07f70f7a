"""Commands: what judging one costs, and what the sandbox adds to running it."""

import asyncio
import os
import time
from collections.abc import Sequence
from typing import Any

from dragoman.policy.autonomy import AutonomyPolicy, Rules
from dragoman.policy.commands import assess
from dragoman.policy.profiles import STANDARD
from dragoman.sandbox.choose import choose
from dragoman.sandbox.launch import Confine, Launch

from .rows import Row, held_to

_COMMANDS = (
    "ls -la",
    "git log --oneline -5 | grep -n 'foo bar' | sort -u > out.txt",
    "cd src && python3 -m pytest -q tests/policy && git status --short",
    "find . -name '*.py' -newer README.md",
    'for f in *.py; do sed -n "1,$((N))p" "$f"; done',
)


def measure(folder: str, rounds: int) -> list[Row]:
    """Judging, with the grammar loaded; and `true` with and without walls, interleaved."""
    policy = AutonomyPolicy(
        Rules(
            forbidden_paths=STANDARD.forbidden,
            sealed_paths=STANDARD.sealed,
            legible_paths=STANDARD.legible,
            writable_paths=STANDARD.writable,
        )
    )
    assess(_COMMANDS[0])
    judged = [_judging(policy, folder) for _ in range(rounds * 3)]
    walls = policy.boundary("supervised", folder)
    walled, bare = asyncio.run(_runs(walls, folder, rounds * 20))
    added = [1000 * (min(walled) - min(bare))]
    return [
        held_to("commands", "judging a command", judged, "ms", "<= 1", digits=3),
        held_to("commands", "what the sandbox adds to a command", added, "ms", "<= 5"),
    ]


def _judging(policy: AutonomyPolicy, folder: str) -> float:
    """Milliseconds for one command."""
    from dragoman.engine.content import ToolCall
    from dragoman.engine.ports import ToolSpec

    spec = ToolSpec("bash", "", {}, kind="execute")
    began = time.perf_counter()
    for _ in range(20):
        for command in _COMMANDS:
            call = ToolCall("c", "bash", {"command": command})
            policy.judge(call, spec, mode="supervised", cwd=folder, roots=())
    return 1000 * (time.perf_counter() - began) / (20 * len(_COMMANDS))


async def _runs(walls: Any, folder: str, rounds: int) -> tuple[Sequence[float], Sequence[float]]:
    walled, bare = [], []
    confine, none = choose("auto"), choose("none")
    for _ in range(rounds):
        walled.append(await _run(confine, walls, folder))
        bare.append(await _run(none, walls, folder))
    return walled, bare


async def _run(confine: Confine, walls: Any, folder: str) -> float:
    began = time.perf_counter()
    launch = Launch(("/bin/true",), folder, {"PATH": os.defpath, "HOME": folder})
    launch = confine.confine(launch, None, walls)  # type: ignore[arg-type]
    process = await asyncio.create_subprocess_exec(
        *launch.argv, cwd=launch.cwd, env=dict(launch.env), preexec_fn=launch.preexec or _nothing,
        pass_fds=launch.keep,
    )  # fmt: skip
    if launch.done is not None:
        launch.done()
    await process.wait()
    return time.perf_counter() - began


def _nothing() -> None:
    """So that the bare command is started in the same way."""
