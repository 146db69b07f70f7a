"""What must stay in its place stays there: the folders on the way to it cannot be swapped."""

import ctypes
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.sandbox.test_escapes import needs_landlock
from tests.sandbox.test_veil import Env

from dragoman.engine.content import text_of
from dragoman.policy.paths import Boundary
from dragoman.sandbox.bubblewrap import Bubblewrap
from dragoman.sandbox.landlock import Landlock
from dragoman.sandbox.launch import Launch
from dragoman.sandbox.room import possible, ways
from dragoman.tools.registry import Registry

needs_bwrap = pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is missing")
needs_mounts = pytest.mark.skipif(
    not possible(ctypes.CDLL(None, use_errno=True)), reason="no mount namespaces here"
)
BOXES = [
    pytest.param(Landlock, marks=[needs_landlock, needs_mounts]),
    pytest.param(Bubblewrap, marks=needs_bwrap),
]
Box = Callable[[], Any]


async def run(box: Box, walls: Boundary, command: str, scratch: Path) -> str:
    registry = Registry(lambda env: walls, confine=box, extra_env={"TMPDIR": str(scratch)})
    tool = registry.toolbox().find("bash")
    assert tool is not None
    done = await tool.run({"command": command}, Env(Path(walls.cwd)))  # type: ignore[arg-type]
    return text_of(done.content)


def ours(home: Path) -> tuple[str, ...]:
    (home / "data/tmp").mkdir(parents=True)
    (home / "config.toml").write_text("ours")
    return (str(home / "config.toml"), str(home / "data"), str(home / "agents"))


SWAPS = (
    "mv {0} away; mkdir -p {0}/b/cfg; echo evil > {0}/b/cfg/config.toml",
    "mv {0}/b away; mkdir -p {0}/b/cfg; echo evil > {0}/b/cfg/config.toml",
    "mv {0}/b/cfg away; mkdir -p {0}/b/cfg; echo evil > {0}/b/cfg/config.toml",
    "mkdir -p n/b/cfg; echo evil > n/b/cfg/config.toml; mv --exchange n {0}; mv -T n {0}",
    "rm -rf {0}; mkdir -p {0}/b/cfg; echo evil > {0}/b/cfg/config.toml",
    "python3 -c \"import os; os.rename('{0}', 'z'); os.symlink('z', '{0}')\"",
)


@pytest.mark.parametrize("box", BOXES)
@pytest.mark.parametrize("place", ["root", "writable"])
async def test_the_way_to_what_is_hidden_cannot_be_swapped(
    tmp_path: Path, box: Box, place: str
) -> None:
    """It would be our configuration when we start the next time."""
    top = tmp_path / "top"
    home = top / "a/b/cfg"
    protected = ours(home)
    work = top if place == "root" else tmp_path / "work"
    work.mkdir(exist_ok=True)
    walls = Boundary(str(work), (), (), protected=protected, writable=(str(top),))
    command = "\n".join(one.format(top / "a") for one in SWAPS)
    said = await run(box, walls, f"cd {top} && touch new\n{command}\ntrue", home / "data/tmp")
    assert (home / "config.toml").read_text() == "ours", said
    assert (home / "data").is_dir() and not (home / "agents").is_symlink()
    assert not any((home / "agents").glob("*")) and not (top / "a").is_symlink()
    assert (top / "new").exists() or (box is Landlock and place == "writable")


@pytest.mark.parametrize("box", BOXES)
async def test_a_project_in_a_temporary_folder_stays_with_its_repository(
    tmp_path: Path, box: Box
) -> None:
    work = tmp_path / "projects/work"
    for name in ("objects", "refs", "hooks", "modules/sub/objects", "modules/sub/refs"):
        (work / ".git" / name).mkdir(parents=True)
    for name in (".git", ".git/modules/sub"):
        (work / name / "HEAD").write_text("ref: refs/heads/main\n")
        (work / name / "config").write_text("[core]\n")
    walls = Boundary(str(work), (), (), writable=(str(tmp_path),))
    evil = "echo '[core] fsmonitor=evil' >"
    said = await run(
        box,
        walls,
        f"mv .git/modules .git/m; mkdir -p .git/modules/sub; {evil} .git/modules/sub/config\n"
        f"cd {tmp_path}; mv projects p; mkdir -p projects/work/.git; {evil} "
        f"projects/work/.git/config; mv projects/work projects/w; mkdir -p projects/work/.git; "
        f"{evil} projects/work/.git/config; true",
        tmp_path,
    )
    assert (work / ".git/config").read_text() == "[core]\n", said
    assert (work / ".git/modules/sub/config").read_text() == "[core]\n", said


@needs_bwrap
def test_bubblewrap_binds_no_neighbours(tmp_path: Path) -> None:
    """What is hidden is covered in its place, however much lies beside it."""
    protected = ours(tmp_path / "cfg")
    (tmp_path / "work").mkdir()
    walls = Boundary(str(tmp_path / "work"), (), (), protected=protected, writable=(str(tmp_path),))
    env = {"TMPDIR": str(tmp_path / "cfg/data/tmp"), "PATH": "/usr/bin:/bin"}
    launch = Launch(("true",), str(tmp_path / "work"), env)

    def words() -> int:
        made = Bubblewrap().confine(launch, None, walls)  # type: ignore[arg-type]
        assert made.done is not None
        made.done()
        return len(made.argv)

    before = words()
    for number in range(500):
        (tmp_path / f"neighbour{number}").touch()
    assert words() == before


def test_ways() -> None:
    assert ways(["/t/a/b/c", "/t/d"], ["/t"]) == ["/t/a", "/t/a/b"]
    assert ways(["/t/work/.git/config"], ["/t", "/t/work"]) == ["/t/work", "/t/work/.git"]
    assert ways(["/other/x/y"], ["/t"]) == []
    assert ways(["/t"], ["/t"]) == []
