"""Completion scripts: made from the table, and understood by the shells."""

import shlex
import shutil
import subprocess

import pytest

from dragoman.cli import table
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
        (["completion", ""], {"bash", "zsh", "fish", "--help"}),
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
        ["bash", "-c", script], capture_output=True, text=True, timeout=10, check=True
    )
    assert set(done.stdout.split()) == expected
    assert done.stderr == ""


def test_zsh_script_is_well_formed() -> None:
    script = MAKERS["zsh"](table.commands())
    shell = "zsh" if shutil.which("zsh") else "bash"  # the script keeps to what both can parse
    subprocess.run([shell, "-n"], input=script, text=True, check=True, timeout=10)
    assert "local path" not in script, "path is $PATH in zsh"


def test_fish_script_is_one_complete_command_per_line() -> None:
    script = MAKERS["fish"](table.commands())
    for line in script.splitlines()[1:]:
        words = shlex.split(line)
        assert words[:3] == ["complete", "-c", "dragoman"]
        assert {"-a", "-l", "-f"} & set(words)
    if shutil.which("fish"):
        subprocess.run(["fish", "-n"], input=script, text=True, check=True, timeout=10)
