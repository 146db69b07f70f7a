"""`dragoman run` in a session of its own, in an old one, and in the running daemon."""

import json
import re
import signal
import subprocess

import pytest
from tests.daemon.running import Daemon, Line
from tests.daemon.test_run import DRAGOMAN, Terminal, environment, run, say, scripted, work

from dragoman.cli.run.turns import Wish, _apart
from dragoman.client.answers import AgentRow

DEMO = '[agents.default]\nmodel = "demo/demo"\n'


def listed(tmp_path):
    done = subprocess.run(
        [*DRAGOMAN, "sessions", "--json", "--config-dir", str(tmp_path / "config")],
        capture_output=True, timeout=60, env=environment(),
    )  # fmt: skip
    return json.loads(done.stdout)["sessions"]


@pytest.fixture
def daemon(tmp_path):
    folder = tmp_path / "config"
    folder.mkdir()
    with Daemon(folder, config=DEMO).wait_ready() as running:
        yield running


# --- flags ---


def test_model_and_mode_are_chosen_for_one_run(tmp_path):
    config = DEMO + "[agents.other]\n" + scripted(tmp_path, [say("scripted")]).split("\n", 1)[1]
    model = re.findall(r'"(scripted/.*?)"', config)[0]
    done = run(tmp_path, "--agent", "default", "--model", model, "hi", config=config)
    assert (done.returncode, done.stdout) == (0, b"scripted\n"), done.stderr
    for mode, made in (("readonly", False), ("full", True)):
        done = run(tmp_path, "--agent", "default", "--mode", mode, 'write "x" to made.txt')
        assert done.returncode == 0, done.stderr
        assert (work(tmp_path) / "made.txt").exists() is made
    assert [row["mode"] for row in listed(tmp_path)][:2] == ["full", "readonly"]


def test_a_session_is_gone_on_with(tmp_path):
    assert run(tmp_path, "say one", config=DEMO).returncode == 0
    (first,) = listed(tmp_path)
    assert run(tmp_path, "--continue", "say two").returncode == 0
    assert (
        run(tmp_path, "--session", first["id"][:8], "--mode", "full", "say three").returncode == 0
    )
    (row,) = listed(tmp_path)
    assert (row["id"], row["turns"], row["mode"]) == (first["id"], 3, "full")
    assert run(tmp_path, "say four").returncode == 0
    assert len(listed(tmp_path)) == 2


@pytest.mark.parametrize(
    "words, told",
    [
        (["--continue"], b"There is no session in"),
        (["--session", "nope"], b"nope"),
        (["--session", "x", "--continue"], b"exclude each other"),
        (["--continue", "--agent", "default"], b"keeps its agent"),
        (["--session", "x", "--cwd", "/"], b"keeps its directory"),
        (["--model", "foo/bar"], b"foo"),
    ],
)
@pytest.mark.parametrize("with_daemon", [False, True])
def test_wishes_that_cannot_be_met_are_one_sentence(tmp_path, request, words, told, with_daemon):
    if with_daemon:
        request.getfixturevalue("daemon")
    done = run(tmp_path, *words, "hi", config=DEMO)
    assert done.returncode == 1 and told in done.stderr, done.stderr
    assert b"Traceback" not in done.stderr and done.stderr.count(b"\n") == 1
    assert not listed(tmp_path)


@pytest.mark.parametrize("flag", ["--cwd", "--agent", "--model", "--session"])
@pytest.mark.parametrize("with_daemon", [False, True])
def test_words_that_are_no_text_are_named(tmp_path, request, flag, with_daemon):
    if with_daemon:
        request.getfixturevalue("daemon")
    done = run(tmp_path, flag, b"caf\xe9", "hi", config=DEMO)
    assert done.returncode == 1 and b"no UTF-8 text" in done.stderr, done.stderr
    assert b"Traceback" not in done.stderr and not listed(tmp_path)


# --- through the daemon ---


def test_a_run_beside_a_daemon_is_the_daemons_session(tmp_path, daemon):
    done = run(tmp_path, "--json", "say something")
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert events[0]["type"] == "turn_began" and "turn_ended" in [e["type"] for e in events]
    assert all({"session", "seq", "at"} <= event.keys() for event in events)
    with Line(daemon.socket) as line:
        found = line.ask("dragoman/session", {"session_id": events[0]["session"]})
        assert found["live"] and found["session"]["turns"] == 1
    assert run(tmp_path, "--continue", "say more").returncode == 0
    assert [row["turns"] for row in listed(tmp_path)] == [2]


def test_another_client_answers_what_a_run_asks(tmp_path, daemon):
    terminal = Terminal(tmp_path, 'write "x" to made.txt', config=DEMO)
    terminal.until(b"[n]o: ")
    with Line(daemon.socket) as line:
        (row,) = line.ask("dragoman/approvals", {"pending": True})["approvals"]
        line.ask(
            "dragoman/answer",
            {"id": row["ask"]["id"], "verdict": "allow", "digest": row["ask"]["digest"]},
        )
        terminal.until(b"answered elsewhere")
    assert terminal.end() == 0
    assert (work(tmp_path) / "made.txt").exists()


def test_a_run_beside_a_daemon_asks_at_its_own_terminal(tmp_path, daemon):
    terminal = Terminal(tmp_path, 'write "x" to made.txt', config=DEMO)
    terminal.until(b"[n]o: ")
    terminal.type(b"y\n")
    assert terminal.end() == 0
    assert (work(tmp_path) / "made.txt").exists()


@pytest.mark.parametrize("flags, made", [([], False), (["--approve", "all"], True)])
def test_without_a_terminal_the_rule_answers_in_the_daemon(tmp_path, daemon, flags, made):
    done = run(tmp_path, *flags, 'write "x" to made.txt')
    assert done.returncode == 0, done.stderr
    assert (work(tmp_path) / "made.txt").exists() is made


def test_ctrl_c_cancels_the_turn_in_the_daemon(tmp_path, daemon):
    terminal = Terminal(tmp_path, "count slowly to 300", config=DEMO)
    terminal.until(b"3")
    terminal.type(b"\x03")
    assert terminal.end() == 130
    assert b"cancelled" in terminal.seen and b"Traceback" not in terminal.seen
    assert [row["status"] for row in listed(tmp_path)] != ["running"]


def test_ctrl_c_withdraws_a_prompt_that_is_queued(tmp_path, daemon):
    with Line(daemon.socket) as line:
        session = line.ask("dragoman/open", {"cwd": str(work(tmp_path))})["session"]["id"]
        line.ask("dragoman/watch", {"session_id": session})
        first = {"session_id": session, "text": "count slowly to 300", "detach": True}
        line.ask("dragoman/prompt", first)
        waiting = subprocess.Popen(
            [*DRAGOMAN, "run", "--config-dir", str(tmp_path / "config"), "--session", session,
             'write "x" to made.txt', "--approve", "all"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
            cwd=work(tmp_path), env=environment(),
        )  # fmt: skip
        facts = {"queued": 0}
        while not facts["queued"]:
            told = line.receive()  # the counting ticks
            assert told.get("params", {}).get("event", {}).get("type") != "turn_ended"
            facts = line.ask("dragoman/session", {"session_id": session})
        waiting.send_signal(signal.SIGINT)
        _, err = waiting.communicate(timeout=60)
        assert (waiting.returncode, err) == (130, b"dragoman: the prompt was withdrawn.\n")
        facts = line.ask("dragoman/session", {"session_id": session})
        assert facts["queued"] == 0 and facts["session"]["status"] == "running"
        line.ask("dragoman/cancel", {"session_id": session})
    assert not (work(tmp_path) / "made.txt").exists()


def test_a_reader_that_leaves_cancels_the_turn_in_the_daemon(tmp_path, daemon):
    folder = tmp_path / "config"
    with subprocess.Popen(
        [*DRAGOMAN, "run", "--config-dir", str(folder), "count slowly to 300"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
        cwd=work(tmp_path), env=environment(),
    ) as process:  # fmt: skip
        process.stdout.read(1)
        process.stdout.close()
        assert process.wait(60) == 141
        assert process.stderr.read() in (b"", b"cancelled\n")
    assert [row["status"] for row in listed(tmp_path)] != ["running"]


def test_a_daemon_that_is_stopped_is_told(tmp_path, daemon):
    terminal = Terminal(tmp_path, "count slowly to 300", config=DEMO)
    terminal.until(b"3")
    daemon.signal(signal.SIGTERM)
    assert terminal.end() == 130
    assert b"interrupted: the daemon was stopped" in terminal.seen


def test_a_daemon_that_dies_is_told(tmp_path, daemon):
    terminal = Terminal(tmp_path, "count slowly to 300", config=DEMO)
    terminal.until(b"3")
    daemon.signal(signal.SIGKILL)
    assert terminal.end() == 1
    assert b"connection to the daemon has ended" in terminal.seen
    assert b"Traceback" not in terminal.seen


def test_settings_that_a_daemon_does_not_know_are_used_here(tmp_path, daemon):
    model = re.findall(r'"(scripted/.*?)"', scripted(tmp_path, [say("scripted")]))[0]
    done = run(tmp_path, "hi", DRAGOMAN_agents__default__model=model)
    assert (done.returncode, done.stdout) == (0, b"scripted\n"), done.stderr


async def test_a_model_whose_key_only_this_shell_has_is_used_here(tmp_path, daemon, monkeypatch):
    from dragoman.cli.run.turns import Here, There, seat
    from dragoman.engine.faults import BadInput

    monkeypatch.setenv("OPENAI_API_KEY", "of this shell")
    for model, kind in (("openai/gpt-4o", Here), ("gpt-4o", Here), ("demo/demo", There)):
        wish = Wish("hi", str(daemon.folder), cwd=str(tmp_path), model=model)
        at = await seat(wish)
        try:
            assert type(at) is kind
            await at.open(wish)
        finally:
            await at.close()
    wish = Wish("hi", str(daemon.folder), cwd=str(tmp_path), model="openai/gpt-4o", newest=True)
    with pytest.raises(BadInput, match="daemon has no key for openai"):
        await seat(wish)


class Keyless:
    """A daemon that found no key when it was started, and has three agents."""

    async def agents(self):
        return [
            AgentRow("default", "demo/demo", "supervised", "", "builtin"),
            AgentRow("other", "anthropic/claude-sonnet-4-5", "supervised", "", "builtin"),
            AgentRow("gone", "", "", "", "", "no such provider"),
            AgentRow("hosted", "hosted/hosted", "supervised", "", "acp"),
        ]

    async def call(self, method):
        assert method == "dragoman/models"
        return {"without_key": ["anthropic", "openai"]}


AGENTS = """
[acp]
default_agent = "default"
[agents.default]
[agents.other]
model = "anthropic/claude-sonnet-4-5"
[agents.gone]
model = "nowhere/none"
[agents.hosted]
backend = "acp"
command = "cat"
"""
KEY = {"ANTHROPIC_API_KEY": "x"}


@pytest.mark.parametrize(
    ("agent", "env", "why"),
    [
        ("", {}, ""),  # whatever else is configured
        ("default", {}, ""),
        ("default", KEY, "the keys of this shell choose anthropic/"),
        ("other", {}, ""),  # nobody has a key: the daemon says so
        ("other", KEY, "only this shell has a key for anthropic"),
        ("gone", KEY, ""),
        ("hosted", KEY, ""),
        ("unknown", KEY, ""),
        ("", {"DRAGOMAN_agents__default__mode": "full"}, "DRAGOMAN_agents__default__mode"),
    ],
)
async def test_only_the_agent_in_question_decides_where_a_run_is(tmp_path, agent, env, why):
    (tmp_path / "config.toml").write_text(AGENTS)
    env = {"OLLAMA_HOST": "127.0.0.1:9", **env}
    found = await _apart(Keyless(), Wish("hi", str(tmp_path), agent=agent), env)
    assert why in found and bool(why) == bool(found), found


def test_a_run_apart_from_the_daemon_says_so_and_why(tmp_path, daemon):
    done = run(tmp_path, "hi", DRAGOMAN_agents__default__model="demo/demo")
    assert done.returncode == 0
    assert b"a process of its own, not in the running daemon" in done.stderr
    assert b"DRAGOMAN_agents__default__model" in done.stderr
    done = run(tmp_path, "hi")
    assert b"of its own" not in done.stderr
