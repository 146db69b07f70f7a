"""A command cannot drive the daemon that runs it: not directly, not as an orphan, not later."""

import os
import resource
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from tests.daemon.running import Daemon, Line, call, say, script

from dragoman.host.descendants import Descendants
from dragoman.sandbox import brand

TRY = """
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.settimeout(60)
s.connect(open("where").read())
try:
    s.sendall(b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}\\n')
    print("HEARD" if s.recv(100) else "closed")
except OSError as problem:
    print("closed:", problem)
"""
WAYS = {
    "plain": "python3 try.py",
    "orphan": "setsid sh -c '(python3 try.py > said 2>&1; mv said done) &' ; "
    "while [ ! -e done ]; do sleep 0.05; done; cat done",
    "without environment": "env -i setsid -w python3 try.py",
    "no brand": "python3 -c 'import resource as r, runpy; "
    "r.setrlimit(r.RLIMIT_RTTIME, (0, 0)); "
    'runpy.run_path("try.py")\' || python3 try.py',
    "lower brand": "python3 -c 'import resource as r, runpy, sys; "
    "r.setrlimit(r.RLIMIT_RTTIME, (7, 7)); "
    'runpy.run_path("try.py")\' || python3 try.py',
}
BACKENDS = {
    "landlock": 'backend = "landlock"\n',
    "bubblewrap": 'backend = "bubblewrap"\n',
    "landlock, sockets": 'backend = "landlock"\ntrust_unix_sockets = true\n',
    "none": 'backend = "none"\n',
}


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_tool_cannot_talk_to_the_daemon(tmp_path: Path, backend: str) -> None:
    work, home = tmp_path / "work", tmp_path / "d"
    work.mkdir()
    home.mkdir()
    (work / "try.py").write_text(TRY)
    (work / "where").write_text(str(home / "data/daemon.sock"))
    python = os.path.realpath(sys.executable)
    calls = [call("bash", command=command) for command in WAYS.values()]
    config = script(tmp_path, [*calls, say("done")])
    config += f'mode = "full"\n[sandbox]\n{BACKENDS[backend]}'
    path = f"{os.path.dirname(python)}:{os.environ['PATH']}"
    with Daemon(home, config=config, env={"PATH": path}) as daemon:
        daemon.wait_ready()
        with Line(daemon.socket) as client:  # we ourselves are welcome
            session = client.ask("session/new", {"agentAlias": "default", "cwd": str(work)})
            client.ask("session/prompt", {"sessionId": session["sessionId"], "prompt": "go"})
            results = [m["params"] for m in client.seen if m["params"].get("type") == "tool_result"]
        assert len(results) == len(WAYS)
        for (way, command), result in zip(WAYS.items(), results, strict=True):
            shown = str(result.get("rawOutput") or result.get("raw_output"))
            shown = shown.replace(command, "")
            assert "HEARD" not in shown, (way, shown)
            if backend in ("landlock", "bubblewrap"):  # there is no socket to try it with
                assert "Operation not permitted" in shown, (way, shown)
            else:
                assert "closed" in shown, (way, shown)
        if backend not in ("landlock", "bubblewrap"):
            assert daemon.log().count("refused") >= len(WAYS)


def test_a_child_that_was_given_a_lower_mark_meanwhile_keeps_it_and_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever is not root cannot raise a limit, and a host marks whole families."""

    def refused(number: int, limits: tuple[int, int]) -> None:
        raise ValueError("not allowed to raise maximum limit")

    with monkeypatch.context() as patch:
        patch.setattr(resource, "setrlimit", refused)
        process = subprocess.Popen(["true"], preexec_fn=brand.burn(brand.LEAST))
    assert process.wait(60) == 0


def test_an_orphan_of_an_earlier_host_is_known_by_its_brand(tmp_path: Path) -> None:
    mark = brand.new()
    brand.live.discard(mark)
    process = subprocess.Popen(["sleep", "30"], preexec_fn=brand.burn(mark))
    plain = subprocess.Popen(["sleep", "30"])
    try:
        assert brand.of(process.pid) == mark and brand.of(plain.pid) is None
        descendants = Descendants()
        assert descendants.refuses(process.pid)
        resource.prlimit(process.pid, resource.RLIMIT_RTTIME, (0, 0))
        assert brand.of(process.pid) == 0 and descendants.refuses(process.pid)
        descendants.trust(process.pid)
        assert descendants.refuses(process.pid)  # a brand says more than a number
        assert not descendants.refuses(plain.pid)  # nobody watches here: it may be anybody's
        assert not descendants.refuses(os.getpid()) and not descendants.refuses(None)
    finally:
        for one in (process, plain):
            one.kill()
            one.wait()


def test_the_family_tree() -> None:
    """Children are refused when we watch, trusted ones and theirs are not."""
    descendants = Descendants()
    descendants.watching = True
    child = subprocess.Popen(["sh", "-c", "sleep 300 & echo $!; wait"], stdout=subprocess.PIPE)
    assert child.stdout is not None
    grandchild = int(child.stdout.readline())
    try:
        assert descendants.refuses(child.pid) and descendants.refuses(grandchild)
        descendants.trust(child.pid)
        assert not descendants.refuses(child.pid) and not descendants.refuses(grandchild)
        descendants.forget(child.pid)
        assert descendants.refuses(grandchild)
        assert not descendants.refuses(os.getppid())
    finally:
        os.kill(grandchild, 9)
        child.kill()
        child.wait()
        child.stdout.close()
    assert descendants.refuses(child.pid)  # gone: nobody is there


def test_a_marked_child_is_found() -> None:
    descendants = Descendants()
    descendants.watching = True
    mark = "SERVER=abcdef0123456789"
    child = subprocess.Popen(["sleep", "30"], env={"SERVER": "abcdef0123456789"})
    try:
        assert descendants.trust_marked(mark) == child.pid and not descendants.refuses(child.pid)
        assert descendants.trust_marked("SERVER=other") is None
    finally:
        child.kill()
        child.wait()


def test_the_dead_that_were_left_to_us_are_collected() -> None:
    code = f"""
import os, sys, time
sys.path[:0] = {sys.path!r}
from dragoman.host.descendants import Descendants
descendants = Descendants()
assert descendants.adopt()
read, write = os.pipe()
if os.fork() == 0:
    if os.fork() == 0:
        os.read(read, 1)  # until our parent is gone
        os._exit(0)
    os._exit(0)
os.wait()
os.write(write, b"x")
for _ in range(5_000):
    if descendants.bury():
        print("collected")
        break
    time.sleep(0.01)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "collected\n", done.stderr


def test_nobody_else_is_kept_out(tmp_path: Path) -> None:
    with Daemon(tmp_path) as daemon:
        daemon.wait_ready()
        with socket.socket(socket.AF_UNIX) as plain:
            plain.connect(daemon.socket)
        (tmp_path / "where").write_text(daemon.socket)
        done = subprocess.run(
            [sys.executable, "-c", TRY], capture_output=True, text=True, timeout=60, cwd=tmp_path
        )
        assert done.stdout == "HEARD\n"


def test_a_stranger_that_comes_again_is_known_by_its_descriptor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Only while it is there: its number may be another's afterwards."""
    descendants = Descendants()
    descendants.watching = True
    looked: list[int] = []
    look = descendants._stat

    def counted(pid: int) -> list[bytes]:
        looked.append(pid)
        return look(pid)

    monkeypatch.setattr(descendants, "_stat", counted)
    monkeypatch.setattr(descendants, "_family", lambda pid: "none")
    stranger = subprocess.Popen(["sleep", "30"])
    try:
        assert not descendants.refuses(stranger.pid) and not descendants.refuses(stranger.pid)
        looked.clear()
        assert not descendants.refuses(stranger.pid) and looked == []
    finally:
        stranger.kill()
        stranger.wait()
    descendants.refuses(stranger.pid)
    assert stranger.pid in looked and not descendants._held


def test_few_descriptors_of_strangers_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    descendants = Descendants()
    descendants.watching = True
    monkeypatch.setattr("dragoman.host.descendants._HELD", 2)
    monkeypatch.setattr(descendants, "_family", lambda pid: "none")
    strangers = [subprocess.Popen(["sleep", "30"]) for _ in range(4)]
    before = len(os.listdir("/proc/self/fd"))
    try:
        for one in strangers * 2:
            assert not descendants.refuses(one.pid)
        assert len(os.listdir("/proc/self/fd")) == before + 2
        descendants._held.clear()
        assert len(os.listdir("/proc/self/fd")) == before
    finally:
        for one in strangers:
            one.kill()
            one.wait()
