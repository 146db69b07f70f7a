"""Where the daemon listens: environment before configuration before the usual place."""

from pathlib import Path

import pytest

from dragoman.client.address import socket_path


def env(folder: Path, **more: str) -> dict[str, str]:
    return {"HOME": str(folder), "DRAGOMAN_CONFIG_DIR": str(folder), **more}


def test_the_usual_place_is_in_the_data_directory(tmp_path: Path) -> None:
    found = socket_path(env=env(tmp_path))
    assert found.startswith(str(tmp_path)) and found.endswith("daemon.sock")
    assert socket_path(env=env(tmp_path), dialect="acp").endswith("acp.sock")


def test_the_configuration_and_the_environment(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(f'[listen]\nzeroclaw = "{tmp_path}/mine.sock"\n')
    assert socket_path(env=env(tmp_path)) == f"{tmp_path}/mine.sock"
    given = env(tmp_path, DRAGOMAN_listen__zeroclaw="/else/where.sock")
    assert socket_path(env=given) == "/else/where.sock"
    assert socket_path(env=env(tmp_path), dialect="acp").endswith("acp.sock")


@pytest.mark.parametrize(
    "text",
    [b"[listen\n", b"listen = 5\n", b"[listen]\nzeroclaw = 5\n", b"[listen]\nzeroclaw = ''\n",
     b"\xff listen", b"# listen\n"],
)  # fmt: skip
def test_a_configuration_that_does_not_say_is_passed_over(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "config.toml").write_bytes(text)
    assert socket_path(env=env(tmp_path)).endswith("daemon.sock")


def test_a_relative_path_is_the_same_wherever_one_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The daemon runs in another folder than those who look for it."""
    (tmp_path / "config.toml").write_text('[listen]\nzeroclaw = "x.sock"\nacp = "~/a.sock"\n')
    by_env = {"HOME": "/h", "DRAGOMAN_listen__any": "~/any.sock"}
    for folder in (tmp_path, Path("/")):
        monkeypatch.chdir(folder)
        assert socket_path(str(tmp_path), env={"HOME": "/h"}) == str(tmp_path / "data/x.sock")
        assert socket_path(str(tmp_path), dialect="acp", env={"HOME": "/h"}) == "/h/a.sock"
        assert socket_path(str(tmp_path), dialect="any", env=by_env) == "/h/any.sock"
