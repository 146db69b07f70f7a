"""`dragoman replay`: a transcript as a server, on stdio and on a socket."""

import json
import signal
import socket
import subprocess
from pathlib import Path

import pytest
from tests.cli.living import WITHIN, Living

TALK = """\
# A ping, a session, and what else may come
C> {"id":"1","type":"ping"}
S> {"type":"pong","id":"1"}
S? {"type":"maybe"}
C> {"id":"2","type":"open","session":"new"}
S> {"type":"response","id":"2","success":true,"data":{"session":"<id:s>"}}
C> {"id":"3","type":"prompt","message":"hi","session":"<id:s>"}
{
S> {"type":"text_delta","delta":"<re:wor(?:d|k)s>"}
S> {"type":"usage","input":"<id:in>","time":"<time>","...":"<more>"}
}
"""


@pytest.fixture
def idle(tmp_path: Path) -> Living:
    made = Living(tmp_path)
    (made.work / "a.talk").write_text(TALK)
    return made


def played(idle: Living, *lines: str, words: tuple[str, ...] = ()) -> subprocess.CompletedProcess:
    process = idle.spawn("replay", "a.talk", *words)
    out, err = process.communicate("".join(f"{line}\n" for line in lines), timeout=WITHIN)
    return subprocess.CompletedProcess([], process.returncode, out, err)


def test_ids_are_the_clients_own_and_values_are_made(idle: Living) -> None:
    process = idle.spawn("replay", "a.talk")
    assert process.stdin and process.stdout

    def ask(**message: object) -> dict:
        process.stdin.write(json.dumps(message) + "\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())

    assert ask(id="x", type="ping") == {"type": "pong", "id": "x"}
    opened = ask(id=7, type="open", session="new")
    assert opened["id"] == 7
    session = opened["data"]["session"]
    first = ask(id="p", type="prompt", message="hi", session=session)
    second = json.loads(process.stdout.readline())
    assert first == {"type": "text_delta", "delta": "words"}
    assert second["input"] == 1 and second["time"].endswith("Z") and "..." not in second
    _, err = process.communicate(timeout=WITHIN)
    assert process.returncode == 0 and "played to its end" in err


def test_a_client_that_differs_is_told_and_the_play_goes_on(idle: Living) -> None:
    done = played(idle, '{"id":"1","type":"hello"}', '{"id":"1","type":"ping"}')
    assert json.loads(done.stdout) == {"type": "pong", "id": "1"}
    assert "expected ping, got hello" in done.stderr
    assert "left before line 5" in done.stderr and done.returncode == 1


def test_strict_ends_at_the_first_difference(idle: Living) -> None:
    done = played(idle, '{"id":"1","type":"ping","more":1}', words=("--strict",))
    assert "'more' not expected" in done.stderr and done.returncode == 1


def test_on_a_socket_every_connection_is_a_new_play(idle: Living) -> None:
    path = str(idle.work / "r.sock")
    process = idle.spawn("replay", "a.talk", "--socket", path)
    assert process.stderr is not None and "ready" in process.stderr.readline()
    for _ in range(2):
        with socket.socket(socket.AF_UNIX) as client, client.makefile("rwb") as lines:
            client.settimeout(WITHIN)
            client.connect(path)
            lines.write(b'{"id":"1","type":"ping"}\n')
            lines.flush()
            assert json.loads(lines.readline()) == {"type": "pong", "id": "1"}
        assert "left before" in process.stderr.readline()
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=WITHIN)
    assert process.returncode == 1 and not Path(path).exists()


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("none.talk", None, "cannot be read"),
        ("bad.talk", "no title", "begins with its title"),
        ("bad.ndjson", "x", "not a line of a recording"),
    ],
)
def test_what_cannot_be_played(idle: Living, name: str, text: str | None, said: str) -> None:
    if text is not None:
        (idle.work / name).write_text(text)
    done = idle.run("replay", name)
    assert done.returncode == 1 and said in done.stderr
    done = idle.run("replay", "a.talk", "--connection", "nobody")
    assert done.returncode == 1 and "the client" in done.stderr
