"""Streams that cannot be written, words that are no text, numbers that make no sense."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.living import WITHIN, Living
from tests.cli.test_everyday import new_session

BYTES = b"caf\xe9"


@pytest.fixture(scope="module")
def living(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Living]:
    made = Living(tmp_path_factory.mktemp("o"))
    made.start()
    yield made
    made.stop()


@pytest.fixture
def idle(tmp_path: Path) -> Living:
    return Living(tmp_path)


def run(at: Living, *words: str | bytes, **more: object) -> "subprocess.CompletedProcess[bytes]":
    given = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, **more}
    return subprocess.run(
        [sys.executable, "-m", "dragoman", *words], env={**at.env, "LC_ALL": "C"}, cwd=at.work,
        stderr=subprocess.PIPE, timeout=WITHIN, **given,  # type: ignore[call-overload]
    )  # fmt: skip


@pytest.mark.parametrize(
    "words", [["--help"], ["sessions"], ["run", "what is dragoman"], ["run", "--json", "list"]]
)
def test_a_full_disk_behind_stdout_is_one_sentence(idle: Living, words: list[str]) -> None:
    with open("/dev/full", "wb") as full:
        done = run(idle, *words, stdout=full)
    assert done.returncode == 1
    last = b"dragoman: The output cannot be written: No space left on device.\n"
    assert done.stderr.removeprefix(b"cancelled\n") == last


@pytest.mark.parametrize("words", [["--help"], ["sessions"], ["run", "what is dragoman"]])
def test_a_closed_stdout_is_no_trouble(idle: Living, words: list[str]) -> None:
    shell = ["sh", "-c", 'exec "$@" >&-', "sh", sys.executable, "-m", "dragoman", *words]
    done = subprocess.run(
        shell, env=idle.env, cwd=idle.work, stdin=subprocess.DEVNULL, capture_output=True,
        timeout=WITHIN,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_a_reader_that_leaves_ends_the_turn_quietly(
    idle: Living, flags: list[str], both: bool
) -> None:
    reader, writer = os.pipe()
    words = [sys.executable, "-m", "dragoman", "run", *flags, "count slowly to 300"]
    process = subprocess.Popen(
        words, env=idle.env, cwd=idle.work, stdin=subprocess.DEVNULL, stdout=writer,
        stderr=writer if both else subprocess.PIPE,
    )  # fmt: skip
    os.close(writer)
    os.read(reader, 1)
    os.close(reader)
    said = process.communicate(timeout=WITHIN)[1]
    assert process.returncode == 141 and not said
    (row,) = idle.json("sessions")["sessions"]
    assert row["status"] not in ("running", "starting")


FOLLOWING = [
    ["logs", "-f"], ["logs", "-f", "-n", "0"], ["sessions", "tail", "SESSION", "-f"],
    ["sessions", "tail", "SESSION", "-f", "--json"], ["tap"], ["tap", "--json"],
    ["approvals", "--watch"], ["approvals", "--watch", "--json"],
]  # fmt: skip


@pytest.mark.parametrize("early", [False, True])
@pytest.mark.parametrize("words", FOLLOWING)
def test_who_follows_sees_the_reader_leave_while_nothing_comes(
    living: Living, words: list[str], early: bool
) -> None:
    """`logs -f | head -1` stayed until the next line was logged."""
    session = new_session(living, "")
    asked = [session if one == "SESSION" else one for one in words]
    reader, writer = os.pipe()
    if early:
        os.close(reader)
    process = subprocess.Popen(
        [sys.executable, "-m", "dragoman", *asked],
        env=living.env, cwd=living.work, stdin=subprocess.DEVNULL, stdout=writer,
        stderr=subprocess.PIPE,
    )  # fmt: skip
    os.close(writer)
    if not early:
        if words[0] in ("logs", "sessions") and "0" not in words:
            os.read(reader, 1)
        os.close(reader)
    said = process.communicate(timeout=WITHIN)[1]
    assert process.returncode == 141
    assert said.removeprefix(b"listening; Ctrl-C ends\n") == b""


def test_words_that_are_no_text_are_named(idle: Living, living: Living) -> None:
    session = new_session(living, "")
    for at, target in ((living, session), (idle, "x")):
        done = run(at, "sessions", "rename", target, BYTES)
        assert done.returncode == 1 and b"Traceback" not in done.stderr
        found = b"caf\\udce9" in done.stderr
        assert found or at is idle  # without a session of that name nothing else is looked at
    done = run(living, "sessions", "show", BYTES)
    assert done.returncode == 1 and b"no UTF-8 text: caf\\udce9" in done.stderr
    done = run(idle, "sessions", "show", BYTES)
    assert done.returncode == 1 and b"no UTF-8 text: caf\\udce9" in done.stderr


def test_a_prompt_with_odd_bytes_is_taken_and_an_odd_directory_leaves_no_session(
    idle: Living,
) -> None:
    assert run(idle, "run", BYTES).returncode == 0
    odd = os.path.join(os.fsencode(idle.work), BYTES)
    os.mkdir(odd)
    done = run(idle, "run", "--cwd", odd, "hi")
    assert done.returncode == 1 and b"no UTF-8 text" in done.stderr
    assert b"Traceback" not in done.stderr
    assert len(idle.json("sessions")["sessions"]) == 1


@pytest.mark.parametrize("given", [b"a prompt\n", b"x" * 100_000])
@pytest.mark.parametrize("piped", [False, True])
def test_a_prompt_for_the_bare_name_is_not_ignored(
    idle: Living, tmp_path: Path, given: bytes, piped: bool
) -> None:
    (tmp_path / "prompt").write_bytes(given)
    with open(tmp_path / "prompt", "rb") as file:
        more: dict[str, object] = {"stdin": None, "input": given} if piped else {"stdin": file}
        more = {name: value for name, value in more.items() if value is not None}
        done = subprocess.run(
            [sys.executable, "-m", "dragoman"], env=idle.env, cwd=idle.work, capture_output=True,
            timeout=WITHIN, **more,  # type: ignore[call-overload]
        )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"a prompt on standard input is for another command: dragoman run\n" in done.stderr


@pytest.mark.parametrize("silent", [False, True])
def test_the_bare_name_without_a_prompt_prints_help(idle: Living, silent: bool) -> None:
    """An empty pipe is no prompt, nor is one that its writer only holds open."""
    reader, writer = os.pipe()
    if not silent:
        os.close(writer)
    done = run(idle, stdin=reader)
    assert done.returncode == 0 and b"Usage: dragoman COMMAND" in done.stdout
    os.close(reader)
    if silent:
        os.close(writer)


# --- numbers and names ---


@pytest.mark.parametrize(
    "words, told",
    [
        (("sessions", "list", "--status", "bogus"), "waiting_input"),
        (("sessions", "list", "--limit", "0"), "at least 1"),
        (("sessions", "list", "--limit", "many"), "at least 1"),
        (("logs", "-n", "-5"), "at least 0"),
        (("sessions", "tail", "x", "--after", "-1"), "at least 0"),
        (("run", "--mode", "bogus", "hi"), "supervised"),
    ],
)
def test_senseless_values_are_refused(idle: Living, words: tuple[str, ...], told: str) -> None:
    done = idle.run(*words)
    assert done.returncode == 2 and told in done.stderr, done.stderr


def test_the_statuses_are_the_engines() -> None:
    from typing import get_args

    from dragoman.cli.commands.shared import STATUSES
    from dragoman.engine.events import Status

    assert get_args(Status) == STATUSES


# --- sending without a terminal ---


@pytest.mark.parametrize("flags, made", [([], False), (["--approve", "all"], True)])
@pytest.mark.parametrize("shown", [[], ["--json"]])
def test_sending_without_a_terminal_waits_for_nobody(
    living: Living, flags: list[str], made: bool, shown: list[str]
) -> None:
    session = new_session(living, "")
    name = f"{made}-{len(shown)}.txt"
    done = living.run("sessions", "send", session, f'write "x" to {name}', *flags, *shown)
    assert done.returncode == 0, done.stderr
    assert (living.work / name).exists() is made
    assert ("--approve all" in done.stderr) is not made


def test_a_detached_prompt_is_queued_and_runs_on(living: Living) -> None:
    session = new_session(living, "")
    done = living.run("sessions", "send", session, "what is dragoman", "--detach", "--json")
    assert done.returncode == 0 and json.loads(done.stdout)["session"] == session
    following = living.spawn("sessions", "tail", session, "-f", "--json")
    assert following.stdout is not None
    for line in following.stdout:
        if json.loads(line)["event"]["type"] == "turn_ended":
            break
    following.terminate()
    following.communicate(timeout=WITHIN)


def test_what_nobody_reads_on_stderr_leaves_the_exit_code() -> None:
    """It was 120, Python's own, of a daemon that ended after whoever started it had left."""
    code = (
        "import sys; from dragoman.cli import main; from dragoman.observe.aloud import aloud\n"
        "main.main = lambda: aloud('the end') or 1\n"
        "sys.exit(main.script())"
    )
    env = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as unread:
        done = subprocess.run([sys.executable, "-c", code], stderr=unread, env=env, timeout=WITHIN)
    assert done.returncode == 1


@pytest.mark.parametrize(("given", "mode"), [(0o777, 0o700), (0o027, 0o750)])
def test_a_umask_never_takes_our_own_rights(tmp_path: Path, given: int, mode: int) -> None:
    words = "import os, sys; from dragoman.cli import main\n"
    words += "main.main = lambda: os.mkdir(sys.argv[1]) or 0\n"
    made = tmp_path / "made"
    subprocess.run(
        [sys.executable, "-c", f"{words}main.script()", str(made)],
        umask=given, check=True, timeout=WITHIN,
    )  # fmt: skip
    assert made.stat().st_mode & 0o777 == mode
