"""Classes of commands: every command with the one that it must get, however it is dressed."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.policy.commands import HIGH, LOW, MEDIUM, UNKNOWN
from tests.policy.disguises import BEHIND, HIDDEN, NOT_LOW, PLAIN

from dragoman.policy.commands import assess, forbids, matches
from dragoman.policy.programs import BUILTINS, DANGEROUS, RUNNERS, shapes

ALL = [
    *(("low", command) for command in LOW),
    *(("medium", command) for command in MEDIUM),
    *(("high", command) for command in HIGH),
    *(("unknown", command) for command in UNKNOWN),
    *(("unknown", command) for command in HIDDEN),
    *(("medium", command) for command in (*NOT_LOW, *PLAIN)),
    *(("high", command) for command in BEHIND),
]


@pytest.mark.parametrize(("kind", "command"), ALL, ids=[ascii(c[:60]) for _, c in ALL])
def test_class(kind: str, command: str) -> None:
    found = assess(command)
    assert found.kind == kind, found.reason
    assert found.reason or kind == "low"
    assert found.risk != "low" or kind == "low"


def test_the_list_is_long_and_nothing_is_in_it_twice() -> None:
    commands = [command for _, command in ALL]
    assert len(commands) >= 450
    assert len(set(commands)) == len(commands)


def test_no_program_that_looks_is_one_that_harms_or_changes_the_shell() -> None:
    names = set(shapes())
    assert not names & DANGEROUS
    assert not names & BUILTINS
    assert names & RUNNERS <= {"find", "sed", "awk"}  # those have readers of their own


@given(st.text())
def test_nothing_breaks_it(text: str) -> None:
    found = assess(text)
    assert found.kind in ("low", "medium", "high", "unknown")


@settings(max_examples=300)
@given(st.text(alphabet="ls rm'\"\\$`(){}[]<>|&;#*?~!=-\n\t0123", max_size=24))
def test_low_is_made_of_programs_that_look(text: str) -> None:
    found = assess(f"ls {text}")
    if found.kind == "low":
        assert all(part.kind == "low" for part in found.parts)
        assert {part.name for part in found.parts} <= {"ls"}


@pytest.mark.parametrize(("command", "name"), BEHIND.items())
def test_what_another_program_runs_is_forbidden_all_the_same(command: str, name: str) -> None:
    parts = assess(command).parts
    assert any(forbids(one, [name]) for one in parts)
    # Who lists the first has listed what it runs.
    assert matches(parts[0], [command], strict=True) and all(one.passes for one in parts[1:])


def part(command: str) -> object:
    return assess(command).parts[0]


@pytest.mark.parametrize(
    ("command", "pattern", "holds"),
    [
        ("git status", "git", True),
        ("git status", "git status", True),
        ("git status -s", "git status", True),
        ("git status", "git status *", True),
        ("git status", "git stat*", True),
        ("git stash", "git status", False),
        ("git", "git status", False),
        ("git-status", "git status", False),
        ("'git status'", "git status", False),
        ("gitstatus x", "git status", False),
        ("/usr/bin/git status", "git status", True),
        ("./git status", "git status", False),
        ("./x a", "./x", True),
        ("./x a", "x", False),
        ("ls 'a b'", "ls a b", False),
        ("ls", "*", True),
        ("ls", "l*", True),
        ("ls", "", False),
        ("make test", "make test", True),
        ("make tests", "make test", False),
    ],
)
def test_patterns_match_words_never_text(command: str, pattern: str, holds: bool) -> None:
    assert bool(matches(part(command), [pattern], strict=True)) is holds  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "command",
    ["rm x", "/bin/rm x", "./rm x", "RM x", "r''m x", "sudo rm x", "ls | xargs -n 1 rm",
     "env -S 'rm x'", "find . -exec rm x ';'", "busybox rm x", "coreutils rm x",
     "timeout -s KILL 5 rm x"],
)  # fmt: skip
def test_what_is_forbidden_is_seen_behind_programs_that_run_others(command: str) -> None:
    assert any(forbids(one, ["rm"]) for one in assess(command).parts)


@pytest.mark.parametrize(
    ("command", "pattern", "holds"),
    [
        ("python -m pip install x", "pip", True),
        ("python3.12 -m pip install x", "pip install", True),
        ("python -m pip list", "pip install", False),
        ("python /usr/bin/pip install x", "pip", True),
        ("bash scripts/deploy.sh now", "deploy.sh", True),
        ("python -m pip install x", "pipx", False),
        ("python x.py", "*.txt", False),
    ],
)
def test_what_an_interpreter_is_given_is_forbidden_by_its_name(
    command: str, pattern: str, holds: bool
) -> None:
    assert any(forbids(one, [pattern]) for one in assess(command).parts) is holds


def test_a_dangerous_program_that_is_told_to_run_another_is_unknown_not_listed() -> None:
    """Who lists `wget` by name has not listed the program that an option of it names."""
    assert assess("wget https://example.org/x").kind == "high"
    for command in ("wget --use-askpass=./x u", "scp -oProxyCommand=x a b:c", "curl -Kx"):
        assert assess(command).kind == "unknown"
