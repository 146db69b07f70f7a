"""How many processes a command may have: counted for this command, never for the whole user."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.sandbox.test_veil import Env

from dragoman.engine.content import text_of
from dragoman.policy.paths import Boundary
from dragoman.sandbox import limits
from dragoman.sandbox.choose import choose
from dragoman.sandbox.limits import Limits
from dragoman.tools.registry import Registry

CROWD = """
import sys, threading
stay = threading.Event()
for _ in range(700):
    threading.Thread(target=stay.wait, daemon=True).start()
print("there", flush=True)
sys.stdin.read()
"""
BOMB = """
import os, time
n = 0
try:
    while n < 3000:
        if os.fork() == 0:
            time.sleep(100); os._exit(0)
        n += 1
except OSError as e:
    print("fork:", e.strerror)
    print("made", n)
else:
    print("made", n, flush=True)
    time.sleep(100)  # it is seen by who counts, however late
"""
BACKENDS = ["landlock", "bubblewrap"]


async def run(work: Path, backend: str, command: str, processes: int = 0) -> str:
    walls = Boundary(str(work))
    confine = choose(backend, processes=processes)
    registry = Registry(lambda env: walls, confine=lambda: confine, extra_env={"TMPDIR": str(work)})
    tool = registry.toolbox().find("bash")
    assert tool is not None
    args = {"command": command, "timeout": 50}
    return text_of((await tool.run(args, Env(work))).content)  # type: ignore[arg-type]


@pytest.mark.parametrize("backend", BACKENDS)
async def test_a_user_with_many_threads_can_run_commands(tmp_path: Path, backend: str) -> None:
    crowd = subprocess.Popen(
        [sys.executable, "-c", CROWD], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert crowd.stdin is not None and crowd.stdout is not None
    try:
        assert crowd.stdout.readline() == b"there\n"
        said = await run(tmp_path, backend, "(echo one; echo two) | cat; ls / | wc -l")
        assert "one\ntwo\n" in said and "fork" not in said, said
    finally:
        crowd.stdin.close()
        crowd.stdout.close()
        crowd.wait()


@pytest.mark.alone
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("grouped", [True, False], ids=["groups", "no groups"])
async def test_a_fork_bomb_is_stopped(
    tmp_path: Path, backend: str, grouped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not grouped:
        monkeypatch.setattr(limits, "make_group", lambda processes: "")
    name = f"bomb{os.getpid()}.py"  # another suite may have one, too
    (tmp_path / name).write_text(BOMB)
    said = await run(
        tmp_path,
        backend,
        f"PATH=/usr/bin:/bin:/usr/local/bin python3 {name}; echo after",
        processes=100,
    )
    if "[ended: it had more than 100 processes" not in said:
        assert "made" in said, said
        made = int(said.split("made")[1].split()[0])
        assert "fork:" in said and made <= 100, said
    assert not _left(name.encode())


def _left(word: bytes) -> list[int]:
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/cmdline", "rb") as file:
                    found += [int(name)] if word in file.read() else []
            except OSError:
                continue
    return found


# --- control groups ---


def test_a_group_is_made_below_the_nearest_one_that_is_ours_and_counts(tmp_path: Path) -> None:
    proc, top = tmp_path / "proc", tmp_path / "cgroup"
    own = "user.slice/user-1000.slice/user@1000.service/app.slice/term.scope"
    (proc / "self").mkdir(parents=True)
    (proc / "self" / "cgroup").write_text(f"1:name=systemd:/x\n0::/{own}\n")
    (top / own).mkdir(parents=True)
    for folder in [top / own, *(top / own).parents]:
        if not folder.is_relative_to(top):
            break
        (folder / "cgroup.procs").write_text("")
        (folder / "cgroup.subtree_control").write_text("memory\n")
    app = (top / own).parent
    (app / "cgroup.subtree_control").write_text("memory pids\n")
    (top / "cgroup.subtree_control").write_text("pids\n")
    if os.geteuid() != 0:
        (top / "cgroup.procs").chmod(0o400)
    found = list(limits._parents(str(proc), str(top), str(tmp_path / "none")))
    assert found[0] == str(app) and len(found) == (2 if os.geteuid() == 0 else 1)


SLEEPS = "import sys; print(1, flush=True); sys.stdin.read()"


def test_a_group_that_nobody_has_joined_yet_is_nobody_elses() -> None:
    first, second = Limits(50).prepare(), Limits(50).prepare()
    second.done()
    third = Limits(50).prepare()
    for one in (first, third):
        subprocess.run(["true"], preexec_fn=one.join, check=True)
        one.done()


def test_a_group_is_used_again_once_all_that_was_in_it_has_ended() -> None:
    group = limits.make_group(61)
    if not group:  # this user may make none, here
        assert Limits(61).prepare().counted == 61
        return
    with subprocess.Popen(
        [sys.executable, "-c", SLEEPS], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        preexec_fn=lambda: limits._enter(group),
    ) as child:  # fmt: skip
        limits._release(group)
        assert child.stdin is not None and child.stdout is not None
        assert child.stdout.read(1) == b"1"
        with open(f"{group}/cgroup.procs", encoding="ascii") as file:
            assert file.read().split() == [str(child.pid)]
        other = limits.make_group(61)
        assert other != group
        child.stdin.close()
        child.wait()
    assert limits.make_group(62) not in (group, other)  # another bound
    assert limits.make_group(61) == group
    for one in [*limits._groups]:
        limits._release(one)


def test_a_process_takes_its_groups_along_and_a_child_of_it_does_not() -> None:
    code = (
        "import os, sys\nfrom dragoman.sandbox import limits\n"
        "group = limits.make_group(9); limits._release(group)\n"
        "if not group: sys.exit(print('no groups'))\n"
        "pid = os.fork()\n"
        "if pid == 0: sys.exit(limits.make_group(9) == group)\n"
        "assert os.waitpid(pid, 0)[1] == 0 and os.path.isdir(group)\nprint(group)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    said = done.stdout.strip()
    own = limits.make_group(9)
    limits._release(own)
    assert done.returncode == 0 and ("/dragoman-" in said) is bool(own), done.stderr
    assert not os.path.exists(said)


def test_what_hosts_that_are_gone_have_left_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "_parents", lambda: [str(tmp_path)])
    gone, lives, own = 1 << 30, os.getppid(), os.getpid()
    old = [f"dragoman-{gone}-aa", f"dragoman-{own}-aa"]
    kept = [f"dragoman-{lives}-aa", "dragoman-x-aa", "user.slice", f"dragoman-{gone}-full"]
    for name in [*old, *kept]:
        (tmp_path / name).mkdir()
    (tmp_path / f"dragoman-{gone}-full" / "process").touch()
    for name in [*old, *kept]:
        os.utime(tmp_path / name, (1, 1))
    (tmp_path / f"dragoman-{gone}-new").mkdir()
    limits._sweep()
    assert sorted(os.listdir(tmp_path)) == sorted([*kept, f"dragoman-{gone}-new"])
