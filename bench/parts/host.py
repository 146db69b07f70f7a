"""A real daemon for a measurement, in a folder of its own."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

from bench.echo import cpu_ns, wait_for

PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass
class Running:
    """A daemon process and where it listens."""

    process: subprocess.Popen
    folder: str

    @property
    def pid(self) -> int:
        return self.process.pid

    def path(self, name: str) -> str:
        return os.path.join(self.folder, "data", name)

    def resident(self) -> int:
        """Bytes of memory in use."""
        return resident(self.pid)


def resident(pid: int) -> int:
    """Bytes of memory that a process has in use."""
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * PAGE


@contextlib.contextmanager
def daemon(
    folder: str, script: list[object] | None = None, config: str = "", gateway: bool = False
) -> Iterator[Running]:
    """Start a daemon; its model plays the script over and over."""
    os.makedirs(folder, exist_ok=True)
    model = "demo/demo"
    if script is not None:
        play = os.path.join(folder, "script.json")
        with open(play, "w") as file:
            json.dump({"loop": True, "turns": script}, file)
        model = f"scripted/{play}"
    with open(os.path.join(folder, "config.toml"), "w") as file:
        file.write(
            f'[agents.default]\nmodel = "{model}"\nmode = "full"\ncontext_files = false\n'
            '[limits]\nmax_clients = 20000\nmax_sessions = 200000\n[log]\nlevel = "error"\n'
            "[zeroclaw]\nmax_sessions = 200000\n" + config
        )
    command = [sys.executable, "-m", "dragoman", "daemon", "--config-dir", folder]
    if not gateway:
        command.append("--no-gateway")
    process = subprocess.Popen(command, stderr=subprocess.PIPE)
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if line.strip() == b"ready":
                break
        else:
            raise RuntimeError("the daemon did not start")
        yield Running(process, folder)
    finally:
        process.terminate()
        process.wait(20)
        if process.stderr is not None:
            process.stderr.close()


@contextlib.contextmanager
def serving(command: list[str], path: str) -> Iterator[int]:
    """Run a reference server at a path; yields its process id."""
    process = subprocess.Popen(command)
    try:
        wait_for(path, process)
        yield process.pid
    finally:
        process.kill()
        process.wait()


def settled(pid: int, seconds: float = 10) -> None:
    """Wait until a server has nothing more to do."""
    limit = time.monotonic() + seconds
    before = cpu_ns(pid)
    while time.monotonic() < limit:
        time.sleep(0.02)
        now = cpu_ns(pid)
        if now - before < 500_000:
            return
        before = now


class Line:
    """A blocking connection for set-up work and for counting."""

    def __init__(self, path: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(60)
        self.socket.connect(path)
        self._buffer = b""
        self._id = 0

    def send(self, message: dict[str, object]) -> None:
        self.socket.sendall(json.dumps(message).encode() + b"\n")

    def read(self) -> dict[str, object]:
        while b"\n" not in self._buffer:
            data = self.socket.recv(1 << 18)
            if not data:
                raise ConnectionError("the server closed the connection")
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        return json.loads(line)

    def call(self, method: str, **params: object) -> dict:
        """A JSON-RPC request; everything that comes before its answer is passed over."""
        self._id += 1
        self.send({"jsonrpc": "2.0", "id": self._id, "method": method, "params": params})
        while True:
            answer = self.read()
            if answer.get("id") == self._id:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]  # type: ignore[return-value]

    def close(self) -> None:
        self.socket.close()


def greeted(running: Running) -> Line:
    """A zeroclaw connection past its handshake."""
    line = Line(running.path("daemon.sock"))
    line.call("initialize", protocolVersion=1)
    return line


def first_answer(command: list[str], request: bytes, env: dict[str, str] | None = None) -> float:
    """Seconds from the start of a stdio program to its first answered line."""
    start = time.perf_counter()
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env
    )
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(request + b"\n")
    process.stdin.flush()
    line = process.stdout.readline()
    took = time.perf_counter() - start
    process.stdin.close()
    process.stdout.close()
    process.wait(20)
    if not line:
        raise RuntimeError(f"{command}: no answer")
    return took
