"""How git is called, and where a checkout is."""

from pathlib import Path

import pytest

from dragoman.host.git import checkout_of, plain_env


def test_the_checkout_around_a_folder_is_found(tmp_path: Path) -> None:
    top = tmp_path / "repository"
    inner = top / "a" / "b"
    inner.mkdir(parents=True)
    (top / ".git").mkdir()
    (tmp_path / "link").symlink_to(inner)
    assert checkout_of(str(inner)) == checkout_of(str(tmp_path / "link")) == str(top)
    assert checkout_of("/") == ""


def test_wishes_of_the_environment_do_not_steer_git(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_DIR", "/elsewhere")
    env = plain_env()
    assert "GIT_DIR" not in env and env["GIT_TERMINAL_PROMPT"] == "0" and "PATH" in env
