"""What dead processes, damaged files and unwritable places leave behind, as commands show it."""

import asyncio
import json
import os
import signal
import sqlite3
import subprocess

import pytest
from tests.daemon.test_run import DRAGOMAN, environment, say, scripted, work
from tests.mounts import mounted

from dragoman.daemon import main as daemon_main
from dragoman.engine.info import SessionQuery
from dragoman.host.compose import compose
from dragoman.host.doctor import examine
from dragoman.settings.places import places
from dragoman.store.migrations import APPLICATION_ID, migrate

HANGING = [{"parts": [{"type": "say", "text": "began"}, {"type": "hang"}]}]


def command(tmp_path, *words, **more):
    folder = tmp_path / "config"
    folder.mkdir(exist_ok=True)
    return subprocess.run(
        [*DRAGOMAN, *words, "--config-dir", str(folder)],
        capture_output=True, timeout=60, cwd=work(tmp_path), stdin=subprocess.DEVNULL,
        env=environment(), **more,
    )  # fmt: skip


def begin(tmp_path):
    """A turn that hangs in a process of its own."""
    folder = tmp_path / "config"
    folder.mkdir(exist_ok=True)
    (folder / "config.toml").write_text(scripted(tmp_path, HANGING))
    process = subprocess.Popen(
        [*DRAGOMAN, "run", "--config-dir", str(folder), "hi"], stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, cwd=work(tmp_path), env=environment(),
    )  # fmt: skip
    assert process.stdout is not None and process.stdout.read(5) == b"began"
    return process


def end(process):
    process.send_signal(signal.SIGKILL)
    process.wait(60)
    process.stdout.close()


def test_a_killed_run_is_listed_as_interrupted_without_a_daemon(tmp_path):
    process = begin(tmp_path)
    rows = json.loads(command(tmp_path, "sessions", "--json").stdout)["sessions"]
    assert [row["status"] for row in rows] == ["running"]
    end(process)
    rows = json.loads(command(tmp_path, "sessions", "--json").stdout)["sessions"]
    assert [row["status"] for row in rows] == ["interrupted"]


async def test_a_running_host_takes_up_what_a_dead_process_left(tmp_path, monkeypatch):
    monkeypatch.setattr(daemon_main, "_TAKE_UP_SECONDS", 0.02)
    process = begin(tmp_path)
    composed = await compose(config_dir=str(tmp_path / "config"))
    try:
        assert await composed.host.recover() == 0, "its process lives"
        daemon = daemon_main.Daemon(composed, ephemeral=False, gateway=False, native=False)
        seen = asyncio.Event()

        class Bell:
            def speak(self, events):
                if any(getattr(event.body, "new", "") == "interrupted" for event in events):
                    seen.set()

        composed.door.watch_all(daemon_main._NOBODY, Bell(), lambda said: None)
        task = asyncio.ensure_future(daemon._take_up())
        end(process)
        await asyncio.wait_for(seen.wait(), 60)
        task.cancel()
        page = await composed.door.list(SessionQuery())
        assert [info.status for info in page.sessions] == ["interrupted"]
    finally:
        await composed.close()


@pytest.mark.parametrize("words", [["sessions"], ["approvals"], ["agents"], ["models"]])
def test_reading_leaves_a_damaged_store_alone(tmp_path, words):
    data = tmp_path / "config" / "data"
    data.mkdir(parents=True, mode=0o700)
    damaged = b"this is no database" * 500
    (data / "sessions.db").write_bytes(damaged)
    done = command(tmp_path, *words)
    said = done.stderr.decode()
    assert done.returncode == 1 and not done.stdout
    assert "damaged" in said and "dragoman daemon" in said and "Traceback" not in said
    assert (data / "sessions.db").read_bytes() == damaged
    assert not list(data.glob("*.corrupt-*"))


def rows_of(folder):
    return [row for row in examine(places({}, str(folder)), {}) if row.category == "store"]


def test_doctor_names_stores_that_were_moved_aside(tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    (data / "sessions.db.corrupt-20260101-000000").write_bytes(b"x")
    (data / "sessions.db.corrupt-20260101-000000-wal").write_bytes(b"x")
    (data / "checkpoints.db.corrupt-20260101-000000").write_bytes(b"x")
    aside = [row for row in rows_of(tmp_path) if row.severity == "warn"]
    assert len(aside) == 2 and all("moved aside" in row.message and row.fix for row in aside)


def test_doctor_looks_inside_the_store_and_changes_nothing(tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    path = data / "sessions.db"
    with sqlite3.connect(path) as made:
        made.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        made.execute("CREATE TABLE t (a TEXT)")
        made.executemany("INSERT INTO t VALUES (?)", [("x" * 500,) for _ in range(200)])
        made.execute("CREATE INDEX i ON t (a)")
    made.close()
    assert [row.severity for row in rows_of(tmp_path)] == ["ok"]
    whole = bytearray(path.read_bytes())
    whole[4096 * 2 : 4096 * 6] = b"\xa5" * 4096 * 4
    path.write_bytes(whole)
    (row,) = rows_of(tmp_path)
    assert row.severity == "error" and "damaged" in row.message
    assert os.listdir(data) == ["sessions.db"] and path.read_bytes() == whole


def test_doctor_tells_a_directory_from_a_store(tmp_path):
    (tmp_path / "data" / "sessions.db").mkdir(parents=True)
    (row,) = rows_of(tmp_path)
    assert row.severity == "error" and "directory" in row.message


# --- a place that cannot be written ---

BASH = [
    {"parts": [{"type": "call", "name": "bash", "args": {"command": "seq 3; touch made"}}]},
    say("finished"),
]


@pytest.fixture
def small(tmp_path):
    """A configuration on a small file system of its own."""
    folder = tmp_path / "config"
    folder.mkdir()
    with mounted(folder, "-t", "tmpfs", "-o", "size=1m", "none"):
        (folder / "config.toml").write_text(scripted(tmp_path, BASH))
        (folder / "data").mkdir(mode=0o700)
        yield folder


@pytest.fixture
def sealed(small):
    """A configuration on a read-only file system."""
    subprocess.run(["mount", "-o", "remount,ro", small], check=True)
    return small


@pytest.mark.root
def test_run_works_in_memory_where_nothing_can_be_written(tmp_path, sealed):
    done = command(tmp_path, "run", "--approve", "all", "hi")
    said = done.stderr.decode()
    assert (done.returncode, done.stdout) == (0, b"finished\n"), said
    assert "kept in memory" in said and "Traceback" not in said
    assert (work(tmp_path) / "made").exists(), said


@pytest.mark.root
def test_acp_works_in_memory_where_nothing_can_be_written(tmp_path, sealed):
    lines = [
        {"method": "initialize", "params": {"protocolVersion": 1, "clientCapabilities": {}}},
        {"method": "session/new", "params": {"cwd": str(work(tmp_path)), "mcpServers": []}},
    ]
    process = subprocess.Popen(
        [*DRAGOMAN, "acp", "--config-dir", str(sealed)], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=work(tmp_path), env=environment(),
    )  # fmt: skip
    with process:

        def ask(number, message):
            process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, **message}).encode())
            process.stdin.write(b"\n")
            process.stdin.flush()
            while line := process.stdout.readline():
                told = json.loads(line)
                if told.get("method") == "session/request_permission":
                    chosen = told["params"]["options"][0]["optionId"]
                    outcome = {"outcome": {"outcome": "selected", "optionId": chosen}}
                    answer = {"jsonrpc": "2.0", "id": told["id"], "result": outcome}
                    process.stdin.write(json.dumps(answer).encode() + b"\n")
                    process.stdin.flush()
                elif told.get("id") == number:
                    return told["result"]
            raise AssertionError(process.stderr.read().decode())

        ask(1, lines[0])
        session = ask(2, lines[1])["sessionId"]
        prompt = [{"type": "text", "text": "hi"}]
        params = {"sessionId": session, "prompt": prompt}
        assert ask(3, {"method": "session/prompt", "params": params})["stopReason"] == "end_turn"
        process.stdin.close()
        assert process.wait(60) == 0
        assert b"Traceback" not in process.stderr.read()
    assert (work(tmp_path) / "made").exists()


@pytest.mark.root
def test_a_daemon_says_what_it_needs_where_nothing_can_be_written(tmp_path, sealed):
    done = command(tmp_path, "daemon", "--no-gateway")
    said = done.stderr.decode()
    assert done.returncode == 1 and "Traceback" not in said
    assert "read-only" in said and "DRAGOMAN_DATA_DIR" in said


@pytest.mark.root
def test_reading_says_why_there_is_nothing_to_read(tmp_path, sealed):
    done = command(tmp_path, "sessions")
    assert done.returncode == 1 and b"Traceback" not in done.stderr
    assert b"Read-only" in done.stderr
    assert command(tmp_path, "agents").returncode == 0


@pytest.mark.root
def test_a_daemon_says_that_the_disk_is_full(tmp_path, small):
    with pytest.raises(OSError), open(small / "data" / "ballast", "wb", buffering=0) as ballast:
        while True:
            ballast.write(b"x" * 4096)
    done = command(tmp_path, "daemon", "--no-gateway")
    said = done.stderr.decode()
    assert done.returncode == 1 and "Traceback" not in said
    assert "disk is full" in said and "Free some space" in said


def test_doctor_tells_of_a_store_with_two_names(tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    made = sqlite3.connect(data / "sessions.db", isolation_level=None)
    migrate(made, "")
    made.close()
    assert [row.severity for row in rows_of(tmp_path)] == ["ok"]
    os.link(data / "sessions.db", tmp_path / "copy.db")
    warned = next(row for row in rows_of(tmp_path) if row.severity == "warn")
    assert "has 2 names" in warned.message and "backup" in warned.fix
