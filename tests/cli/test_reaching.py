"""How commands get at things: `background`, `places`, `reach`, and `local` (mcp_login, memories,
offline, upgrades).
"""

import argparse
import os
import signal
import socket
import sqlite3
import subprocess
import types
from pathlib import Path
from typing import Any

import pytest
from tests.cli.living import Living

from dragoman.agents.memory import Memories
from dragoman.cli import background, places, reach
from dragoman.cli.local import mcp_login, memories, offline, upgrades
from dragoman.cli.verbs import doctor
from dragoman.client.plain import Plain
from dragoman.client.problems import NotRunning
from dragoman.engine.faults import BadInput, UnknownAgent, UnknownAsk, UnknownSession
from dragoman.settings.load import BadSettings
from dragoman.store.migrations import STEPS


class Host:
    """Two sessions and two questions."""

    def __init__(self, ids: list[str] | None = None) -> None:
        self.ids = ids if ids is not None else ["abc-1", "abd-2"]
        self.pages = 0

    def call(self, method: str, params: Any = None) -> Any:
        if method == "dragoman/history":
            if params["session_id"] not in self.ids:
                raise UnknownSession(params["session_id"])
            if params["limit"] == 1:
                return {"events": [], "more": False}
            after = params["after"]
            return {"events": [{"seq": after + 1}], "more": after < 2}
        if method == "dragoman/sessions":
            self.pages += 1
            at = int(params["cursor"] or 0)
            rows = [{"id": self.ids[at]}] if at < len(self.ids) else []
            more = str(at + 1) if at + 1 < len(self.ids) else ""
            return {
                "sessions": rows,
                "cursor": more,
                "nodes": {"abc-1": {"node": "n"}},
                "damaged": 0,
            }
        return {"approvals": [{"ask": {"id": id}} for id in ("q-1", "q-12", "r-1")]}


# --- reach ---


def test_reach_pages_sessions_with_their_nodes() -> None:
    host = Host()
    found = list(reach.sessions(host))
    assert [row["id"] for row in found] == ["abc-1", "abd-2"] and found[0]["node"] == "n"
    assert host.pages == 2
    assert [row["seq"] for row in reach.history(host, "abc-1")] == [1, 2, 3]


def test_reach_a_session_by_its_beginning() -> None:
    host = Host()
    assert reach.session_id(host, "abc-1") == "abc-1" and host.pages == 0
    assert reach.session_id(host, "abd") == "abd-2"
    with pytest.raises(BadInput, match="2 sessions begin with ab: abc-1, abd-2"):
        reach.session_id(host, "ab")
    for none in ("x", ""):
        with pytest.raises(UnknownSession):
            reach.session_id(host, none)


def test_reach_a_question_by_its_beginning() -> None:
    host = Host()
    assert reach.ask_id(host, "r") == "r-1" and reach.ask_id(host, "q-1") == "q-1"
    assert reach.ask_id(host, "none") == "none"  # the host says what is wrong with it
    only = types.SimpleNamespace(call=lambda *_: {"approvals": [{"ask": {"id": "r-1"}}]})
    assert reach.ask_id(only, "") == ""  # a script's empty variable means no question, not this one
    with pytest.raises(UnknownAsk, match="2 approvals begin with q"):
        reach.ask_id(host, "q")


def test_reach_without_a_daemon_asks_the_store(tmp_path: Path) -> None:
    args = argparse.Namespace(config_dir=str(tmp_path), verb="x")
    with pytest.raises(NotRunning):
        reach.daemon(args)
    reach.reload(args)  # nobody needs to read anything again
    with reach.host(args) as host:
        assert isinstance(host, offline.Offline)
        assert list(reach.sessions(host)) == []


# --- places ---


def test_places_say_what_is_strange(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert places.find(str(tmp_path)).config_dir == str(tmp_path)
    (tmp_path / "config.toml").write_text("[agents.default]\nodd_key = 1\n")
    places.warn(str(tmp_path))
    assert "odd_key" in capsys.readouterr().err
    (tmp_path / "config.toml").write_text("[")
    with pytest.raises(BadSettings):
        places.warn(str(tmp_path))


# --- local.offline ---


def test_offline_answers_as_the_daemon_does(tmp_path: Path) -> None:
    with offline.Offline(str(tmp_path)) as host:
        assert host.call("dragoman/sessions", {"limit": 1})["sessions"] == []
        assert "agents" in host.call("dragoman/agents")
        with pytest.raises(UnknownSession):
            host.call("dragoman/history", {"session_id": "nope", "limit": 1})
        with pytest.raises(BadInput, match="no UTF-8 text"):
            host.call("dragoman/history", {"session_id": "\udcff", "limit": 1})


# --- local.mcp_login ---


def test_mcp_login_knows_the_servers(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('[mcp.a]\nurl = "http://x"\n[mcp.b]\ncommand = "y"\n')
    assert mcp_login.servers(str(tmp_path)) == [("a", "http://x", True), ("b", "y", True)]
    with pytest.raises(BadInput, match="no MCP server c") as found:
        mcp_login.login(str(tmp_path), "c", print)
    assert found.value.hint == "Configured: a, b."


# --- local.memories ---


def test_memories_are_read_and_not_made(tmp_path: Path) -> None:
    assert memories.entries(str(tmp_path), None) == []
    with pytest.raises(BadInput, match="Nothing is remembered as k"):
        memories.forget(str(tmp_path), "k", None)
    assert not (tmp_path / "data").exists()
    kept = Memories(str(tmp_path / "data" / "memory"))
    kept.of("default").store("k", "words", "note", "s")
    kept.close()
    (row,) = memories.entries(str(tmp_path), None)
    assert (row["agent"], row["key"], row["content"]) == ("default", "k", "words")
    with pytest.raises(UnknownAgent, match="no agent x"):
        memories.entries(str(tmp_path), "x")
    with pytest.raises(BadInput, match="Nothing is remembered"):
        memories.forget(str(tmp_path), "", None)  # a script's empty variable: not the only one
    assert memories.forget(str(tmp_path), "k", None) == ("k", ["default"])
    with pytest.raises(BadInput, match="Nothing is remembered as k"):
        memories.forget(str(tmp_path), "k", None)


# --- local.upgrades ---


def test_upgrades_look_at_a_store_without_changing_it(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    assert upgrades.examine_store(":memory:")[0][0] == "ok"
    assert "made at the first start" in upgrades.examine_store(str(path))[0][2]
    path.write_bytes(b"no database at all, but long enough to be looked at" * 50)
    assert upgrades.examine_store(str(path))[0][0] == "error"
    path.unlink()
    with offline.Offline(str(tmp_path)) as host:
        host.call("dragoman/sessions", {"limit": 1})
    store = tmp_path / "data" / "sessions.db"
    assert upgrades.examine_store(str(store))[0][2].endswith("the newest")
    raw = sqlite3.connect(store)
    raw.execute(f"PRAGMA user_version={len(STEPS) - 1}")
    raw.commit()
    raw.close()
    severity, _, text = upgrades.examine_store(str(store))[0]
    assert severity == "warn" and "keep a copy" in text
    (below := tmp_path / "file").write_text("")
    severity, _, text = upgrades.examine_store(str(below / "s.db"))[0]
    assert severity == "error" and "file is no directory but a file" in text


def test_upgrades_tell_of_a_store_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with offline.Offline(str(tmp_path)) as host:
        host.call("dragoman/sessions", {"limit": 1})
    store = tmp_path / "data" / "sessions.db"
    if os.geteuid() == 0:  # whom no permission keeps out
        monkeypatch.setattr(os, "access", lambda path, how: path != str(store.parent))
    store.parent.chmod(0o500)
    try:
        severity, _, text = upgrades.examine_store(str(store))[0]
    finally:
        store.parent.chmod(0o700)
    assert severity == "error" and text.startswith(f"{store.parent} cannot be written")


# --- background ---


def flags(**given: Any) -> argparse.Namespace:
    usual = {"ephemeral": False, "no_gateway": False, "native": False, "verb": "daemon"}
    return argparse.Namespace(**{**usual, **given})


def test_background_beside_a_running_daemon_says_whose_flags_count(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Running:
        def __enter__(self) -> "Running":
            return self

        def __exit__(self, *_: object) -> None:
            return None

        def call(self, method: str, params: Any) -> Any:
            return {"pid": 7}

    monkeypatch.setattr(reach, "daemon", lambda args: Running())
    assert background.start(flags(native=True, config_dir=None)) == 0
    out, err = capsys.readouterr()
    assert "process 7" in out and "dragoman daemon --background --native" in err


@pytest.mark.parametrize(
    ("script", "code", "said"),
    [
        ("import os, socket; s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); "
         "s.sendto(b'STATUS=x', os.environ['NOTIFY_SOCKET']); "
         "s.sendto(b'READY=1', os.environ['NOTIFY_SOCKET'])", 0, "is ready"),
        ("print('no such model', flush=True); raise SystemExit(3)", 1, "ended with code 3"),
    ],
)  # fmt: skip
def test_background_comes_back_when_it_is_ready_or_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    script: str, code: int, said: str,
) -> None:  # fmt: skip
    log = tmp_path / "daemon.out"
    log.write_text("of an earlier start\n")

    def launch(config_dir: Any, words: Any, env: Any) -> Any:
        import sys

        with log.open("ab") as out:
            return subprocess.Popen([sys.executable, "-c", script], env=env, stdout=out)

    monkeypatch.setattr(background, "launch", launch)
    monkeypatch.setattr(background, "log_path", lambda config_dir: str(log))
    assert background._launch(flags(config_dir=None)) == code
    out, err = capsys.readouterr()
    assert said in out + err and "earlier start" not in err
    assert code == 0 or err == "dragoman: The daemon ended with code 3. It said:\nno such model\n"


def test_a_folder_for_sockets_is_short_wherever_temporary_files_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / ("d" * 90)
    deep.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(deep))
    with (
        places.short_folder() as folder,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ear,
    ):
        ear.bind(f"{folder}/ready")


def test_background_a_daemon_that_says_nothing_is_not_ready(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(background, "_WITHIN", 0.05)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ear:
        ear.bind(str(tmp_path / "s"))
        child = subprocess.Popen(["sleep", "60"])
        assert background._hears(ear, child) is False
        child.kill()
        child.wait()
    assert background._flags(flags(no_gateway=True)) == ["--no-gateway"]


# --- a daemon that is there and does not answer ---


def test_the_doctor_tells_of_a_daemon_that_is_suspended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    living = Living(tmp_path)
    living.start()
    assert living.process is not None
    pid = living.process.pid
    monkeypatch.setattr(reach, "daemon", lambda args: Plain(living.socket, "doctor"))
    given: Any = argparse.Namespace(config_dir=str(living.config), verb="doctor")
    try:
        os.kill(pid, signal.SIGSTOP)
        rows = doctor._examined(given, places.find(given.config_dir))
        (row,) = [row for row in rows if row.category == "daemon"]
        assert row.severity == "error" and f"(process {pid}) is stopped" in row.message
        assert f"kill -CONT {pid}" in row.fix
    finally:
        os.kill(pid, signal.SIGCONT)
    rows = doctor._examined(given, places.find(given.config_dir))
    assert [row.severity for row in rows if row.category == "daemon"] == ["ok"]
    living.stop()


# --- what to type next ---


def test_the_next_command_is_for_the_same_installation(tmp_path: Path) -> None:
    folder = tmp_path / "with space"
    given: Any = argparse.Namespace(config_dir=str(folder))
    assert places.next_line(given, "stop") == f"dragoman stop --config-dir '{folder}'"
    assert places.next_line(argparse.Namespace(config_dir=None), "stop") == "dragoman stop"  # type: ignore[arg-type]


def test_a_daemon_that_is_missing_is_started_where_it_was_looked_for(tmp_path: Path) -> None:
    living = Living(tmp_path)
    other = str(tmp_path / "other")
    done = living.run("status", "--config-dir", other)
    assert done.returncode == 1
    assert done.stderr.endswith(
        f"Start it with: dragoman daemon --background --config-dir {other}\n"
    )
    begun = living.run("daemon", "--background", "--no-gateway", "--config-dir", other)
    assert begun.stdout.endswith(f"end it: dragoman stop --config-dir {other}\n"), begun.stderr
    assert living.run("stop", "--config-dir", other).returncode == 0
