"""Parts of the walls in small: `enter`, `powers`, `attacks.driver`, `attacks.kernel`."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dragoman.engine.faults import Refused
from dragoman.sandbox import enter
from dragoman.sandbox.attacks import driver
from dragoman.sandbox.attacks.kernel import KERNEL, _calls
from dragoman.sandbox.launch import Launch, Sign
from dragoman.sandbox.powers import renounce

WANTED: dict[str, Any] = {
    "mark": 1, "walls": {}, "backend": "auto", "network": True, "unix": [],
    "env": {"TMPDIR": "/tmp/x", "A": "b"}, "argv": ["prog", "-x"], "cwd": "/",
}  # fmt: skip

# --- enter ---


class Stop(Exception):
    """Instead of becoming another program."""


class Confine:
    name = "test"

    def __init__(self, *, argv: tuple[str, ...] = (), fault: Exception | None = None) -> None:
        self.limits: Any = None
        self.argv = argv
        self.fault = fault
        self.order: list[str] = []

    def confine(self, launch: Launch, env: Any, walls: Any) -> Launch:
        if self.fault is not None:
            raise self.fault
        self.order.append(f"walls for {launch.env['TMPDIR']}")
        made = self.argv or launch.argv
        return Launch(made, launch.cwd, launch.env, preexec=lambda: self.order.append("preexec"))


@pytest.fixture
def become(monkeypatch: pytest.MonkeyPatch) -> Any:
    def go(confine: Confine) -> None:
        def execvpe(file: str, argv: Any, env: Any) -> None:
            confine.order.append(f"{file} {argv} {sorted(env)}")
            raise Stop

        monkeypatch.setattr(enter, "choose", lambda *words, **more: confine)
        monkeypatch.setattr(enter, "Fixed", lambda **walls: None)
        monkeypatch.setattr(enter.brand, "burn", lambda mark: lambda: None)
        monkeypatch.setattr(enter.os, "execvpe", execvpe)
        enter.become(WANTED)

    return go


def test_enter_puts_the_walls_up_before_it_becomes_the_program(become: Any) -> None:
    confine = Confine()
    with pytest.raises(Stop):
        become(confine)
    assert confine.order == [
        "walls for /tmp/x", "preexec", "prog ('prog', '-x') ['A', 'TMPDIR']",
    ]  # fmt: skip
    assert confine.limits.groups is False  # nobody would be left to remove a control group


def test_enter_lists_anew_what_was_gone_and_ends_as_the_program_did(
    become: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Listing(Confine):
        said = iter(("", '{ "exit-code": 1 }'))  # the second one ran, and failed by itself

        def confine(self, launch: Launch, env: Any, walls: Any) -> Launch:
            sign = Sign()
            words = ("sh", "-c", f"echo '{next(self.said)}' > /proc/self/fd/{sign.fd}; exit 1")
            self.order.append("listed")
            return Launch(words, "/", launch.env, keep=(sign.fd,), sign=sign, listed=True,
                          again=lambda: self.confine(launch, env, walls))  # fmt: skip

    def end(status: int) -> None:
        raise Stop(status)

    def run(launch: Launch, wanted: dict[str, Any]) -> None:
        os.set_inheritable(launch.keep[0], True)
        os.execv("/bin/sh", launch.argv)

    monkeypatch.setattr(enter, "_exec", run)
    monkeypatch.setattr(enter, "_end_as", end)
    monkeypatch.setattr(enter.signal, "signal", lambda *words: None)
    confine = Listing()
    with pytest.raises(Stop, match="1"):
        become(confine)
    assert confine.order == ["listed", "listed"]


def test_enter_reads_what_is_wanted_from_numbered_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    text = json.dumps(WANTED)
    for number, piece in enumerate((text[:10], text[10:50], text[50:])):
        monkeypatch.setenv(f"{enter.WANTED}{number}", piece)
    assert enter._wanted() == WANTED
    assert f"{enter.WANTED}0" not in os.environ  # the program does not see it


@pytest.mark.parametrize(
    ("fault", "said"),
    [(Refused("No walls here.", "Use another kernel."), "No walls here. Use another kernel."),
     (OSError(2, "not there"), "prog could not be started")],
)  # fmt: skip
def test_enter_that_fails_runs_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], fault: Any, said: str
) -> None:
    def fails(wanted: Any) -> None:
        raise fault

    monkeypatch.setattr(enter, "_wanted", lambda: WANTED)
    monkeypatch.setattr(enter, "become", fails)
    with pytest.raises(SystemExit) as left:
        enter.main()
    assert left.value.code == 126 and said in capsys.readouterr().err


# --- powers ---


class Libc:
    """A kernel that knows five powers."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, ...]] = []
        self.set: list[tuple[bytes, bytes]] = []

    def prctl(self, what: int, power: int, *_: int) -> int:
        self.asked.append((what, power))
        return 1 if what != 23 or power < 5 else -1

    def capset(self, head: bytes, data: bytes) -> int:
        self.set.append((head, data))
        return 0


def test_powers_all_known_ones_go_from_the_bounding_set_first() -> None:
    libc = Libc()
    drop = renounce(libc)
    libc.asked.clear()
    drop()
    assert libc.asked == [(24, power) for power in range(5)] + [(47, 4)]
    assert libc.set == [(libc.set[0][0], bytes(24))]


# --- attacks.driver ---


def test_driver_runs_attacks_line_by_line_and_bounds_them() -> None:
    asked = [
        {"shell": "echo from the shell", "python": ""},
        {"shell": "", "python": "escaped()"},
        {"shell": "", "python": "tried(lambda: open('/nowhere'))"},
        {"shell": "", "python": "refused('no such call')"},
        {"shell": "", "python": "raise ValueError('broken')"},
        {"shell": "yes | head -c 200000", "python": ""},
    ]
    done = subprocess.run(
        [sys.executable, str(Path(driver.__file__)), "{}"], text=True, capture_output=True,
        input="".join(json.dumps(one) + "\n" for one in asked), timeout=60, check=True,
    )  # fmt: skip
    said = [json.loads(line) for line in done.stdout.splitlines()]
    assert said[0] == "from the shell\n" and said[1] == "ESCAPED\n"
    assert "ESCAPED" not in said[2] and "nowhere" in said[2]
    assert said[3] == "no such call -1 ENOSYS\n"
    assert said[4] == "ValueError: broken\n" and len(said[5]) <= 2 * driver.MOST


def test_driver_calls_the_kernel_by_number(capsys: pytest.CaptureFixture[str]) -> None:
    number = 39 if os.uname().machine == "x86_64" else 172  # getpid
    assert driver.call(number) == (os.getpid(), "")
    driver.refused(number)
    assert "ESCAPED" in capsys.readouterr().out
    assert driver.call("unknown") == (-1, "ENOSYS")


# --- attacks.kernel ---


def test_kernel_every_attack_is_a_program_of_its_own() -> None:
    names = [attack.name for attack in KERNEL]
    assert len(names) == len(set(names)) and all(attack.what for attack in KERNEL)
    for attack in KERNEL:
        assert bool(attack.shell) != bool(attack.python), attack.name
        if attack.python:
            filled = attack.python
            for name in ("outside", "abstract", "shared", "tty"):
                filled = filled.replace("{" + name + "}", "x")
            for name in ("victim", "sigqueue", "tgkill", "segment"):
                filled = filled.replace("{" + name + "}", "1")
            compile(filled, attack.name, "exec")


def test_kernel_calls_are_read_from_lines() -> None:
    (one,) = _calls('\nx y: what it does | "x", 1, 2\n')
    assert (one.name, one.what, one.python) == ("call: x y", "what it does", 'refused("x", 1, 2)')
