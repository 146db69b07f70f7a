"""Who may open our data: a command without mounts of its own can ask for it, and not get it."""

import asyncio
import os
import stat
from pathlib import Path

import pytest
from tests.tools.making import Env

from dragoman.engine.content import text_of
from dragoman.policy.autonomy import AutonomyPolicy, Rules
from dragoman.policy.profiles import STANDARD
from dragoman.sandbox import modes, room
from dragoman.sandbox.landlock import Landlock, abi
from dragoman.tools.registry import Registry

pytestmark = pytest.mark.skipif(abi() == 0, reason="no Landlock here")


@pytest.fixture
def ours(tmp_path: Path) -> tuple[Path, Path]:
    data, config = tmp_path / "data", tmp_path / "config.toml"
    (data / "inner").mkdir(parents=True)
    data.chmod(0o700)
    for file in (config, data / "sessions.db", data / "inner/x"):
        file.write_text("secret")
        file.chmod(0o600)
    return data, config


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


async def run(ours: tuple[Path, Path], command: str) -> tuple[str, list[int]]:
    """What it said, and the modes of our data folder while it ran."""
    top = ours[0].parent
    (top / "work").mkdir(exist_ok=True)
    rules = Rules(forbidden_paths=STANDARD.forbidden, legible_paths=STANDARD.legible)
    policy = AutonomyPolicy(rules, protected=[str(path) for path in ours], home=str(top))
    registry = Registry(
        lambda env: policy.boundary(env.mode, env.cwd, env.roots, env.reach), confine=Landlock
    )
    tool = registry.toolbox().find("bash")
    assert tool is not None
    task = asyncio.ensure_future(tool.run({"command": command}, Env(str(top / "work"))))  # type: ignore[arg-type]
    seen = []
    while not task.done():
        seen.append(mode(ours[0]))
        await asyncio.sleep(0.02)
    return text_of((await task).content), seen


async def test_chmod_changes_nothing_that_matters(
    ours: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "possible", lambda libc: False)  # as where users have no namespaces
    data, config = ours
    for words in (
        f"chmod 777 {data}; chmod 666 {config}",
        f"chmod 000 {data}/sessions.db {data}/inner {config}",
        f"chmod 000 {data}",
        f"chmod 2777 {data}",
    ):
        text, _ = await run(ours, words)
        assert "[undone: it changed who may open" in text, text
        assert (mode(data), mode(config)) == (0o700, 0o600)
        assert mode(data / "sessions.db") & 0o600 == 0o600 and mode(data / "inner") & 0o700
    waits = f'while [ "$(stat -c %a {data})" != 700 ]; do sleep 0.05; done; echo mended'
    text, _ = await run(ours, f"chmod 777 {data}; {waits}")
    assert "\nmended\n\n[undone: it changed who may open" in text, text  # while it ran
    text, _ = await run(ours, "chmod +x ../work; true")
    assert "undone" not in text


async def test_with_mounts_it_is_refused(ours: tuple[Path, Path]) -> None:
    if not room.possible(__import__("ctypes").CDLL(None)):
        return  # the test before is about this machine
    text, seen = await run(ours, f"chmod 777 {ours[0]}; chmod 666 {ours[1]}")
    assert text.count("Read-only file system") == 2 and set(seen) == {0o700}


def test_only_what_is_ours_to_mend(ours: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "other").write_text("x")
    (tmp_path / "other").chmod(0o644)
    (ours[0] / "link").symlink_to(tmp_path / "other")
    os.chmod(ours[0] / "inner", 0)
    assert modes.mend([str(path) for path in (*ours, tmp_path / "none")]) == [str(ours[0])]
    assert mode(tmp_path / "other") == 0o644 and mode(ours[0] / "inner") == 0o700
    assert modes.mend([str(path) for path in ours]) == []
