"""Beside a running daemon: `joining`, `zot_join`, and `places` of an editor."""

import errno
import json
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dragoman.client import NotRunning, Plain, plain
from dragoman.engine.faults import Refused
from dragoman.host import lock
from dragoman.stdio import joining, zot_join
from dragoman.stdio.acp import DaemonWay
from dragoman.stdio.places import Places
from dragoman.stdio.relay import NotThere
from dragoman.stdio.zot_flags import Flags, parse
from dragoman.stdio.zot_join import Owed


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    yield ours, theirs
    ours.close()
    theirs.close()


@pytest.fixture
def pipes() -> Iterator[tuple[int, int, int, int]]:
    """Standard input (read, write) and output (read, write)."""
    inward, outward = os.pipe(), os.pipe()
    yield (*inward, *outward)
    for fd in (*inward, *outward):
        try:
            os.close(fd)
        except OSError:
            continue  # the test did


# --- joining ---


def test_joining_settings_of_the_environment_keep_it_apart(tmp_path: Path) -> None:
    assert joining.path_of("acp", str(tmp_path), {}).startswith(str(tmp_path))
    assert joining.path_of("acp", str(tmp_path), {"DRAGOMAN_acp__max_sessions": "1"}) == ""
    assert joining.path_of("acp", str(tmp_path), {"DRAGOMAN_KEYS": "vi"}) != ""


def test_joining_nobody_where_unix_sockets_are_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the sandbox of a hosted agent: the path can be seen there, a socket cannot be made."""
    path = tmp_path / "s"
    path.touch()
    for module in (socket, plain.socket):  # type: ignore[attr-defined]
        monkeypatch.setattr(module, "socket", closed)
    assert joining.reached(str(path)) is None
    with pytest.raises(NotRunning, match="Operation not permitted"):
        Plain(str(path), "test")
    with pytest.raises(Refused, match="Operation not permitted"):
        lock._probe(str(path))


async def test_joining_again_where_unix_sockets_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "socket", closed)
    with pytest.raises(NotThere, match="Operation not permitted"):
        await DaemonWay("/nowhere/s").connect(lambda link: None, "x")  # type: ignore[arg-type,return-value]


def closed(*_: object) -> None:
    raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))


def test_joining_a_socket_that_was_left_behind_is_nobody(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    assert joining.reached("") is None and joining.reached(path) is None
    with socket.socket(socket.AF_UNIX) as gone:
        gone.bind(path)
    assert joining.reached(path) is None
    os.unlink(path)
    with socket.socket(socket.AF_UNIX) as there:
        there.bind(path)
        there.listen()
        found = joining.reached(path)
        assert found is not None
        found.close()


def test_joining_carries_the_first_line_and_keeps_the_rest(
    pair: tuple[socket.socket, socket.socket], pipes: tuple[int, int, int, int]
) -> None:
    ours, daemon = pair
    stdin, editor, said, stdout = pipes
    heard: list[bytes] = []

    def serve() -> None:
        heard.append(daemon.recv(99))
        daemon.sendall(b'{"id":1,"result":1}\n{"half')

    thread = threading.Thread(target=serve)
    thread.start()
    os.write(editor, b'\n \r\n{"id":1}\n{"id":2}\nhal')  # in one write, blank lines first
    begun = joining.greet(ours, stdin, stdout)
    thread.join()
    assert heard == [b'{"id":1}\n'] and begun.heard == [b'{"id":1}']
    assert begun.rest == b'{"id":2}\nhal'
    assert begun.told == [b'{"id":1,"result":1}'] and begun.left == b'{"half'
    assert os.read(said, 99) == b'{"id":1,"result":1}\n'


@pytest.mark.parametrize("how", ["input ends", "daemon leaves", "long line"])
def test_joining_returns_early_and_the_relay_goes_on(
    pair: tuple[socket.socket, socket.socket], pipes: tuple[int, int, int, int], how: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    ours, daemon = pair
    stdin, editor, _, stdout = pipes
    if how == "input ends":
        os.close(editor)
    elif how == "daemon leaves":
        daemon.close()
    else:
        monkeypatch.setattr(joining, "_LONGEST", 3)
        os.write(editor, b"x" * 9)
    begun = joining.greet(ours, stdin, stdout)
    assert begun.told == [] and begun.heard == []
    assert begun.rest == (b"x" * 9 if how == "long line" else b"")


# --- zot_join ---


def test_zot_join_joins_only_where_the_daemon_knows_as_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(joining.os.path, "exists", lambda path: asked.append(path))
    own = ["--config-dir", str(tmp_path), "--session"]
    assert zot_join.find(parse([*own, "s1"]), "") is None and len(asked) == 1
    for words, token in (
        ([*own, "new"], ""), ([*own, "s1"], "secret"), ([*own, "s1", "--model", "m"], ""),
        ([*own, "s1", "--temperature", "0"], ""), ([*own, "s1", "--system-prompt", ""], ""),
    ):  # fmt: skip
        assert zot_join.find(parse(words), token) is None
    assert zot_join.find(Flags(), "") is None
    monkeypatch.setenv("DRAGOMAN_a__b", "1")
    assert zot_join.find(parse([*own, "s1"]), "") is None
    assert len(asked) == 1  # for none of these a daemon was even looked for


def test_zot_join_owes_an_answer_to_every_command() -> None:
    owed = Owed()
    for line in (b'{"id":"1","type":"prompt"}', b'{"id":"2","type":"ping"}', b"no json", b"[1]"):
        owed.said(line)
    owed.heard(b'{"type":"response","id":"1","command":"prompt","success":true}')
    owed.heard(b'{"type":"response","id":"x","command":"ping","success":false}')
    told = [json.loads(line) for line in owed.settle("gone").splitlines()]
    assert told == [
        {"command": "ping", "error": "gone", "id": "2", "success": False, "type": "response"},
        {"message": "gone", "type": "error"},
        {"type": "done"},
    ]
    assert owed.settle("again") == b""
    owed.heard(b'{"type":"done"}')  # more ends than beginnings are no debt
    assert owed.settle("x") == b""


@pytest.mark.parametrize(
    ("said", "rest", "why"),
    [
        (b'{"success":true}\nnext', b"next", ""),
        (b'{"success":false,"error":"no such session"}\n', b"", "no such session"),
        (b'{"success":false}\n', b"", "not opened"),
        (b"half", b"", "the daemon ended the connection"),
    ],
)
def test_zot_join_opens_the_session_or_says_why_not(
    pair: tuple[socket.socket, socket.socket], said: bytes, rest: bytes, why: str
) -> None:
    ours, daemon = pair
    daemon.sendall(said)
    daemon.close()
    assert zot_join._opened(ours) == (rest, why)


def test_zot_join_means_our_folder_by_a_relative_one(
    pair: tuple[socket.socket, socket.socket], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    here = os.getcwd()
    passes = [
        b'{"id":"1","type":"prompt","message":"what is cwd?"}', b'{"cwd":"/x",  "type":"open"}',
        b'{"type":"open","cwd":""}', b'{"type":"open","cwd":5}', b'["cwd"]', b'{"cwd', b"\xffcwd",
    ]  # fmt: skip
    said = [*passes, b'{"type":"open","cwd":"."}', b'{"type":"list_sessions","CWD":"a/../in"}']
    chunks = [b"\n".join(said)[:30], b"\n".join(said)[30:], b""]
    monkeypatch.setattr(zot_join.os, "read", lambda fd, size: chunks.pop(0))
    ours, daemon = pair
    zot_join._say(ours, threading.Event(), Owed())
    heard = b""
    while data := daemon.recv(4096):
        heard += data
    lines = heard.split(b"\n")
    assert lines[:-2] == passes
    assert [json.loads(line) for line in lines[-2:]] == [
        {"type": "open", "cwd": here},
        {"type": "list_sessions", "CWD": os.path.join(here, "in")},
    ]


def test_zot_join_a_daemon_that_breaks_off_is_told(
    pair: tuple[socket.socket, socket.socket], capsys: pytest.CaptureFixture[str]
) -> None:
    ours, daemon = pair
    ours.send(b"unread")  # a close with bytes unread is a reset
    daemon.close()
    assert zot_join._opened(ours) == (b"", "the daemon ended the connection")


def test_zot_join_nobody_who_reads_is_no_trouble(
    pair: tuple[socket.socket, socket.socket],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    ours, daemon = pair

    def closed(fd: int, data: bytes) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(zot_join, "write", closed)
    monkeypatch.setattr(zot_join, "_say", lambda *words: None)
    daemon.sendall(b'{"success":true}\n{"type":"text"}\n')
    assert zot_join.join(ours, "s1") == 0
    assert capsys.readouterr().err == ""


def test_zot_join_the_end_of_the_daemon_ends_what_is_owed(
    pair: tuple[socket.socket, socket.socket],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    ours, daemon = pair
    written: list[bytes] = []
    monkeypatch.setattr(zot_join, "write", lambda fd, data: written.append(data))
    monkeypatch.setattr(
        zot_join, "_say", lambda sock, done, owed: owed.said(b'{"id":1,"type":"x"}')
    )

    def serve() -> None:
        daemon.recv(999)
        daemon.sendall(b'{"success":true}\n{"type":"text"}\nhalf a li')
        daemon.close()

    thread = threading.Thread(target=serve)
    thread.start()
    assert zot_join.join(ours, "s1") == 1
    thread.join()
    assert written[0] == b'{"type":"text"}\n' and json.loads(written[1])["id"] == 1
    assert "the daemon ended the connection" in capsys.readouterr().err


# --- places ---


def place(session: str, seq: int, **more: int) -> bytes:
    params = {"sessionId": session, "seq": seq, **more}
    return b'{"jsonrpc":"2.0","method":"_dragoman/place","params":%b}' % json.dumps(params).encode()


def chunk(session: str, kind: str, text: Any) -> bytes:
    update = {"sessionUpdate": f"agent_{kind}_chunk", "content": {"type": "text", "text": text}}
    params = json.dumps({"sessionId": session, "update": update}, separators=(",", ":")).encode()
    return b'{"jsonrpc":"2.0","method":"session/update","params":%b}' % params


def test_places_count_the_words_after_the_last_kept_event() -> None:
    places = Places()
    assert places.note(chunk("s", "message", "early")) is False and places.of("s") == {}
    assert places.note(place("s", 4, texts=2)) is True
    assert places.note(chunk("s", "message", "abc")) is False
    places.note(chunk("s", "thought", "hm"))
    places.note(chunk("other", "message", "abc"))
    places.note(chunk("s", "message", 5))  # of another kind
    assert places.of("s") == {"since": 4, "texts": 5, "thoughts": 2}
    places.note(place("s", 9))
    assert places.of("s") == {"since": 9, "texts": 0, "thoughts": 0}
    places.forget("s")
    assert places.of("s") == {}
