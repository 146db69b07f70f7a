"""When git, which an agent may run to look, runs nothing but itself."""

import os
import subprocess
from pathlib import Path

import pytest

from dragoman.engine.content import ToolCall
from dragoman.engine.ports import Judgement, ToolSpec
from dragoman.policy.autonomy import AutonomyPolicy, Rules
from dragoman.policy.guarded import locked, repositories
from dragoman.policy.repository import harmless_change, history, tame

PLAIN = "[core]\n\tbare = false\n# a comment\n\n[user]\n\tname = Me\n"


def made(tmp_path: Path, config: str | None = PLAIN) -> Path:
    for name in ("objects", "refs"):
        (tmp_path / ".git" / name).mkdir(parents=True)
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    if config is not None:
        (tmp_path / ".git" / "config").write_text(config)
    return tmp_path


@pytest.mark.parametrize("head", [None, "", "nonsense\n", "ref: elsewhere\n", "abc\n"])
def test_what_git_passes_over_is_not_tame(tmp_path: Path, head: str | None) -> None:
    outer = made(tmp_path, "[core]\n\tfsmonitor = touch ran; false\n")
    (outer / "in").mkdir()
    inner = made(outer / "in")
    assert tame(str(inner))
    if head is None:
        (inner / ".git/refs").rmdir()
    else:
        (inner / ".git/HEAD").write_text(head)
    assert not tame(str(inner))
    words = ["git", "rev-parse", "--show-toplevel"]
    taken = subprocess.run(words, cwd=inner, capture_output=True, text=True).stdout.strip()
    assert taken == str(outer)


@pytest.mark.parametrize("config", [None, "", PLAIN, "; only a comment\n"])
def test_an_ordinary_repository_tame(tmp_path: Path, config: str | None) -> None:
    place = made(tmp_path, config)
    deep = place / "a" / "b"
    deep.mkdir(parents=True)
    assert tame(str(place)) and tame(str(deep))


@pytest.mark.parametrize(
    "config",
    [
        "[core]\n\tfsmonitor = ./evil\n",
        "[core]\n\tpager = ./evil\n",
        '[filter "x"]\n\tclean = ./evil\n',
        '[diff "x"]\n\ttextconv = ./evil\n',
        "[alias]\n\tstatus = !./evil\n",
        "[include]\n\tpath = ../evil\n",
        '[includeIf "gitdir:/"]\n\tpath = ../evil\n',
        "[core]\n\tbare = false \\\nfsmonitor = ./evil\n",
        "stray = 1\n",
        '[submodule "x"]\n\tupdate = !./evil\n',
        "[core]\n" + "#" * 2_000_000,
    ],
)
def test_a_configuration_that_runs_something_is_not(tmp_path: Path, config: str) -> None:
    assert not tame(str(made(tmp_path, config)))


def test_what_lies_elsewhere_is_not_looked_at_and_not_tame(tmp_path: Path) -> None:
    linked = tmp_path / "linked"
    linked.mkdir()
    (linked / ".git").symlink_to(tmp_path)
    filed = tmp_path / "filed"
    filed.mkdir()
    (filed / ".git").write_text("gitdir: ../x\n")
    for name in ("commondir", "config.worktree"):
        folder = tmp_path / name
        folder.mkdir()
        (made(folder) / ".git" / name).write_text("x")
        assert not tame(str(folder))
    bare = tmp_path / "bare"
    (bare / "objects").mkdir(parents=True)
    (bare / "HEAD").write_text("ref: x\n")
    folder = tmp_path / "bytes"
    folder.mkdir()
    (made(folder, None) / ".git" / "config").write_bytes(b"\xff\xfe")
    for place in (linked, filed, bare, folder):
        assert not tame(str(place)), place


@pytest.mark.parametrize(
    ("old", "new", "fresh", "harmless"),
    [
        (b"", PLAIN.encode(), True, True),
        (PLAIN.encode(), PLAIN.encode() + b"[core]\n\tfsmonitor = x\n", False, False),
        (
            b"[core]\n\tfsmonitor = x\n",
            b"[core]\n\tfsmonitor = x\n[user]\n\tname = a\n",
            False,
            True,
        ),
        (b"", b'[remote "o"]\n\turl = https://x.test\n', True, True),
        (b"", b'[remote "o"]\n\turl = https://x.test\n', False, False),
        (b"\xff", b"", False, False),
        (b"", b"\xff", False, False),
    ],
)
def test_a_change_may_add_what_runs_nothing(
    old: bytes, new: bytes, fresh: bool, harmless: bool
) -> None:
    assert harmless_change(old, new, fresh=fresh) is harmless


def test_what_is_locked_while_a_command_runs(tmp_path: Path) -> None:
    root = os.path.realpath(made(tmp_path))
    subs = ("sub", "deep/sub", "sub/modules/inner")
    for sub in subs:
        for name in ("HEAD", "objects", "refs"):
            (tmp_path / ".git" / "modules" / sub / name).mkdir(parents=True)
    (tmp_path / ".git" / "hooks").mkdir()
    own = f"{root}/.git"
    assert list(repositories(root))[0] == own
    assert set(repositories(root)) == {own, *(f"{own}/modules/{sub}" for sub in subs)}
    found = locked([root])
    assert own in found and f"{own}/config" in found and f"{own}/hooks" in found
    assert locked([root, f"{own}/hooks"]) and f"{own}/hooks" not in locked([root, f"{own}/hooks"])
    other = tmp_path / "other"
    other.mkdir()
    (other / ".git").write_text("gitdir: ../.git/modules/sub\n")
    assert list(repositories(str(other))) == []
    assert locked([str(other)]) == (str(other / ".git"),)
    assert locked([str(tmp_path / "none")]) == ()


def git(place: Path, *words: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always")
    subprocess.run(["git", *who, *words], cwd=place, check=True, capture_output=True)


def with_submodule(tmp_path: Path, *, absorbed: bool) -> tuple[Path, Path]:
    """A repository with a submodule that has a file, and the configuration of the submodule."""
    inner, top = tmp_path / "inner", tmp_path / "top"
    for place in (inner, top):
        place.mkdir()
        git(place, "init", "-q")
        (place / "file").write_text("a")
        git(place, "add", "file")
        git(place, "commit", "-qm", "x")
    if absorbed:
        git(top, "submodule", "add", "-q", str(inner), "deep/sub")
        return top, top / ".git/modules/deep/sub/config"
    inner.rename(top / "sub")
    git(top, "add", "sub")
    return top, top / "sub/.git/config"


@pytest.mark.parametrize("absorbed", [True, False])
def test_git_looks_in_submodules_too(tmp_path: Path, absorbed: bool) -> None:
    top, config = with_submodule(tmp_path, absorbed=absorbed)
    assert tame(str(top)) and (not absorbed or "worktree" in config.read_text())
    evil = tmp_path / "evil"
    evil.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    evil.chmod(0o755)
    with config.open("a") as file:
        file.write(f"[core]\n\tfsmonitor = {evil}\n")
    git(top, "status")
    assert (tmp_path / "ran").exists(), "git runs it, so it is no dud"
    assert not tame(str(top))


def test_looking_may_run_a_hook(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / "file").write_text("a")
    git(tmp_path, "add", "file")
    git(tmp_path, "commit", "-qm", "x")
    assert tame(str(tmp_path))
    hook = tmp_path / ".git/hooks/post-index-change"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    hook.chmod(0o755)
    os.utime(tmp_path / "file", (1, 1))
    git(tmp_path, "status")
    assert (tmp_path / "ran").exists(), "git runs it, so it is no dud"
    assert not tame(str(tmp_path))


@pytest.mark.parametrize("damage", [b"", b"DIRC\0\0\0\4", b"DIRC\0\0\0\2\0\0\0\1"])
def test_an_index_with_submodules_that_cannot_be_read_is_not_tame(
    tmp_path: Path, damage: bytes
) -> None:
    place = made(tmp_path)
    (place / ".git/index").write_bytes(damage + b"\0\0\xe0\0")
    assert not tame(str(place))


@pytest.mark.parametrize(
    "command",
    ["cd a && cd b && git status", "cd a/b; git status", "cd a; cd c/../b; git status",
     "cd nowhere; cd a; cd b; git status", "git status; cd a && cd b && git log"],
)  # fmt: skip
def test_git_is_judged_by_every_folder_that_it_may_be_called_in(
    tmp_path: Path, command: str
) -> None:
    (tmp_path / "a/b/.git").mkdir(parents=True)
    (tmp_path / "a/b/.git/config").write_text("[core]\n\tfsmonitor = ./evil\n")
    rules = Rules(allowed_commands=("git",), forbidden_paths=())
    tool = ToolSpec("bash", "", {}, kind="execute")

    def judge(said: str) -> Judgement:
        call = ToolCall("c", "bash", {"command": said})
        policy = AutonomyPolicy(rules)
        return policy.judge(call, tool, mode="supervised", cwd=str(tmp_path), roots=())

    judged = judge(command)
    assert judged.verdict == "ask" and "configuration" in judged.reason
    assert judge("cd a && git status").verdict == "allow"
    assert judge("cd a; cd ..; cd a; cd b; git status").risk == "high"  # too many to follow


LISTED = ("git checkout", "git status", "git add", "cp", "mkdir", "make", "cd")


@pytest.mark.parametrize(
    ("command", "verdict"),
    [
        ("git checkout evil && cd sub && git status", "ask"),
        ("cp -r x sub; cd sub; git status", "ask"),
        ("mkdir -p sub && cp x sub/HEAD && cd sub && git status", "ask"),
        ("cd sub; git status > out", "ask"),
        ("git checkout evil && git status", "allow"),
        ("cd sub && git add . && git status", "allow"),
        ("cd sub && make && git status", "allow"),  # which runs what it likes
        ("cd sub && git status && cp x y", "allow"),
    ],
)
def test_nothing_makes_a_folder_a_repository_before_git_looks_there(
    tmp_path: Path, command: str, verdict: str
) -> None:
    """A branch may hold a bare repository, whose configuration names a program."""
    made(tmp_path)
    (tmp_path / "sub").mkdir()
    rules = Rules(forbidden_paths=(), allowed_commands=LISTED, auto_approve=("write",))
    found = AutonomyPolicy(rules).judge(
        ToolCall("c", "bash", {"command": command}),
        ToolSpec("bash", "", {}, "execute"), mode="supervised", cwd=str(tmp_path), roots=(),
    )  # fmt: skip
    assert found.verdict == verdict, found


def test_nothing_puts_a_program_where_the_next_one_is_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".venv/bin").mkdir(parents=True)
    monkeypatch.setenv("PATH", f"{tmp_path}/.venv/bin{os.pathsep}{os.environ['PATH']}")
    policy = AutonomyPolicy(Rules(forbidden_paths=(), allowed_commands=("cp", "ls", "echo")))

    def verdict(command: str) -> str:
        return policy.judge(
            ToolCall("c", "bash", {"command": command}),
            ToolSpec("bash", "", {}, "execute"), mode="supervised", cwd=str(tmp_path), roots=(),
        ).verdict  # fmt: skip

    assert verdict("cp x .venv/bin/ls; ls") == "ask"
    assert [verdict(c) for c in ("cp x y && echo done", "ls; cp x y", "ls")] == ["allow"] * 3
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert verdict("cp x .venv/bin/ls; ls") == "allow"


def test_what_git_reads_outside_of_a_workspace(tmp_path: Path) -> None:
    home = str(tmp_path / "home")
    top = made(tmp_path / "repo")
    sub = top / "a" / "b"
    sub.mkdir(parents=True)
    assert history(str(top), home) == ()  # it lies in there
    assert history(str(sub), home) == (f"{top}/.git",)
    assert history(str(sub), str(top)) == history(str(sub), str(top / "a")) == ()
    assert history(str(tmp_path), home) == ()

    tree = tmp_path / "tree"
    entry = top / ".git" / "worktrees" / "tree"
    for folder in (tree / "sub", entry):
        folder.mkdir(parents=True)
    (tree / ".git").write_text(f"gitdir: {entry}\n")
    assert history(str(tree), home) == ()  # the repository does not say so
    (entry / "gitdir").write_text(f"{tree}/.git\n")
    led = (f"{top}/.git", f"{tree}/.git")
    assert history(str(tree), home) == history(str(tree / "sub"), home) == led

    other = tmp_path / "other"  # it claims an entry that is another's
    other.mkdir()
    (other / ".git").write_text(f"gitdir: {entry}\n")
    assert history(str(other), home) == ()
    (other / ".git").write_bytes(b"gitdir: \xff\0\n")
    assert history(str(other), home) == ()
    (other / ".git").unlink()
    (other / ".git").symlink_to(top / ".git")
    assert history(str(other), home) == ()
    (top / ".git" / "HEAD").unlink()
    assert history(str(tree), home) == ()  # no repository any more
