"""Judgements: mode, lists, risk and paths together."""

from pathlib import Path
from typing import Any

import pytest

from dragoman.engine.content import ToolCall
from dragoman.engine.ports import Judgement, ToolSpec
from dragoman.policy.autonomy import AutonomyPolicy, Rules

KINDS = {
    "read": "read",
    "write": "edit",
    "edit": "edit",
    "bash": "execute",
    "ls": "read",
    "glob": "search",
    "grep": "search",
    "ask_user": "other",
    "plan": "think",
    "fetch": "fetch",
    "mcp_thing": "other",
    "remove": "delete",
}


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    place = tmp_path / "work"
    place.mkdir()
    (place / "away").symlink_to("/etc")
    return place


def judge(
    work: Path,
    tool: str,
    args: dict[str, Any] | None = None,
    mode: str = "supervised",
    called: str = "",
    **rules: Any,
) -> Judgement:
    policy = AutonomyPolicy(
        Rules(**rules), protected=[str(work.parent / "data")], home=str(work.parent)
    )
    spec = ToolSpec(tool, "", {}, kind=KINDS[tool])  # type: ignore[arg-type]
    call = ToolCall("1", called or tool, {"path": "x"} if args is None else args)
    return policy.judge(call, spec, mode=mode, cwd=str(work), roots=())  # type: ignore[arg-type]


def shell(work: Path, command: str, mode: str = "supervised", **rules: Any) -> str:
    return judge(work, "bash", {"command": command}, mode, **rules).verdict


@pytest.mark.parametrize(
    ("tool", "readonly", "supervised", "full"),
    [
        ("read", "allow", "allow", "allow"),
        ("ls", "allow", "allow", "allow"),
        ("glob", "allow", "allow", "allow"),
        ("grep", "allow", "allow", "allow"),
        ("plan", "allow", "allow", "allow"),
        ("ask_user", "allow", "allow", "allow"),
        ("write", "deny", "ask", "allow"),
        ("edit", "deny", "ask", "allow"),
        ("remove", "deny", "ask", "allow"),
        ("fetch", "deny", "ask", "allow"),
        ("mcp_thing", "deny", "ask", "allow"),
    ],
)
def test_modes(work: Path, tool: str, readonly: str, supervised: str, full: str) -> None:
    for mode, verdict in (("readonly", readonly), ("supervised", supervised), ("full", full)):
        found = judge(work, tool, mode=mode)
        assert found.verdict == verdict
        assert found.reason or verdict == "allow"


@pytest.mark.parametrize("command", ["ls", "make", "rm x"])
def test_shell_in_each_mode(work: Path, command: str) -> None:
    assert shell(work, command, "readonly") == "deny"
    assert shell(work, command, "supervised") == "ask"
    assert shell(work, command, "full") == "allow"


def test_lists_of_tools(work: Path) -> None:
    assert judge(work, "write", auto_approve=("write",)).verdict == "allow"
    assert judge(work, "write", auto_approve=("*",)).verdict == "allow"
    assert judge(work, "read", always_ask=("read",)).verdict == "ask"
    assert judge(work, "read", always_ask=("*",)).verdict == "ask"
    assert judge(work, "write", auto_approve=("*",), always_ask=("write",)).verdict == "ask"
    assert judge(work, "write", mode="full", always_ask=("*",)).verdict == "allow"
    assert judge(work, "write", mode="readonly", auto_approve=("*",)).verdict == "deny"
    assert judge(work, "ask_user", always_ask=("*",)).verdict == "allow"
    for name in ("bash", "shell"):
        args = {"command": "ls"}
        assert judge(work, "bash", args, called="shell", auto_approve=(name,)).verdict == "allow"


@pytest.mark.parametrize("mode", ["readonly", "supervised", "full"])
@pytest.mark.parametrize("tool", ["read", "write", "edit", "ls", "glob", "grep"])
@pytest.mark.parametrize("path", ["/etc/passwd", "away/passwd", "/proc/self/environ", "../data/x"])
def test_paths_are_judged_in_every_mode(work: Path, tool: str, mode: str, path: str) -> None:
    found = judge(work, tool, {"path": path}, mode, auto_approve=("*",))
    assert found.verdict == "deny"
    assert found.reason


def test_outside_is_asked_about_but_for_full(work: Path) -> None:
    for key in ("path", "file_path"):
        args = {key: "../other"}
        assert judge(work, "read", args, forbidden_paths=()).verdict == "ask"
        assert judge(work, "read", args, "readonly", forbidden_paths=()).verdict == "deny"
        assert judge(work, "read", args, "full", forbidden_paths=()).verdict == "allow"
    root = str(work.parent / "other")
    assert judge(work, "read", {"path": "../other/x"}, allowed_roots=(root,)).verdict == "allow"
    free = judge(work, "read", {"path": "../other"}, forbidden_paths=(), workspace_only=False)
    assert free.verdict == "allow"


@pytest.mark.parametrize(
    "command",
    [
        "cat /etc/passwd",
        "cat /etc/pass*",
        "cat '/etc/passwd'",
        "cat ~/../../etc/shadow",
        "head -1 </etc/passwd",
        "echo x >/etc/cron.d/x",
        "grep --file=/etc/passwd x",
        "cp /etc/passwd .",
        "ls -I/etc/x",
        "cat away/passwd",
        "cd /etc && cat passwd",
        "cd / && cat etc/passwd",
        "cd /; cd etc; cat passwd",
        "X=/etc/passwd; cat $X",
        "cat file:///etc/passwd",
        "cat $(echo /etc/passwd)",
        "sh -c 'cat /etc/passwd'",
        "xargs cat < /etc/passwd",
        "cat /proc/self/environ",
        "cat /proc/self/root/x",
        "cat /dev/sda",
        "cat /dev/mem",
        "ln -s /etc x",
        "cat $HOME/.ssh/id",
        "cat ${HOME}/.ssh/id",
        "cat ~/.ssh/id",
        "cat ~root/.ssh/id",
        "cat ../data/config.toml",
        "ls ../data",
        "tar cf x.tar ../.ssh",
        "python3 x.py --config=../data/config.toml",
        "/etc/x/evil",
    ],
)
@pytest.mark.parametrize("mode", ["supervised", "full"])
def test_commands_that_name_what_is_forbidden_are_denied(
    work: Path, command: str, mode: str
) -> None:
    assert shell(work, command, mode, auto_approve=("*",), allowed_commands=("*",)) == "deny"


@pytest.mark.parametrize(
    "command",
    [
        "cat README.md >/dev/null 2>&1",
        "echo a/b ./c",
        "git diff HEAD~1 -- src",
        "grep -rn 's/x/y/' .",
        "echo https://example.org/etc/passwd",
        "/usr/bin/env ls",
    ],
)
def test_ordinary_commands_pass_in_full_mode(work: Path, command: str) -> None:
    assert shell(work, command, "full") == "allow"


def test_a_command_that_leaves_the_workspace_is_asked_about(work: Path) -> None:
    rules: dict[str, Any] = {"auto_approve": ("*",), "forbidden_paths": ()}
    assert shell(work, "cat ../other/x", **rules) == "ask"
    assert shell(work, "cat ../other/x", "full", **rules) == "allow"


@pytest.mark.parametrize(
    ("command", "rules", "verdict"),
    [
        ("ls", {"allowed_commands": ("ls",)}, "allow"),
        ("ls; pwd", {"allowed_commands": ("ls",)}, "ask"),
        ("ls; pwd", {"allowed_commands": ("ls", "pwd")}, "allow"),
        ("git status", {"allowed_commands": ("git status*",)}, "allow"),
        ("git push", {"allowed_commands": ("git status*",)}, "ask"),
        ("make", {"allowed_commands": ("make",)}, "allow"),
        ("./make", {"allowed_commands": ("make",)}, "ask"),
        ("ls $(rm x)", {"allowed_commands": ("ls",)}, "ask"),
        ("$X", {"allowed_commands": ("*",)}, "ask"),
        ("rm x", {"allowed_commands": ("*",)}, "ask"),
        ("rm x", {"allowed_commands": ("rm",)}, "allow"),
        ("PATH=. ls", {"allowed_commands": ("ls",)}, "ask"),
        ("ls", {"auto_approve": ("bash",)}, "allow"),
        ("make", {"auto_approve": ("bash",)}, "allow"),
        ("rm x", {"auto_approve": ("bash",)}, "ask"),
        ("ls", {"auto_approve": ("bash",), "always_ask": ("bash",)}, "ask"),
        ("rm x", {"block_high_risk": True}, "deny"),
        ("ls | xargs rm", {"block_high_risk": True}, "deny"),
        ("rm x", {"block_high_risk": True, "allowed_commands": ("rm",)}, "allow"),
        ("ls", {"forbidden_commands": ("rm",)}, "ask"),
        ("rm x", {"forbidden_commands": ("rm",)}, "deny"),
        ("/bin/rm x", {"forbidden_commands": ("rm",)}, "deny"),
        ("ls; sh -c 'r\"\"m x'", {"forbidden_commands": ("rm",)}, "deny"),
        ("git push", {"forbidden_commands": ("git push*",)}, "deny"),
        ("rm x", {"forbidden_commands": ("rm",), "allowed_commands": ("rm",)}, "deny"),
        ("", {}, "ask"),
    ],
)
def test_lists_of_commands(work: Path, command: str, rules: Any, verdict: str) -> None:
    assert shell(work, command, **rules) == verdict


@pytest.mark.parametrize(
    ("command", "verdict"),
    [("rm x", "deny"), ("ls | xargs rm", "deny"), ("$X y", "deny"), ("ls", "allow")],
)
def test_forbidden_commands_hold_in_full_mode(work: Path, command: str, verdict: str) -> None:
    assert shell(work, command, "full", forbidden_commands=("rm",)) == verdict


def test_a_human_is_told_the_risk_and_why(work: Path) -> None:
    found = judge(work, "bash", {"command": "ls | xargs rm"})
    assert (found.verdict, found.risk) == ("ask", "high")
    assert "rm" in found.reason


def test_arguments_that_did_not_parse_do_not_break_it(work: Path) -> None:
    policy = AutonomyPolicy()
    call = ToolCall("1", "bash", None, raw="{")
    spec = ToolSpec("bash", "", {}, kind="execute")
    assert policy.judge(call, spec, mode="supervised", cwd=str(work), roots=()).verdict == "ask"
    assert judge(work, "read", {"path": 5}).verdict == "allow"


def test_a_boundary_does_not_move_with_its_directory(work: Path) -> None:
    policy = AutonomyPolicy(home=str(work.parent))
    before = policy.boundary("supervised", str(work))
    work.rename(work.parent / "moved")
    work.symlink_to("/etc")
    after = policy.boundary("supervised", str(work))
    assert after.cwd == before.cwd
    assert not after.permits("/etc/passwd")


def fetch(work: Path, url: str, mode: str = "supervised", **rules: Any) -> Judgement:
    policy = AutonomyPolicy(Rules(**rules), home=str(work.parent))
    spec = ToolSpec("web_fetch", "", {}, kind="fetch")
    call = ToolCall("1", "web_fetch", {"url": url})
    return policy.judge(call, spec, mode=mode, cwd=str(work), roots=())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://Example.ORG./a?b", "example.org"),
        ("https://user@example.org:8080", "example.org"),
        ("https://[broken", ""),
        ("nothing", ""),
    ],
)
def test_a_page_is_asked_about_by_its_host(work: Path, url: str, host: str) -> None:
    found = fetch(work, url)
    assert found.verdict == "ask" and found.commands == (((host,),) if host else ())
    assert found.reason == f"It asks {host or 'the network'}."
    assert fetch(work, url, "full").verdict == "allow"
    assert fetch(work, url, auto_approve=("web_fetch",)).verdict == "allow"


def test_the_boundaries_of_a_few_folders_are_kept(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.policy.autonomy._REMEMBERED", 2)
    policy = AutonomyPolicy(Rules(), home=str(work.parent))
    first = policy.boundary("supervised", str(work))
    assert policy.boundary("supervised", str(work)) is first
    for name in ("a", "b"):
        (work / name).mkdir()
        policy.boundary("supervised", str(work / name))
    assert len(policy._boundaries) == 2
    assert policy.boundary("supervised", str(work)) is not first


@pytest.mark.parametrize("args", [{}, {"path": 5}, {"path": "a.md", "file_path": "b.md"}])
def test_in_plan_mode_only_the_plan_itself_is_written(work: Path, args: dict[str, Any]) -> None:
    policy = AutonomyPolicy(Rules(), home=str(work.parent))
    spec = ToolSpec("write", "", {}, kind="edit")
    plan = str(work / "plan.md")

    def verdict(given: dict[str, Any], plan: str) -> str:
        call = ToolCall("1", "write", given)
        return policy.judge(call, spec, mode="plan", cwd=str(work), roots=(), plan=plan).verdict

    assert verdict(args, plan) == "deny"
    assert verdict({"path": "plan.md"}, plan) == "allow"
    assert verdict({"path": "plan.md"}, "") == "deny"
    assert verdict({"path": "away/plan.md"}, plan) == "deny"
    assert verdict({"path": "a\0b"}, plan) == "deny"


@pytest.mark.parametrize(
    ("place", "target", "risk"),
    [
        ("shims", "", "medium"),
        ("bin", "asdf", "medium"),
        ("bin", "volta-shim", "medium"),
        ("bin", "node20", "low"),
        ("bin", "", "low"),
    ],
)
def test_a_version_manager_asks_the_folder_which_program_it_runs(
    work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, target: str, risk: str
) -> None:
    """`.tool-versions` may say `nodejs path:./evil`."""
    folder = tmp_path / place
    folder.mkdir()
    (folder / (target or "node")).touch(mode=0o755)
    if target:
        (folder / "node").symlink_to(target)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    policy = AutonomyPolicy(Rules(forbidden_paths=(), allowed_commands=("*",)))
    spec = ToolSpec(name="bash", description="", schema={}, kind="execute")
    call = ToolCall("c", "bash", {"command": "ls | head -5 && node --version"})
    found = policy.judge(call, spec, mode="supervised", cwd=str(work), roots=())
    assert found.risk == risk
