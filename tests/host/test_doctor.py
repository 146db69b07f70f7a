"""What the doctor says of programs that agents and servers are."""

import socket
import sqlite3
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from dragoman.cli.local.upgrades import examine_data
from dragoman.engine.faults import Refused
from dragoman.host import installed, lock
from dragoman.host.doctor import Row, examine
from dragoman.host.wanted import lacks_place
from dragoman.observe.redact import redact
from dragoman.settings.load import load
from dragoman.settings.places import places
from dragoman.store.migrations import APPLICATION_ID

ENTRY = {
    "agents": '[agents.other]\nbackend = "acp"\ncommand = "{}"\n',
    "mcp": '[mcp.other]\ncommand = "{}"\npass_env = ["NOT_SET_ANYWHERE"]\n',
}


def rows(folder: Path, kind: str, program: str) -> list[Row]:
    (folder / "config.toml").write_text(ENTRY[kind].format(program))
    found = examine(places({}, str(folder)), {})
    return [row for row in found if row.category == kind and row.message.startswith("other")]


@pytest.mark.parametrize("wrong", ["folder", "lock", "lock is a link"])
def test_what_a_daemon_refuses_at_its_start_is_told_before(wrong: str, tmp_path: Path) -> None:
    where = places({}, str(tmp_path))
    data = Path(where.data_dir)
    data.mkdir(mode=0o700)
    beside = data / "daemon.sock.lock"
    if wrong == "folder":
        data.chmod(0o777)
    elif wrong == "lock":
        beside.write_text("999999")
        beside.chmod(0o644)
    else:
        beside.symlink_to(tmp_path / "mine")
    with pytest.raises(Refused) as refused:
        lock.hold(str(data / "daemon.sock"))
    found = [one for one in examine(where, {}) if one.severity == "error"]
    assert ("daemon", refused.value.hint) in [(one.category, one.fix) for one in found]
    assert any(refused.value.message in one.message for one in found)
    assert not (tmp_path / "mine").exists()
    if wrong == "folder":
        assert [one.fix for one in found if one.category == "data"] == [f"chmod 700 {data}"]
        assert examine_data(where)


def test_advice_is_shown_whole(tmp_path: Path) -> None:
    """What hides secrets took a word behind a flag's name for one."""
    (tmp_path / "config.toml").write_text('[agents.a]\nmodel = "anthropic/claude-sonnet-4-5"\n')
    (row,) = (one for one in examine(places({}, str(tmp_path)), {}) if one.category == "agents")
    shown = redact(f"{row.message} {row.fix}")
    assert str(shown).strip().endswith("dragoman login anthropic (rpc also takes --api-key)")


@pytest.mark.parametrize("kind", ENTRY)
def test_one_word_about_a_program_that_cannot_be_run(kind: str, tmp_path: Path) -> None:
    """Not that it is an error, and beside it that all is well."""
    plain = tmp_path / "plain"
    plain.write_text("no program")
    for program, said in (
        ("no-such-program", "is not on PATH"),
        (str(tmp_path / "nothing"), "does not exist"),
        (str(plain), "cannot be run"),
    ):
        (row,) = rows(tmp_path, kind, program)
        assert row.severity == "error" and row.message == f"other: {program} {said}"


@pytest.mark.parametrize("kind", ENTRY)
def test_a_program_is_looked_for_where_it_would_be_run(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By `~`, and with a space in its name."""
    monkeypatch.setenv("HOME", str(tmp_path))
    program = tmp_path / "my agent"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    for name in ("~/my agent", str(program)):
        assert "error" not in [row.severity for row in rows(tmp_path, kind, name)]
    (row,) = rows(tmp_path, kind, "~/none")
    assert row.message.endswith("/none does not exist")


def test_a_program_that_is_there_is_told_with_the_keys_that_it_gets(tmp_path: Path) -> None:
    assert [row.severity for row in rows(tmp_path, "agents", "/bin/sh")] == ["ok", "ok"]
    assert [row.severity for row in rows(tmp_path, "mcp", "/bin/sh")] == ["warn"]


@pytest.mark.parametrize(
    ("point", "more", "run", "severity"),
    [
        ("tool_executing", "", "no-such-program {path}", "error"),
        ("tool_executing", "", "cd src && A=1 no-such-program -x", "error"),
        ("tool_executing", "fail_closed = false", "no-such-program {path}", "warn"),
        ("tool_completed", "", "no-such-program {path}", "warn"),
        ("tool_executing", "", "/nowhere/guard {path}", "error"),
        ("tool_executing", "", "sh -c 'exit 0'", "ok"),
        ("tool_executing", "", "./scripts/of-the-folder.sh", "ok"),
        ("tool_executing", "", "command -v ruff && no-such-program", "ok"),
        ("tool_executing", "", 'x="$(date)"; $x', "ok"),
    ],
)
def test_a_hook_whose_program_is_missing_is_told(
    point: str, more: str, run: str, severity: str, tmp_path: Path
) -> None:
    (tmp_path / "config.toml").write_text(f"[[hooks]]\non = '{point}'\nrun = '''{run}'''\n{more}\n")
    found = examine(places({}, str(tmp_path)), {})
    (row,) = [one for one in found if one.category == "hooks"]
    assert row.severity == severity and run in row.message
    if severity != "ok":
        assert ("fail_closed" in row.fix) is ("blocked" in row.message) is (severity == "error")
        assert row.fix.startswith("Install it, or correct the hook")


@pytest.mark.parametrize("kind", ENTRY)
def test_a_folder_to_write_that_is_not_there_is_told(kind: str, tmp_path: Path) -> None:
    (there, gone) = (tmp_path / "there", tmp_path / "gone")
    there.mkdir()
    text = ENTRY[kind].format("/bin/sh") + f'sandbox_writable = ["{there}", "{gone}"]\n'
    (tmp_path / "config.toml").write_text(text)
    found = [row for row in examine(places({}, str(tmp_path)), {}) if "to write" in row.message]
    assert [(row.severity, row.category) for row in found] == [("warn", kind)]
    assert str(gone) in found[0].message and f"mkdir -p {gone}" in found[0].fix
    (tmp_path / "config.toml").write_text(text + "trust_outside_sandbox = true\n")
    assert not [row for row in examine(places({}, str(tmp_path)), {}) if "to write" in row.message]


_COME_AND_GO = """
import sqlite3, sys
other = sqlite3.connect(sys.argv[1])
print(other.execute("SELECT count(*) FROM t").fetchone()[0])
other.close()
"""


def test_looking_at_a_store_leaves_it_the_locks_of_whoever_has_it_open(tmp_path: Path) -> None:
    """The daemon looks at its own: the next process to leave must find that it is not the last."""
    (tmp_path / "data").mkdir(mode=0o700)
    path = tmp_path / "data" / "sessions.db"
    ours = sqlite3.connect(path, isolation_level=None)
    ours.execute("PRAGMA journal_mode = WAL")
    ours.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    ours.execute("CREATE TABLE t (x)")
    found = examine(places({}, str(tmp_path)), {})
    assert [row.severity for row in found if row.category == "store"] == ["ok"]
    for number in range(2):  # the first one to leave takes the log away, the second misses a row
        said = subprocess.run([sys.executable, "-c", _COME_AND_GO, str(path)],
                              capture_output=True, text=True, check=True)  # fmt: skip
        assert said.stdout == f"{number}\n"
        assert path.with_name("sessions.db-wal").exists()
        ours.execute("INSERT INTO t VALUES (1)")
    ours.close()


@pytest.mark.parametrize("text", ["", "no database, but long enough to have a header of one"])
def test_a_file_that_is_no_database_is_told(text: str, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir(mode=0o700)
    (tmp_path / "data" / "sessions.db").write_text(text)
    (row,) = [one for one in examine(places({}, str(tmp_path)), {}) if one.category == "store"]
    assert row.severity == ("error" if text else "ok")
    assert ("it is no database" in row.message) == bool(text)


RULES = "[autonomy]\nalways_ask = ['bash']"


def said(folder: Path, text: str, category: str, env: dict[str, str] | None = None) -> list[Row]:
    (folder / "config.toml").write_text(text)
    found = examine(places({}, str(folder)), env or {})
    return [row for row in found if row.category == category and row.severity != "ok"]


@pytest.mark.parametrize(
    ("text", "category", "severity", "about"),
    [
        ('[gateway]\ntls_cert = "/no/c"\ntls_key = "/no/k"', "gateway", "error", "No such file"),
        ('[gateway]\nhost = "203.0.113.7"', "gateway", "error", "203.0.113.7 port 42617"),
        ('[telemetry]\nenabled = true\nendpoint = "localhost:4318"', "telemetry", "error", "http"),
        ('[mcp.x]\ncommand = "sh -c true"', "mcp", "error", "sh -c true"),
        ('[web_search]\nprovider = "brave"', "web_search", "error", "key"),
        ('[web_search]\nprovider = "searxng"', "web_search", "error", "SearXNG"),
        ('[log]\nfile = "/dev/null/x.log"', "log", "warn", "cannot be made"),
        ('[log]\nfile = "/tmp"', "log", "warn", "is a directory"),
        ('[store]\npath = "/dev/null/x.db"', "store", "error", "/dev/null"),
        ('[gateway.webhooks.ci]\nagent = "coder"', "agents", "warn", "coder"),
        (f"{RULES}\nallowed_commands = ['ls']", "agents", "warn", "no effect"),
    ],
)  # fmt: skip
def test_what_is_asked_for_and_cannot_be_had_is_told(
    text: str, category: str, severity: str, about: str, tmp_path: Path
) -> None:
    found = [row for row in said(tmp_path, text, category) if about in row.message]
    assert [row.severity for row in found] == [severity] and found[0].fix


def test_the_rest_of_a_server_s_line_belongs_into_its_args(tmp_path: Path) -> None:
    (row,) = said(tmp_path, '[mcp.x]\ncommand = "sh -c true"', "mcp")
    assert "mcp.x.args" in row.fix


def test_a_program_with_a_space_in_its_name_is_found(tmp_path: Path) -> None:
    program = tmp_path / "an agent"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o700)
    text = f'[agents.other]\nbackend = "acp"\ncommand = "{program}"\nargs = ["--acp"]'
    assert not said(tmp_path, text, "agents")


def test_data_that_is_a_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    (row,) = said(tmp_path, "", "data")
    assert row.severity == "error" and "no directory" in row.message


@pytest.mark.parametrize(
    ("free", "severity", "words"),
    [(0, "error", "is full"), (5_000_000, "warn", "only 5 MB are free")],
)
def test_a_disk_without_room_is_told(
    free: int, severity: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data").mkdir(mode=0o700)
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=free))
    (row,) = said(tmp_path, "", "data")
    assert row.severity == severity and words in row.message and row.fix.startswith("Make room")
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=10**12))
    assert said(tmp_path, "", "data") == []


def test_another_copy_of_us_is_installed_from_what_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clone = tmp_path / "a clone"
    monkeypatch.setattr(installed, "own_code", lambda: (f"{clone}/src/dragoman",))
    assert installed.source() == "dragoman"
    clone.mkdir()
    (clone / "pyproject.toml").write_text("")
    assert installed.source() == f"'{clone}'"
    monkeypatch.setattr(installed, "own_code", lambda: (f"{clone}/site-packages/dragoman",))
    assert installed.source() == "dragoman"


def test_a_port_that_somebody_has_is_told(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        (row,) = said(tmp_path, f"[gateway]\nport = {port}", "gateway")
        assert row.severity == "error" and "gateway.port" in row.fix


def test_a_daemon_is_looked_at_with_what_it_goes_on_with(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('[agents.other]\nbackend = "acp"\ncommand = "/no/such"\n')
    kept = load(str(file), {})
    file.write_text("[broken")
    found = examine(places({}, str(tmp_path)), {}, kept)
    assert any("goes on with what it had" in row.message for row in found)
    assert any("/no/such" in row.message for row in found)


@pytest.mark.parametrize("name", ["daemon.sock", "daemon.sock.lock"])
def test_what_is_in_the_daemons_way_is_told(name: str, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir(mode=0o700)
    (tmp_path / "data" / name).mkdir()
    (row,) = said(tmp_path, "", "daemon")
    assert row.severity == "error" and "Move it away" in row.fix


def test_another_program_at_the_daemons_socket_is_told(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(tmp_path / "data" / "daemon.sock"))
        other.listen()
        (row,) = said(tmp_path, "", "daemon")
    assert row.severity == "error" and "another program" in row.message


def test_whether_a_file_can_be_made_is_told_without_making_it(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("")
    assert not lacks_place(str(tmp_path / "new" / "folder" / "x.db"))
    assert lacks_place(str(tmp_path)) == "is a directory"
    assert "no directory" in lacks_place(str(tmp_path / "plain" / "x.db"))
    assert not (tmp_path / "new").exists()


# --- what it says only after trying ---

LOCKER = (
    "import sqlite3, sys\n"
    "db = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
    "for words in sys.argv[2:]: db.execute(words)\n"
    "print('ready', flush=True)\n"
    "sys.stdin.read()\n"
)


def store_rows(folder: Path) -> list[Row]:
    return [row for row in examine(places({}, str(folder)), {}) if row.category == "store"]


@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="the system does not tell of locks")
@pytest.mark.parametrize("mode", ["wal", "delete"])
@pytest.mark.parametrize(
    "words",
    [("BEGIN IMMEDIATE",), ("BEGIN EXCLUSIVE", "CREATE TABLE more (x)")],
    ids=["writing", "exclusive"],
)
def test_a_store_that_another_process_keeps_locked_is_not_ok(
    mode: str, words: tuple[str, ...], tmp_path: Path
) -> None:
    store = tmp_path / "data" / "sessions.db"
    store.parent.mkdir(mode=0o700)
    made = sqlite3.connect(store)
    made.execute(f"PRAGMA journal_mode = {mode}")
    made.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    made.execute("CREATE TABLE some (x)")
    made.commit()
    assert [row.severity for row in store_rows(tmp_path)] == ["ok"]
    with subprocess.Popen(
        [sys.executable, "-c", LOCKER, str(store), *words],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as other:  # fmt: skip
        assert other.stdin is not None and other.stdout is not None
        assert other.stdout.readline() == "ready\n"
        (row,) = store_rows(tmp_path)
        assert row.severity == "error" and f"process {other.pid} (" in row.message
        assert f"kill {other.pid}" in row.fix
        other.stdin.close()
    assert [row.severity for row in store_rows(tmp_path)] == ["ok"]
    made.close()


def test_a_socket_folder_that_is_closed_is_not_ok(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "config.toml").write_text(f'[listen]\nzeroclaw = "{tmp_path}/file/x/s"\n')
    found = examine(places({}, str(tmp_path)), {})
    (row,) = [row for row in found if row.category == "daemon"]
    assert row.severity == "error" and "no daemon can start" in row.message


def test_a_full_data_folder_is_found_by_trying(tmp_path: Path) -> None:
    script = (
        "import resource, signal, sys\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "from dragoman.host import wanted\n"
        "assert wanted.lacks_room(sys.argv[1]) == ''\n"
        "import errno\n"
        "wanted._NO_ROOM += (errno.EFBIG,)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
        "print(wanted.lacks_room(sys.argv[1]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "File too large\n", done.stderr
    assert list(tmp_path.iterdir()) == []
