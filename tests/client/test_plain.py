"""The client without an event loop, and how addresses are found."""

import json
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from dragoman.client import ConnectionGone, NotRunning, Plain, fault_of, socket_path
from dragoman.engine import faults


class Server:
    """Answers each line by a function, on a thread."""

    def __init__(self, folder: Path, answer: Any) -> None:
        self.path = str(folder / "s.sock")
        self._sock = socket.socket(socket.AF_UNIX)
        self._sock.bind(self.path)
        self._sock.listen()
        self._answer = answer
        self.heard: list[dict[str, Any]] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        client, _ = self._sock.accept()
        # A client that had its answers and left may have left some of them unread.
        with client, client.makefile("rb") as lines, suppress(ConnectionError):
            for line in lines:
                message = json.loads(line)
                self.heard.append(message)
                if message["method"] in ("initialize", "dragoman/hello"):
                    said = [{"jsonrpc": "2.0", "id": message["id"], "result": {}}]
                else:
                    said = self._answer(message)
                if said is None:
                    return
                for one in said:
                    client.sendall(json.dumps(one).encode() + b"\n")

    def close(self) -> None:
        self._thread.join(60)
        self._sock.close()


def test_an_answer_among_notices(tmp_path: Path) -> None:
    def answer(message: dict[str, Any]) -> list[dict[str, Any]]:
        notice = {"jsonrpc": "2.0", "method": "told", "params": {"n": message["id"]}}
        return [notice, {"jsonrpc": "2.0", "id": message["id"], "result": "ü" * 100_000}, notice]

    server = Server(tmp_path, answer)
    with Plain(server.path, "me") as client:
        assert client.call("x", {"a": 1}) == "ü" * 100_000
        notices = client.notices()
        assert [next(notices)[0], next(notices)[0]] == ["told", "told"]
        later = client.begin("y")
        assert client.call("z")
        answers = [client.message() for _ in range(4)]
        assert [one["id"] for one in answers if "method" not in one] == [later]
    server.close()
    assert [one["method"] for one in server.heard][:3] == ["initialize", "dragoman/hello", "x"]
    assert server.heard[1]["params"] == {"name": "me"}


def test_errors_are_faults(tmp_path: Path) -> None:
    data = {"code": "busy", "message": "The agent is busy.", "hint": "Wait."}
    error = {"code": -32002, "message": "m", "data": data}
    server = Server(tmp_path, lambda m: [{"jsonrpc": "2.0", "id": m["id"], "error": error}])
    with Plain(server.path) as client, pytest.raises(faults.Busy, match="The agent is busy. Wait."):
        client.call("x")
    server.close()


def test_a_server_that_leaves(tmp_path: Path) -> None:
    server = Server(tmp_path, lambda m: None)
    with Plain(server.path) as client, pytest.raises(ConnectionGone):
        client.call("x")
    server.close()


def test_a_server_that_says_nothing(tmp_path: Path) -> None:
    server = Server(tmp_path, lambda m: [])
    with Plain(server.path) as client, pytest.raises(ConnectionGone, match="0.05 seconds"):
        client.call("x", wait=0.05)
    server.close()


def test_nobody_is_there(tmp_path: Path) -> None:
    with pytest.raises(NotRunning, match="Start it with: dragoman daemon"):
        Plain(str(tmp_path / "none.sock"))
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(str(tmp_path / "stale.sock"))
    stale.close()
    with pytest.raises(NotRunning):
        Plain(str(tmp_path / "stale.sock"))


@pytest.mark.parametrize(
    "kind",
    [
        one
        for one in vars(faults).values()
        if isinstance(one, type) and issubclass(one, faults.Fault)
    ],
    ids=lambda kind: kind.__name__,
)
def test_every_fault_comes_back_as_its_own_class(kind: type[faults.Fault]) -> None:
    data = {"code": kind.code, "message": "what", "hint": "do"}
    made = fault_of({"code": -1, "message": "x", "data": data})
    assert type(made) is kind and str(made) == "what. do"


def test_an_unknown_error_is_a_fault_with_its_text() -> None:
    assert str(fault_of({"code": -32601, "message": "Unknown method: x"})) == "Unknown method: x"


def test_addresses(tmp_path: Path) -> None:
    env = {"HOME": "/home/ann"}
    assert socket_path(env=env) == "/home/ann/.local/share/dragoman/daemon.sock"
    assert socket_path(str(tmp_path), env=env) == f"{tmp_path}/data/daemon.sock"
    assert socket_path(env={**env, "DRAGOMAN_SOCKET": "/s"}) == "/s"
    assert socket_path(env={**env, "DRAGOMAN_listen__zeroclaw": "/l"}) == "/l"
    (tmp_path / "config.toml").write_text('[listen]\nzeroclaw = "/t/z.sock"\nacp = "/t/a.sock"\n')
    assert socket_path(str(tmp_path), env=env) == "/t/z.sock"
    assert socket_path(str(tmp_path), dialect="acp", env=env) == "/t/a.sock"
    (tmp_path / "config.toml").write_text("[listen\n")
    assert socket_path(str(tmp_path), env=env) == f"{tmp_path}/data/daemon.sock"


def test_it_stays_thin() -> None:
    code = (
        "import sys; import dragoman.client.plain, dragoman.client.address\n"
        "heavy = ('asyncio', 'msgspec', 'tomllib', 'typing', 'socket', 'selectors', 'threading')\n"
        "print([m for m in heavy if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[]", done.stderr


def test_the_package_gives_what_it_names() -> None:
    import dragoman.client

    for name in dragoman.client.__all__:
        assert getattr(dragoman.client, name)
    with pytest.raises(AttributeError):
        dragoman.client.nothing  # noqa: B018


@pytest.mark.parametrize("said", [b"HTTP/1.1 400 Bad Request\r\n", b"\xff\xfe\n", b"[1, 2]\n"])
def test_somebody_else_at_the_socket_is_told(tmp_path: Path, said: bytes) -> None:
    path = str(tmp_path / "s.sock")
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(path)
        other.listen()
        with Plain(path, "test") as host:
            client, _ = other.accept()
            with client:
                client.sendall(said)
                with pytest.raises(ConnectionGone, match="is not the daemon"):
                    host.call("dragoman/status")
