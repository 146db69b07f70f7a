"""The boundary: what may be touched, and that nothing swapped in between gets through."""

import fcntl
import os
import random
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from dragoman.engine.faults import BadInput, Fault, Refused
from dragoman.policy import opening
from dragoman.policy.paths import FORBIDDEN, Boundary


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A home with secrets, a data directory of ours, and a workspace with traps in it."""
    home = tmp_path / "home"
    work = home / "work"
    (work / "src").mkdir(parents=True)
    (work / "src" / "main.py").write_text("print(1)\n")
    (home / ".ssh").mkdir()
    (home / ".ssh" / "id").write_text("secret")
    (home / "other").mkdir()
    (home / "other" / "note").write_text("not yours")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "config.toml").write_text("key = 1")
    (work / "out").symlink_to("/etc")
    (work / "up").symlink_to("..")
    (work / "secret").symlink_to(home / ".ssh" / "id")
    (work / "proc").symlink_to("/proc/self")
    (work / "zero").symlink_to("/dev/zero")
    (work / "chain").symlink_to("up")
    (work / "loop").symlink_to("loop")
    (work / "broken").symlink_to("/etc/not-there/x")
    (work / "inner").symlink_to("src/main.py")
    os.mkfifo(work / "fifo")
    os.link(home / ".ssh" / "id", work / "linked")
    return tmp_path


def boundary(place: Path, **changes: object) -> Boundary:
    values: dict[str, object] = {
        "cwd": str(place / "home" / "work"),
        "forbidden": FORBIDDEN,
        "protected": [str(place / "data")],
        "home": str(place / "home"),
        **changes,
    }
    return Boundary(**values)  # type: ignore[arg-type]


HOSTILE = [
    "/etc/passwd",
    "/etc",
    "/",
    "/root/.bashrc",
    "/usr/bin/env",
    "/var/log/syslog",
    "/boot/vmlinuz",
    "/opt/x",
    "/home/somebody/x",
    "/tmp/x",
    "..",
    "../",
    "../other/note",
    "../../home/other/note",
    "src/../../other/note",
    "./././../other",
    "src/../../../../../../../../etc/passwd",
    "//etc//passwd",
    "/./etc/passwd",
    "~",
    "~/.ssh/id",
    "~/other/note",
    "~root/.bashrc",
    "~nobody",
    "~+/x",
    "/proc/self/environ",
    "/proc/1/root/etc/passwd",
    "/proc/self/root/etc/passwd",
    "/proc/self/cwd/src/main.py",
    "/proc/self/fd/0",
    "/proc/../proc/self/mem",
    "/sys/kernel/notes",
    "/dev/zero",
    "/dev/sda",
    "/dev/mem",
    "/dev/../dev/random",
    "/dev/fd/0",
    "/dev/null/../zero",
    "out",
    "out/passwd",
    "out/../etc/passwd",
    "up",
    "up/other/note",
    "chain/other/note",
    "chain/.ssh/id",
    "secret",
    "proc/environ",
    "proc/root/etc/passwd",
    "zero",
    "loop",
    "loop/x",
    "broken",
    "fifo",
    "a\0b",
    "src/main.py\0.txt",
    "..%2fother%2fnote",
    "%2e%2e/other/note",
    "..%5cother",
    "x/.%2e/y",
    "bad\udcff\ud800name",
]


@pytest.mark.parametrize("path", HOSTILE, ids=ascii)
@pytest.mark.parametrize("write", [False, True])
def test_hostile_paths_are_refused(place: Path, path: str, write: bool) -> None:
    with pytest.raises(Refused):
        boundary(place).resolve(path, write)


@pytest.mark.parametrize(
    "path",
    [
        "src/main.py",
        "./src/main.py",
        "src/../src/main.py",
        "inner",
        "new/deep/file",
        ".",
        "~/work/x",
    ],
)
def test_paths_inside_are_resolved(place: Path, path: str) -> None:
    real = boundary(place).resolve(path, write=True)
    assert real.startswith(os.path.realpath(place / "home" / "work"))
    assert os.path.realpath(real) == real


def test_dev_null_is_a_path_but_is_never_opened_as_a_file(place: Path) -> None:
    inside = boundary(place)
    assert inside.resolve("/dev/null", write=True) == "/dev/null"
    with pytest.raises(Refused):
        inside.open_inside("/dev/null", os.O_WRONLY)


@pytest.mark.parametrize("path", ["", "x" * 5000])
def test_paths_that_make_no_sense_are_bad_input(place: Path, path: str) -> None:
    with pytest.raises(BadInput):
        boundary(place).resolve(path)


def test_full_mode_opens_the_workspace_but_not_the_forbidden(place: Path) -> None:
    free = boundary(place, workspace_only=False, forbidden=("/etc", "~/.ssh"))
    assert free.resolve("../other/note").endswith("/home/other/note")
    for path in ("/etc/passwd", "~/.ssh/id", "secret", "out/passwd", "/proc/self/mem", "/dev/zero"):
        with pytest.raises(Refused):
            free.resolve(path)


def test_a_root_inside_a_forbidden_place_wins_over_it(place: Path) -> None:
    # The temporary directory itself is forbidden by default; the session works in it all the same.
    assert boundary(place, forbidden=(str(place),)).resolve("src/main.py")
    with pytest.raises(Refused):
        boundary(place, forbidden=(str(place / "home" / "work" / "src"),)).resolve("src/main.py")


def test_a_secret_directory_inside_the_workspace_stays_forbidden(place: Path) -> None:
    wide = boundary(place, cwd=str(place / "home"))
    assert wide.resolve("other/note")
    for path in (".ssh/id", "work/secret", ".ssh"):
        with pytest.raises(Refused):
            wide.resolve(path)


def test_further_roots_are_inside(place: Path) -> None:
    wider = boundary(place, roots=[str(place / "home" / "other")])
    assert wider.resolve("../other/note", write=True)
    with pytest.raises(Refused):
        wider.resolve("../.ssh/id")


def test_our_own_files_are_out_of_reach_even_from_a_session_in_them(place: Path) -> None:
    data = str(place / "data")
    for cwd in (str(place), data):
        for write in (False, True):
            with pytest.raises(Refused):
                boundary(place, cwd=cwd, workspace_only=False).resolve(f"{data}/config.toml", write)
    (place / "data" / "space").mkdir()
    assert boundary(place, cwd=f"{data}/space").resolve("x", write=True)


def test_readable_places_are_read_not_written(place: Path) -> None:
    outputs = place / "data" / "outputs"
    outputs.mkdir()
    (outputs / "a.log").write_text("x")
    for only in (True, False):
        inside = boundary(place, readable=[str(outputs)], workspace_only=only, forbidden=())
        real = inside.resolve(str(outputs / "a.log"))
        os.close(inside.open_inside(real))
        with pytest.raises(Refused):
            inside.resolve(real, write=True)
        with pytest.raises(Refused):
            inside.open_inside(real, os.O_WRONLY)


def test_a_hard_link_to_a_secret_is_refused(place: Path) -> None:
    inside = boundary(place)
    real = inside.resolve("linked")
    with pytest.raises(Refused, match="hard link"):
        inside.open_inside(real)
    _, links = inside.withheld(inside.cwd)
    found = os.stat(real)
    assert (found.st_dev, found.st_ino) in links


_TAKE = """
import fcntl, sys
with open(sys.argv[1], "r+") as file:
    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
"""


def test_refusing_a_hard_link_leaves_this_process_the_locks_it_has(place: Path) -> None:
    """Closing any descriptor of a file ends them all: those of our store, too."""
    ours = place / "data" / "config.toml"
    os.link(ours, place / "home" / "work" / "ours")
    inside = boundary(place)
    with ours.open("r+") as held:
        fcntl.lockf(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with pytest.raises(Refused, match="hard link"):
            inside.open_inside(inside.resolve("ours"))
        taken = subprocess.run([sys.executable, "-c", _TAKE, str(ours)], capture_output=True)
        assert b"BlockingIOError" in taken.stderr


def test_an_ordinary_hard_link_is_fine(place: Path) -> None:
    work = place / "home" / "work"
    os.link(work / "src" / "main.py", work / "twin.py")
    inside = boundary(place)
    os.close(inside.open_inside(inside.resolve("twin.py")))


def test_sockets_are_refused(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place / "home" / "work")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("daemon.sock")
        with pytest.raises(Refused, match="socket"):
            boundary(place).resolve("daemon.sock")


@pytest.fixture(params=["openat2", "walk"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways of opening, whatever this kernel has."""
    if request.param == "walk":
        monkeypatch.setattr(opening, "_opener", False)
    return str(request.param)


def test_a_link_put_in_after_the_check_is_refused(place: Path, way: str) -> None:
    inside = boundary(place)
    work = place / "home" / "work"
    file = inside.resolve("src/main.py")
    (work / "src").rename(work / "src2")
    (work / "src").symlink_to(place / "home" / "other")
    (place / "home" / "other" / "main.py").write_text("theirs")
    with pytest.raises(Refused, match="symbolic link"):
        inside.open_inside(file)
    with pytest.raises(Refused, match="symbolic link"):
        inside.open_parent(file)
    (work / "src").unlink()
    (work / "src2").rename(work / "src")
    (work / "src" / "main.py").unlink()
    (work / "src" / "main.py").symlink_to("/etc/passwd")
    with pytest.raises(Refused, match="symbolic link"):
        inside.open_inside(file)


def test_a_fifo_put_in_after_the_check_neither_hangs_nor_opens(place: Path, way: str) -> None:
    inside = boundary(place)
    file = place / "home" / "work" / "src" / "main.py"
    real = inside.resolve("src/main.py")
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(Refused, match="FIFO"):
        inside.open_inside(real)


def test_what_is_not_canonical_is_not_opened(place: Path) -> None:
    inside = boundary(place)
    for path in (f"{inside.cwd}/src/../src/main.py", f"{inside.cwd}//src", f"{inside.cwd}/src/"):
        with pytest.raises(Refused):
            inside.open_inside(path)
    with pytest.raises(FileNotFoundError):
        inside.open_inside(f"{inside.cwd}/none")
    with pytest.raises(NotADirectoryError):
        inside.open_inside(f"{inside.cwd}/src/main.py/x")


def test_no_swap_in_a_race_ever_reads_outside(place: Path, way: str) -> None:
    """A thread swaps a directory for a link to another while files are resolved and read."""
    inside = boundary(place)
    work = place / "home" / "work"
    (work / "dir").mkdir()
    (work / "dir" / "note").write_text("mine")
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            os.rename(work / "dir", work / "aside")
            os.symlink(place / "home" / "other", work / "dir")
            os.unlink(work / "dir")
            os.rename(work / "aside", work / "dir")
            for _ in range(chance.randrange(200)):
                pass  # let the directory be what it is for a moment

    chance = random.Random(3)
    limit = time.monotonic() + 20
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # the two take turns all the time
    thread = threading.Thread(target=swap)
    thread.start()
    seen = {"mine": 0, "refused": 0, "missing": 0}
    try:
        while min(seen["mine"], seen["refused"] + seen["missing"]) < 50:
            if time.monotonic() > limit:
                break
            try:
                fd = inside.open_inside(inside.resolve("dir/note"))
            except Fault:
                seen["refused"] += 1
                continue
            except (FileNotFoundError, NotADirectoryError):
                seen["missing"] += 1
                continue
            with os.fdopen(fd) as file:
                assert file.read() == "mine"
            seen["mine"] += 1
    finally:
        stop.set()
        thread.join(60)
        sys.setswitchinterval(interval)
    assert seen["mine"] and seen["refused"] + seen["missing"], seen


def test_a_forbidden_place_does_not_lie_in_itself(place: Path) -> None:
    free = boundary(place, workspace_only=False, forbidden=("/etc",))
    with pytest.raises(Refused, match=r"/etc\. /etc is forbidden\."):
        free.resolve("/etc")
    with pytest.raises(Refused, match=r"/etc/hosts lies in /etc, which is forbidden\."):
        free.resolve("/etc/hosts")
