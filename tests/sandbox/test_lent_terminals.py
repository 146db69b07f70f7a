"""Commands in a client's own terminals: with the walls and the mark of ours, or they run here."""

import asyncio
import os
import shutil
import socket
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.tools.making import Env

from dragoman.engine.content import text_of
from dragoman.policy.autonomy import AutonomyPolicy, Rules
from dragoman.policy.profiles import STANDARD
from dragoman.sandbox.bubblewrap import Bubblewrap
from dragoman.sandbox.landlock import Landlock, abi
from dragoman.sandbox.launch import Unconfined
from dragoman.tools.registry import Registry

PYTHON = os.path.realpath(sys.executable)
BACKENDS = [pytest.param(Landlock, id="landlock")] if abi() >= 6 else []
if shutil.which("bwrap"):
    BACKENDS.append(pytest.param(Bubblewrap, id="bubblewrap"))


class Editor:
    """A client's terminals: it runs what it is told to, with its own environment around it."""

    def __init__(self, near: bool = True) -> None:
        self.near = near
        self.ran: list[tuple[str, ...]] = []

    async def run(
        self,
        command: str,
        *,
        argv: Sequence[str] = (),
        cwd: str,
        env: dict[str, str],
        timeout: float | None,
        limit: int,
        opened: Callable[[str], None],
    ) -> tuple[int | None, str, bool]:
        words = tuple(argv) or ("/bin/sh", "-c", command)
        self.ran.append(words)
        opened("t1")
        given = {**os.environ, "EDITORS_API_KEY": "secret", **env}
        process = await asyncio.create_subprocess_exec(
            *words, cwd=cwd, env=given, stdin=-3, stdout=-1, stderr=-2
        )
        said, _ = await process.communicate()
        return process.returncode, said.decode(), False


class Place:
    def __init__(self, top: Path, confine: Any) -> None:
        self.work, self.home = top / "work", top / "home"
        for folder in (self.work, self.home / "data"):
            folder.mkdir(parents=True)
        (self.home / "data/secret").write_text("s3cr3t")
        policy = AutonomyPolicy(
            Rules(forbidden_paths=STANDARD.forbidden, legible_paths=STANDARD.legible),
            protected=[str(self.home / "data")],
            home=str(self.home),
        )
        self.registry = Registry(
            lambda env: policy.boundary(env.mode, env.cwd, env.roots, env.reach),
            confine=lambda: confine,
            extra_env={
                "TMPDIR": str(self.work),
                "PATH": f"{os.path.dirname(PYTHON)}:/usr/bin:/bin",
            },
        )

    async def run(self, command: str, editor: Editor) -> str:
        tool = self.registry.toolbox().find("bash")
        assert tool is not None
        env = Env(str(self.work))
        env.terminals = editor
        return text_of((await tool.run({"command": command}, env)).content)  # type: ignore[arg-type]


@pytest.mark.parametrize("backend", BACKENDS)
async def test_a_lent_terminal_has_our_walls_and_our_mark(tmp_path: Path, backend: Any) -> None:
    """What runs there is no child of ours: without the mark it could answer its own questions."""
    place, editor = Place(tmp_path, backend()), Editor()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        listener.listen()
        (place.work / "try.py").write_text(
            "import os, socket\n"
            f"for what in ({str(place.home / 'data/secret')!r}, '/proc/self/limits'):\n"
            "    try: print(open(what).read())\n"
            "    except OSError as error: print(error)\n"
            f"try: socket.socket(1).connect({str(tmp_path / 's')!r}); print('CONNECTED')\n"
            "except OSError as error: print(error)\n"
            "print(dict(os.environ)); os.mkdir('.vscode'); open('.vscode/x', 'w'); open('y', 'w')\n"
        )
        said = await place.run("python3 try.py && echo inside", editor)
    assert "inside" in said and (place.work / "y").exists(), said
    (mark,) = (line.split() for line in said.splitlines() if "realtime timeout" in line)
    assert mark[3].isdigit() and mark[4].isdigit(), mark
    for never in ("s3cr3t", "CONNECTED", "EDITORS_API_KEY", "SANDBOX_PROGRAM"):
        assert never not in said, said
    assert not (place.work / ".vscode").exists() and "[undone" in said
    assert editor.ran[0][-1] != "python3 try.py && echo inside"  # a program that puts walls up


@pytest.mark.parametrize("backend", BACKENDS)
async def test_a_terminal_elsewhere_gets_no_walls_so_it_runs_here(
    tmp_path: Path, backend: Any
) -> None:
    place, editor = Place(tmp_path, backend()), Editor(near=False)
    assert "here" in await place.run("echo here", editor)
    assert not editor.ran


async def test_without_a_sandbox_the_clients_shell_runs_it(tmp_path: Path) -> None:
    place, editor = Place(tmp_path, Unconfined()), Editor(near=False)
    assert "there" in await place.run("echo there", editor)
    assert editor.ran == [("/bin/sh", "-c", "echo there")]
