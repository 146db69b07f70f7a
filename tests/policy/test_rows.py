"""Trials that once succeeded: what ran unasked, was called harmless, or was written freely."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from dragoman.engine.content import ToolCall
from dragoman.engine.ports import Judgement, ToolSpec
from dragoman.policy.autonomy import AutonomyPolicy, Rules
from dragoman.policy.commands import assess

# Each runs `touch P` in bash, dash or both; none may pass an allow-list of what it shows first.
DISGUISES = [
    'echo "${x:-\'}"; touch P; echo "\'}"',
    "echo a\r#; touch P",
    "echo $'\\'; touch P; echo \\'' # '",
    "cat <<$'X'\nX\ntouch P\n$X",
    "echo a\ntouch P",
    "echo $(touch P)",
    "echo `touch P`",
    'echo "`touch P`"',
    "echo ${x:=$(touch P)}",
    "echo $((a[$(touch P)]))",
    "echo <(touch P)",
    "echo a & touch P",
    "echo a |& touch P",
    "echo() { touch P; }; echo",
    "alias echo='touch P'\necho",
    "eval echo a\\; touch P",
    "echo a \\\n; touch P",
    "printf -v 'a[$(touch P)]' x",
    "test -v 'a[$(touch P)]'",
    "[[ -v 'a[$(touch P)]' ]]",
    "[ 'a[$(touch P)]' -eq 1 ]",
    "cat <<EOF\n$(touch P)\nEOF",
    "cat <<'E'\nE\ntouch P",
    "x=$(touch P) echo",
    "echo {a,$(touch P)}",
    "case x in x) touch P;; esac",
    "if true; then touch P; fi",
    "for x in a; do touch P; done",
    "{ touch P; }",
    "(touch P)",
    "! touch P",
    "trap 'touch P' EXIT",
    "env -S 'touch P'",
    "find . -exec touch P ';'",
    "sort --compress-program=touch P",
    "echo P | xargs touch",
    "PATH=.:$PATH echo",
    "command -p touch P",
    "exec touch P",
    "sed -n '1e touch P' x",
    "awk 'BEGIN{system(\"touch P\")}'",
    "git -c alias.x='!touch P' x",
    "echo a\u2028touch P\u00a0",
    "echo a\x0btouch P\x0c;touch P",
]
ALLOWED = ("echo", "cat", "printf", "test", "find", "sort", "sed", "awk", "git", "env", "xargs",
           "true", "[", "alias", "case", "if", "for", "eval", "trap", "exec",
           "command")  # fmt: skip


def judge(work: Path, command: str, mode: str = "supervised", **rules: Any) -> Judgement:
    policy = AutonomyPolicy(Rules(forbidden_paths=(), **rules), home=str(work / "home"))
    spec = ToolSpec("bash", "", {}, kind="execute")
    call = ToolCall("1", "bash", {"command": command})
    return policy.judge(call, spec, mode=mode, cwd=str(work), roots=())  # type: ignore[arg-type]


@pytest.mark.parametrize("command", DISGUISES, ids=map(ascii, DISGUISES))
def test_no_disguise_passes_an_allow_list(tmp_path: Path, command: str) -> None:
    assert judge(tmp_path, command, allowed_commands=ALLOWED).verdict == "ask"
    if assess(command).kind == "unknown":
        assert judge(tmp_path, command, allowed_commands=("*",)).verdict == "ask"


@pytest.mark.parametrize("command", DISGUISES, ids=map(ascii, DISGUISES))
def test_no_disguise_passes_a_list_of_what_is_forbidden(tmp_path: Path, command: str) -> None:
    forbidden = {"forbidden_commands": ("touch",)}
    everything = {**forbidden, "auto_approve": ("*",), "allowed_commands": ("*",)}
    assert judge(tmp_path, command, **everything).verdict in ("ask", "deny")
    assert judge(tmp_path, command, "full", **forbidden).verdict == "deny"


@pytest.mark.parametrize(
    "path",
    [".git/config", ".git/hooks/pre-commit", ".git/info/attributes", ".git", "sub/.git/config",
     ".git/modules/x/config", ".vscode/tasks.json", ".idea/x.xml", ".envrc", ".zed/settings.json",
     "AGENTS.md", "sub/AGENTS.md", ".dragoman/x", ".GIT/config", ".VSCode/tasks.json",
     ".git/../.git/config", "link/hooks/x", ".husky/pre-commit", ".gitattributes"],
)  # fmt: skip
def test_what_makes_others_run_something_is_asked_about(tmp_path: Path, path: str) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "link").symlink_to(".git")
    rules: dict[str, Any] = {"auto_approve": ("*",), "allowed_commands": ("*", "cp", "echo")}
    for command in (f"echo x > {path}", f"cp x {path}", f"echo x >> '{path}'"):
        found = judge(tmp_path, command, **rules)
        assert found.verdict == "ask" and found.firm, command
        assert judge(tmp_path, command, "full", **rules).verdict == "allow"
    policy = AutonomyPolicy(Rules(forbidden_paths=(), auto_approve=("*",)), home=str(tmp_path))
    for name, kind in (("write", "edit"), ("edit", "edit"), ("remove", "delete")):
        spec = ToolSpec(name, "", {}, kind=kind)  # type: ignore[arg-type]
        call = ToolCall("1", name, {"path": path})
        for mode, verdict in (("supervised", "ask"), ("full", "allow"), ("readonly", "deny")):
            found = policy.judge(call, spec, mode=mode, cwd=str(tmp_path), roots=())  # type: ignore[arg-type]
            assert found.verdict == verdict, (name, mode)
    reading = ToolSpec("read", "", {}, kind="read")
    call = ToolCall("1", "read", {"path": path})
    assert (
        policy.judge(call, reading, mode="supervised", cwd=str(tmp_path), roots=()).verdict
        == "allow"
    )


@pytest.mark.parametrize(
    "path", ["x", "src/git/config", ".github/workflows/x.yml", ".gitignore", "config", "hooks/x"]
)
def test_ordinary_files_are_not_guarded(tmp_path: Path, path: str) -> None:
    rules: dict[str, Any] = {"auto_approve": ("*",)}
    assert judge(tmp_path, f"echo x > {path}", **rules).verdict == "allow"


def test_a_redirection_is_a_write(tmp_path: Path) -> None:
    allowed: dict[str, Any] = {"allowed_commands": ("echo",)}
    assert judge(tmp_path, "echo x", **allowed).verdict == "allow"
    assert judge(tmp_path, "echo x > /dev/null 2>&1", **allowed).verdict == "allow"
    assert judge(tmp_path, "echo x > y", **allowed).verdict == "ask"
    assert judge(tmp_path, "echo x > y", auto_approve=("write",), **allowed).verdict == "allow"
    assert judge(tmp_path, "echo x > ../y", auto_approve=("*",), **allowed).verdict == "ask"


HARMFUL = [
    "[core]\n\tfsmonitor = ./x\n", "[core]\n\tpager = ./x\n", "[diff \"x\"]\n\ttextconv = ./x\n",
    "[alias]\n\tstatus = !./x\n", "[include]\n\tpath = ../x\n", "[core]\n\tsshCommand = ./x\n",
    "[filter \"x\"]\n\tclean = ./x\n", "[core]\n\thooksPath = ./x\n", "[gpg]\n\tprogram = ./x\n",
    "[submodule \"x\"]\n\tupdate = !./x\n", "[core]\n  FSMONITOR=./x\n", "[CORE] fsmonitor = ./x\n",
    "[core]\n\tbare = false \\\n", "[includeIf \"gitdir:/\"]\n\tpath = x\n", "[x", "a" * 70_000,
]  # fmt: skip


@pytest.mark.parametrize("config", HARMFUL, ids=lambda text: ascii(text[:40]))
def test_git_is_harmless_only_where_its_configuration_is(tmp_path: Path, config: str) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    rules: dict[str, Any] = {"allowed_commands": ("git",)}
    assert judge(tmp_path, "git status", **rules).verdict == "allow"
    with (tmp_path / ".git/config").open("a") as file:
        file.write(config)
    found = judge(tmp_path, "git status", **rules)
    assert (found.verdict, found.risk) == ("ask", "high")
    assert judge(tmp_path, "git status", auto_approve=("bash",)).verdict == "ask"


def test_git_in_a_repository_that_was_put_there(tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    subprocess.run(["git", "init", "-q", "--bare", str(bare)], check=True)
    assert judge(tmp_path, "cd bare && git status", allowed_commands=("git",)).verdict == "ask"
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/.git").write_text("gitdir: ../bare\n")
    assert judge(tmp_path, "cd elsewhere && git log", allowed_commands=("git",)).verdict == "ask"


def test_the_configuration_that_once_ran(tmp_path: Path) -> None:
    """`echo x > .git/config`, then `git status` runs what it says: both need a question now."""
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    rules: dict[str, Any] = {"allowed_commands": ("echo", "git"), "auto_approve": ("*",)}
    first = "echo '[core] fsmonitor = ./evil' > .git/config"
    assert judge(tmp_path, first, **rules).verdict == "ask"
    (tmp_path / ".git/config").write_text("[core]\n\tfsmonitor = ./evil\n")
    assert judge(tmp_path, "git status", **rules).verdict == "ask"


def test_a_program_of_the_workspace_is_not_the_systems(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    assert judge(tmp_path, "ls", allowed_commands=("ls",)).verdict == "allow"
    (tmp_path / "bin/ls").write_text("#!/bin/sh\n")
    assert judge(tmp_path, "ls", allowed_commands=("ls",)).verdict == "ask"


def test_the_boundary_asks(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (tmp_path / "models").mkdir()
    policy = AutonomyPolicy(Rules(forbidden_paths=()), home=str(work))
    for name, kind, write in (("read", "read", False), ("grep", "search", False),
                              ("write", "edit", True)):  # fmt: skip
        spec = ToolSpec(name, "", {}, kind=kind)  # type: ignore[arg-type]
        call = ToolCall("1", name, {"path": "../models/x"})
        found = policy.judge(call, spec, mode="supervised", cwd=str(work), roots=())
        assert found.verdict == "ask" and str(tmp_path / "models") in found.reason
        (reach,) = found.reach
        assert (reach.write, reach.folder) == (write, str(tmp_path / "models"))
        wider = policy.boundary("supervised", str(work), (), found.reach)
        assert wider.permits(str(tmp_path / "models/x"), write)
        assert not policy.boundary("supervised", str(work)).permits(str(tmp_path / "models/x"))
        assert not wider.permits(str(tmp_path / "other"))
        assert policy.judge(call, spec, mode="full", cwd=str(work), roots=()).verdict == "allow"
