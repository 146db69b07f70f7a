"""Time from the start of a process to its first answer, as multiples of bare programs."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench.echo import REFS

from .host import Running, first_answer
from .rows import Row, compared

DRAGOMAN = str(Path(sys.executable).with_name("dragoman"))
_PING = b'{"type":"ping"}'
_HEALTH = b'{"jsonrpc":"2.0","id":1,"method":"health","params":{}}'
_ACP = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}'
_PASS, _EMPTY, _BARE = "python3 -c pass", "python3 -I -S -c pass", "bare asyncio + msgspec"
_BARE_SOCKET, _NODE = "bare asyncio + msgspec socket", "Node net"
_DAEMON = "dragoman daemon, spawn to first reply"
# what is measured, what it is held against, the bar
_BARS = (
    ("dragoman --help", _PASS, "<= 4.0"),
    ("dragoman status", _PASS, "<= 6.0"),
    ("dragoman status", _EMPTY, "<= 4.0"),
    ("dragoman rpc, first ping", _PASS, "<= 7.0"),
    ("dragoman rpc, first ping", _BARE, "<= 1.6"),
    ("dragoman acp, initialize", _PASS, "<= 8.0"),
    ("dragoman acp, initialize", _BARE, "<= 1.6"),
    (_DAEMON, _NODE, "<= 1.5"),
    (_DAEMON, _BARE_SOCKET, "<= 1.6"),
)


def measure(host: Running, folder: str, rounds: int) -> list[Row]:
    """Interleaved, the best of each: on a busy machine medians make short programs look long."""
    installed = _installed(folder)
    env = {**installed, "DRAGOMAN_CONFIG_DIR": os.path.join(folder, "fresh")}
    here = {**installed, "DRAGOMAN_CONFIG_DIR": host.folder}
    node = shutil.which("node")
    python = sys.executable

    def whole(command: list[str], with_env: dict[str, str]) -> float:
        start = time.perf_counter()
        subprocess.run(command, env=with_env, stdout=subprocess.DEVNULL, check=True)
        return time.perf_counter() - start

    bare = [python, str(REFS / "bare.py")]
    cases: dict[str, Callable[[], float]] = {
        _PASS: lambda: whole([python, "-c", "pass"], env),
        _EMPTY: lambda: whole([python, "-I", "-S", "-c", "pass"], env),
        "dragoman --help": lambda: whole([DRAGOMAN, "--help"], env),
        "dragoman status": lambda: whole([DRAGOMAN, "status"], here),
        _BARE: lambda: first_answer(bare, _HEALTH, env),
        "dragoman rpc, first ping": lambda: first_answer(
            [DRAGOMAN, "rpc", "--provider", "demo"], _PING, env
        ),
        "dragoman acp, initialize": lambda: first_answer([DRAGOMAN, "acp"], _ACP, env),
        _DAEMON: lambda: _daemon_reply(folder, installed),
        _BARE_SOCKET: lambda: _reply(bare, folder, installed),
    }
    if node:
        cases[_NODE] = lambda: _reply([node, str(REFS / "node_net.js")], folder, installed)
    taken: dict[str, list[float]] = {name: [] for name in cases}
    for run in cases.values():
        run()
    for _ in range(rounds):
        for name, run in cases.items():
            taken[name].append(run() * 1000)
    rows = []
    for name, against, bar in _BARS:
        if against not in taken:
            continue
        rows.append(
            compared("start", name, taken[name], against, taken[against], "ms", bar, digits=1)
        )  # fmt: skip
    return rows


def _installed(folder: str) -> dict[str, str]:
    """The environment of a program as it is installed: its modules are compiled already.

    Where bytecode may not be written, every start would compile anew what changed since.
    """
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**env, "PYTHONPYCACHEPREFIX": os.path.join(folder, "compiled")}


def _reply(command: list[str], folder: str, env: dict[str, str]) -> float:
    """Seconds from the start of a server to its first answer on a socket."""
    path = tempfile.mktemp(suffix=".sock", dir=folder)
    return _first_reply([*command, path], path, env)


def _daemon_reply(folder: str, env: dict[str, str]) -> float:
    """The same for a daemon in a folder of its own."""
    with tempfile.TemporaryDirectory(dir=folder) as home:
        with open(os.path.join(home, "config.toml"), "w") as file:
            file.write('[agents.default]\nmodel = "demo/demo"\n[log]\nlevel = "error"\n')
        command = [DRAGOMAN, "daemon", "--no-gateway", "--config-dir", home]
        return _first_reply(command, os.path.join(home, "data", "humanlayer.sock"), env)


def _first_reply(command: list[str], path: str, env: dict[str, str]) -> float:
    start = time.perf_counter()
    process = subprocess.Popen(
        command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        while True:
            with socket.socket(socket.AF_UNIX) as link:
                link.settimeout(20)
                try:
                    link.connect(path)
                except (FileNotFoundError, ConnectionRefusedError):
                    if process.poll() is not None:
                        raise RuntimeError(f"{command} ended with {process.returncode}") from None
                    time.sleep(0.0005)
                    continue
                link.sendall(_HEALTH + b"\n")
                if not link.recv(1 << 16):
                    raise RuntimeError(f"{command}: no answer")
                return time.perf_counter() - start
    finally:
        process.terminate()
        process.wait(20)
