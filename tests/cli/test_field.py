"""Commands for life in the field: background, stop, self-test, upgrade-check, bug-report."""

import errno
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing, nullcontext
from pathlib import Path

import pytest
from tests.cli.living import WITHIN, Living

from dragoman.cli import background
from dragoman.cli.main import main


@pytest.fixture
def living(tmp_path: Path) -> Living:
    return Living(tmp_path)


def test_a_daemon_in_the_background_is_ready_when_the_command_comes_back(living: Living) -> None:
    assert "is ready" in living.says("daemon", "--background", "--no-gateway")
    try:
        first = json.loads(living.says("status", "--json"))
        again = living.run("daemon", "--background")
        assert "runs already" in again.stdout and not again.stderr and again.returncode == 0
        other = living.run("daemon", "--background", "--native")  # which has no effect: it is said
        assert "dragoman stop; dragoman daemon --background --native" in other.stderr
        same = living.run("daemon", "--background", "--no-gateway")
        assert "runs already" in same.stdout and not same.stderr and same.returncode == 0
        assert json.loads(living.says("status", "--json"))["pid"] == first["pid"]
        assert first["flags"] == ["no-gateway"] and not first["gateway"]
    finally:
        assert "has ended" in living.says("stop")
    left = os.listdir(living.config / "data")
    assert not [name for name in left if name.endswith((".sock", ".lock"))], left
    gone = living.run("stop")
    assert gone.returncode == 1 and "not running" in gone.stderr
    assert "Start it" not in gone.stderr  # that is not what was wanted


@pytest.mark.parametrize(
    "given",
    [
        {"DRAGOMAN_DATA_DIR": "near"},
        {"DRAGOMAN_CONFIG_DIR": "near"},
        {"ZEROCLAW_CONFIG_DIR": "near"},
        {"HOME": "near"},
        {"DRAGOMAN_DATA_DIR": "near", "DRAGOMAN_SOCKET": "s.sock"},
        {"DRAGOMAN_DATA_DIR": "near", "DRAGOMAN_listen__zeroclaw": "s.sock"},
    ],
    ids=lambda given: "+".join(given),
)
def test_a_daemon_in_the_background_is_found_where_the_environment_says(
    given: dict[str, str], request: pytest.FixtureRequest
) -> None:
    """A relative path is one of the folder in which the command was typed."""
    folder = Path(tempfile.mkdtemp(prefix="df-", dir="/tmp"))  # room for the names of sockets
    request.addfinalizer(lambda: shutil.rmtree(folder))
    living = Living(folder)
    del living.env["DRAGOMAN_CONFIG_DIR"]
    living.env |= given
    assert "is ready" in living.says("daemon", "--background", "--no-gateway")
    assert "has ended" in living.says("stop")
    assert sorted(path.name for path in living.work.iterdir()) == ["near"]


def test_a_folder_where_no_socket_can_be_made_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / ("x" * 120)
    folder.mkdir()
    monkeypatch.setattr(background, "short_folder", lambda: nullcontext(str(folder)))
    assert main(["daemon", "--background", "--config-dir", str(tmp_path / "c")]) == 1
    said = capsys.readouterr().err
    assert f"No socket can be made in {tmp_path}: " in said and "TMPDIR" in said


def test_a_file_that_a_prompt_names_in_vain_is_told(living: Living) -> None:
    (living.work / "here.py").write_text("x")
    done = living.run("run", "say @here.py and @nope.py", "--json")
    assert done.returncode == 0
    assert done.stderr.startswith(f"dragoman: there is no file nope.py in {living.work};")
    assert "here.py" not in done.stderr


def test_what_the_daemon_says_at_its_start_is_repeated(living: Living) -> None:
    """Of this start only, and nothing of it when all is well."""
    data = living.config / "data"
    (data / "sessions.db").mkdir(parents=True)
    (data / "daemon.out").write_text("dragoman: of an earlier start\nready\n")
    (living.config / "config.toml").write_text("[gateway]\nport = 0\n")
    begun = living.run("daemon", "--background")
    try:
        assert begun.returncode == 0 and "earlier" not in begun.stderr
        lost, paired = begun.stderr.splitlines()
        assert "sessions.db is a directory" in lost and "will not survive" in lost
        assert "and pair with the code" in paired and "http://127.0.0.1:" in paired
        living.env.pop("DRAGOMAN_agents__default__model")  # else `run` is on its own
        done = living.run("run", "hello")
        assert done.stderr.count("in memory only") == 1
        assert "sessions.db is a directory" in done.stderr
    finally:
        ended = living.says("stop")
    assert "are gone" in ended and "sessions.db is a directory" in ended
    (data / "sessions.db").rmdir()
    assert not living.run("daemon", "--background", "--no-gateway").stderr
    try:
        assert "memory only" not in living.run("run", "hello").stderr
    finally:
        assert "Sessions are kept" in living.says("stop")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_before_it_is_ready_the_daemon_goes_along(
    living: Living, number: signal.Signals
) -> None:
    """Its first word in the file shows that it has been started; it is held there."""
    out = living.config / "data" / "daemon.out"
    out.parent.mkdir()
    hold = living.folder / "hold"
    os.mkfifo(hold)
    site = living.folder / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(
        f"import sys\nif '--background' not in sys.orig_argv and 'daemon' in sys.orig_argv:\n"
        f"    open({str(hold)!r}, 'w').write('x')\n    import signal; signal.pause()\n"
    )
    living.env["PYTHONPATH"] = str(site)
    command = living.spawn("daemon", "--background", "--no-gateway")
    with open(hold) as begun:
        assert begun.read() == "x"
    command.send_signal(number)
    said, problem = command.communicate(timeout=WITHIN)
    assert command.returncode == (130 if number == signal.SIGINT else 128 + number)
    found = re.fullmatch(r"dragoman: The daemon that was .* process (\d+), was ended.\n", problem)
    assert found is not None and not said
    with pytest.raises(ProcessLookupError):
        os.kill(int(found[1]), 0)


def test_a_code_says_that_nobody_takes_it_yet(living: Living) -> None:
    found = living.run("pair")
    assert found.returncode == 0 and "dragoman daemon" in found.stderr
    assert len(found.stdout.split()) == 1


def test_the_log_of_an_app_that_nobody_knows(living: Living) -> None:
    (living.config / "data").mkdir()
    (living.config / "data" / "daemon.log").write_text("a line\n")
    found = living.run("apps", "logs", "nope")
    assert found.returncode == 1 and "no app nope" in found.stderr


@pytest.mark.parametrize(
    "words", [("login", "nobody"), ("logout", "nobody"), ("agents", "show", "x")]
)
def test_every_refusal_begins_with_our_name(living: Living, words: tuple[str, ...]) -> None:
    refused = living.run(*words)
    assert refused.returncode in (1, 2) and refused.stderr.startswith("dragoman: ")


def test_the_doctor_looks_at_the_folder_of_who_asks(living: Living, tmp_path: Path) -> None:
    """The daemon's own working directory says nothing: it may be the one we are installed in."""
    import dragoman

    around = Path(dragoman.__file__).parent.parent

    def rows(cwd: Path) -> list[dict[str, str]]:
        found: list[dict[str, str]] = json.loads(living.run("doctor", "--json", cwd=cwd).stdout)[
            "rows"
        ]
        assert len([row for row in found if row["category"] == "daemon"]) == 1, found
        return [row for row in found if "runs from" in row["message"]]

    assert rows(around) and not rows(tmp_path)
    living.run("daemon", "--background", "--no-gateway", cwd=around)
    try:
        assert rows(around) and not rows(tmp_path)
    finally:
        living.says("stop")


def test_a_daemon_that_does_not_come_up_says_why(living: Living) -> None:
    (living.config / "config.toml").write_text("[listen\n")
    done = living.run("daemon", "--background")
    assert done.returncode == 1
    assert "ended with code" in done.stderr and "config.toml" in done.stderr


def test_the_log_of_a_background_daemon_is_no_link(living: Living, tmp_path: Path) -> None:
    (living.config / "data").mkdir(mode=0o700)
    target = tmp_path / "target"
    (living.config / "data" / "daemon.out").symlink_to(target)
    assert living.run("daemon", "--background").returncode != 0
    assert not target.exists()


def test_everything_is_tried_once(living: Living) -> None:
    before = sorted(living.folder.rglob("*"))
    found = json.loads(living.run("self-test", "--json", within=60).stdout)
    assert found["ok"] and len(found["rows"]) == 12, found
    assert sorted(living.folder.rglob("*")) == before  # nor has the home a cache that it had not


def test_a_trial_leaves_an_empty_home_empty(living: Living, tmp_path: Path) -> None:
    home = tmp_path / "home of its own"
    (home / ".cache").mkdir(parents=True)
    living.env["HOME"] = str(home)
    assert json.loads(living.run("self-test", "--json", within=60).stdout)["ok"]
    assert [one.name for one in home.rglob("*")] == [".cache"], "and what was there stays"


def test_a_turn_in_a_worktree_ends_with_the_way_to_take_it_over(living: Living) -> None:
    git = ["git", "-c", "user.name=me", "-c", "user.email=me@example.org"]
    subprocess.run(["git", "init", "-q"], cwd=living.work, check=True)
    lacks = living.run("run", "--worktree", "say no")
    assert "no commit yet" in lacks.stderr and "git commit" in lacks.stderr
    subprocess.run([*git, "commit", "-qm", "one", "--allow-empty"], cwd=living.work, check=True)
    said = living.run("run", "--worktree", "say yes").stderr
    way = next(row for row in said.splitlines() if "Take it over: " in row)
    words = way.partition("Take it over: dragoman ")[2].partition(" (or")[0].split()
    assert words[:3] == ["sessions", "worktree", "merge"]
    other = living.run("run", "--session", words[3], "--config-dir", str(living.config), "say on")
    assert f"merge {words[3]} --config-dir {living.config} (or: drop)" in other.stderr
    assert "changed nothing" in living.says(*words)
    again = living.run("run", "--continue", "--worktree", "say more")
    assert again.returncode and "made for a new session" in again.stderr


# Takes one family of sockets away from a process and all that it starts, as a container may.
BARRED = """
import ctypes, os, struct, sys
number = {"x86_64": 41, "aarch64": 198}[os.uname().machine]
rules = [(0x20, 0, 0, 0), (0x15, 0, 3, number), (0x20, 0, 0, 16), (0x15, 0, 1, int(sys.argv[1])),
         (0x06, 0, 0, 0x5000D), (0x06, 0, 0, 0x7FFF0000)]
filter = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *one) for one in rules))
class Program(ctypes.Structure):
    _fields_ = [("size", ctypes.c_ushort), ("filter", ctypes.c_void_p)]
program = Program(len(rules), ctypes.addressof(filter))
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, ctypes.byref(program)) == 0
os.execv(sys.executable, [sys.executable, "-m", "dragoman", *sys.argv[2:]])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the rules are Linux's")
@pytest.mark.parametrize(
    ("family", "why"),
    [(socket.AF_UNIX, "Nobody can listen at"), (socket.AF_INET, "The gateway cannot listen on")],
)
def test_without_a_daemon_nothing_else_is_tried(living: Living, family: int, why: str) -> None:
    command = [sys.executable, "-c", BARRED, str(int(family)), "self-test", "--json"]
    done = subprocess.run(
        command, env=living.env, cwd=living.work, capture_output=True, text=True, timeout=60
    )
    (row,) = json.loads(done.stdout)["rows"]
    assert done.returncode == 1 and not row["ok"]
    assert why in row["problem"] and "Traceback" not in row["problem"], row
    if family == socket.AF_UNIX:
        command[-2:] = ["status"]
        done = subprocess.run(command, env=living.env, capture_output=True, text=True, timeout=60)
        assert "no socket can be made" in done.stderr and "Traceback" not in done.stderr


def test_a_loopback_that_is_down_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from http.client import HTTPConnection

    from dragoman.cli.verbs.self_test import Failed, Trial

    def nowhere(self: HTTPConnection) -> None:
        raise OSError(errno.ENETUNREACH, "Network is unreachable")

    trial = Trial(str(tmp_path))
    trial.status = {"gateway": "http://127.0.0.1:7"}
    monkeypatch.setattr(HTTPConnection, "connect", nowhere)
    with pytest.raises(Failed, match="loopback interface is down.*ip link set lo up"):
        trial.gateway()


def test_a_trial_that_is_ended_leaves_nothing_behind(living: Living) -> None:
    # Short: where there is no room for the names of sockets, another folder is taken.
    place = Path(tempfile.mkdtemp(prefix="dr-", dir="/tmp"))
    living.env["TMPDIR"] = str(place)
    trial = living.spawn("self-test")
    assert trial.stdout is not None and "the daemon starts" in trial.stdout.readline()
    (folder,) = place.iterdir()
    (holder,) = [int(one.read_text()) for one in folder.glob("config/data/daemon.sock.lock")]
    trial.terminate()
    trial.communicate(timeout=60)
    assert trial.returncode == 128 + signal.SIGTERM and not list(place.iterdir())
    place.rmdir()
    with pytest.raises(ProcessLookupError):
        os.kill(holder, 0)


def test_the_logs_can_be_read_beside_a_broken_configuration(living: Living) -> None:
    living.says("daemon", "--background", "--no-gateway")
    living.says("stop")
    (living.config / "config.toml").write_text("[listen\n")
    done = living.run("logs")
    assert done.returncode == 0 and done.stdout and "config.toml" in done.stderr


def test_a_fresh_place_can_be_taken_over(living: Living) -> None:
    found = json.loads(living.says("upgrade-check", "--json"))
    assert found["ready"] and {row["part"] for row in found["rows"]} == {"configuration", "store"}


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ("newer", "Update Dragoman"),
        ("foreign", "Choose another file"),
        ("damaged", "The daemon moves it aside when it starts after it met the damage"),
        ("no text", "The daemon moves it aside when it starts after it met the damage"),
        ("no table", "lacks the table kv. Put back a copy of it, or move it away"),
        ("no column", "lacks the column asks.settled_at. Put back a copy of it"),
        ("configuration", "config.toml:1"),
    ],
)
def test_what_cannot_be_taken_over_is_said(living: Living, wrong: str, says: str) -> None:
    data = living.config / "data"
    data.mkdir()
    path = data / "sessions.db"
    if wrong == "configuration":
        (living.config / "config.toml").write_text("[listen\n")
    elif wrong == "no text":
        path.write_bytes(os.urandom(9000))
    else:
        living.says("daemon", "--background", "--no-gateway")
        living.says("stop")
        with sqlite3.connect(path) as base:
            if wrong == "newer":
                base.execute("PRAGMA user_version = 9999")
            if wrong == "foreign":
                base.execute("PRAGMA application_id = 7")
            if wrong == "no table":
                base.execute("DROP TABLE kv")
            if wrong == "no column":
                base.execute("ALTER TABLE asks DROP COLUMN settled_at")
        base.close()
        if wrong == "damaged":
            whole = bytearray(path.read_bytes())
            whole[4096:12288] = os.urandom(8192)
            path.write_bytes(whole)
    before = path.read_bytes() if path.exists() else b""
    done = living.run("upgrade-check")
    assert done.returncode == 1 and "error" in done.stdout, done.stdout + done.stderr
    assert says in done.stdout and "cannot take over" in done.stdout, done.stdout
    assert (path.read_bytes() if path.exists() else b"") == before


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ("file", "data is no directory but a file. Move it away"),
        ("dangling link", "data is a link to gone, which is not there. Put gone back"),
        ("link to itself", "data is a link that leads to itself. Remove it"),
    ],
)
def test_a_data_folder_that_is_none_is_named_by_all(living: Living, wrong: str, says: str) -> None:
    data = living.config / "data"
    if wrong == "file":
        data.write_text("")
    else:
        data.symlink_to("gone" if wrong == "dangling link" else "data")
    for words in (("upgrade-check",), ("daemon", "--background"), ("daemon",)):
        done = living.run(*words)
        assert done.returncode == 1 and says in done.stdout + done.stderr, words
        assert "permissions" not in done.stdout + done.stderr, words
    what = says.partition(".")[0]
    for words in (("run", "hello"), ("sessions",), ("doctor",)):
        done = living.run(*words)
        assert what in done.stdout + done.stderr, words
        assert "permissions" not in done.stdout + done.stderr, words


def test_upgrade_check_sees_a_data_folder_that_cannot_be_written(
    living: Living, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (living.config / "data").mkdir()
    monkeypatch.setenv("DRAGOMAN_CONFIG_DIR", str(living.config))
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write everywhere
    assert main(["upgrade-check"]) == 1
    assert "data is not writable" in capsys.readouterr().out


def test_a_place_where_no_store_can_be_made_is_told_by_both_who_look(living: Living) -> None:
    (living.folder / "file").touch()
    at = f"{living.folder}/file/below/sessions.db"
    (living.config / "config.toml").write_text(f'[store]\npath = "{at}"\n')
    for words in (("upgrade-check",), ("doctor",)):
        done = living.run(*words)
        assert done.returncode == 1, words
        assert "is no directory" in done.stdout and "store.path" in done.stdout, words


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ("pipe", "no regular file"),
        ("folder", "is a directory"),
        ("link to itself", "is a link that leads to itself"),
        ("dangling link", "is a link to gone.db, which is not there"),
        ("log alone", "Put the store back beside it"),
        ("newer", "Update Dragoman"),
        ("foreign", "another program"),
        ("no table", "lacks the table sessions"),
    ],
)
def test_odd_stores_are_told_with_advice(living: Living, wrong: str, says: str) -> None:
    """By both who look at it, at once, and nothing is changed."""
    data = living.config / "data"
    data.mkdir()
    path = data / "sessions.db"
    if wrong == "pipe":
        os.mkfifo(path)
    elif wrong == "folder":
        path.mkdir()
    elif wrong == "link to itself":
        path.symlink_to(path.name)
    elif wrong == "dangling link":
        path.symlink_to("gone.db")
    elif wrong == "log alone":
        Path(f"{path}-wal").write_bytes(b"x" * 4000)
    else:
        living.says("daemon", "--background", "--no-gateway")
        living.says("stop")
        with closing(sqlite3.connect(path)) as base:
            numbers = {"newer": "user_version = 9999", "foreign": "application_id = 7"}
            number = numbers.get(wrong)
            base.execute(f"PRAGMA {number}" if number else "DROP TABLE sessions")
    if "link" in wrong or wrong in ("pipe", "folder"):
        done = living.run("sessions")
        assert done.returncode == 1 and says in done.stderr
        assert "store.path" in done.stderr and "free space" not in done.stderr
    before = {one: one.lstat().st_mtime_ns for one in data.iterdir()}
    for command in ("upgrade-check", "doctor"):
        done = living.run(command)
        assert done.returncode == 1, done.stdout + done.stderr
        rows = [
            line for line in done.stdout.splitlines() if "error" in line.lower() and "store" in line
        ]
        assert rows and says in done.stdout, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
    assert {one: one.lstat().st_mtime_ns for one in before} == before


DEEP = {
    "lists": "[log]\nfile = " + "[" * 5000 + "]" * 5000,
    "tables": "[log]\nfile = " + "{a=" * 5000 + "1" + "}" * 5000,
    "a dotted key": "a" + ".a" * 5000 + " = 1",
    "a header": "[a" + ".a" * 5000 + "]\nb = 1",
    "deeper than we read": "[log]\nfile = " + "[" * 200 + "]" * 200,
    "digits": "[acp]\nmax_sessions = " + "9" * 9000,
}


@pytest.mark.parametrize("text", DEEP.values(), ids=DEEP)
def test_a_configuration_that_is_nested_deeply_is_refused_in_words(
    living: Living, text: str
) -> None:
    (living.config / "config.toml").write_text(text)
    for command in ("upgrade-check", "status", "config get", "config set log.level info", "logs"):
        done = living.run(*command.split())
        said = done.stdout + done.stderr
        assert "Traceback" not in said and "RecursionError" not in said, said[-3000:]
        assert command in ("status", "logs") or (done.returncode and "config.toml" in said), said
    assert (living.config / "config.toml").read_text() == text


def test_a_configuration_whose_file_is_gone_is_not_taken_for_none(living: Living) -> None:
    config = living.config / "config.toml"
    config.symlink_to("dotfiles/config.toml")
    for command in ("upgrade-check", "run hello"):
        done = living.run(*command.split())
        said = done.stdout + done.stderr
        assert done.returncode and "dotfiles/config.toml, which is not there" in said, said


def test_values_in_the_environment_may_be_nested_as_they_like(living: Living) -> None:
    deep = "[" * 3000 + "]" * 3000
    for text in (deep, f'{{"a": {deep}}}', "{a=" * 3000):
        living.env["DRAGOMAN_ACP__MAX_SESSIONS"] = text
        done = living.run("config", "get")
        assert done.returncode and "Traceback" not in done.stderr, done.stderr[-2000:]


def test_a_store_is_looked_at_whatever_its_folder_is_called(living: Living, tmp_path: Path) -> None:
    config = tmp_path / "odd #1?%41 x"
    path = config / "data" / "sessions.db"
    path.parent.mkdir(parents=True)
    kept = Path(__file__).parent.parent / "store" / "released" / "schema-2.sql"
    with closing(sqlite3.connect(path)) as base:
        base.executescript(kept.read_text())
    there = sorted(tmp_path.rglob("*"))
    said = living.says("upgrade-check", "--config-dir", str(config))
    assert "is of schema 2; the first start brings it to" in said
    assert sorted(tmp_path.rglob("*")) == there


def test_what_is_in_use_or_elsewhere_is_said(living: Living) -> None:
    living.start()
    try:
        assert living.process is not None
        said = living.says("upgrade-check")
        assert f"process {living.process.pid} runs with it" in said and "dragoman stop" in said
    finally:
        living.stop()
    nobody = "postgresql://127.0.0.1:1/none"
    (living.config / "config.toml").write_text(f'[store]\ndatabase = "{nobody}"\n')
    done = living.run("upgrade-check")
    assert done.returncode == 1 and "cannot take over yet" in done.stdout
    assert "127.0.0.1:1" in done.stdout and "sessions.db" not in done.stdout


def test_a_report_shows_what_it_holds_and_hides_what_is_secret(living: Living) -> None:
    key = "sk-ant-" + "a1" * 20
    (living.config / "config.toml").write_text(
        f'[providers.anthropic]\napi_key = "{key}"\n[agents.default]\nmodel = "demo/demo"\n'
    )
    living.start()
    try:
        living.says("run", "my secret plan is to win")
        wrong = living.run("bug-report", "--lines", "-1")
        assert wrong.returncode == 2 and "at least 0" in wrong.stderr
        shown = living.run("bug-report")
        assert shown.returncode == 1 and "--yes" in shown.stderr
        assert not (living.work / "dragoman-report.txt").exists()
        shown = living.run("bug-report", "--yes")
    finally:
        living.stop()
    written = (living.work / "dragoman-report.txt").read_text()
    assert shown.stdout.strip() == written.strip()
    assert (living.work / "dragoman-report.txt").stat().st_mode & 0o077 == 0
    for part in ("versions", "doctor", "configuration", "running", "log"):
        assert f"== {part}" in written
    assert key not in written and "secret plan" not in written and "***" in written
    again = living.run("bug-report", "--yes")
    assert again.returncode != 0 and "there already" in again.stderr


def test_a_report_looks_for_every_secret_that_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also where it stands without a name: in a line of the log, say."""
    from dragoman.cli.main import main

    monkeypatch.setenv("DRAGOMAN_CONFIG_DIR", str(tmp_path))
    monkeypatch.setenv("OFFICE_API_KEY", "plain-hunter-3")
    (tmp_path / "config.toml").write_text(
        '[providers.office]\nkind = "openai-chat"\nbase_url = "http://me:hunter-1@127.0.0.1:1/v1"\n'
        'api_key = "plain-hunter-2"\n[mcp.x]\ncommand = "sh"\nargs = ["TOKEN=hunter-4"]\n'
        'env = { THING = "plain-hunter-5" }\n'
    )
    (tmp_path / "data").mkdir()
    said = "office said: plain-hunter-2, plain-hunter-3 and plain-hunter-5"
    (tmp_path / "data" / "daemon.log").write_text(f"2026-01-01T00:00:00.000Z info x {said}\n")
    report = tmp_path / "report.txt"
    assert main(["bug-report", "--yes", "--output", str(report)]) == 0
    assert "hunter" not in report.read_text() and "hunter" not in capsys.readouterr().out
    assert main(["mcp"]) == 0
    said = capsys.readouterr().out
    assert "hunter" not in said and "no daemon runs" in said
    assert main(["config", "get"]) == 0 and "hunter" not in capsys.readouterr().out
    assert main(["config", "set", "mcp.x.env.THING", "hunter-6"]) == 0
    assert "hunter" not in capsys.readouterr().out


def test_a_report_has_neither_prompts_nor_the_long_parts_of_addresses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Webhooks have their secret in the path; what models are told is the owner's."""
    from dragoman.cli.main import main

    monkeypatch.setenv("DRAGOMAN_CONFIG_DIR", str(tmp_path))
    (tmp_path / "config.toml").write_text(
        '[agents.default]\nsystem_prompt = "hunter-1 rules"\n'
        '[agents.other]\nappend_system_prompt = ["hunter-2", "x"]\n'
        '[mcp.x]\nurl = "https://127.0.0.1:1/v1/hook/hunter3hunter3hunter3"\n'
        '[gateway.callbacks.chat]\nurl = "https://127.0.0.1:1/services/T0/hunter4hunter4hunter4/x?a=hunter5hunter5hunter5"\n'
        '[telemetry]\nendpoint = "http://127.0.0.1:1/hunter5hunter5hunter5?a=b"\n'
    )
    (tmp_path / "data").mkdir()
    said = "not reached: https://127.0.0.1:1/hunter6hunter6hunter6: refused"
    (tmp_path / "data" / "daemon.log").write_text(f"2026-01-01T00:00:00.000Z info x {said}\n")
    report = tmp_path / "report.txt"
    assert main(["bug-report", "--yes", "--output", str(report)]) == 0
    text = report.read_text()
    assert "hunter" not in text
    assert '"system_prompt": "(14 characters)"' in text and "(9 characters)" in text
    assert "https://127.0.0.1:1/v1/hook/***" in text and "services/T0/***/x?a=***" in text
