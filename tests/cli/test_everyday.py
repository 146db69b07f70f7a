"""The everyday commands against a real daemon, and without one."""

import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.living import WITHIN, Living

from dragoman.client import Plain


@pytest.fixture(scope="module")
def living(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Living]:
    made = Living(tmp_path_factory.mktemp("d"))
    made.start()
    yield made
    made.stop()


@pytest.fixture
def idle(tmp_path: Path) -> Living:
    """An installation without a running daemon."""
    return Living(tmp_path)


def new_session(living: Living, prompt: str = "what is dragoman") -> str:
    with Plain(living.socket, "test") as host:
        made = host.call("dragoman/open", {"cwd": str(living.work)})["session"]["id"]
        if prompt:
            host.call("dragoman/prompt", {"session_id": made, "text": prompt})
    return str(made)


def line(process: subprocess.Popen[str], pattern: str) -> str:
    """Read lines until one fits."""
    assert process.stdout is not None
    while text := process.stdout.readline():
        if re.search(pattern, text):
            return text
    raise AssertionError(f"never said {pattern}: {process.communicate()[1]}")


def interrupt(process: subprocess.Popen[str]) -> int:
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=WITHIN)
    return process.returncode


# --- another place, and a configuration that cannot be read ---


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Living]:
    """A daemon whose sockets the configuration puts somewhere else."""
    made = Living(tmp_path)
    (made.config / "config.toml").write_text(
        f'[listen]\nzeroclaw = "{tmp_path}/z.sock"\nacp = "~/a.sock"\n'
    )
    made.start()
    yield made
    made.stop()


def test_every_command_looks_where_the_configuration_says(elsewhere: Living) -> None:
    folder = elsewhere.folder
    rows = {row["name"]: row for row in elsewhere.json("dialects")["dialects"]}
    assert rows["zeroclaw"]["sockets"] == [f"{folder}/z.sock"]
    assert rows["acp"]["sockets"] == [f"{folder}/a.sock"]
    report = elsewhere.run("bug-report").stdout
    assert re.search(r"ok +daemon +process \d+ listens at", report)
    del elsewhere.env["DRAGOMAN_agents__default__model"]  # with it, `acp` would stay alone
    editor = elsewhere.spawn("acp")
    assert editor.stdin is not None
    for id, (method, params) in enumerate((
        ("initialize", {"protocolVersion": 1}),
        ("session/new", {"cwd": str(elsewhere.work), "mcpServers": []}),
    )):  # fmt: skip
        sent = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
        editor.stdin.write(json.dumps(sent) + "\n")
        editor.stdin.flush()
    line(editor, "sessionId")
    assert elsewhere.json("status")["sessions"]["live"] == 1
    editor.communicate(timeout=WITHIN)


def test_whoever_finds_no_daemon_says_what_is_wrong_with_the_configuration(
    elsewhere: Living,
) -> None:
    file = elsewhere.config / "config.toml"
    file.write_text(file.read_text() + "[broken\n")
    for words in (("status",), ("stop",), ("open",), ("cron",), ("tap",)):
        done = elsewhere.run(*words)
        assert done.returncode == 1
        told, said = done.stderr.splitlines()
        assert told.startswith(f"warning: {file}:4: ")
        assert told.endswith("The daemon was looked for where it is by default.")
        assert said.startswith("dragoman: The daemon is not running: nobody listens at ")


def test_where_no_socket_can_be_a_turn_needs_none(idle: Living) -> None:
    """A home with a long name: no daemon can run there, all else works."""
    idle.env["DRAGOMAN_DATA_DIR"] = str(idle.folder / ("d" * 120))
    assert "local agent host" in idle.says("run", "what is dragoman")
    assert "what is dragoman" in idle.says("sessions")
    hello = '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}\n'
    del idle.env["DRAGOMAN_agents__default__model"]  # with it, nobody looks for a daemon
    assert '"protocolVersion":1' in idle.spawn("acp").communicate(hello, timeout=WITHIN)[0]
    for words in (("status",), ("daemon",), ("daemon", "--background")):
        done = idle.run(*words)
        assert done.returncode == 1 and "bytes long, the system allows" in done.stderr


# --- status, doctor, agents, models ---


def test_status(living: Living) -> None:
    text = living.says("status")
    assert re.match(r"dragoman \S+  runs since ", text)
    assert f"process {living.process.pid}" in text  # type: ignore[union-attr]
    assert living.socket in text and "\x1b" not in text
    found = living.json("status")
    assert found["running"] and found["endpoints"]["zeroclaw"] == living.socket


def test_status_imports_neither_asyncio_nor_msgspec(living: Living) -> None:
    code = (
        "import sys; from dragoman.cli.main import main\n"
        "assert main(['status']) == 0\n"
        "heavy = ('asyncio', 'msgspec', 'tomllib', 'ssl', 'logging', 'dragoman.daemon', 'socket',"
        " 'selectors', 'typing', 'subprocess', 'threading', 'atexit', 'dragoman.cli.help',"
        " 'dragoman.cli.commands.work', 'dragoman.cli.commands.setup')\n"
        "print([m for m in heavy if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=living.env,
        capture_output=True,
        text=True,
        timeout=WITHIN,
    )
    assert done.stderr.strip() == "[]", done.stderr


def test_status_when_nothing_runs(idle: Living) -> None:
    done = idle.run("status")
    assert done.returncode == 1 and "dragoman daemon" in done.stderr
    done = idle.run("status", "--json")
    assert done.returncode == 1 and json.loads(done.stdout) == {"running": False}


def test_doctor(living: Living, idle: Living) -> None:
    found = living.json("doctor")
    assert found["summary"]["error"] == 0
    assert any("listens at" in row["message"] for row in found["rows"])
    (idle.config / "config.toml").write_text("[agents.x]\nmodel = 5\n")
    done = idle.run("doctor")
    assert done.returncode == 1 and "ERROR" in done.stdout and "→ " in done.stdout
    rows = json.loads(idle.run("doctor", "--json").stdout)["rows"]
    assert all(row["fix"] for row in rows if row["severity"] == "error")


def test_doctor_speaks_of_the_daemons_environment(living: Living) -> None:
    """A key that only this shell has is of no use to the daemon, which has the sessions."""
    assert "OPENAI_API_KEY" not in living.env
    living.says("config", "set", "agents.paid.model", "openai/gpt-4o")
    living.env["OPENAI_API_KEY"] = "sk-of-this-shell-only"
    try:
        rows = json.loads(living.run("doctor", "--json").stdout)["rows"]
    finally:
        del living.env["OPENAI_API_KEY"]
        living.says("config", "unset", "agents.paid.model")
    assert living.process is not None and str(living.process.pid) in rows[0]["message"]
    (said,) = [row["message"] for row in rows if row["message"].startswith("paid")]
    assert "no credential for openai" in said


def test_doctor_hides_secrets(idle: Living) -> None:
    (idle.config / "config.toml").write_text('[agents.x]\nmodel = "sk-abcdefghijklmnop1234"\n')
    done = idle.run("doctor")
    assert "sk-abcdefghijkl" not in done.stdout + done.stderr


@pytest.mark.parametrize("which", ["living", "idle"])
def test_agents_and_models_with_and_without_a_daemon(
    which: str, request: pytest.FixtureRequest
) -> None:
    installation: Living = request.getfixturevalue(which)
    assert re.search(r"default \*\s+demo/demo\s+supervised", installation.says("agents"))
    assert installation.json("agents")["default"] == "default"
    assert "demo/demo" in installation.says("models")
    assert installation.json("models", "--provider", "demo")["models"][0]["ref"] == "demo/demo"
    done = installation.run("models", "--provider", "nope")
    assert done.returncode == 1 and "nope" in done.stderr


# --- sessions ---


def test_list_show_tail_and_change(living: Living) -> None:
    session = new_session(living)
    short = session[:13]
    assert session in living.says("sessions")
    row = next(row for row in living.json("sessions", "list")["sessions"] if row["id"] == session)
    assert row["status"] == "idle" and row["turns"] == 1
    assert living.json("sessions", "list", "--status", "failed")["sessions"] == []
    text = living.says("sessions", "show", short)
    assert session in text and "what is dragoman" in text
    tail = living.says("sessions", "tail", short)
    assert "test (zeroclaw): what is dragoman" in tail
    events = [json.loads(one) for one in living.says(
        "sessions", "tail", short, "--after", "2", "--json").splitlines()]  # fmt: skip
    assert events[0]["seq"] == 3
    living.says("sessions", "rename", short, "the", "title")
    assert living.json("sessions", "show", short)["session"]["title"] == "the title"
    fork = living.says("sessions", "fork", short).strip()
    assert living.json("sessions", "show", fork)["session"]["parent"] == session
    living.says("sessions", "archive", fork)
    assert fork not in living.says("sessions")
    assert fork in living.says("sessions", "list", "--archived")
    living.says("sessions", "archive", fork, "--undo")
    assert fork in living.says("sessions")
    living.says("sessions", "delete", fork)
    done = living.run("sessions", "show", fork)
    assert done.returncode == 1 and "Session not found" in done.stderr
    assert done.stderr.endswith(" See: dragoman sessions\n")


def test_what_is_not_clear_is_said(living: Living) -> None:
    one, two = new_session(living, ""), new_session(living, "")
    common = os.path.commonprefix([one, two])
    if common:
        assert "Write more of it" in living.run("sessions", "show", common).stderr
    assert "not found" in living.run("sessions", "show", "zzz").stderr.lower()
    done = living.run("sessions", "cancel", one)
    assert done.returncode == 1 and "dragoman" in done.stderr


def test_send_streams_the_turn_and_approval_comes_from_another_command(living: Living) -> None:
    session = new_session(living, "")
    sending = living.spawn("sessions", "send", session, 'write "x" to sent.txt', "--approve", "ask")
    ask = re.search(r"ask_\w+", line(sending, "dragoman approve"))
    assert ask is not None
    listed = living.json("approvals")["approvals"]
    assert ask[0] in [one["ask"]["id"] for one in listed]
    assert "sent.txt" in living.says("approvals")
    assert living.says("approve", ask[0][:12], "--comment", "ok").startswith("allowed: write")
    out, _ = sending.communicate(timeout=WITHIN)
    assert sending.returncode == 0 and "allow by dragoman approve" in out
    assert (living.work / "sent.txt").exists()
    late = living.run("deny", ask[0])
    assert late.returncode == 1 and "already" in late.stderr.lower()
    assert "allow by dragoman approve" in living.says("approvals", "--all")


def test_an_open_question_is_shown_once(living: Living) -> None:
    session = new_session(living, "")
    sending = living.spawn("sessions", "send", session, "ask me red or blue", "--approve", "ask")
    ask = re.search(r"ask_\w+", line(sending, "dragoman approve"))
    assert ask is not None
    row = next(row["ask"] for row in living.json("approvals")["approvals"])
    shown = living.says("sessions", "show", session)
    assert f"? {row['title']}\n    dragoman approve {ask[0]}\n" in shown
    assert interrupt(sending) == 130


def test_deny_tells_the_reason(living: Living) -> None:
    session = new_session(living, "")
    sending = living.spawn(
        "sessions", "send", session, 'write "x" to never.txt', "--json", "--approve", "ask"
    )
    asked = json.loads(line(sending, '"asked"'))["event"]["ask"]["id"]
    found = json.loads(living.says("deny", asked, "--reason", "not on a Friday", "--json"))
    assert found["verdict"] == "deny" and found["comment"] == "not on a Friday"
    out, _ = sending.communicate(timeout=WITHIN)
    assert "not on a Friday" in out and not (living.work / "never.txt").exists()
    assert json.loads(out.splitlines()[-1])["finished"]["outcome"] == "completed"


def test_tail_follows_and_cancel_stops(living: Living) -> None:
    session = new_session(living, "")
    tail = living.spawn("sessions", "tail", session, "-f", "--json")
    line(tail, '"opened"')
    sending = living.spawn("sessions", "send", session, "count slowly to 300")
    line(tail, '"text_delta"')
    assert "cancelled" in living.says("sessions", "cancel", session)
    line(tail, '"turn_ended"')
    sending.communicate(timeout=WITHIN)
    assert sending.returncode == 130
    assert interrupt(tail) == 130


def test_interrupting_send_cancels_the_turn(living: Living) -> None:
    session = new_session(living, "")
    sending = living.spawn("sessions", "send", session, "count slowly to 300", "--json")
    line(sending, '"text_delta"')
    assert interrupt(sending) == 130
    tail = living.spawn("sessions", "tail", session, "-f", "--json")
    assert '"cancelled"' in line(tail, '"turn_ended"')
    assert interrupt(tail) == 130


def test_interrupting_send_while_it_is_queued_leaves_the_running_turn(living: Living) -> None:
    session = new_session(living, "")
    first = living.spawn("sessions", "send", session, "count slowly to 300", "--json")
    line(first, '"text_delta"')
    second = living.spawn("sessions", "send", session, "say never", "--json")
    while not living.json("sessions", "show", session)["queued"]:
        line(first, '"text_delta"')
    assert interrupt(second) == 130
    found = living.json("sessions", "show", session)
    assert found["queued"] == 0 and found["session"]["status"] == "running"
    assert interrupt(first) == 130


def test_the_inbox_shows_what_comes_and_who_answered(living: Living) -> None:
    inbox = living.spawn("approvals", "--watch")
    watch = living.spawn("approvals", "--watch", "--json")
    session = new_session(living, "")
    sending = living.spawn(
        "sessions", "send", session, 'write "x" to inbox.txt', "--approve", "ask"
    )
    shown = line(inbox, "inbox.txt")
    ask = shown.split()[0]
    assert json.loads(line(watch, "inbox.txt"))["asked"]["id"] == ask
    living.says("approve", ask)
    assert "allow by dragoman approve" in line(inbox, ask)
    assert json.loads(line(watch, '"settled"'))["settled"]["ask_id"] == ask
    sending.communicate(timeout=WITHIN)
    assert (interrupt(inbox), interrupt(watch)) == (130, 130)


def test_without_a_daemon_sessions_are_read_from_the_store(idle: Living) -> None:
    idle.start()
    session = new_session(idle)
    idle.stop()
    assert session in idle.says("sessions")
    assert "what is dragoman" in idle.says("sessions", "show", session[:8])
    assert "what is dragoman" in idle.says("sessions", "tail", session)
    idle.says("sessions", "rename", session, "offline")
    assert "# offline" in idle.says("sessions", "export", session, "--format", "markdown")
    assert "nothing waits" in idle.says("approvals")
    for words in (("sessions", "send", session, "x"), ("sessions", "tail", session, "-f"),
                  ("approve", "ask_1"), ("approvals", "--watch"), ("tap",)):  # fmt: skip
        done = idle.run(*words)
        assert done.returncode == 1 and "Start it with: dragoman daemon" in done.stderr


def test_a_session_of_another_process_is_shown_and_how_to_share_it_is_said(
    living: Living,
) -> None:
    editor = living.spawn("acp")
    assert editor.stdin and editor.stdout
    new = {"cwd": str(living.work), "mcpServers": []}
    for number, method, params in ((1, "initialize", {}), (2, "session/new", new)):
        request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        editor.stdin.write(json.dumps(request) + "\n")
    editor.stdin.flush()
    session = json.loads(line(editor, '"sessionId"'))["result"]["sessionId"]
    assert session in living.says("sessions")
    done = living.run("sessions", "rename", session, "mine")
    assert done.returncode == 1 and "in use" in done.stderr and "shares its sessions" in done.stderr
    editor.communicate(timeout=WITHIN)
    living.says("sessions", "rename", session, "mine")


# --- logs and tap ---


def test_logs(living: Living) -> None:
    assert "listening" in living.says("logs", "-n", "10000")
    assert len(living.says("logs", "-n", "2").splitlines()) == 2
    following = living.spawn("logs", "-f", "-n", "1")
    line(following, "")
    living.says("status")
    assert "audit" in line(following, "admitted")
    assert interrupt(following) == 130


def test_logs_without_a_log(idle: Living) -> None:
    done = idle.run("logs")
    assert done.returncode == 1 and "There is no log" in done.stderr


def test_tap_records_what_replay_plays(living: Living, tmp_path: Path) -> None:
    record = tmp_path / "tap.ndjson"
    tap = living.spawn("tap", "--record", str(record), "--json")
    assert tap.stdout is not None
    deadline = time.monotonic() + WITHIN
    with Plain(living.socket, "noise") as noise:
        # The tap is on when it shows a line of ours.
        shown: list[dict[str, Any]] = []
        while not shown and time.monotonic() < deadline:
            noise.call("dragoman/agents")
            if select.select([tap.stdout], [], [], 0.05)[0]:
                shown.append(json.loads(tap.stdout.readline()))
        assert shown[0]["dialect"] == "zeroclaw"
        secret = {"path": "providers.x.api_key", "op": "get", "value": "sk-abcdefghijklmnop1234"}
        noise.call("dragoman/config", secret)
        while "providers.x.api_key" not in (text := tap.stdout.readline()):
            assert text
    assert interrupt(tap) == 130
    assert "sk-abcdefgh" not in record.read_text()
    rows = [json.loads(row) for row in record.read_text().splitlines()]
    assert {row["direction"] for row in rows} == {"in", "out"}
    name = next(row["connection"] for row in rows if row["direction"] == "in")
    first = next(row for row in rows if row["connection"] == name and row["direction"] == "in")
    asked = json.loads(first["line"]) | {"id": "mine"}
    done = subprocess.run(
        [sys.executable, "-m", "dragoman", "replay", str(record), "--connection", name],
        env=living.env,
        input=json.dumps(asked) + "\n", capture_output=True, text=True, timeout=WITHIN,
    )  # fmt: skip
    answer = json.loads(done.stdout.splitlines()[0])
    assert answer["id"] == "mine" and "agents" in answer["result"], done.stderr


# --- memory ---


def test_memory(idle: Living) -> None:
    assert "nothing is remembered" in idle.says("memory")
    from dragoman.agents.memory import Memories

    memories = Memories(str(idle.config / "data" / "memory"))
    memories.of("default").store("colour", "The user likes blue.")
    memories.close()
    assert "The user likes blue." in idle.says("memory", "list", "--agent", "default")
    (row,) = idle.json("memory", "list")["entries"]
    assert row["key"] == row["id"] == "colour"
    assert "forgotten" in idle.says("memory", "forget", "colour")
    assert idle.run("memory", "forget", "colour").returncode == 1
    assert "no agent nope" in idle.run("memory", "list", "--agent", "nope").stderr


def test_a_memory_is_forgotten_by_the_beginning_of_its_id(idle: Living) -> None:
    from dragoman.agents.memory import Memories

    memories = Memories(str(idle.config / "data" / "memory"))
    for key in ("colour", "colour_of_car", "colour_of_house", "town"):
        memories.of("default").store(key, "x")
    memories.close()
    several = idle.run("memory", "forget", "colour_of")
    assert several.returncode == 1 and "2 memories begin with colour_of." in several.stderr
    assert idle.json("memory", "forget", "colour")["id"] == "colour"  # a whole id is meant itself
    assert "forgotten: town (default)" in idle.says("memory", "forget", "to")
    assert idle.json("memory", "forget", "colour_of_h")["id"] == "colour_of_house"
    empty = idle.run("memory", "forget", "")  # as of a script's variable: no beginning of any
    assert empty.returncode == 2 and len(idle.json("memory")["entries"]) == 1
    none = idle.run("memory", "forget", "sea")
    assert none.returncode == 1 and "Nothing is remembered as sea." in none.stderr
    assert [row["id"] for row in idle.json("memory")["entries"]] == ["colour_of_car"]


def test_config_set_returns_when_the_daemon_has_it(living: Living) -> None:
    for number in ("7", "9", "11"):
        living.says("config", "set", "acp.max_sessions", number)
        with Plain(living.socket, "test") as daemon:
            found = daemon.call("dragoman/config", {"path": "acp.max_sessions"})
        assert found["value"] == int(number)
    living.says("config", "unset", "acp.max_sessions")
    with Plain(living.socket, "test") as daemon:
        assert daemon.call("dragoman/config", {"path": "acp.max_sessions"})["value"] == 10


def test_intervals_are_told_as_people_write_them(living: Living) -> None:
    living.says("cron", "add", "--every", "120m", "look around")
    assert "every 2h " in living.says("cron")
    refused = living.run("cron", "add", "--every", "0s", "look around")
    assert refused.returncode == 1 and "longer than nothing" in refused.stderr


@pytest.mark.parametrize(
    ("flags", "says", "told"),
    [
        ([], "no, nobody could be asked (use --approve all to allow it)", "nobody could be asked."),
        (["--approve", "none"], "no (--approve none)", "Denied by user."),
        (["--approve", "all"], "yes (nobody is asked here)", ""),
    ],
)
@pytest.mark.parametrize("as_json", [False, True])
def test_send_decides_without_a_terminal_as_run_does(
    living: Living, flags: list[str], says: str, told: str, as_json: bool
) -> None:
    """It named a command to approve with, denied by itself, and the model heard of a user's no."""
    name = f"alone-{len(flags) and flags[1]}-{as_json}.txt"
    prompt = f'write "x" to {name}'
    json_flag = ["--json"] if as_json else []
    sent = living.run("sessions", "send", new_session(living, ""), prompt, *flags, *json_flag)
    assert sent.returncode == 0, sent.stderr
    assert "dragoman approve" not in sent.stdout + sent.stderr
    assert (living.work / name).exists() is (not told)
    assert told in sent.stdout and (told == "Denied by user.") == ("Denied by user" in sent.stdout)
    (living.work / name).unlink(missing_ok=True)
    ran = living.run("run", prompt, *flags, *json_flag)
    for stderr in (sent.stderr, ran.stderr):
        (question,) = [one for one in stderr.splitlines() if one.startswith("? ")]
        assert question.endswith(says)
