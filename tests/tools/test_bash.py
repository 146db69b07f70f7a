"""`bash`: what it shows, what it hides, and that nothing survives it."""

import asyncio
import os
import re
import signal
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.timed import promised
from tests.tools.making import Env, said

from dragoman.engine.faults import BadInput, Refused
from dragoman.policy.paths import Boundary
from dragoman.sandbox.launch import Launch
from dragoman.tools.bash import Bash
from dragoman.tools.output import Capture, Outputs, Progress, pieces


def alive(pid: int) -> bool:
    """Whether a process runs; one that is dead and not collected does not."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in ("Z", "X")
    except (FileNotFoundError, ProcessLookupError):
        return False


class Saw:
    """Waits until the command has printed something."""

    def __init__(self, env: Env, count: int = 1) -> None:
        self.env, self.count = env, count
        self.event = asyncio.Event()
        env.told = self._told

    def _told(self, text: str) -> None:
        if "".join(self.env.said).count("\n") >= self.count:
            self.event.set()

    async def numbers(self) -> list[int]:
        async with asyncio.timeout(60):
            await self.event.wait()
        return [int(number) for number in "".join(self.env.said).split()]


@pytest.mark.parametrize(
    ("command", "shown", "code"),
    [
        ("echo hi", "$ echo hi\n\nhi\n\n[exit 0]  Took T", 0),
        ("printf hi", "$ printf hi\n\nhi\n\n[exit 0]  Took T", 0),
        ("true", "$ true\n\n[exit 0]  Took T", 0),
        (
            "echo a; echo b >&2; exit 3",
            "$ echo a; echo b >&2; exit 3\n\na\nb\n\n[exit 3]  Took T",
            3,
        ),
        ("kill -9 $$", "$ kill -9 $$\n\n[exit 137]  Took T", 137),
        ("cat", "$ cat\n\n[exit 0]  Took T", 0),
    ],
)
async def test_the_result(use: Any, command: str, shown: str, code: int) -> None:
    outcome = await use("bash", command=command)
    assert re.sub(r"Took \d+\.\ds$", "Took T", said(outcome)) == shown
    assert outcome.is_error is (code != 0)
    assert outcome.detail.exit_code == code


async def test_it_runs_in_the_working_directory_by_either_name(use: Any, work: Path) -> None:
    assert f"\n{work}\n" in said(await use("shell", cmd="pwd"))


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        ({}, "command is required"),
        ({"command": "  "}, "command is required"),
        ({"command": "a\0b"}, "NUL"),
        ({"command": "ls", "timeout": 0}, "timeout"),
        ({"command": "ls", "timeout": "soon"}, "timeout: expected"),
        ({"command": ["ls"]}, "command: expected `str`"),
    ],
)
async def test_bad_arguments(use: Any, args: Any, sentence: str) -> None:
    with pytest.raises(BadInput) as error:
        await use("bash", **args)
    assert sentence in str(error.value)


@pytest.mark.parametrize("command", ["echo hi", "cd / && ls"])
async def test_a_missing_directory_is_said(
    use: Callable[..., Any], work: Path, command: str
) -> None:
    work.rmdir()
    with pytest.raises(BadInput, match="The folder to run this in is not there") as refused:
        await use("bash", command=command)
    assert str(work) in refused.value.message


async def test_a_directory_that_cannot_be_entered_is_not_called_missing(
    use: Callable[..., Any], work: Path
) -> None:
    work.rmdir()
    work.symlink_to(work)
    with pytest.raises(BadInput, match="cannot be entered") as refused:
        await use("bash", command="ls")
    assert str(work) in refused.value.message and "is not there" not in refused.value.message


async def test_progress_comes_while_it_runs(use: Any, work: Path, env: Env) -> None:
    saw = Saw(env)
    os.mkfifo(work / "go")
    task = asyncio.ensure_future(use("bash", command="echo 1; read x <go; echo 2"))
    assert await saw.numbers() == [1]
    assert not task.done()
    await asyncio.to_thread((work / "go").write_text, "x\n")
    assert "1\n2\n" in said(await task)
    assert "".join(env.said) == "1\n2\n"


async def test_characters_are_not_torn_in_progress(use: Any, env: Env) -> None:
    text = "äöü€😀" * 3000
    outcome = await use("bash", command=f"printf '{text[:60]}'; printf '\\303'; printf '\\244'")
    assert "".join(env.said) == text[:60] + "ä"
    assert text[:60] in said(outcome)
    got: list[str] = []
    progress = Progress(got.append)
    data = text.encode()
    for at in range(0, len(data), 7):
        progress.take(data[at : at + 7])
    progress.take(b"\xff", final=True)
    assert "".join(got) == text + "\udcff"


@pytest.mark.parametrize(
    ("given", "wanted", "is_text"),
    [
        ("plain\\n", b"plain\n", True),
        ("\\377\\000\\200 x", b"\xff\x00\x80 x", False),
        ("gr\\303\\274n", "grün".encode(), True),
        ("", b"", True),
        ("cut \\303", b"cut \xc3", False),
    ],
)
async def test_what_was_printed_is_known_to_the_byte(
    use: Any, env: Env, given: str, wanted: bytes, is_text: bool
) -> None:
    outcome = await use("bash", command=f"printf '{given}'")
    assert outcome.detail.printed(said(outcome)) == wanted
    assert (outcome.detail.raw is None) is is_text
    assert b"".join(text.encode("utf-8", "surrogateescape") for text in env.said) == wanted


async def test_a_cut_output_is_not_taken_for_all_of_it(use: Any) -> None:
    outcome = await use("bash", command="head -c 300000 /dev/zero")
    assert outcome.detail.full_output and outcome.detail.printed(said(outcome)) is None


def test_pieces_are_small() -> None:
    for text in ("a" * 10_000, "€" * 10_000, "😀" * 5000, "\ufffd" * 4096):
        parts = pieces(text, 4096)
        assert "".join(parts) == text
        assert all(len(part.encode()) <= 4096 for part in parts)


def test_a_flood_is_thinned_out() -> None:
    got: list[str] = []
    now = [0.0]
    progress = Progress(got.append, lambda: now[0])
    for _ in range(100):
        progress.take(b"x" * 65536)
    assert len("".join(got)) <= 400_000
    now[0] = 2.0
    progress.take(b"end")
    assert got[-1] == "end"
    assert "bytes not shown" in got[-2]


@pytest.mark.parametrize(
    ("command", "limit", "first", "last", "size"),
    [
        ("seq 1 100000", "51200 bytes", "1\n2\n", "99999\n100000\n", 588_895),
        ("seq 1 3000", "2000 lines", "1\n2\n", "2999\n3000\n", 13_893),
    ],
)
async def test_much_output_is_cut_and_kept(
    use: Any, outputs: Path, command: str, limit: str, first: str, last: str, size: int
) -> None:
    outcome = await use("bash", command=command)
    text = said(outcome)
    body = text.partition("\n\n")[2].rpartition("\n\n[exit")[0] + "\n"
    assert body.startswith(first) and body.endswith(last)
    assert f"... [truncated at {limit}; " in body
    assert len(body.encode()) <= 51_200 + 100
    assert body.count("\n") <= 2001
    full = outcome.detail.full_output
    assert f"[exit 0] (full output: {full})" in text
    assert os.path.getsize(full) == size
    assert stat.S_IMODE(os.stat(full).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(outputs).st_mode) == 0o700
    # The model may read that file, and not write it.
    assert said(await use("read", path=full, offset=2990, limit=1)) == "2990\n"
    with pytest.raises(Refused):
        await use("write", path=full, content="x")


async def test_little_output_leaves_no_file(use: Any, outputs: Path) -> None:
    outcome = await use("bash", command="seq 1 1999")
    assert outcome.detail.full_output is None
    assert not outputs.exists()


def test_old_outputs_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.tools.output._FILES", 3)
    keeper = Outputs(str(tmp_path / "out"))
    made = []
    for number in range(6):
        fd, path = keeper.create()
        os.close(fd)
        os.utime(path, (number, number))
        made.append(path)
    assert sorted(os.listdir(tmp_path / "out")) == sorted(os.path.basename(p) for p in made[-3:])


def test_a_full_disk_costs_the_file_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    capture = Capture(Outputs(str(tmp_path / "out")))
    capture.take(b"x\n" * 40_000)

    def full(fd: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.write", full)
        capture.finish()
    assert "could not be kept: No space left on device" in capture.note
    assert capture.text().startswith("x\n")


@pytest.mark.parametrize(
    ("limit", "within"),  # a busy machine takes a while to begin all four
    [(5, 60), pytest.param(1, 1 + 3, marks=pytest.mark.timed)],
)
async def test_a_timeout_ends_everything_and_says_so(
    use: Any, env: Env, limit: int, within: float
) -> None:
    """A child that ignores SIGTERM, its child, and one that left the group and the session."""
    command = (
        "trap '' TERM; echo $$; (trap '' TERM; sleep 360 & echo $!; sleep 361) & echo $!; "
        "setsid sh -c 'trap \"\" TERM; echo $$; sleep 362' & sleep 363"
    )
    saw = Saw(env, 4)
    began = time.monotonic()
    task = asyncio.ensure_future(use("bash", command=command, timeout=limit))
    pids = await saw.numbers()
    assert len(pids) == 4 and all(alive(pid) for pid in pids)
    outcome = await task
    assert time.monotonic() - began < within
    assert not any(alive(pid) for pid in pids)
    assert outcome.is_error and outcome.detail.exit_code == -1
    assert f"[timed out after {limit}s; " in said(outcome)
    assert said(outcome).count("\n") > 4  # what it had printed is there


async def test_the_default_timeout_counts(work: Path, env: Env) -> None:
    bash = Bash(lambda env: Boundary(env.cwd), timeout=0.3)
    assert "timed out after 0.3s" in said(await bash.run({"command": "sleep 300"}, env))  # type: ignore[arg-type]


@pytest.mark.parametrize("trap", ["trap '' TERM", ":"])
@promised(3)
async def test_cancelling_ends_everything(
    use: Any, env: Env, outputs: Path, trap: str, within: float
) -> None:
    saw = Saw(env, 2)
    command = f"{trap}; echo $$; ({trap}; sleep 360) & echo $!; sleep 361"
    task = asyncio.ensure_future(use("bash", command=command))
    pids = await saw.numbers()
    began = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.monotonic() - began < within
    assert not any(alive(pid) for pid in pids)
    assert not outputs.exists()


async def test_cancelling_twice_changes_nothing(use: Any, env: Env) -> None:
    saw = Saw(env)
    task = asyncio.ensure_future(use("bash", command="trap '' TERM; echo $$; sleep 360; sleep 361"))
    (pid,) = await saw.numbers()
    task.cancel()
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not alive(pid)


def _commands() -> list[str]:
    """What every process on this machine was started with."""
    said = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it has ended meanwhile
            said.append(place.read_text(errors="replace"))
    return said


async def test_cancelling_before_it_started_starts_nothing(use: Any, work: Path) -> None:
    mark = f"29{os.getpid()}"
    for ticks in range(6):
        task = asyncio.ensure_future(use("bash", command=f"sleep {mark}; touch mark"))
        for _ in range(ticks):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert not [words for words in _commands() if mark in words]
    assert os.listdir(work) == []


async def test_a_polite_child_may_clean_up(use: Any, work: Path, env: Env) -> None:
    saw = Saw(env)
    command = "trap 'echo bye > bye; exit' TERM; echo 1; sleep 360 & wait"
    task = asyncio.ensure_future(use("bash", command=command))
    await saw.numbers()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (work / "bye").read_text() == "bye\n"


@pytest.mark.parametrize("start", ["sleep 360 & echo $!", "setsid sleep 360 >/dev/null & echo $!"])
@promised(2.5)
async def test_what_stays_in_the_background_is_ended(
    use: Any, env: Env, start: str, within: float
) -> None:
    began = time.monotonic()
    outcome = await use("bash", command=start)
    assert time.monotonic() - began < within
    assert not alive(int("".join(env.said)))
    assert "[ended 1 background process]" in said(outcome)
    assert not outcome.is_error


async def test_no_secret_reaches_a_command(
    work: Path, env: Env, monkeypatch: pytest.MonkeyPatch
) -> None:
    secrets = ("ANTHROPIC_API_KEY", "ZOTCORE_RPC_TOKEN", "GITHUB_TOKEN", "DB_PASSWORD", "MY_SECRET")
    for name in (*secrets, "DRAGOMAN_DATA_DIR", "EDITOR_OF_MINE", "WANTED", "LC_TIME"):
        monkeypatch.setenv(name, f"value-of-{name}")
    bash = Bash(
        lambda env: Boundary(env.cwd),
        allow_env=("WANTED", "*_TOKEN", "ANTHROPIC_API_KEY"),
        extra_env={"EXTRA": "1", "OTHER_KEY": "2"},
    )
    outcome = await bash.run({"command": "env"}, env)  # type: ignore[arg-type]
    names = {line.partition("=")[0] for line in said(outcome).split("\n")}
    assert {"PATH", "HOME", "WANTED", "LC_TIME", "EXTRA", "PWD"} <= names
    assert names.isdisjoint({*secrets, "DRAGOMAN_DATA_DIR", "EDITOR_OF_MINE", "OTHER_KEY"})


class Walls:
    """A sandbox that changes the command line and runs something in the child."""

    name = "walls"

    def __init__(self, fail: bool = False) -> None:
        self.fail = fail
        self.closed = 0

    def confine(self, launch: Launch, env: Any, bounds: Any) -> Launch:
        if self.fail:
            raise Refused("No sandbox here.")
        keep, other = os.pipe()

        def done() -> None:
            os.close(keep)
            os.close(other)
            self.closed += 1

        return replace(
            launch,
            argv=("/usr/bin/env", "WALLS=1", *launch.argv),
            preexec=lambda: os.umask(0o077) and None,
            keep=(keep,),
            done=done,
        )


async def test_a_sandbox_can_put_its_walls_up(work: Path, env: Env) -> None:
    walls = Walls()
    bash = Bash(lambda env: Boundary(env.cwd), confine=walls)
    outcome = await bash.run({"command": "echo $WALLS; umask"}, env)  # type: ignore[arg-type]
    assert "\n1\n0077\n" in said(outcome)
    assert walls.closed == 1
    bash = Bash(lambda env: Boundary(env.cwd), confine=Walls(fail=True))
    with pytest.raises(Refused):
        await bash.run({"command": "touch x"}, env)  # type: ignore[arg-type]
    assert os.listdir(work) == []


class Screen:
    """A client's terminals (`ports.Terminals`)."""

    def __init__(self, code: int | None) -> None:
        self.code = code
        self.asked: dict[str, Any] = {}

    async def run(
        self, command: str, *, opened: Callable[[str], None], **asked: Any
    ) -> tuple[int | None, str, bool]:
        self.asked = {"command": command, **asked}
        opened("term-1")
        return self.code, "output", True


@pytest.mark.parametrize(("code", "shown"), [(0, "[exit 0]"), (2, "[exit 2]"), (None, "[exit -1]")])
async def test_a_clients_terminal_is_used(
    use: Any, env: Env, work: Path, code: int | None, shown: str
) -> None:
    env.terminals = screen = Screen(code)
    outcome = await use("bash", command="touch x", timeout=9)
    assert screen.asked["cwd"] == str(work) and screen.asked["timeout"] == 9
    assert outcome.detail.terminal_id == "term-1"
    assert outcome.is_error is (code != 0)
    assert "output" in said(outcome) and shown in said(outcome)
    assert os.listdir(work) == []


@promised(3)
async def test_many_at_once_are_all_ended(use: Any, env: Env, within: float) -> None:
    saw = Saw(env, 12)
    tasks = [
        asyncio.ensure_future(use("bash", command="trap '' TERM; echo $$; sleep 360; sleep 361"))
        for _ in range(12)
    ]
    pids = await saw.numbers()
    began = time.monotonic()
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks, timeout=60)
    assert time.monotonic() - began < within
    assert all(task.cancelled() for task in tasks)
    assert not any(alive(pid) for pid in pids)


async def test_our_own_process_is_never_a_member() -> None:
    from dragoman.tools.group import Group

    group = Group(2**22 - 1, "mark-that-nobody-has=1")
    assert os.getpid() not in group.members()
    group.signal(signal.SIGTERM)  # a group that does not exist
