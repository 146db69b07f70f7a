"""The service files, by their content; `systemctl` is a script that notes how it is called."""

import configparser
import plistlib
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.cli import main, units
from dragoman.cli.verbs import service


def test_the_unit_says_what_systemd_needs() -> None:
    text = units.unit(["/opt/my tools/dragoman", "daemon", "--config-dir", "/a/100%/$x"], "/c", {})
    parsed = configparser.RawConfigParser(strict=True)
    parsed.optionxform = str  # type: ignore[assignment,method-assign]
    parsed.read_string(text)
    assert parsed["Service"]["Type"] == "notify"
    assert parsed["Service"]["ExecStart"] == (
        '"/opt/my tools/dragoman" daemon --config-dir /a/100%%/$$x'
    )
    assert parsed["Service"]["EnvironmentFile"] == "-/c/env"
    assert parsed["Service"]["Restart"] == "on-failure"
    assert parsed["Install"]["WantedBy"] == "default.target"


def test_the_plist_says_what_launchd_needs() -> None:
    parsed = plistlib.loads(units.plist(["/opt/dragoman", "daemon"], "/log", {}))
    assert parsed["Label"] == units.LABEL
    assert parsed["ProgramArguments"] == ["/opt/dragoman", "daemon"]
    assert parsed["RunAtLoad"] is True and parsed["KeepAlive"] == {"SuccessfulExit": False}


def test_what_says_where_things_are_goes_along(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Who made it has a shell with these variables; systemd and launchd have not."""
    systemctl(home)
    monkeypatch.chdir(home)
    for name in ("DRAGOMAN_CONFIG_DIR", "DRAGOMAN_SOCKET", "ZEROCLAW_SOCKET"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DRAGOMAN_DATA_DIR", "my $data 5%")
    monkeypatch.setenv("XDG_DATA_HOME", "/x/share")
    monkeypatch.setenv("DRAGOMAN_ACP_SOCKET", "~/acp.sock")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "of this shell")
    assert main.main(["service", "install"]) == 0
    capsys.readouterr()
    text = (home / ".config/systemd/user/dragoman.service").read_text()
    assert [line for line in text.splitlines() if line.startswith("Environment=")] == [
        f"Environment=DRAGOMAN_ACP_SOCKET={home}/acp.sock",
        f'Environment="DRAGOMAN_DATA_DIR={home}/my $data 5%%"',
        "Environment=XDG_DATA_HOME=/x/share",
    ]
    assert "of this shell" not in text
    parsed = plistlib.loads(units.plist(["d"], "/log", {"DRAGOMAN_DATA_DIR": "/d"}))
    assert parsed["EnvironmentVariables"] == {"DRAGOMAN_DATA_DIR": "/d"}


def test_where_the_files_go() -> None:
    assert units.unit_path({"HOME": "/h"}) == "/h/.config/systemd/user/dragoman.service"
    home = {"HOME": "/h", "XDG_CONFIG_HOME": "/x"}
    assert units.unit_path(home) == "/x/systemd/user/dragoman.service"
    assert units.plist_path(home) == "/h/Library/LaunchAgents/dev.dragoman.daemon.plist"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    bin = tmp_path / "bin"
    bin.mkdir()
    monkeypatch.setenv("PATH", str(bin))
    return tmp_path


def systemctl(home: Path, code: int = 0) -> Path:
    notes = home / "notes"
    script = home / "bin" / "systemctl"
    script.write_text(f'#!/bin/sh\necho "$@" >> {notes}\necho "no bus" >&2\nexit {code}\n')
    script.chmod(0o755)
    return notes


def test_install_status_uninstall(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    notes = systemctl(home)
    unit = home / ".config" / "systemd" / "user" / "dragoman.service"
    assert main.main(["service", "status"]) == 1
    assert main.main(["service", "install", "--config-dir", str(home / "c")]) == 0
    assert f"--config-dir {home / 'c'}" in unit.read_text()
    assert "daemon-reload" in notes.read_text() and "enable dragoman" in notes.read_text()
    assert main.main(["service", "status"]) == 0
    assert main.main(["service", "uninstall"]) == 0
    assert not unit.exists() and "disable --now dragoman.service" in notes.read_text()
    assert main.main(["service", "uninstall"]) == 0
    assert "there was none" in capsys.readouterr().out


def test_a_unit_that_cannot_be_written_is_named_and_the_one_before_stays(home: Path) -> None:
    systemctl(home)
    unit = home / ".config" / "systemd" / "user" / "dragoman.service"
    unit.parent.mkdir(parents=True)
    unit.write_text("of before")
    line = f"ulimit -f 0; exec {shlex.quote(sys.executable)} -m dragoman service install"
    done = subprocess.run(["/bin/sh", "-c", line], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stderr.startswith(f"dragoman: {unit} cannot be used: File too large.")
    assert unit.read_text() == "of before" and len(list(unit.parent.iterdir())) == 1


def test_a_unit_that_is_a_link_stays_one(home: Path) -> None:
    systemctl(home)
    unit = home / ".config" / "systemd" / "user" / "dragoman.service"
    unit.parent.mkdir(parents=True)
    kept = home / "dotfiles.service"
    kept.touch()
    unit.symlink_to(kept)
    assert main.main(["service", "install"]) == 0
    assert unit.is_symlink() and "ExecStart=" in kept.read_text()


def test_without_systemctl_the_file_is_written_and_the_next_step_is_said(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main(["service", "install"]) == 1
    said = capsys.readouterr()
    assert "systemctl is not on this system" in said.err
    assert "systemctl --user restart dragoman.service" in said.err
    assert "No systemd of yours runs here" in said.err
    assert said.err.endswith("Until then: dragoman daemon --background\n")
    assert (home / ".config" / "systemd" / "user" / "dragoman.service").exists()


def test_a_systemctl_that_fails_is_quoted(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    systemctl(home, 1)
    assert main.main(["service", "install"]) == 1
    assert "no bus" in capsys.readouterr().err


def test_where_systemd_runs_its_steps_are_said_alone(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "run" / "systemd").mkdir(parents=True)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(home / "run"))
    systemctl(home, 1)
    assert main.main(["service", "install", "--config-dir", str(home / "c")]) == 1
    said = capsys.readouterr().err
    assert "Do it yourself: systemctl --user enable" in said and "daemon --background" not in said
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    assert main.main(["service", "install", "--config-dir", str(home / "c")]) == 1
    said = capsys.readouterr().err
    assert said.endswith(f"dragoman daemon --background --config-dir {home / 'c'}\n")


def test_the_command_that_is_started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "dragoman"
    program.write_text("")
    program.chmod(0o755)
    monkeypatch.setattr("sys.argv", [str(program), "service"])
    assert service.command(None) == [str(program), "daemon"]
    monkeypatch.setattr("sys.argv", ["/x/__main__.py"])
    assert service.command("/c")[1:] == ["-P", "-m", "dragoman", "daemon", "--config-dir", "/c"]
