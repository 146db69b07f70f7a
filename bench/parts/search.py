"""`grep` and `glob` in a tree of 100,000 files, beside `rg` on the same tree.

`glob` shows the newest first, so what does the same is `rg --files --sortr modified`; beside `rg`
that sorts nothing it is shown for information.
Both ways are measured: with `rg` as the finder of candidates, and by our own walk. What they show
must be the same, byte by byte; a difference ends the run.
"""

import asyncio
import os
import random
import shutil
import subprocess
import time
from collections.abc import Sequence
from typing import Any

from dragoman.engine.content import Text
from dragoman.policy.paths import Boundary
from dragoman.tools import ripgrep
from dragoman.tools.glob import Glob
from dragoman.tools.grep import Grep

from .rows import Row, compared

FILES = 100_000
_IN_FOLDER = 40
_NEEDLE = "needle_in_hay"
_UNSORTED = "files by name, rg unsorted"


class _Env:
    """As much of a session as a search asks for."""

    mode = "supervised"
    roots: Sequence[str] = ()
    reach: Sequence[Any] = ()

    def __init__(self, cwd: str) -> None:
        self.cwd = cwd


def planted(top: str, files: int = FILES) -> None:
    """A repository of so many small files, with folders that nobody wants beside them."""
    chance = random.Random(21)
    words = [
        "".join(chance.choices("abcdefghijklmnop", k=chance.randint(2, 9))) for _ in range(999)
    ]
    lines = [" ".join(chance.choices(words, k=8)) for _ in range(5_000)]
    made = 0
    while made < files:
        number = made // _IN_FOLDER
        folder = f"{top}/part{number % 20}/module{number // 20 % 25}/step{number // 500}"
        os.makedirs(folder)
        for at in range(min(_IN_FOLDER, files - made)):
            text = "\n".join(chance.choices(lines, k=chance.randint(5, 60)))
            if made % 5_000 == 17:
                text += f"\nhere is the {_NEEDLE}\n"
            name = f"{folder}/file{at}.{'py' if at % 2 else 'txt'}"
            with open(name, "w") as file:
                file.write(text)
            # Times of their own, so that there is one order of the newest.
            os.utime(name, ns=(made * 10**9, made * 10**9))
            made += 1
    for folder in ("build", "node_modules/left"):
        os.makedirs(f"{top}/{folder}")
        with open(f"{top}/{folder}/generated.py", "w") as file:
            file.write(f"{_NEEDLE}\n")
    with open(f"{top}/.gitignore", "w") as file:
        file.write("*.log\nbuild/\n!important.log\n")
    os.mkdir(f"{top}/.git")


def measure(folder: str, rounds: int, files: int = FILES) -> tuple[list[Row], list[str]]:
    """Nothing without rg: there would be nothing to compare with."""
    found = shutil.which("rg")
    if found is None:
        return [], ["no rg: searching is left out"]
    top = os.path.join(os.path.realpath(folder), "searched")
    os.mkdir(top)
    planted(top, files)
    try:
        return searched(top, rounds, files, found), []
    finally:
        shutil.rmtree(top)


def searched(top: str, rounds: int, files: int, rg: str) -> list[Row]:
    """Both ways and rg, in turn, on a tree that is there."""
    rows: list[Row] = []
    newest = ["--files", "--sortr", "modified", "-g"]
    for name, words, tool, args in (
        ("a rare word", ["-n", _NEEDLE], Grep, {"pattern": _NEEDLE}),
        ("a rare expression", ["-n", r"needle_\w+y$"], Grep, {"pattern": r"needle_\w+y$"}),
        ("a word of *.py", ["-n", "-g", "*.py", _NEEDLE], Grep,
         {"pattern": _NEEDLE, "glob": "*.py"}),
        ("a word of 2 in 5 files", ["-n", "abc"], Grep, {"pattern": "abc"}),
        ("files by name", [*newest, "file17.*"], Glob, {"pattern": "**/file17.*"}),
        ("half of all files", [*newest, "*.py"], Glob, {"pattern": "**/*.py"}),
        (_UNSORTED, ["--files", "-g", "file17.*"], Glob, {"pattern": "**/file17.*"}),
    ):  # fmt: skip
        theirs, beside, alone = [], [], []
        for _ in range(rounds + 1):
            theirs.append(_asked([rg, *words], top))
            took, shown = _used(tool, args, top, rg)
            beside.append(took)
            took, also = _used(tool, args, top, "")
            alone.append(took)
            if shown != also:
                raise SystemExit(f"{name}: rg and our own walk show different things")
        # The first round fills the caches of the system.
        theirs, beside, alone = theirs[1:], beside[1:], alone[1:]
        label = f"{files:,} files, {name}"
        bars = ("", "") if name == _UNSORTED else ("<= 1.3", "<= 5")
        rows.append(compared("search", f"{label}, with rg", beside, "rg", theirs, "ms", bars[0]))
        rows.append(compared("search", f"{label}, without", alone, "rg", theirs, "ms", bars[1]))
    return rows


def _asked(argv: list[str], top: str) -> float:
    """Milliseconds that rg itself takes."""
    began = time.perf_counter()
    subprocess.run(argv, cwd=top, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
    return 1000 * (time.perf_counter() - began)


def _used(tool: Any, args: dict[str, Any], top: str, rg: str) -> tuple[float, str]:
    """Milliseconds of a call of the tool, and what it shows."""
    usual = ripgrep.program
    ripgrep.program = lambda: rg  # type: ignore[assignment]
    try:
        return asyncio.run(_called(tool, args, top))
    finally:
        ripgrep.program = usual


async def _called(tool: Any, args: dict[str, Any], top: str) -> tuple[float, str]:
    env = _Env(top)
    made = tool(lambda env: Boundary(env.cwd))
    began = time.perf_counter()
    outcome = await made.run(args, env)
    took = 1000 * (time.perf_counter() - began)
    (block,) = outcome.content
    assert isinstance(block, Text)
    return took, block.text
