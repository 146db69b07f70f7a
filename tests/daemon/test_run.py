"""`dragoman run` as a user meets it: a real process, real signals, a real terminal."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

DRAGOMAN = [sys.executable, "-m", "dragoman"]


def environment(**more):
    kept = {k: v for k, v in os.environ.items() if not k.endswith("_API_KEY")}
    return {**kept, "NO_PROXY": "*", **more}


def work(tmp_path):
    """Where the turn happens; not around the configuration, which no tool may touch."""
    place = tmp_path / "work"
    place.mkdir(exist_ok=True)
    return place


def run(tmp_path, *words, config="", stdin=subprocess.DEVNULL, text=None, **env):
    folder = tmp_path / "config"
    folder.mkdir(exist_ok=True)
    if config:
        (folder / "config.toml").write_text(config)
    given = {"input": text} if text is not None else {"stdin": stdin}
    return subprocess.run(
        [*DRAGOMAN, "run", "--config-dir", str(folder), *words],
        capture_output=True, timeout=60, cwd=work(tmp_path), env=environment(**env), **given,
    )  # fmt: skip


def scripted(tmp_path, turns):
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"turns": turns}))
    return f'[agents.default]\nmodel = "scripted/{script}"\n'


def say(text, **more):
    return {"parts": [{"type": "say", "text": text, **more}]}


def tell_one_sentence(done):
    """No traceback, one line that begins with our name."""
    words = done.stderr.decode()
    assert "Traceback" not in words, words
    lines = [line for line in words.splitlines() if line.startswith("dragoman: ")]
    assert len(lines) == 1, words
    return lines[0]


@pytest.mark.parametrize(
    "words, config, told",
    [
        (["--agent", "nope", "hi"], "", ["nope", "default"]),
        (["--cwd", "/no/such/place", "hi"], "", ["/no/such/place", "does not exist"]),
        (["--cwd", __file__, "hi"], "", ["not a directory"]),
        (["hi"], '[agents.a]\nmodel = "anthropic/nonsense"\n', ["nonsense", "Nearest"]),
        (["hi"], '[agents.a]\nmodel = "foo/bar"\n', ["foo", "Known providers"]),
        (["hi"], '[agents.a]\nmodel = "anthropic/claude-sonnet-4-5"\n', ["ANTHROPIC_API_KEY"]),
        (["hi"], '[agents.a]\nmodel = "scripted//no/script.json"\n', ["/no/script.json"]),
        (["hi"], "[agents\n", ["config.toml"]),
        ([], "", ["no prompt"]),
        (["  "], "", ["no prompt"]),
    ],
)
def test_bad_input_is_one_sentence_with_a_way_out(tmp_path, words, config, told):
    done = run(tmp_path, *words, config=config)
    assert done.returncode == 1
    line = tell_one_sentence(done)
    for part in told:
        assert part in line, line
    assert not done.stdout


def test_a_configuration_that_cannot_be_read_is_named(tmp_path):
    (tmp_path / "config" / "config.toml").mkdir(parents=True)
    done = run(tmp_path, "hi")
    assert done.returncode == 1
    assert "config.toml" in tell_one_sentence(done)


def test_a_damaged_store_is_moved_aside_and_the_turn_goes_on(tmp_path):
    data = tmp_path / "config" / "data"
    data.mkdir(parents=True)
    (data / "sessions.db").write_bytes(b"this is no database" * 500)
    done = run(tmp_path, "hi", config=scripted(tmp_path, [say("hello")]))
    assert done.returncode == 0 and done.stdout == b"hello\n"
    line = tell_one_sentence(done)
    assert "damaged" in line and "moved to" in line
    assert list(data.glob("sessions.db.corrupt-*"))


def test_a_full_disk_is_told_and_nothing_breaks(tmp_path):
    """A file-size limit stands for the full disk."""
    folder = tmp_path / "config"
    folder.mkdir()
    (folder / "config.toml").write_text(scripted(tmp_path, [say("x" * 400_000)]))
    code = (
        "import resource, signal, sys; from dragoman.cli.main import main;"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000));"
        "sys.exit(main(sys.argv[1:]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "run", "--config-dir", str(folder), "hi"],
        capture_output=True, timeout=60, cwd=work(tmp_path), env=environment(),
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 1
    line = tell_one_sentence(done)
    assert "nothing was saved" in line, line


def test_a_prompt_may_come_from_stdin_in_any_encoding(tmp_path):
    done = run(tmp_path, config=scripted(tmp_path, [say("hello")]), text=b"caf\xe9 \xff\n")
    assert (done.returncode, done.stdout) == (0, b"hello\n"), done.stderr


def test_a_closed_stdin_is_no_terminal(tmp_path):
    folder = tmp_path / "config"
    folder.mkdir()
    (folder / "config.toml").write_text(scripted(tmp_path, [say("hello")]))
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" <&-', "sh", *DRAGOMAN, "run", "--config-dir", str(folder), "hi"],
        capture_output=True, timeout=60, cwd=work(tmp_path), env=environment(),
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, b"hello\n"), done.stderr


def test_json_is_one_event_per_line_and_nothing_else(tmp_path):
    config = scripted(tmp_path, [say("hello")])
    done = run(tmp_path, "--json", "hi", config=config)
    assert done.returncode == 0
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert events[-1]["type"] == "status"
    assert "".join(e["text"] for e in events if e["type"] == "text_delta") == "hello"
    seqs = [e["seq"] for e in events if e["seq"]]
    assert seqs == sorted(set(seqs))


def test_a_failed_turn_says_why_and_exits_with_1(tmp_path):
    turns = [{"parts": [{"type": "fail", "kind": "auth", "message": "the key was refused"}]}]
    done = run(tmp_path, "hi", config=scripted(tmp_path, turns))
    assert done.returncode == 1
    assert b"the key was refused" in done.stderr and b"Traceback" not in done.stderr


def test_a_reader_that_leaves_ends_the_turn(tmp_path):
    folder = tmp_path / "config"
    folder.mkdir()
    turns = [say("word " * 12_000, delay=0.01), say("never")]
    (folder / "config.toml").write_text(scripted(tmp_path, turns))
    command = [*DRAGOMAN, "run", "--config-dir", str(folder), "hi"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
        cwd=work(tmp_path), env=environment(),
    ) as process:  # fmt: skip
        process.stdout.read(1)
        process.stdout.close()
        began = time.monotonic()
        assert process.wait(60) == 141
        assert time.monotonic() - began < 60  # it would talk for two minutes
        assert b"Traceback" not in process.stderr.read()


class Terminal:
    """A process on a terminal of its own."""

    def __init__(self, tmp_path: Path, *words: str, config: str = "", **env: str) -> None:
        folder = tmp_path / "config"
        folder.mkdir(exist_ok=True)
        (folder / "config.toml").write_text(config)
        place = work(tmp_path)
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(place)
            argv = [*DRAGOMAN, "run", "--config-dir", str(folder), *words]
            os.execve(sys.executable, argv, environment(TERM="xterm", **env))
        self.seen = b""

    def until(self, words: bytes, seconds: float = 60.0) -> bytes:
        end = time.monotonic() + seconds
        while words not in self.seen:
            left = end - time.monotonic()
            assert left > 0, self.seen
            if select.select([self.fd], [], [], left)[0]:
                self.seen += self._read()
        return self.seen

    def type(self, text: bytes) -> None:
        os.write(self.fd, text)

    def end(self) -> int:
        while data := self._read():
            self.seen += data
        os.close(self.fd)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def _read(self) -> bytes:
        try:
            return os.read(self.fd, 65536)
        except OSError:  # the other end is closed
            return b""


ASKING = [
    {"parts": [{"type": "call", "name": "bash", "args": {"command": "touch made"}}]},
    {"parts": [{"type": "say", "text": "finished"}]},
]


@pytest.mark.parametrize("typed, made", [(b"y\n", True), (b"n\n", False), (b"what\ny\n", True)])
def test_approvals_are_answered_at_the_terminal(tmp_path, typed, made):
    terminal = Terminal(tmp_path, "hi", config=scripted(tmp_path, ASKING))
    terminal.until(b"[n]o: ")
    for line in typed.splitlines(keepends=True):
        seen = terminal.seen.count(b"[n]o: ")
        terminal.type(line)
        if line == b"what\n":
            while terminal.seen.count(b"[n]o: ") == seen:
                terminal.seen += terminal._read()
    terminal.until(b"finished")
    assert terminal.end() == 0
    assert (work(tmp_path) / "made").exists() is made


@pytest.mark.parametrize("plain", [False, True])
def test_colours_are_for_terminals_that_want_them(tmp_path, plain):
    env = {"NO_COLOR": "1"} if plain else {}
    terminal = Terminal(tmp_path, "hi", config=scripted(tmp_path, ASKING), **env)
    terminal.until(b"[n]o: ")
    terminal.type(b"n\n")
    terminal.until(b"finished")
    terminal.end()
    # Who waits longer is shown that the line is erased, too.
    assert bool(re.search(rb"\x1b\[[\d;]*m", terminal.seen)) is not plain


def test_ctrl_c_cancels_the_turn(tmp_path):
    turns = [{"parts": [{"type": "say", "text": "began"}, {"type": "hang"}]}]
    terminal = Terminal(tmp_path, "hi", config=scripted(tmp_path, turns))
    terminal.until(b"began")
    terminal.type(b"\x03")
    terminal.until(b"cancelled")
    assert terminal.end() == 130
    assert b"Traceback" not in terminal.seen


def test_a_second_ctrl_c_leaves_at_once(tmp_path):
    """The first cancels a command that takes its time to die, the second does not wait for it."""
    turns = [{"parts": [{"type": "call", "name": "bash",
                         "args": {"command": "trap '' TERM INT; echo; sleep 300"}}]}]  # fmt: skip
    config = scripted(tmp_path, turns)
    terminal = Terminal(tmp_path, "--approve", "all", "hi", config=config)
    terminal.until(b"yes (nobody is asked here)")
    time.sleep(0.05)
    began = time.monotonic()
    terminal.type(b"\x03")
    os.kill(terminal.pid, signal.SIGINT)
    code = terminal.end()
    assert code in (130, -signal.SIGINT)
    assert time.monotonic() - began < 60  # it sleeps for 300
    assert b"Traceback" not in terminal.seen


def test_ctrl_c_at_a_question_cancels(tmp_path):
    terminal = Terminal(tmp_path, "hi", config=scripted(tmp_path, ASKING))
    terminal.until(b"[n]o: ")
    terminal.type(b"\x03")
    assert terminal.end() == 130
    assert not (work(tmp_path) / "made").exists() and b"Traceback" not in terminal.seen


@pytest.mark.parametrize("linked", [False, True])
def test_a_store_that_lies_elsewhere_is_closed_to_tools_too(tmp_path, linked):
    away = tmp_path / "away"
    away.mkdir()
    store, config = away / "mine.db", '[agents.default]\nmodel = "demo/demo"\n'
    if linked:
        data = tmp_path / "config" / "data"
        data.mkdir(parents=True)
        store.touch(mode=0o600)
        (data / "sessions.db").symlink_to(store)
    else:
        config += f'[store]\npath = "{store}"\n'
    told = run(tmp_path, "hello", config=config)
    assert told.returncode == 0, told.stderr
    read = run(tmp_path, f"run cat {store}", "--approve", "all")
    assert f"{store} belongs to dragoman itself" in read.stdout.decode()
    # A name that no question can tell: the sandbox keeps it.
    words = (
        f"run cd {tmp_path}/aw*; head -c 6 min*b; for i in *; do echo x >> $i || echo kept $i; done"
    )
    done = run(tmp_path, words, "--approve", "all").stdout.decode()
    assert "kept mine.db" in done and "kept mine.db-wal" in done
    assert "SQLite" not in done


def test_a_log_that_lies_elsewhere_is_closed_to_tools_too(tmp_path):
    away = tmp_path / "away"
    away.mkdir()
    log = away / "ours.log"
    config = f'[agents.default]\nmodel = "demo/demo"\n[log]\nfile = "{log}"\nlevel = "debug"\n'
    told = run(tmp_path, "hello", config=config)
    assert told.returncode == 0 and log.exists(), told.stderr
    log.write_text("SECRET\n")
    log.with_name("ours.log.1").write_text("SECRET\n")
    read = run(tmp_path, f"run cat {log}", "--approve", "all")
    assert f"{log} belongs to dragoman itself" in read.stdout.decode()
    words = f"run cd {tmp_path}/aw*; cat ou*; for i in *; do echo x >> $i || echo kept $i; done"
    done = run(tmp_path, words, "--approve", "all").stdout.decode()
    assert "kept ours.log" in done and "kept ours.log.1" in done and "SECRET" not in done


def test_a_log_that_is_no_file_stays_open_to_tools(tmp_path):
    config = '[agents.default]\nmodel = "demo/demo"\n[log]\nfile = "/dev/null"\n'
    done = run(
        tmp_path, "run echo hello > /dev/null && echo done", "--approve", "all", config=config
    )
    assert "done" in done.stdout.decode() and "belongs to dragoman" not in done.stdout.decode()
