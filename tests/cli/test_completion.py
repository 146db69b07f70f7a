"""Completion scripts: made from the table, and understood by the shells."""

import os
import shlex
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from dragoman.cli import table
from dragoman.cli.main import main
from dragoman.cli.verbs import completion

MAKERS = {"bash": completion.bash, "zsh": completion.zsh, "fish": completion.fish}


@pytest.mark.parametrize("shell", MAKERS)
def test_a_script_has_every_command_and_flag(shell: str) -> None:
    script = MAKERS[shell](table.commands())
    for one in completion.walk(table.commands()):
        assert one.name in script
        for flag in one.flags:
            assert flag.name in script


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["conf"], {"config"}),
        (["config", "se"], {"set"}),
        (["config", "get", "--se"], {"--secrets"}),
        (["completion", "z"], {"zsh"}),
        (["--config-dir", "x", "config", "unse"], {"unset"}),
        (["sessions", "export", "x", "--format", "h"], {"html"}),
        (["rpc", "--reasoning", "x"], {"xhigh"}),
        (["sessions", "--ar"], {"--archived"}),
    ],
)
def test_bash_completes(words: list[str], expected: set[str]) -> None:
    script = completion.bash(table.commands())
    quoted = " ".join(f"'{word}'" for word in ["dragoman", *words])
    script += (
        f"\nCOMP_WORDS=({quoted}); COMP_CWORD={len(words)}; _dragoman; "
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert set(done.stdout.split()) == expected
    assert done.stderr == ""


def test_what_a_command_offers_first_it_takes_first() -> None:
    for one in completion.walk(table.commands()):
        later = {choice for arg in one.args[1:] for choice in arg.choices}
        assert not later & set(completion._words(one)), one.full_name


@pytest.mark.parametrize("words", [("bash", "key"), ("values",), ("values", "bogus")])
def test_a_kind_belongs_to_values_alone(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["completion", *words]) == 2
    said = capsys.readouterr()
    assert said.out == "" and ("unexpected" in said.err or "session, approval" in said.err)


KEPT = Path(__file__).parent.parent / "store" / "released" / "schema-3.sql"


def asked(shell: str, line: str, place: Path) -> set[str]:
    """What a real shell offers at the end of a line, the host's answers among it."""
    env = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "HOME": str(place)}
    env |= {"DRAGOMAN_CONFIG_DIR": str(place), "TERM": "dumb"}
    script = MAKERS[shell](table.commands())
    if shell == "fish":
        script += f"\ncomplete -C {shlex.quote(line)}"
    else:
        words = ["dragoman", *line.split(" ")[1:]]
        script += f"\nCOMP_WORDS=({' '.join(map(shlex.quote, words))}); COMP_CWORD={len(words) - 1}"
        script += '; _dragoman; printf "%s\\n" "${COMPREPLY[@]}"'
    done = subprocess.run(
        [shell, "-c", script], env=env, cwd=place, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0 and not done.stderr, done.stderr
    return {row.split("\t")[0] for row in done.stdout.splitlines()}


@pytest.mark.parametrize("shell", ["bash", *(one for one in ["fish"] if shutil.which(one))])
def test_ids_names_and_files_are_offered(shell: str, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    with closing(sqlite3.connect(tmp_path / "data" / "sessions.db")) as base:
        base.executescript(KEPT.read_text())
        ids = {row[0] for row in base.execute("SELECT id FROM sessions")}
    one = min(ids)
    assert asked(shell, f"dragoman sessions show {one[:8]}", tmp_path) == {one}
    assert one not in asked(shell, f"dragoman sessions show {one[:8]} ", tmp_path)
    assert one in asked(shell, "dragoman sessions --config-dir x show --json ", tmp_path)
    assert asked(shell, "dragoman config get gateway.po", tmp_path) == {"gateway.port"}
    assert "gateway.port" not in asked(shell, "dragoman config set gateway.port ", tmp_path)
    (tmp_path / "a talk.talk").touch()
    assert "a talk.talk" in " ".join(asked(shell, "dragoman replay a", tmp_path)).replace("\\", "")
    # What takes one of some words takes no file.
    assert asked(shell, "dragoman run --mode ", tmp_path) == {
        "readonly",
        "plan",
        "supervised",
        "full",
    }


def test_sessions_are_told_by_what_was_asked_and_keys_by_names_there_are(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    with closing(sqlite3.connect(tmp_path / "data" / "sessions.db")) as base:
        base.executescript(KEPT.read_text())
        ids = {row[0] for row in base.execute("SELECT id FROM sessions")}
    env = {**os.environ, "DRAGOMAN_CONFIG_DIR": str(tmp_path)}

    def values(kind: str) -> dict[str, str]:
        command = [sys.executable, "-m", "dragoman", "completion", "values", kind]
        done = subprocess.run(
            command, env=env, capture_output=True, text=True, timeout=60, check=True
        )
        return dict(row.split("\t") for row in done.stdout.splitlines())

    told = values("session")
    assert set(told) == ids and "idle" not in told.values()
    assert "agents.default.model" in values("key")
    (tmp_path / "config.toml").write_text("[agents.coder]\n[mcp.notes]\ncommand = 'x'\n")
    keys = values("key")
    assert {"agents.coder.model", "mcp.notes.command", "acp.max_sessions"} <= set(keys)
    assert "agents.default.model" not in keys and not any("<" in key for key in keys)
    (tmp_path / "config.toml").write_text("[broken")
    assert "acp.max_sessions" in values("key")  # where it is wrong it is to be set


def test_values_of_an_unknown_place_are_none(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "dragoman", "completion", "values"]
    (tmp_path / "config.toml").write_text("[broken")
    env = {**os.environ, "DRAGOMAN_CONFIG_DIR": str(tmp_path)}
    done = subprocess.run(
        [*command, "session"], env=env, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "session, approval, agent, key" in done.stderr


def test_zsh_script_is_well_formed() -> None:
    script = MAKERS["zsh"](table.commands())
    shell = "zsh" if shutil.which("zsh") else "bash"  # the script keeps to what both can parse
    subprocess.run([shell, "-n"], input=script, text=True, check=True, timeout=60)
    assert "local path" not in script, "path is $PATH in zsh"


def test_zsh_tells_times_as_they_are_written() -> None:
    assert ":a time: 2026-01-31T12:00, 12:30, or: in 2h'" in MAKERS["zsh"](table.commands())


def test_fish_script_is_one_complete_command_per_line() -> None:
    script = MAKERS["fish"](table.commands())
    for line in script.partition("\nend\n")[2].splitlines():
        words = shlex.split(line)
        assert words[:3] == ["complete", "-c", "dragoman"]
        assert {"-a", "-l", "-f", "-F"} & set(words)
    if shutil.which("fish"):
        subprocess.run(["fish", "-n"], input=script, text=True, check=True, timeout=60)


@pytest.mark.parametrize("shell", MAKERS)
def test_nobody_is_offered_a_word_of_our_scripts(
    shell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["completion", "tcsh"]) == 2
    told = capsys.readouterr().err
    assert "bash, zsh, fish" in told and "values" not in told
    command = next(one for one in table.commands() if one.name == "completion")
    assert "values" not in command.args[0].choices
    assert "zsh fish values" not in MAKERS[shell](table.commands())
    assert main(["completion", "values", "key"]) == 0
    assert "acp.max_sessions" in capsys.readouterr().out
