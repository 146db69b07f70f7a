"""What the host itself runs is never what an agent may have written."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.observe import programs
from dragoman.observe.programs import find
from dragoman.sandbox.bubblewrap import Bubblewrap
from dragoman.tools import ripgrep

SRC = Path(programs.__file__).parents[1]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A project that we are in, and no folder of the system: it has these programs, perhaps."""
    monkeypatch.setattr(programs, "_SYSTEM", ())
    monkeypatch.setattr(programs, "_open_places", lambda: [])
    programs._candidates.cache_clear()


def put(folder: Path, name: str = "rg") -> str:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("#!/bin/sh\ntouch PWNED\n")
    (folder / name).chmod(0o755)
    return str(folder / name)


def test_the_systems_own_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own, system = put(tmp_path / "own"), put(tmp_path / "system")
    monkeypatch.setenv("PATH", os.path.dirname(own))
    assert find("rg") == own
    programs._candidates.cache_clear()
    monkeypatch.setattr(programs, "_SYSTEM", (os.path.dirname(system),))
    assert find("rg") == system


def test_what_lies_where_agents_write_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, tools = tmp_path / "project", tmp_path / "tools"
    planted, good = put(project / "bin"), put(tools)
    (tmp_path / "link").symlink_to(project / "bin")
    for first in (project / "bin", tmp_path / "link"):
        monkeypatch.setenv("PATH", f"{first}:{tools}")
        assert find("rg", [str(project)]) == good
    monkeypatch.setenv("PATH", str(project / "bin"))
    assert find("rg", [str(project)]) == "" and find("rg") == planted


def test_the_folder_that_we_are_in_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(programs, "_SYSTEM", ())
    put(tmp_path / "bin", "planted-here")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("TMPDIR", "/nowhere")
    monkeypatch.chdir(tmp_path)
    assert find("planted-here") == ""


@pytest.mark.parametrize("path", ["", ".", "bin", "./bin", ":"])
def test_a_folder_that_is_not_absolute_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    put(tmp_path / "bin")
    put(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", path)
    assert find("rg") == ""


def test_programs_of_a_projects_environment_do_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv/pyvenv.cfg").write_text("home = /usr/bin\n")
    places = [tmp_path / ".venv/bin", tmp_path / "node_modules/.bin"]
    for place in places:
        put(place)
        put(place, "bwrap")
    monkeypatch.setenv("PATH", ":".join(map(str, places)))
    assert find("rg") == "" and ripgrep.program() == "" and Bubblewrap().program == ""


def test_our_own_interpreter_never_looks_into_the_working_directory_first() -> None:
    """A `json.py` of a project would be part of us: each start says -P, or -I."""
    for file in SRC.rglob("*.py"):
        text = re.sub(r"#.*", "", file.read_text())
        for found in re.finditer(r'"-m",\s+"dragoman', text):
            before = text[: found.start()].rstrip().rstrip(",")
            assert re.search(r'"-[PIB]"(,\s+"-B")?$', before), f"{file}: {found.group()}"


def test_a_module_of_the_working_directory_is_not_ours(tmp_path: Path) -> None:
    for name in ("json", "tomllib", "asyncio", "msgspec", "difflib", "tree_sitter"):
        (tmp_path / f"{name}.py").write_text("open('PWNED', 'w').close()\nraise SystemExit(9)\n")
    env = {**os.environ, "DRAGOMAN_CONFIG_DIR": str(tmp_path / "c")}
    for words in (["agents", "--json"], ["doctor"]):
        done = subprocess.run(
            [sys.executable, "-m", "dragoman", *words], cwd=tmp_path, env=env, timeout=60,
            capture_output=True, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.returncode != 9, done.stderr
    assert not (tmp_path / "PWNED").exists()
