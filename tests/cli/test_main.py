"""The command itself: help, version, mistakes, what is imported, exit codes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman import __version__
from dragoman.cli import help, main, table
from dragoman.cli.parse import Command
from dragoman.cli.verbs.completion import walk

EVERY = list(walk(table.commands()))


def command(*words: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "dragoman", *words],
        env={**os.environ, **(env or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize("one", EVERY, ids=lambda one: one.full_name)
def test_every_command_has_help_and_an_example_that_parses(one: Command) -> None:
    text = help.of(one)
    assert f"dragoman {one.full_name}" in text
    assert one.example.count("dragoman") and f"Example: {one.example}" in text
    assert one.help and not one.help.endswith(".")
    assert max(map(len, text.splitlines())) <= 110
    names = [flag.name for flag in one.all_flags()]
    assert len(names) == len(set(names)) and "help" not in names


@pytest.mark.parametrize("one", EVERY, ids=lambda one: one.full_name)
def test_every_example_is_understood(one: Command) -> None:
    import shlex

    from dragoman.cli.parse import parse

    words = shlex.split(one.example.partition(" > ")[0].rpartition(" | ")[2])
    assert words[0] == "dragoman"
    top = next(found for found in table.commands() if found.name == words[1])
    parsed = parse(top, words[2:])
    assert parsed.path[: len(one.full_name.split())] == tuple(one.full_name.split())


def test_help_behind_the_flags_of_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--config-dir", "/x", "--help"], ["--json", "help"]):
        assert main.main(words) == 0
        assert "Usage: dragoman COMMAND" in capsys.readouterr().out
    assert main.main(["--config-dir", "/x", "--help", "run"]) == 0
    assert "Usage: dragoman run" in capsys.readouterr().out
    assert main.main(["completion", "--help"]) == 0
    assert "(bash, zsh, fish)" in capsys.readouterr().out


def test_a_value_may_be_empty_where_that_says_something() -> None:
    from dragoman.cli.parse import parse

    config = next(one for one in table.commands() if one.name == "config")
    assert parse(config, ["set", "agents.a.model", ""]).value == ""


def test_names_are_unique_and_modules_are_declared() -> None:
    declared = [one.name for one in table.commands()]
    assert len(declared) == len(set(declared))
    folder = Path(table.__file__).parent / "verbs"
    modules = {path.stem for path in folder.iterdir() if not path.name.startswith("__")}
    runs = {one.runs.partition(":")[0] for one in table.commands()}
    ours = {name for name in runs if name.startswith("cli.verbs.")}
    assert {f"cli.verbs.{name}" for name in modules} == ours


@pytest.mark.parametrize("one", table.commands(), ids=lambda one: one.name)
def test_every_verb_module_can_run(one: Command) -> None:
    from importlib import import_module

    module, _, function = one.runs.partition(":")
    assert callable(getattr(import_module(f"dragoman.{module}"), function))


@pytest.mark.parametrize("words", [["--help"], ["-h"], ["help"], []])
def test_help_lists_the_commands(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(words) == 0
    out = capsys.readouterr().out
    assert "Usage: dragoman COMMAND" in out and "  config " in out and "Example: " in out


@pytest.mark.parametrize(
    "words", [["help", "config", "set"], ["config", "set", "--help"], ["config", "-h", "set"]]
)
def test_help_of_one_command(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(words) == 0
    assert "Usage: dragoman config set KEY VALUE" in capsys.readouterr().out


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["--version"]) == 0
    assert capsys.readouterr().out == f"dragoman {__version__}\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["confg"], "unknown command 'confg'; did you mean config?"),
        (["--verbos"], "unknown flag --verbos (flags of a command stand after its name)"),
        (["--verison"], "unknown flag --verison; did you mean --version?"),
        (["--status"], "did you mean the command status?"),
        (["--json"], "a command is missing after --json"),
        (["run", "--port", "3"], "unknown flag --port\n"),
        (["sessions", "tail", "--folow"], "did you mean --follow?"),
        (["help", "confg"], "did you mean config?"),
        (["config"], "config needs one of: get, set, unset, explain, schema, path"),
        (["config", "gte"], "did you mean get?"),
        (["completion", "bsh"], "did you mean bash?"),
        (["config", "--nosuch"], "unknown flag --nosuch"),
        (["config", "--jsn", "--config-dir", "x"], "unknown flag --jsn; did you mean --json?"),
        (["config", "--config-dir", "x"], "config needs one of: get, set"),
        (["config", "list"], "did you mean: dragoman config get"),
        (["mcp", "add", "files"], "did you mean: dragoman config set mcp.NAME.command PROGRAM"),
        (["update"], "did you mean: dragoman upgrade-check"),
        (["-p", "hello"], 'unknown flag -p; did you mean: dragoman run "'),
        (["-v"], "did you mean: dragoman --version"),
        (["sessions", "show", ""], "sessions show needs SESSION: "),
        (["sessions", "delete", ""], "sessions delete needs SESSION: "),
        (["approve", ""], "approve needs ID: "),
        (["store", "copy", "a", ""], "store copy needs "),
        (["replay", ""], "replay needs FILE: "),
        (["apps", "add", ""], "apps add needs "),
        (["stop", "--config-dir", ""], "--config-dir: must not be empty"),
        (["run", "--session=", "hello"], "--session: must not be empty"),
        (["run", "--cwd", " ", "hello"], "--cwd: must not be empty"),
        (["cron", "add", "hello"], "cron add needs exactly one of: --at, --every, --cron"),
        (["cron", "add", "--at", "in 2h", "--every", "5m", "hello"], "exactly one of"),
    ],
)
def test_mistakes_leave_with_2(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main(words) == 2
    captured = capsys.readouterr()
    assert said in captured.err and "Try: dragoman" in captured.err
    assert captured.out == ""


HEAVY = (
    "asyncio msgspec argparse typing json tomllib httpx ssl sqlite3 logging subprocess uvloop mcp "
    "websockets inspect dataclasses collections.abc"
).split()


@pytest.mark.parametrize("words", ["'--help'", "'--version'", "'config', '--help'"])
def test_help_imports_next_to_nothing(words: str) -> None:
    script = (
        "import sys; before = set(sys.modules); from dragoman.cli.main import main; "
        f"main([{words}]); print(*(set(sys.modules) - before), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    loaded = set(done.stderr.split())
    assert loaded and not loaded & set(HEAVY)
    assert {name for name in loaded if not name.startswith("dragoman")} == set()


@pytest.mark.parametrize(
    ("before", "said"),
    [
        ("", ""),  # nobody asked for anything at exit: the interpreter is not taken apart
        ("import atexit; atexit.register(print, 'at exit')", "at exit\ntaken apart\n"),
    ],
)
def test_the_end_is_short_where_nothing_is_left_to_do(before: str, said: str) -> None:
    script = (
        "import sys\n"
        f"{before}\n"
        "class Last:\n"
        "    def __del__(self, say=print): say('taken apart')\n"
        "last = Last()\n"
        "sys.argv = ['dragoman', '--version']\n"
        "from dragoman.cli.main import script\n"
        "sys.exit(script())"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (0, f"dragoman {__version__}\n{said}")


def test_every_command_is_found_alone_as_in_the_table() -> None:
    shown = table.commands()
    found = [table.find(one.name) for one in shown]
    assert [one and (one.name, one.help) for one in found] == [(c.name, c.help) for c in shown]
    assert table.find("nothing-of-this-name") is None


def test_the_module_can_be_run() -> None:
    done = command("--version")
    assert (done.returncode, done.stdout) == (0, f"dragoman {__version__}\n")


def test_a_reader_that_left_is_no_error() -> None:
    script = f"'{sys.executable}' -m dragoman config schema | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.splitlines()[0] == "{"
    assert done.stdout.splitlines()[1] in ("0", "141")
    assert "Traceback" not in done.stderr and "BrokenPipe" not in done.stderr


def test_common_flags_may_stand_before_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main(["--config-dir", str(tmp_path), "config", "path"]) == 0
    assert capsys.readouterr().out == f"{tmp_path}/config.toml\n"
    assert main.main(["--json", f"--config-dir={tmp_path}", "status"]) == 1
    assert '"running": false' in capsys.readouterr().out
    assert main.main(["--config-dir", str(tmp_path), "sessions", "--json"]) == 0
    assert '"sessions": []' in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["sessions", "help"], "dragoman sessions ["),
        (["sessions", "help", "tail"], "dragoman sessions tail"),
        (["config", "--json", "help", "set"], "dragoman config set"),
        (["status", "help"], "dragoman status"),
    ],
)
def test_help_may_be_asked_for_in_words(
    words: list[str], shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main(words) == 0
    assert capsys.readouterr().out.startswith(f"Usage: {shown}")


@pytest.mark.parametrize(
    "words",
    [["sessions"], ["agents"], ["models"], ["token", "list"], ["memory", "list"], ["logs"],
     ["mcp", "list"]],
)  # fmt: skip
def test_what_reads_the_configuration_warns_alike(
    words: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("DRAGOMAN_CONFIG_DIR", str(tmp_path))
    monkeypatch.setenv("DRAGOMAN_FOO", "ignored")  # one word: not a key of the configuration
    (tmp_path / "config.toml").write_text("foo = 1\n")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "daemon.log").touch()
    assert main.main(words) == 0
    err = capsys.readouterr().err
    assert err.count("unknown key foo. It is ignored.") == 1 and "DRAGOMAN_FOO" not in err
    monkeypatch.setenv("DRAGOMAN_acp__nope", "1")
    # These can be read all the same.
    assert main.main(words) == (0 if words[0] in ("logs", "memory") else 1)
    err = capsys.readouterr().err
    assert "DRAGOMAN_acp__nope in the environment: unknown key acp.nope." in err
    assert "unknown key foo" in err  # told together with the error


def test_models_says_who_lacks_a_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DRAGOMAN_CONFIG_DIR", str(tmp_path))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-x")
    assert main.main(["models"]) == 0
    said = capsys.readouterr()
    line = next(one for one in said.err.splitlines() if "without a key" in one)
    assert "anthropic" in line and "openai" not in line and "openai/gpt-5" in said.out
    assert main.main(["models", "--provider", "nope"]) == 1
    assert capsys.readouterr().err.startswith(
        'dragoman: There is no provider "nope". Known providers: anthropic, openai, google'
    )


@pytest.mark.parametrize("words", [["daemon", "--background"], ["service", "install"]])
def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path, words: list[str]) -> None:
    home = tmp_path / "home"
    home.write_text("no folder")
    known = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    done = subprocess.run(
        [sys.executable, "-m", "dragoman", *words], env={**known, "HOME": str(home)},
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1, done.stderr
    assert str(home) in done.stderr and "DRAGOMAN_DATA_DIR" in done.stderr
