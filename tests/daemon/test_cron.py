"""`dragoman cron` at a real daemon: what is kept runs, also after a restart."""

import json
import os
import subprocess
import sys
import time

import pytest
from tests.daemon.running import Daemon, Line, say, script

from dragoman.engine.faults import BadInput
from dragoman.testing.host import memory_door
from dragoman.testing.script import Scripted


def cron(folder, *words):
    base = [sys.executable, "-m", "dragoman", "cron"]
    done = subprocess.run(
        [*base, *words, "--config-dir", str(folder)],
        capture_output=True, text=True, cwd=folder, timeout=60, env={**os.environ, "NO_COLOR": "1"},
    )  # fmt: skip
    return done


def told(folder, *words):
    done = cron(folder, *words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def wait_for_runs(folder, job, count):
    limit = time.monotonic() + 60
    while True:
        runs = told(folder, "runs", job)["runs"]
        if len([run for run in runs if run["status"] == "ok"]) >= count:
            return runs
        assert time.monotonic() < limit, runs


async def test_a_host_that_does_not_last_keeps_no_schedules():
    with pytest.raises(BadInput, match="keeps no schedules"):
        await memory_door(Scripted([])).facts.timetable()


def test_times_in_words():
    from dragoman.cli.verbs.cron import _next, _when

    assert _when({"every_ms": 90_000}) == "every 1m30s" and _when({"at": 5}) == "once"
    assert _when({"cron": "@daily", "tz": "UTC"}) == "@daily (UTC)"
    assert _next({"enabled": False}) == "paused"
    assert _next({"enabled": True, "next_run": None}) == "over"


def test_from_the_command_line_and_across_a_restart(tmp_path):
    config = script(tmp_path, [say("Tidied up.")])
    with Daemon(tmp_path, config=config).wait_ready() as daemon:
        job = told(tmp_path, "add", "--every", "1s", "--name", "tidy", "tidy", "up")
        assert job["prompt"] == "tidy up" and job["cwd"] == str(tmp_path)
        wrong = cron(tmp_path, "add", "--every", "soon", "x")
        assert wrong.returncode and "90s, 15m" in wrong.stderr
        both = cron(tmp_path, "add", "--every", "5m", "--at", "12:00", "x")
        assert both.returncode and "exactly one" in both.stderr
        run = wait_for_runs(tmp_path, "tidy", 1)[-1]
        assert run["output"] == "Tidied up."
        line = Line(daemon.socket)
        rows = line.ask("dragoman/sessions", {})["sessions"]
        assert run["session"] in [row["id"] for row in rows]
        line.close()
        assert "tidy" in cron(tmp_path, "list").stdout
        daemon.stop()
    with Daemon(tmp_path).wait_ready():
        before = len(told(tmp_path, "runs", job["id"])["runs"])
        wait_for_runs(tmp_path, job["id"], before + 1)
        assert told(tmp_path, "pause", "tidy")["enabled"] is False
        assert cron(tmp_path, "trigger", "tidy").stdout.strip() == "Tidied up."
        told(tmp_path, "remove", "tidy")
        assert told(tmp_path, "list") == {"schedules": []}
        assert cron(tmp_path, "trigger", "tidy").returncode
