"""`dragoman apps`: installing from a folder, permissions, supervision; IRC on a real server."""

import grp
import json
import os
import pwd
import re
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.daemon.running import Daemon

from dragoman.cli.local import app_folders
from dragoman.engine.faults import BadInput

EXAMPLES = Path(__file__).parents[2] / "examples" / "apps"
NGIRCD = shutil.which("ngircd") or shutil.which("ngircd", path="/usr/sbin:/usr/local/sbin")

GREETER = '''
import os
from dragoman.apps import App
app = App("@test/greeter")

@app.tool()
def greet(name: str) -> str:
    """Greet somebody."""
    return f"hello {name}"

@app.method("greeter.seen")
def seen(params):
    return {"key": os.environ.get("GREETER_KEY"), "other": os.environ.get("GREETER_OTHER")}

@app.provider("parrot", ["small"])
async def parrot(request):
    yield "polly says hello"

@app.observe("message_sent")
def sent(data, context):
    print("sent", flush=True)

print("greeter began", flush=True)
try:
    app.run()
except SystemExit as end:
    print(f"greeter ended: {end}", flush=True)
    raise
'''


def manifest(**changes):
    made = {
        "id": "@test/greeter", "name": "Greeter", "version": "1.0.0", "type": "app",
        "main": "app.py", "protocol": {"version": "1.0"},
        "capabilities": {
            "tools": {"provides": ["greet"]},
            "hooks": {"subscribes": ["message_sent"]},
            "gateway": {"methods": ["greeter.seen"]},
            "providers": {"provides": ["parrot"], "models": ["small"]},
            "resources": {"env": ["GREETER_KEY"]},
        },
    }  # fmt: skip
    return {**made, **changes}


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "greeter"
    place.mkdir()
    (place / "app.py").write_text(GREETER)
    (place / "openclawos.manifest.json").write_text(json.dumps(manifest()))
    return place


def dragoman(config, *words, code=0, **more):
    done = subprocess.run(
        [sys.executable, "-m", "dragoman", *words, "--config-dir", str(config), "--json"],
        capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, **more,
    )  # fmt: skip
    assert code in (None, done.returncode), (done.stdout, done.stderr)
    return done.stderr if code else json.loads(done.stdout)


def wait_for(config, id, state, registered="ready", within=60.0):
    limit = time.monotonic() + within
    while True:
        rows = {row["id"]: row for row in dragoman(config, "apps", "list")["apps"]}
        row = rows.get(id, {})
        if (row.get("state"), row.get("registered")) == (state, registered):
            return row
        assert time.monotonic() < limit, rows


# --- manifests ---


def test_what_an_app_asks_for_is_read_from_its_manifest(folder):
    asked = app_folders.look(str(folder))
    assert asked.id == "@test/greeter" and asked.args == (str(folder / "app.py"),)
    assert asked.wants == {
        "tool": ("greet",), "hook": ("message_sent",), "gateway_method": ("greeter.seen",),
        "provider": ("parrot",),
    }  # fmt: skip
    assert asked.env == ("GREETER_KEY",)
    left = app_folders.narrowed(asked.wants, ["hook:message_sent"])
    assert left == {**asked.wants, "hook": ()}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"main": ""}, "main"),
        ({"main": "../outside.py"}, "main"),
        ({"main": "/bin/sh"}, "main"),
        ({"main": "missing.py"}, "main"),
        ({"main": "data.txt"}, "cannot be run"),
        ({"id": ""}, "id"),
        ({"protocol": {}}, "protocol"),
    ],
)
def test_a_manifest_that_cannot_be_used_says_why(folder, changes, reason):
    (folder.parent / "outside.py").write_text("")
    (folder / "data.txt").write_text("")
    (folder / "openclawos.manifest.json").write_text(json.dumps(manifest(**changes)))
    with pytest.raises(BadInput, match=reason):
        app_folders.look(str(folder))


def test_a_folder_without_a_manifest_or_with_a_broken_one(tmp_path):
    with pytest.raises(BadInput, match="no manifest"):
        app_folders.look(str(tmp_path))
    with pytest.raises(BadInput, match="nowhere is not there"):
        app_folders.look(str(tmp_path / "nowhere"))
    with pytest.raises(BadInput, match="is no folder"):
        app_folders.look(__file__)
    (tmp_path / "openclawos.json").write_text("{")
    with pytest.raises(BadInput, match="no JSON"):
        app_folders.look(str(tmp_path))


@pytest.mark.parametrize("word", ["tool", "tool:", "thing:greet", "tool:other"])
def test_only_what_is_asked_for_can_be_denied(folder, word):
    with pytest.raises(BadInput):
        app_folders.narrowed(app_folders.look(str(folder)).wants, [word])


def _rows_of_asking(config, folder):
    """What is said before an app is installed: each row's first word, and where the next is."""
    said = subprocess.run(
        [sys.executable, "-m", "dragoman", "apps", "add", str(folder), "--config-dir", str(config)],
        capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL,
    ).stdout  # fmt: skip
    found = re.findall(r"(?m)^  (\w+)( +)\S", said)
    return [(kind, len(kind) + len(gap)) for kind, gap in found]


# --- a daemon ---


def test_an_app_is_installed_permitted_restarted_and_removed(tmp_path, folder):
    config = tmp_path / "config"
    config.mkdir()
    refused = dragoman(config, "apps", "add", str(folder), code=1)
    assert "--yes" in refused  # nobody is there who could be asked
    rows = _rows_of_asking(config, folder)
    assert "gateway_method" in {kind for kind, _ in rows} and len({at for _, at in rows}) == 1
    env = {"GREETER_KEY": "k", "GREETER_OTHER": "hidden"}
    with Daemon(config, env=env) as daemon:
        daemon.wait_ready()
        added = dragoman(config, "apps", "add", str(folder), "--yes")
        assert added["granted"]["tool"] == ["greet"]
        row = wait_for(config, "@test/greeter", "running")
        assert set(row["capabilities"]) == {
            "tool:greet", "gateway_method:greeter.seen", "provider:parrot",
        }  # fmt: skip
        said = subprocess.run(
            [sys.executable, "-m", "dragoman", "run", "--config-dir", str(config),
             "--model", "parrot/small", "hi"],
            capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, cwd=tmp_path,
        )  # fmt: skip
        assert said.returncode == 0 and "polly says hello" in said.stdout, said.stderr
        rows = dragoman(config, "doctor", code=None)["rows"]
        assert any("@test/greeter is ready" in row["message"] for row in rows)

        restarted = dragoman(config, "apps", "restart", "@test/greeter")
        assert restarted == {"restarted": "@test/greeter"}
        again = wait_for(config, "@test/greeter", "running")
        assert again["pid"] != row["pid"]
        assert "No app @no/one" in dragoman(config, "apps", "restart", "@no/one", code=1)

        shown = dragoman(config, "apps", "permissions", "@test/greeter", "--deny", "tool:greet")
        assert shown["asks"]["tool"] == ["greet"] and shown["granted"]["tool"] == []
        assert "granted" in (config / "config.toml").read_text()
        # Its kit takes the denial for a failure, so it is started again and again, and given up.
        row = wait_for(config, "@test/greeter", "waiting", "")
        lines = dragoman(config, "apps", "logs", "@test/greeter")["lines"]
        assert any("greeter began" in line for line in lines)
        assert any("is not granted" in line for line in lines)

        dragoman(config, "apps", "permissions", "@test/greeter", "--grant", "tool:greet")
        wait_for(config, "@test/greeter", "running")
        assert dragoman(config, "apps", "remove", "@test/greeter") == {"removed": "@test/greeter"}
        # At once, though the daemon ends it a little later.
        assert dragoman(config, "apps", "list")["apps"] == []
        assert "There is no app" in dragoman(config, "apps", "remove", "@test/greeter", code=1)


def test_what_was_removed_is_not_listed_while_the_daemon_still_has_it(monkeypatch, tmp_path):
    from dragoman.cli.main import main
    from dragoman.cli.verbs import apps

    shown = []
    kept = [{"id": "@a/going", "state": "waiting", "problem": "ended with 1"}]
    outside = [{"id": "@a/outside", "state": "ready", "capabilities": []}]
    leaving = [{"id": "@a/going", "state": "ready", "capabilities": []}]
    said = {"kept": kept, "connected": outside + leaving}
    monkeypatch.setattr(apps.reach, "of_daemon", lambda args, verb: said)
    monkeypatch.setattr(apps.say, "as_json", lambda args, told: shown.append(told) or True)

    assert main(["apps", "--config-dir", str(tmp_path)]) == 0
    assert [row["id"] for row in shown[-1]["apps"]] == ["@a/outside"]
    (tmp_path / "config.toml").write_text("this is [no configuration")  # nothing is known of it
    assert main(["apps", "--config-dir", str(tmp_path)]) == 0
    assert [row["id"] for row in shown[-1]["apps"]] == ["@a/going", "@a/outside"]


# --- IRC ---


class Irc:
    """A person at the server."""

    def __init__(self, port, nick):
        self.sock = socket.create_connection(("127.0.0.1", port), 10)
        self.sock.settimeout(60)
        self.file = self.sock.makefile("rb")
        self.send(f"NICK {nick}", f"USER {nick} 0 * :{nick}")
        self.until(" 001 ")

    def send(self, *lines):
        self.sock.sendall("".join(f"{line}\r\n" for line in lines).encode())

    def until(self, *words):
        """The first line that has all these words."""
        while True:
            line = self.file.readline().decode()
            assert line, "the server has closed the connection"
            if line.startswith("PING"):
                self.send(line.replace("PING", "PONG", 1).strip())
            if all(word in line for word in words):
                return line.strip()

    def close(self):
        self.file.close()
        self.sock.close()


@pytest.fixture
def server(tmp_path):
    """A real IRC server of our own, on a free port of loopback."""
    if NGIRCD is None:
        pytest.skip("no ngircd here: make setup-tools")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    user, group = pwd.getpwuid(os.getuid()).pw_name, grp.getgrgid(os.getgid()).gr_name
    file = tmp_path / "ngircd.conf"
    file.write_text(
        f"[Global]\nName = irc.test.local\nInfo = test\nListen = 127.0.0.1\nPorts = {port}\n"
        f"MotdPhrase = hello\nServerUID = {user}\nServerGID = {group}\n"
        "[Options]\nPAM = no\nIdent = no\nDNS = no\nSyslogFacility = local1\n"
        "[Limits]\nMaxConnectionsIP = 0\nMaxPenaltyTime = 0\n"
    )
    log = (tmp_path / "ngircd.log").open("wb")
    process = subprocess.Popen([NGIRCD, "-n", "-f", str(file)], stdout=log, stderr=log)
    limit = time.monotonic() + 60
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            break
        except OSError:
            said = (tmp_path / "ngircd.log").read_text()
            assert process.poll() is None and time.monotonic() < limit, said
            time.sleep(0.05)
    yield port
    process.terminate()
    process.wait(60)
    log.close()


def test_the_irc_app_talks_in_private_and_in_channels_of_a_real_server(server, tmp_path):
    config = tmp_path / "config"
    config.mkdir()
    text = (
        f'[channels.irc]\nserver = "127.0.0.1"\nport = {server}\ntls = false\n'
        'nick = "agent"\nchannels = ["#talk"]\n'
    )
    with Daemon(config, config=text) as daemon:
        daemon.wait_ready()
        ann = Irc(server, "ann")
        ann.send("JOIN #talk")
        ann.until(" 366 ")
        dragoman(config, "apps", "add", str(EXAMPLES / "irc"), "--yes")
        ann.until(":agent!", "JOIN")
        ann.send("PRIVMSG agent :say hello in private")
        assert ":agent!" in ann.until("PRIVMSG ann :", "hello")
        ann.send("PRIVMSG #talk :nobody is meant here", "PRIVMSG #talk :agent: say hello to all")
        answer = ann.until("PRIVMSG #talk :", ":agent!")
        assert "hello" in answer
        sessions = dragoman(config, "sessions", "list")["sessions"]
        assert len(sessions) == 2  # one with the person, one with the channel
        ann.close()


def test_long_answers_are_cut_between_words_and_never_inside_a_character():
    sys.path.insert(0, str(EXAMPLES / "irc"))
    try:
        import app as irc_app
    finally:
        sys.path.pop(0)
        sys.modules.pop("app", None)
    parts = irc_app.split("wörter " * 200 + "\n\nlast\r\n" + "ü" * 700)
    assert all(len(part.encode()) <= irc_app.LINE for part in parts) and "last" in parts
    assert "".join(parts).replace(" ", "").count("wörter") == 200
    assert sum(part.count("ü") for part in parts) == 700


def test_the_scheduler_begins_turns_at_their_times(tmp_path):
    config = tmp_path / "config"
    config.mkdir()
    text = '[apps.scheduler]\njobs = [{ key = "tick:one", every = 1, text = "say hello" }]\n'
    with Daemon(config, config=text) as daemon:
        daemon.wait_ready()
        dragoman(config, "apps", "add", str(EXAMPLES / "scheduler"), "--yes")
        wait_for(config, "@examples/scheduler", "running")
        limit = time.monotonic() + 60
        while True:
            rows = dragoman(config, "sessions", "list")["sessions"]
            if rows and rows[0].get("turns", rows[0].get("messages", 0)):
                break
            assert time.monotonic() < limit, rows
        assert len(rows) == 1
