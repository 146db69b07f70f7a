"""Apps as processes: started, started again, given up, stopped with all they left behind."""

import asyncio
import os
import signal
import sys
from functools import partial

import pytest

from dragoman.daemon import apps
from dragoman.daemon.apps import Keeper, Supervisor, environment
from dragoman.dialects.openclawos import environment as tells
from dragoman.settings.protocols import App

TELLS = partial(tells, "/k.sock")


def program(code: str, **more) -> App:
    return App(command=sys.executable, args=("-c", code), restart_delay_secs=0.01, **more)


@pytest.fixture
async def keep():
    kept = []

    def make(app: App) -> Keeper:
        keeper = Keeper("@test/app", app, partial(tells, "/nowhere/kernel.sock"))
        kept.append(keeper)
        keeper.start()
        return keeper

    yield make
    await asyncio.gather(*(keeper.stop() for keeper in kept))


async def reach(keeper, *states):
    await until(lambda: keeper.state in states)


async def until(holds):
    """Wait for something that another process does."""
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110 - there is no event for it
            await asyncio.sleep(0.02)


async def test_one_that_ends_well_is_not_started_again(keep):
    keeper = keep(program("print('bye')"))
    await reach(keeper, "stopped")
    assert (keeper.restarts, keeper.exit_code, keeper.pid) == (0, 0, None)


async def test_one_that_fails_is_started_again_until_it_is_too_much(keep, tmp_path):
    mark = tmp_path / "runs"
    code = f"open({str(mark)!r}, 'a').write('x'); raise SystemExit(3)"
    keeper = keep(program(code, max_restarts=2))
    await reach(keeper, "crashed")
    assert mark.read_text() == "xxx"
    status = keeper.status()
    assert status["restarts"] == 2 and status["exit_code"] == 3
    assert status["problem"] == "ended with 3"


async def test_one_that_cannot_even_be_tried_is_told(keep):
    keeper = keep(App(command="a\0b", max_restarts=0))
    await reach(keeper, "crashed")
    assert "cannot be started: embedded null byte" in keeper.status()["problem"]


async def test_one_that_fails_for_ever_is_tried_for_ever(keep, monkeypatch):
    monkeypatch.setattr(Keeper, "_once", failing := Failing())
    keep(App(command="x", max_restarts=10**9, restart_delay_secs=0.0))
    await until(lambda: failing.times > 1_200)  # two to the power of that is no float


class Failing:
    """An app that fails at once."""

    times = 0

    async def __call__(self) -> bool:
        self.times += 1
        return True


async def test_the_delay_doubles(keep, monkeypatch):
    waits = []
    original = asyncio.wait_for

    async def wait_for(work, timeout):
        waits.append(timeout)
        return await original(work, 0.001)

    monkeypatch.setattr(apps.asyncio, "wait_for", wait_for)
    keeper = keep(App(command="/does/not/exist", max_restarts=4, restart_delay_secs=1))
    await reach(keeper, "crashed")
    assert waits == [1, 2, 4, 8]
    assert "cannot be started" in keeper.status()["problem"]


async def test_old_failures_do_not_count(keep, monkeypatch):
    monkeypatch.setattr(apps, "WINDOW", -1.0)
    keeper = keep(program("raise SystemExit(1)", max_restarts=1))
    await until(lambda: keeper.restarts >= 3)
    assert keeper.state != "crashed"


async def test_stopping_asks_first_and_then_kills_the_whole_group(keep, tmp_path):
    mark = tmp_path / "child"
    code = (
        "import signal, subprocess, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"open({str(mark)!r} + '.new', 'w').write(str(child.pid))\n"
        f"import os; os.rename({str(mark)!r} + '.new', {str(mark)!r})\n"
        "time.sleep(600)\n"
    )
    keeper = keep(program(code, stop_timeout_secs=0.2))
    await reach(keeper, "running")
    await until(mark.exists)
    child = int(mark.read_text())
    assert os.getpgid(child) == keeper.pid != os.getpgid(0)
    await keeper.stop()
    assert keeper.exit_code == -signal.SIGKILL and keeper.state == "stopped"
    await until(lambda: not _is_alive(child))


async def test_one_that_ended_is_seen_though_what_it_left_holds_its_output(keep, tmp_path):
    mark = tmp_path / "left"
    code = (
        "import subprocess\n"
        "left = subprocess.Popen(['sleep', '360'], start_new_session=True)\n"
        f"open({str(mark)!r}, 'w').write(str(left.pid))\n"
        "print('bye', flush=True)\n"
        "raise SystemExit(3)\n"
    )
    keeper = keep(program(code, max_restarts=0))
    try:
        await reach(keeper, "crashed")
        assert keeper.exit_code == 3 and _is_alive(int(mark.read_text()))
    finally:
        os.kill(int(mark.read_text()), signal.SIGKILL)


def _is_alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def test_one_that_says_goodbye_and_stays_is_killed_in_its_own_time(keep):
    keeper = keep(program("import time; time.sleep(600)", max_restarts=0))
    await reach(keeper, "running")
    keeper.leaving(20)
    await reach(keeper, "crashed")
    assert keeper.exit_code == -signal.SIGKILL


def test_the_environment_is_small_and_has_no_secrets():
    source = {"PATH": "/bin", "HOME": "/h", "LC_ALL": "C", "OPENAI_API_KEY": "x",
              "DRAGOMAN_x": "y", "SECRET": "z"}  # fmt: skip
    app = App(command="x", env={"BOT_TOKEN": "given"})
    assert environment("@a/b", app, partial(tells, "/k.sock"), source) == {
        "PATH": "/bin", "HOME": "/h", "LC_ALL": "C", "BOT_TOKEN": "given",
        "OPENCLAWOS_KERNEL_SOCKET": "/k.sock", "OPENCLAW_KERNEL_SOCKET": "/k.sock",
        "OPENCLAWOS_APP_ID": "@a/b",
    }  # fmt: skip


async def test_a_changed_configuration_is_followed():
    sleeper = program("import time; time.sleep(600)")
    supervisor = Supervisor(TELLS)
    await supervisor.apply({"a": sleeper, "off": App(command="x", enabled=False)})
    try:
        assert [one["id"] for one in supervisor.status()] == ["a"]
        first = supervisor.keepers["a"]
        await reach(first, "running")
        other = program("import time; time.sleep(61)")
        await supervisor.apply({"a": sleeper, "b": other})
        assert supervisor.keepers["a"] is first and "b" in supervisor.keepers
        await supervisor.apply({"b": other})
        assert first.state == "stopped" and list(supervisor.keepers) == ["b"]
    finally:
        await supervisor.stop()


async def test_an_entry_without_a_command_is_not_started():
    supervisor = Supervisor(TELLS)
    await supervisor.apply({"elsewhere": App(config={"token": "x"})})
    assert supervisor.status() == []


def test_what_doctor_says():
    kept = [{"id": "a", "state": "crashed", "problem": "ended with 3", "restarts": 5},
            {"id": "b", "state": "waiting", "problem": "ended with 1", "restarts": 1},
            {"id": "c", "state": "running", "problem": "", "restarts": 0}]  # fmt: skip
    connected = [
        {"id": "c", "state": "ready", "stale": False, "passed_over": False},
        {"id": "d", "stale": True},
        {"id": "e", "state": "ready", "stale": False, "passed_over": True},
    ]
    rows = apps.findings(kept, connected)
    assert [row.severity for row in rows] == ["error", "warn", "ok", "warn", "warn"]
    assert "e is passed over" in rows[4].message and "hook.result" in rows[4].fix
    assert rows[0].message == "a ended with 3 (5 restarts)"
    assert rows[0].fix == "What it said: dragoman apps logs a"
