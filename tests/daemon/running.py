"""A real daemon in a process of its own, and a plain client for its sockets."""

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time

INIT = {"protocolVersion": 1}
SNAKE = {"protocol_version": 1}


class Daemon:
    """`dragoman daemon` in a folder."""

    def __init__(self, folder, *flags, config="", env=None, gateway=False):
        self.folder = folder
        self.config = folder / "config.toml"
        if config:
            self.config.write_text(config)
        words = [sys.executable, "-m", "dragoman", "daemon", "--config-dir", str(folder)]
        words += [] if gateway else ["--no-gateway"]
        kept = {k: v for k, v in os.environ.items() if not k.endswith("_API_KEY")}
        # Its folder is that of sessions which name none: no checkout that git is asked about.
        self.process = subprocess.Popen(
            [*words, *flags], cwd=folder, stderr=subprocess.PIPE, env={**kept, **(env or {})}
        )
        self.said = b""

    @property
    def data(self):
        return self.folder / "data"

    @property
    def socket(self):
        return str(self.data / "daemon.sock")

    def wait_ready(self, within=60.0):
        """Read stderr until it says `ready`; AssertionError with what it said when it ends."""
        limit = time.monotonic() + within
        stderr = self.process.stderr
        while b"ready\n" not in self.said:
            left = limit - time.monotonic()
            assert left > 0, f"not ready: {self.said}"  # type: ignore[str-bytes-safe]
            if select.select([stderr], [], [], left)[0]:  # type: ignore[type-var]
                more = os.read(stderr.fileno(), 65536)
                assert more, f"it ended: {self.said.decode()}"
                self.said += more
        return self

    def wait_said(self, text, within=60.0):
        """Wait until its log has this text."""
        limit = time.monotonic() + within
        while text not in self.log():
            assert time.monotonic() < limit, f"{text!r} is not in the log:\n{self.log()}"
            select.select([], [], [], 0.02)

    def log(self):
        path = self.data / "daemon.log"
        return path.read_text() if path.exists() else ""

    def signal(self, number):
        self.process.send_signal(number)

    def ended(self, within=60.0):
        """Wait for its end; returns the exit code."""
        code = self.process.wait(within)
        self.said += self.process.stderr.read()
        return code

    def stop(self):
        self.signal(signal.SIGTERM)
        return self.ended()

    def rss(self):
        with open(f"/proc/{self.process.pid}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def __enter__(self):
        return self

    def __exit__(self, *problem):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(60)
        self.process.stderr.close()


class Line:
    """A blocking client of one socket."""

    def __init__(self, path, init=INIT):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60)
        try:
            self.sock.connect(str(path))
        except OSError:
            self.sock.close()
            raise
        self.file = self.sock.makefile("rb")
        self.seen = []
        self._id = 0
        if init is not None:
            self.init = self.ask("initialize", init)

    def send(self, message):
        self.sock.sendall(json.dumps(message).encode() + b"\n")

    def say(self, method, params=None):
        self._id += 1
        self.send({"jsonrpc": "2.0", "method": method, "params": params or {}, "id": self._id})
        return self._id

    def receive(self):
        line = self.file.readline()
        if not line:
            raise EOFError("the daemon ended the connection")
        return json.loads(line)

    def answer(self, id):
        while True:
            message = self.receive()
            if message.get("id") == id and "method" not in message:
                return message
            self.seen.append(message)

    def ask(self, method, params=None):
        message = self.answer(self.say(method, params))
        assert "error" not in message, message
        return message["result"]

    def until(self, kind):
        """The next update of this kind."""
        while True:
            message = self.receive()
            self.seen.append(message)
            if message.get("params", {}).get("type") == kind:
                return message["params"]

    def close(self):
        self.file.close()
        self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *problem):
        self.close()


def script(folder, turns, **more):
    """A file of scripted turns and the configuration that uses it."""
    path = folder / "script.json"
    path.write_text(json.dumps({"turns": turns, **more}))
    return f'[agents.default]\nmodel = "scripted/{path}"\n'


def say(text, **more):
    return {"parts": [{"type": "say", "text": text, **more}]}


def call(name, **args):
    return {"parts": [{"type": "call", "name": name, "args": args}]}


def hang(*before):
    return {"parts": [*before, {"type": "hang"}]}


@contextlib.contextmanager
def datagrams(folder):
    """A socket as systemd's: gives (path, receive)."""
    path = str(folder / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(path)
        sock.settimeout(60)
        yield path, lambda: sock.recv(4096).decode()
