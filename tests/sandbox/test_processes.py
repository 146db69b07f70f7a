"""How many processes a command may have: counted for this command, never for the whole user."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.sandbox.test_another_user import Nobody, nobody  # noqa: F401
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
            time.sleep(20); os._exit(0)
        n += 1
except OSError as e:
    print("fork:", e.strerror)
print("made", n)
time.sleep(1.5)
"""
BACKENDS = ["landlock", "bubblewrap"]


async def run(work: Path, backend: str, command: str, processes: int = 0) -> str:
    walls = Boundary(str(work))
    confine = choose(backend, processes=processes)
    registry = Registry(lambda env: walls, confine=confine, extra_env={"TMPDIR": str(work)})
    tool = registry.toolbox().find("bash")
    assert tool is not None
    args = {"command": command, "timeout": 15}
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


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("grouped", [True, False], ids=["groups", "no groups"])
async def test_a_fork_bomb_is_stopped(
    tmp_path: Path, backend: str, grouped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not grouped:
        monkeypatch.setattr(limits, "make_group", lambda processes: "")
    (tmp_path / "bomb.py").write_text(BOMB)
    said = await run(tmp_path, backend, "python3 bomb.py; echo after", processes=100)
    if "[ended: it had more than 100 processes" not in said:
        made = int(said.split("made")[1].split()[0])
        assert "fork:" in said and made <= 100, said
    assert not _left(b"bomb.py")


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


@pytest.mark.root  # others run the whole suite as an ordinary user anyway
@pytest.mark.timeout(90)
def test_the_same_for_an_ordinary_user(nobody: Nobody) -> None:  # noqa: F811
    said = nobody.run("tests/sandbox/test_processes.py", "-k", "many_threads or bomb")
    assert said.startswith("6 passed"), said


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


def test_a_group_that_nobody_has_joined_yet_is_not_swept_away() -> None:
    first, second = Limits(50).prepare(), Limits(50).prepare()
    second.done()
    subprocess.run(["true"], preexec_fn=first.join, check=True)
    first.done()
