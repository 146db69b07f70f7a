"""A workspace that contains our own configuration and data: whole for commands, minus those."""

import ctypes
from pathlib import Path

import pytest
from tests.sandbox.test_escapes import needs_landlock

from dragoman.engine.content import text_of
from dragoman.policy.paths import Boundary
from dragoman.sandbox.landlock import Landlock
from dragoman.sandbox.room import possible
from dragoman.sandbox.veil import hidden
from dragoman.tools.registry import Registry

needs_mounts = pytest.mark.skipif(
    not possible(ctypes.CDLL(None, use_errno=True)), reason="no mount namespaces here"
)


class Env:
    session, turn, call_id, agent, mode = "s", "t", "c", "a", "supervised"
    roots: tuple[str, ...] = ()
    reach: tuple[str, ...] = ()
    files = terminals = None
    variables: dict[str, str] = {}
    vision = False

    def __init__(self, cwd: Path) -> None:
        self.cwd = str(cwd)

    def progress(self, text: str) -> None:
        return None


async def run(work: Path, home: Path, command: str) -> str:
    walls = Boundary(
        str(work), protected=(str(home / "config.toml"), str(home / "data"), str(home / "agents"))
    )
    scratch = home / "data" / "tmp"
    scratch.mkdir(parents=True, exist_ok=True)
    registry = Registry(lambda env: walls, confine=Landlock, extra_env={"TMPDIR": str(scratch)})
    tool = registry.toolbox().find("bash")
    assert tool is not None
    return text_of((await tool.run({"command": command}, Env(work))).content)  # type: ignore[arg-type]


@needs_landlock
@needs_mounts
@pytest.mark.parametrize("place", ["below", "same"])
async def test_new_files_can_be_made_and_ours_can_not_be_seen_or_made(tmp_path, place):
    home = tmp_path / "cfg" if place == "below" else tmp_path
    (home / "data").mkdir(parents=True)
    (home / "data" / "sessions.db").write_text("secret")
    said = await run(
        tmp_path,
        home,
        "touch new && mkdir sub && echo made; mktemp && echo scratch; "
        f"cat {home}/data/sessions.db; echo bad > {home}/config.toml; "
        f"mkdir -p {home}/agents/x; umount {home}/data; cat {home}/data/sessions.db; true",
    )
    assert "\nmade\n" in said and "scratch" in said
    assert "secret" not in said.replace(f"{home}/data/sessions.db", "")
    assert (tmp_path / "new").exists() and (tmp_path / "sub").is_dir()
    config = home / "config.toml"
    assert not config.exists() or config.read_text() == ""
    assert not (home / "agents" / "x").exists()
    assert (home / "data" / "sessions.db").read_text() == "secret"


def test_what_is_covered(tmp_path):
    (tmp_path / "cfg" / "data").mkdir(parents=True)
    root, cfg = str(tmp_path), str(tmp_path / "cfg")
    assert hidden([root], [f"{cfg}/data"], []) == (f"{cfg}/data",)
    assert hidden([root], [f"{cfg}/config.toml", f"{cfg}/data"], []) == (cfg,)
    assert hidden([root], ["/etc", f"{root}/none"], []) == ()
    assert hidden([cfg], [root], []) == ()
    assert hidden([root], [f"{root}/config.toml"], [f"{root}/config.toml"]) == (
        f"{root}/config.toml",
    )
    assert (tmp_path / "config.toml").read_text() == ""
