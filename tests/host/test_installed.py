"""Nobody writes the program that holds him: our own code is sealed, wherever it lies."""

import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.tools.making import Env

import dragoman
from dragoman.engine.content import ToolCall, text_of
from dragoman.host import installed
from dragoman.policy.autonomy import AutonomyPolicy, Rules
from dragoman.policy.profiles import STANDARD
from dragoman.sandbox import room
from dragoman.sandbox.bubblewrap import Bubblewrap
from dragoman.sandbox.landlock import Landlock, abi
from dragoman.tools.registry import Registry

TRICKS = (
    "echo evil >> .venv/lib/python3.11/site-packages/dragoman/__init__.py",
    "echo evil > .venv/lib/python3.11/site-packages/evil.pth",
    "rm -rf .venv",
    "mv .venv gone",
    "mv .venv/bin/python old; echo evil > .venv/bin/python",
    "chmod 777 .venv/bin/python",
    "ln -f a.txt .venv/lib/python3.11/site-packages/dragoman/__init__.py",
    "python3 -c \"open('.venv/bin/python', 'w')\"",
)


def ways() -> list[Any]:
    found: list[Any] = []
    if abi():
        found += [pytest.param(Landlock, True, id="landlock")]
        found += [pytest.param(Landlock, False, id="landlock without mounts")]
    if shutil.which("bwrap"):
        found.append(pytest.param(Bubblewrap, True, id="bubblewrap"))
    return found


def project(top: Path) -> dict[str, bytes]:
    site = top / ".venv/lib/python3.11/site-packages/dragoman"
    site.mkdir(parents=True)
    (top / ".venv/bin").mkdir()
    (site / "__init__.py").write_text("ours")
    (top / ".venv/bin/python").write_text("ours")
    (top / "a.txt").write_text("a")
    return seen(top)


def seen(top: Path) -> dict[str, bytes]:
    return {
        str(path): path.read_bytes() + bytes([path.stat().st_mode & 0o7])
        for path in (top / ".venv").rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("mode", ["supervised", "full"])
@pytest.mark.parametrize(("backend", "mounts"), ways())
async def test_commands_cannot_write_us(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, backend: Any, mounts: bool, mode: str
) -> None:
    if not mounts:
        monkeypatch.setattr(room, "possible", lambda libc: False)
    work, scratch = tmp_path / "work", tmp_path / "scratch"
    work.mkdir()
    scratch.mkdir()
    before = project(work)
    policy = rules(work)
    tool = Registry(
        lambda env: policy.boundary(env.mode, env.cwd, env.roots, env.reach),
        confine=backend, outputs=str(tmp_path / "outputs"),
        extra_env={"TMPDIR": str(scratch), "HOME": str(tmp_path)},
    ).toolbox().find("bash")  # fmt: skip
    assert tool is not None
    env = Env(str(work))
    env.mode = mode
    tricks = TRICKS if mounts else [one for one in TRICKS if "chmod" not in one]
    for trick in tricks:
        said = text_of((await tool.run({"command": trick, "timeout": 10}, env)).content)  # type: ignore[arg-type]
        assert seen(work) == before, (trick, said)
    said = text_of((await tool.run({"command": "cat .venv/bin/python"}, env)).content)  # type: ignore[arg-type]
    assert "ours" in said
    said = text_of((await tool.run({"command": "echo b > a.txt"}, env)).content)  # type: ignore[arg-type]
    assert (work / "a.txt").read_text() == "b\n", said


def rules(work: Path) -> AutonomyPolicy:
    given = Rules(
        forbidden_paths=STANDARD.forbidden, legible_paths=STANDARD.legible,
        sealed_paths=(*STANDARD.sealed, str(work / ".venv")),
    )  # fmt: skip
    return AutonomyPolicy(given, home=str(work.parent))


@pytest.mark.parametrize("mode", ["supervised", "full"])
def test_nor_can_file_tools(tmp_path: Path, mode: Any) -> None:
    project(tmp_path)
    tool = Registry(lambda env: None).toolbox().find("write")  # type: ignore[arg-type,return-value]
    assert tool is not None
    call = ToolCall("c", "write", {"path": ".venv/bin/python", "content": "evil"})
    judged = rules(tmp_path).judge(call, tool.spec, mode=mode, cwd=str(tmp_path), roots=())
    assert judged.verdict == "deny" and "never written" in judged.reason


def test_what_is_ours() -> None:
    package = os.path.dirname(os.path.realpath(dragoman.__file__))
    assert package in installed.own_code()
    if sys.prefix != sys.base_prefix:
        assert os.path.realpath(sys.prefix) in installed.own_code()
    assert installed.inside(os.path.dirname(package)) and not installed.inside("/nowhere")


async def test_every_agent_and_server_is_kept_from_it(tmp_path: Path) -> None:
    from dragoman.host.compose import compose

    host = await compose(config_dir=str(tmp_path))
    try:
        profile = host.roster.profile("default")
        found = host.roster.policy(profile).rules.sealed_paths
        assert set(installed.own_code()) <= set(found)
    finally:
        await host.close()


@pytest.mark.parametrize("mark", ["pipx_metadata.json", "uv-receipt.toml"])
def test_who_has_us_apart_from_projects_is_not_told_to_install_us_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mark: str
) -> None:
    from dragoman.host import doctor

    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(installed, "own_code", lambda: (str(tmp_path / "lib"),))
    monkeypatch.setattr(doctor, "launch_dir", lambda: str(tmp_path))
    assert [row.severity for row in doctor.beside()] == ["warn"]
    (tmp_path / mark).touch()
    assert list(doctor.beside()) == []
