"""What commands do beside a configuration that cannot be read: all that they can do without it."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.living import Living

from dragoman.cli.main import main

BROKEN = "[agents\nx ="


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a store, of which the configuration is broken afterwards."""
    for name in [name for name in os.environ if name.startswith(("DRAGOMAN_", "ZEROCLAW_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("DRAGOMAN_CONFIG_DIR", str(tmp_path))
    assert main(["token", "new", "--name", "laptop"]) == 0
    (tmp_path / "config.toml").write_text(BROKEN)
    return tmp_path


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("sessions", "no sessions"),
        ("approvals", "nothing waits"),
        ("approvals rules", "nothing is remembered"),
        ("token", "laptop"),
        ("pair", "-"),
        ("memory", "nothing is remembered"),
        ("config explain acp.max_sessions", "How many sessions"),
    ],
)
def test_what_does_not_depend_on_it_works(
    folder: Path, line: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(line.split()) == 0
    shown = capsys.readouterr()
    assert says in shown.out and shown.err.count("config.toml:1") == 1


@pytest.mark.parametrize("line", ["models", "agents", "config get", "apps"])
def test_what_is_in_it_is_not_made_up(
    folder: Path, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(line.split()) == 1
    shown = capsys.readouterr()
    assert not shown.out and "config.toml:1" in shown.err


@pytest.mark.parametrize("line", ["sessions", "token"])
def test_a_store_that_may_be_elsewhere_is_not_guessed(
    folder: Path, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "config.toml").write_text(f'[store]\npath = "/srv/sessions.db"\n{BROKEN}')
    assert main([line]) == 1
    shown = capsys.readouterr()
    assert not shown.out and shown.err.count("config.toml:3") == 1


def test_a_store_that_is_not_there_is_not_shown_as_empty(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "data" / "sessions.db").unlink()
    assert main(["sessions"]) == 1 and not capsys.readouterr().out


def test_what_an_agent_remembers_is_found_by_its_file(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from dragoman.agents.memory import Memories

    (folder / "data" / "memory").mkdir()
    memories = Memories(str(folder / "data" / "memory"))
    memories.of("coder").store("k1", "tabs, not spaces", "core")
    memories.close()
    assert main(["memory"]) == 0 and "tabs, not spaces" in capsys.readouterr().out


def test_a_mark_of_the_encoding_is_no_mistake(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "config.toml").write_bytes(b"\xef\xbb\xbf[acp]\nmax_sessions = 7\n")
    assert main(["config", "get", "acp.max_sessions"]) == 0
    assert capsys.readouterr().out == "7\n"
    assert main(["config", "set", "acp.max_sessions", "8"]) == 0


def test_a_pipe_is_not_waited_for(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "config.toml").unlink()
    os.mkfifo(folder / "config.toml")
    assert main(["config", "get"]) == 1
    assert "Move it away" in capsys.readouterr().err


def test_a_folder_in_its_place_is_to_be_moved_away(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "config.toml").unlink()
    (folder / "config.toml").mkdir()
    assert main(["config", "get"]) == 1
    assert "Move it away" in capsys.readouterr().err


@pytest.fixture
def beside(tmp_path: Path) -> Iterator[Living]:
    living = Living(tmp_path)
    del living.env["DRAGOMAN_agents__default__model"]
    living.start()
    yield living
    living.stop()


def test_a_running_daemon_goes_on(beside: Living) -> None:
    (beside.config / "config.toml").write_text(BROKEN)
    assert "demo model" in beside.says("run", "hello")
    assert "No app x is started here" in beside.run("apps", "restart", "x").stderr
