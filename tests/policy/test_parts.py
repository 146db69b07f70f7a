"""The small parts of the policy, each by itself."""

import os
from pathlib import Path

import pytest

from dragoman.policy.guarded import guarded
from dragoman.policy.interpreters import environment, installation, installations
from dragoman.policy.repository import tame
from dragoman.policy.shells import plain, shell


def test_the_shell_is_bash_where_there_is_one_and_reads_no_files_first() -> None:
    if os.access("/bin/bash", os.X_OK):
        assert os.path.basename(shell()[0]) == "bash" and {"--norc", "--noprofile"} <= set(shell())
    assert shell()[-1] == "-c"


@pytest.mark.parametrize(
    "variable",
    ["BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "CDPATH", "IFS", "PS4", "BASH_FUNC_ls%%",
     "BASH_LOADABLES_PATH", "POSIXLY_CORRECT", "ls()"],
)  # fmt: skip
def test_nothing_in_the_environment_changes_what_a_command_says(variable: str) -> None:
    assert variable not in plain({variable: "x", "HOME": "/h"})
    assert plain({"HOME": "/h", "f": "() { rm x; }"}).keys() == {"HOME", "PATH"}


def test_only_absolute_folders_stay_on_the_path() -> None:
    assert plain({"PATH": ".:/bin::bin:/usr/bin"})["PATH"] == "/bin:/usr/bin"


def test_what_is_guarded_is_so_in_workspaces_alone() -> None:
    assert guarded("/w/.git/config", ("/w",))
    assert guarded("/w/deep/.vscode/x", ("/w",))
    assert not guarded("/v/.git/config", ("/w",))
    assert not guarded("/w", ("/w",))
    assert not guarded("/home/.vscode/w/x", ("/home/.vscode/w",))  # the workspace's own place


def test_an_installation_is_known_by_its_library(tmp_path: Path) -> None:
    place = tmp_path / ".venv"
    (place / "bin").mkdir(parents=True)
    (place / "pyvenv.cfg").write_text(f"home = {tmp_path}/python/bin\n")
    assert environment(f"{place}/bin/python") == str(place)
    assert installation(str(place)) == ""  # nothing is there
    (tmp_path / "python/bin").mkdir(parents=True)
    (tmp_path / "python/bin/python3").touch()
    assert installation(str(place)) == ""  # a program alone is no installation
    (tmp_path / "python/lib/python3.11").mkdir(parents=True)
    (tmp_path / "python/lib/python3.11/os.py").touch()
    assert installations((str(tmp_path),)) == (f"{tmp_path}/python",)


def test_a_repository_is_tame_by_what_it_says(tmp_path: Path) -> None:
    assert tame(str(tmp_path))
    (tmp_path / ".git/objects").mkdir(parents=True)
    (tmp_path / ".git/refs").mkdir()
    (tmp_path / ".git/HEAD").write_text("a" * 40)
    (tmp_path / ".git/config").write_text('[remote "origin"]\n\turl = x\n')
    assert tame(str(tmp_path))
    (tmp_path / ".git/config").write_text("[core]\n\teditor = x\n")
    assert not tame(str(tmp_path))
