"""A command that a signal ends leaves as after Ctrl-C, and what it made goes with it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.leaving import leaving_in_order, undisturbed

MADE = """
import os, select, signal, sys
from dragoman.leaving import leaving_in_order
from tempfile import TemporaryDirectory
if sys.argv[2] == "ignored":
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
with leaving_in_order(), TemporaryDirectory(dir=sys.argv[1]):
    print("there", flush=True)
    # Python looks for a signal when a call returns: one just before a call that blocks would wait.
    while not select.select([sys.stdin], [], [], 0.1)[0]:
        pass
print("over", flush=True)
"""


def begun(folder: Path, how: str) -> "subprocess.Popen[str]":
    process = subprocess.Popen(
        [sys.executable, "-c", MADE, str(folder), how],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None and process.stdout.readline() == "there\n"
    return process


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_what_it_made_goes_with_it(tmp_path: Path, number: signal.Signals) -> None:
    with begun(tmp_path, "usual") as process:
        assert os.listdir(tmp_path)
        process.send_signal(number)
        process.send_signal(number)  # a shell and the kernel may both tell
        assert process.wait(60) == 128 + number
    assert not os.listdir(tmp_path)


def test_with_nohup_a_closed_terminal_ends_nothing(tmp_path: Path) -> None:
    with begun(tmp_path, "ignored") as process:
        process.send_signal(signal.SIGHUP)
        said, _ = process.communicate("go on\n", timeout=60)
        assert (said, process.returncode) == ("over\n", 0)


def test_the_signals_are_as_before_afterwards() -> None:
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGHUP)
    with leaving_in_order():
        assert signal.getsignal(signal.SIGTERM) != before[0]
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGHUP)) == before


# Whoever forks is told to end while it does so, where Python drops exceptions.
_BEGIN = """
import os, signal, subprocess, sys
from dragoman.leaving import leaving_in_order, undisturbed

def begin():
    return subprocess.Popen(["sleep", "1000"], preexec_fn=lambda: None)

os.register_at_fork(after_in_parent=lambda: signal.raise_signal(signal.%s))
"""
_LOST = """
with leaving_in_order():
    process = begin()
    process.kill()
    process.wait()
    print("went on", flush=True)
    raise OSError("it broke on the way")
"""
_AGAIN = """
with leaving_in_order():
    process = begin()
    process.kill()
    process.wait()
    print("went on", flush=True)
    try:
        signal.raise_signal(signal.SIGTERM)
        print("ignored", flush=True)
    finally:
        signal.raise_signal(signal.SIGHUP)  # while we leave there is no second end
        print("cleared up", flush=True)
"""
_KEPT = """
process = None
with leaving_in_order():
    try:
        with undisturbed():
            process = begin()
        print("went on", flush=True)
    finally:
        process.kill()
        print("ended", process.wait(), flush=True)
"""


@pytest.mark.parametrize(("number", "code"), [("SIGTERM", 143), ("SIGHUP", 129)])
@pytest.mark.parametrize(("how", "said"), [(_LOST, "went on\n"), (_KEPT, "ended -9\n")])
def test_a_signal_that_comes_while_a_process_begins(
    number: str, code: int, how: str, said: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _BEGIN % number + how], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (code, said), done.stderr


def test_after_one_that_was_lost_the_next_ends_it() -> None:
    words = [sys.executable, "-c", _BEGIN % "SIGTERM" + _AGAIN]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (143, "went on\ncleared up\n"), done.stderr


def test_ctrl_c_that_comes_while_a_process_begins() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _BEGIN % "SIGINT" + _KEPT],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout == "ended -9\n" and "KeyboardInterrupt" in done.stderr, done


def test_what_interrupts_waits_until_it_may() -> None:
    seen = []
    with pytest.raises(KeyboardInterrupt), undisturbed():
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        seen.append("gone on")
    assert seen == ["gone on"] and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with undisturbed():
        pass  # nothing came


def test_what_is_ignored_stays_so() -> None:
    former = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with undisturbed():
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, former)
