"""Commands run while somebody makes, removes and exchanges files beside them all the time."""

import asyncio
import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.sandbox.test_veil import Env

from dragoman.engine.content import text_of
from dragoman.observe.programs import find
from dragoman.policy.paths import Boundary
from dragoman.sandbox import landlock, ruleset
from dragoman.sandbox.bubblewrap import Bubblewrap
from dragoman.sandbox.launch import Launch
from dragoman.sandbox.reach import Rule
from dragoman.tools.output import Capture, Outputs, Progress
from dragoman.tools.registry import Registry
from dragoman.tools.running import CommandRun

BWRAP = pytest.mark.skipif(not find("bwrap"), reason="bubblewrap is missing")
LANDLOCK = pytest.mark.skipif(not landlock.abi(), reason="this kernel has no Landlock")

CROWD = """
import contextlib, os, sys
os.chdir(sys.argv[1])
print("going", flush=True)
number = 0
while True:
    number += 1
    name, kind = f"n{number * 7 % 50}", number // 50 % 4
    with contextlib.suppress(OSError):
        if kind == 0:
            os.close(os.open(name, os.O_CREAT))
        elif kind == 2:
            os.mkdir(name)
        else:
            os.unlink(name) if kind == 1 else os.rmdir(name)
"""


@contextlib.contextmanager
def crowd(folder: Path) -> Iterator[None]:
    with subprocess.Popen(
        [sys.executable, "-IS", "-c", CROWD, str(folder)], stdout=subprocess.PIPE
    ) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            yield
        finally:
            process.kill()


@pytest.fixture
def walls(tmp_path: Path) -> Boundary:
    """A folder may be written but for something that is not there: it is taken apart for it."""
    (tmp_path / "beside" / "work").mkdir(parents=True)
    (tmp_path / "beside" / "steady").mkdir()
    return Boundary(
        str(tmp_path / "beside" / "work"), sealed=(str(tmp_path / "beside" / "absent"),),
        writable=(str(tmp_path / "beside"),), forbidden=(),
    )  # fmt: skip


@pytest.mark.parametrize(
    "confine",
    [pytest.param(Bubblewrap, marks=BWRAP), pytest.param(landlock.Landlock, marks=LANDLOCK)],
)
async def test_commands_do_not_mind_who_comes_and_goes(
    tmp_path: Path, walls: Boundary, confine: type
) -> None:
    registry = Registry(lambda env: walls, confine=confine)
    tool = registry.toolbox().find("bash")
    assert tool is not None
    command = "echo x >> ran; echo y >> ../steady/file; mkdir ../absent; echo over"
    work = tmp_path / "beside" / "work"
    with crowd(tmp_path / "beside"):
        for number in range(1, 31):
            got = await tool.run({"command": command}, Env(work))  # type: ignore[arg-type]
            said = text_of(got.content)
            assert not got.is_error and "\nover\n" in said and "bwrap:" not in said, said
            assert (work / "ran").read_text() == "x\n" * number  # once each
    assert (tmp_path / "beside" / "steady" / "file").read_text() == "y\n" * 30
    assert not (tmp_path / "beside" / "absent").exists()


@BWRAP
async def test_a_command_that_speaks_like_bubblewrap_runs_once(
    tmp_path: Path, walls: Boundary
) -> None:
    tool = Registry(lambda env: walls, confine=Bubblewrap).toolbox().find("bash")
    assert tool is not None
    work = tmp_path / "beside" / "work"
    command = """echo x >> ran; echo "bwrap: Can't mount"; exit 1"""
    got = await tool.run({"command": command}, Env(work))  # type: ignore[arg-type]
    said = text_of(got.content)
    assert "\n\nbwrap: Can't mount\n" in said and "[exit 1]" in said
    assert (work / "ran").read_text() == "x\n"


@BWRAP
async def test_walls_that_can_never_be_put_up_are_given_up(tmp_path: Path, walls: Boundary) -> None:
    tries: list[int] = []

    def failing(launch: Launch) -> Launch:
        """Bubblewrap cannot make a folder below a file."""
        tries.append(1)
        at = launch.argv.index("--json-status-fd")
        argv = (*launch.argv[:at], "--dir", f"{tmp_path}/beside/work/f/g", *launch.argv[at:])
        return replace(launch, argv=argv, again=lambda: failing(confined()))

    def confined() -> Launch:
        launch = Launch(("/bin/echo", "ran"), walls.cwd, dict(os.environ))
        return Bubblewrap().confine(launch, None, walls)  # type: ignore[arg-type]

    (tmp_path / "beside" / "work" / "f").touch()
    capture = Capture(Outputs(str(tmp_path / "outputs")))
    told: list[str] = []
    run = CommandRun(failing(confined()), "MARK=m", capture, Progress(told.append))
    async with asyncio.timeout(60):
        assert await run.run(20) is False
    assert run.code == 1 and len(tries) == 8
    assert capture.text().count("bwrap: Can't") == 1 and "".join(told) == capture.text()
    capture.discard()


@LANDLOCK
def test_a_listed_name_that_has_become_a_link_opens_nothing(tmp_path: Path) -> None:
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "key").write_text("s3cret")
    (tmp_path / "open").mkdir()
    (tmp_path / "open" / "was-a-folder").symlink_to(tmp_path / "hidden")
    (tmp_path / "open" / "plain").write_text("plain")
    made = [Rule(str(tmp_path / "open"), "list")]
    made += [Rule(str(tmp_path / "open" / name), "write") for name in ("was-a-folder", "plain")]
    restrict = landlock.Landlock()._restrict
    fd = ruleset.make(made, ruleset.Handled(ruleset.ALL[1], size=8))
    got: list[str] = []

    def look() -> None:  # in a thread of its own, which alone is confined
        restrict(fd)
        got.append((tmp_path / "open" / "plain").read_text())
        try:
            got.append((tmp_path / "hidden" / "key").read_text())
        except PermissionError:
            got.append("refused")

    thread = threading.Thread(target=look)
    thread.start()
    thread.join(30)
    os.close(fd)
    assert got == ["plain", "refused"]
