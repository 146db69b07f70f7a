"""Commands under bubblewrap: the workspace and programs are there, the rest is not."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.sandbox.test_veil import Env

from dragoman.engine.content import text_of
from dragoman.policy.paths import Boundary
from dragoman.sandbox.bubblewrap import Bubblewrap
from dragoman.sandbox.choose import choose, describe
from dragoman.tools.registry import Registry

pytestmark = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is missing")


async def run(
    work: Path, command: str, *, network: bool = True, protected: str = "", **more: Any
) -> str:
    walls = Boundary(str(work), protected=(protected,) if protected else (), **more)
    registry = Registry(lambda env: walls, confine=lambda: Bubblewrap(network=network))
    tool = registry.toolbox().find("bash")
    assert tool is not None
    return text_of((await tool.run({"command": command}, Env(work))).content)  # type: ignore[arg-type]


async def test_programs_run_and_the_workspace_can_be_written(tmp_path):
    said = await run(tmp_path, "echo hi > made && cat made && python3 -c 'print(6*7)'")
    assert "hi\n42" in said and (tmp_path / "made").read_text() == "hi\n"


async def test_the_rest_is_not_there(tmp_path):
    work, other = tmp_path / "work", tmp_path / "other"
    work.mkdir()
    other.mkdir()
    (other / "secret").write_text("s3cret")
    said = await run(
        work,
        f"cat {other}/secret /etc/shadow /proc/1/root{other}/secret; ls -d /root/.ssh; "
        f"ln -s {other}/secret link; cat link; touch /usr/x; mount -t tmpfs none /usr; true",
    )
    assert "s3cret" not in said and "root:" not in said
    assert not Path("/usr/x").exists()


async def test_our_own_data_inside_of_the_workspace_is_hidden(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "db").write_text("s3cret")
    said = await run(
        tmp_path,
        "touch new && echo made; cat data/db; umount data; cat data/db; echo x > data/db; true",
        protected=str(tmp_path / "data"),
    )
    assert "made" in said and "s3cret" not in said
    assert (tmp_path / "data" / "db").read_text() == "s3cret"


async def test_a_temporary_folder_around_the_workspace_uncovers_nothing(tmp_path, monkeypatch):
    work = tmp_path / "work"
    (work / "data" / "tmp").mkdir(parents=True)
    (work / "data" / "db").write_text("s3cret")
    for scratch in (tmp_path, work / "data" / "tmp"):
        monkeypatch.setenv("TMPDIR", str(scratch))
        said = await run(
            work, "echo x > $TMPDIR/mine && echo made; cat data/db", protected=str(work / "data")
        )
        assert "made" in said and "s3cret" not in said
        assert (scratch / "mine").exists()


async def test_where_everything_may_be_written_crowds_are_no_hindrance(tmp_path):
    """A mount for each neighbour of what is hidden took long, and above 3,000 there was none."""
    crowd, absent = tmp_path / "crowd", tmp_path / "beside" / "absent"
    work, ours, sealed = (crowd / name for name in ("work", "data", "sealed"))
    for folder in (work, ours / "deep", sealed, absent.parent):
        folder.mkdir(parents=True)
    for number in range(4_000):
        (crowd / f"n{number}").touch()
    secrets = (ours / "db", sealed / "file", crowd / "key")
    for file in secrets:
        file.write_text("s3cret")
    said = await run(
        work,
        "cd ..; cat data/db key; echo x > data/db; echo x > key; rm -f key; echo x > sealed/file;"
        " mv data away; mv sealed away; rm -f sealed/file; rm -rf data;"
        " mkdir ../beside/absent; mv ../beside ../away; mv ../crowd ../away;"
        " echo new > new && echo more >> n7 && mkdir sub && mv sub sub2 && echo ma''de",
        protected=str(ours), forbidden=(str(crowd / "key"), str(absent)),
        sealed=(str(sealed),), workspace_only=False,
    )  # fmt: skip
    assert "made" in said, said
    assert (crowd / "new").exists() and (crowd / "n7").read_text() and (crowd / "sub2").is_dir()
    assert [file.read_text() for file in secrets] == ["s3cret"] * 3
    assert said.count("s3cret") == 0 and (ours / "deep").is_dir()
    assert not absent.exists() and not (tmp_path / "away").exists()
    assert not (crowd / "away").exists() and absent.parent.is_dir()


async def test_without_network_there_is_none(tmp_path):
    said = await run(tmp_path, "cat /proc/net/dev | wc -l", network=False)
    assert "\n3\n" in said  # two lines of headings, and a loopback of its own


def test_it_is_chosen_by_name_and_says_what_holds():
    chosen = choose("bubblewrap", network=False)
    assert chosen.name == "bubblewrap" and "no network" in describe(chosen)
