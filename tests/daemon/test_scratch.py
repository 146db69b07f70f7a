"""Temporary folders of tools: what is old goes, nothing else does."""

import asyncio
import os
import socket
import subprocess
import sys
import time

import pytest

from dragoman.daemon import main as daemon_main
from dragoman.host import leftovers as scratch
from dragoman.host.leftovers import tidy

DAY = 86_400
OLD = time.time() + 11 * DAY  # as it looks from eleven days ahead


@pytest.fixture
def data(tmp_path):
    (tmp_path / "data" / "tmp" / "default" / "build" / "deep").mkdir(parents=True)
    (tmp_path / "shared").mkdir()
    return tmp_path / "data"


def dead_pid():
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait(60)
    return child.pid


def test_old_files_and_folders_go_and_the_agents_folder_stays(data, tmp_path):
    agent = data / "tmp" / "default"
    (agent / "build" / "deep" / "a.o").write_text("x")
    (agent / "b").write_text("x")
    assert tidy(str(data), str(tmp_path / "shared")) == 0
    assert tidy(str(data), str(tmp_path / "shared"), time.time() + 9 * DAY) == 0
    assert tidy(str(data), str(tmp_path / "shared"), OLD) == 4
    assert agent.is_dir() and not list(agent.iterdir())


def test_what_somebody_touched_stays_with_its_folders(data, tmp_path):
    agent = data / "tmp" / "default"
    (agent / "build" / "deep" / "used").write_text("x")
    (agent / "build" / "old").write_text("x")
    os.utime(agent / "build" / "deep" / "used", (OLD - DAY, 0))  # read a day before
    assert tidy(str(data), str(tmp_path / "shared"), OLD) == 1
    assert (agent / "build" / "deep" / "used").exists() and not (agent / "build" / "old").exists()


def test_links_are_removed_and_never_followed(data, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("x")
    agent = data / "tmp" / "default"
    (agent / "folder").symlink_to(outside)
    (agent / "file").symlink_to(outside / "precious")
    os.link(outside / "precious", agent / "hard")
    (data / "tmp" / "other").symlink_to(outside)  # in the place of an agent's folder
    (tmp_path / "shared" / f"dragoman-{dead_pid()}-0123abcd").symlink_to(outside)
    tidy(str(data), str(tmp_path / "shared"), OLD)
    assert (outside / "precious").read_text() == "x"
    assert not list(agent.iterdir())
    linked = tmp_path / "linked"
    linked.mkdir()
    (linked / "tmp").symlink_to(data / "tmp")
    (agent / "again").write_text("x")
    assert tidy(str(linked), str(tmp_path / "shared"), OLD) == 0 and (agent / "again").exists()


def test_sockets_stay_for_those_who_listen(data, tmp_path, monkeypatch):
    agent = data / "tmp" / "default"
    monkeypatch.chdir(agent)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("s")
        tidy(str(data), str(tmp_path / "shared"), OLD)
        assert [one.name for one in agent.iterdir()] == ["s"]


def test_folders_of_dead_processes_go_after_a_day(data, tmp_path):
    shared = tmp_path / "shared"
    pid = dead_pid()
    mine, living = shared / f"dragoman-{pid}-0123abcd", shared / f"dragoman-{os.getpid()}-0123abcd"
    others = [shared / f"dragoman-{pid}", shared / f"x-dragoman-{pid}-0123abcd"]
    for folder in (mine, living, *others):
        (folder / "tmp" / "default").mkdir(parents=True)
        (folder / "tmp" / "default" / "left").write_text("x")
    assert tidy(str(data), str(shared)) == 0
    assert tidy(str(data), str(shared), time.time() + 2 * DAY) == 4
    assert sorted(shared.iterdir()) == sorted((living, *others))


def test_what_is_too_deep_stays(data, tmp_path):
    folder = data / "tmp" / "default"
    for _ in range(80):
        folder /= "d"
    folder.mkdir(parents=True)
    (folder / "far").write_text("x")
    tidy(str(data), str(tmp_path / "shared"), OLD)
    assert (folder / "far").exists()


def test_nothing_was_ever_left(tmp_path):
    assert tidy(str(tmp_path / "no"), str(tmp_path / "nor"), OLD) == 0


async def test_the_daemon_looks_by_itself(data, tmp_path, monkeypatch):
    told = asyncio.Event()

    class Log:
        def info(self, what, count):
            assert count == 1
            told.set()

    monkeypatch.setenv("TMPDIR", str(tmp_path / "shared"))
    monkeypatch.setattr(scratch, "log", Log())
    monkeypatch.setattr(time, "time", lambda: OLD)
    folder = tmp_path / "shared" / f"dragoman-{dead_pid()}-0123abcd"
    folder.mkdir()
    (data / "tmp" / "default" / "build" / "deep").rmdir()
    (data / "tmp" / "default" / "build").rmdir()
    looking = asyncio.ensure_future(scratch.keep_tidy(str(data), 0.0))
    try:
        await asyncio.wait_for(told.wait(), 60)
    finally:
        looking.cancel()
    assert not folder.exists()


async def test_a_daemon_has_it_among_its_work(tmp_path, monkeypatch):
    """Not at once: those who start it wait for other things."""
    seen = asyncio.Event()

    async def look(data_dir):
        assert data_dir == str(tmp_path / "data")
        seen.set()

    monkeypatch.setattr(daemon_main, "keep_tidy", look)
    composed = await daemon_main.compose(config_dir=str(tmp_path))
    daemon = daemon_main.Daemon(composed, ephemeral=False, gateway=False, native=False)
    try:
        await daemon.start()
        await asyncio.wait_for(seen.wait(), 60)
    finally:
        await daemon.close()
