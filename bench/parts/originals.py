"""The programs whose protocols we speak, where they are found on PATH: `hld`, `zeroclaw`, `zot`.

Each is started as its own documents say, in a folder of its own, and asked what we are asked.
"""

import contextlib
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

from bench.echo import LOADS, Client, Target, build, compare, wait_for
from bench.place import on_one_core

from .dialects import INITIALIZE, targets
from .host import Running, first_answer, resident
from .rows import Row, compared
from .starts import DRAGOMAN

_PING = b'{"id":"9","type":"ping"}'
_LIST = b'{"jsonrpc":"2.0","id":12,"method":"listSessions","params":{}}'
# What we are asked (by the name in `dialects.targets`), and the server that is asked the same.
_SAME = {"hld": "humanlayer health", "zeroclaw": "zeroclaw status"}


def measure(host: Running, folder: str, rounds: int) -> tuple[list[Row], list[str]]:
    """Round trips, CPU, memory and start of every original that is here."""
    rows: list[Row] = []
    notes: list[str] = []
    for name in ("hld", "zeroclaw", "zot"):
        program = shutil.which(name)
        if program is None:
            notes.append(f"{name} is not on PATH: skipped")
            continue
        home = os.path.join(folder, name)
        os.makedirs(home, mode=0o700)
        try:
            if name == "zot":
                rows += _lines(program, home, rounds)
            else:
                rows += _daemon(name, program, home, host, rounds)
        except (OSError, RuntimeError, subprocess.SubprocessError) as error:
            notes.append(f"{program} could not be measured: {error}")
    return rows, notes


def _command(name: str, program: str, home: str) -> tuple[list[str], dict[str, str], str]:
    """The command line, environment and socket of an original daemon."""
    path = os.path.join(home, "daemon.sock")
    env = {**os.environ, "HOME": home}
    if name == "hld":
        env |= {
            "HUMANLAYER_DAEMON_SOCKET": path,
            "HUMANLAYER_DATABASE_PATH": os.path.join(home, "daemon.db"),
            "HUMANLAYER_DAEMON_HTTP_PORT": str(_port()),
        }
        return [program], env, path
    env |= {"ZEROCLAW_SOCKET": path}
    return [program, "daemon", "--config-dir", home], env, path


@contextlib.contextmanager
def _running(command: list[str], env: dict[str, str], path: str) -> Iterator[int]:
    said = Path(path).with_name("output")
    with said.open("wb") as out:
        process = subprocess.Popen(command, env=env, cwd=os.path.dirname(path), stdout=out,
                                   stderr=out, stdin=subprocess.DEVNULL)  # fmt: skip
        try:
            wait_for(path, process, 30)
            yield process.pid
        except (RuntimeError, TimeoutError) as error:
            last = said.read_text(errors="replace").strip().splitlines()[-1:] or ["no output"]
            raise RuntimeError(f"{error}: {last[0]}") from error
        finally:
            process.terminate()
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _daemon(name: str, program: str, home: str, host: Running, rounds: int) -> list[Row]:
    command, env, path = _command(name, program, home)
    ours = next(target for target in targets(host) if target.name == _SAME[name])
    greeting = (INITIALIZE,) if name == "zeroclaw" else ()
    with _running(command, env, path) as pid:
        theirs = Target(name, path, ours.request, pid, greeting)
        pairs = [(ours, theirs)]
        if name == "hld":  # beside our store with what this run has put into it, theirs is empty
            pairs.append(
                (
                    Target("humanlayer listSessions", ours.path, _LIST, host.pid),
                    Target(name, path, _LIST, pid),
                )
            )
        compare([target for pair in pairs for target in pair], Client(home), LOADS, rounds)
        memory = resident(pid) / 1e6
    rows = []
    for mine, other in pairs:
        for load in LOADS:
            what, word, unit = ("p50", "round trip", "us")
            if load.name != "one at a time":
                what, word, unit = ("cpu", "cpu", "us cpu")
            values = [
                [getattr(sample, what) for sample in target.samples[load.name]]
                for target in (mine, other)
            ]
            rows.append(
                compared("originals", f"{mine.name}, {load.name}, {word}", values[0], name,
                         values[1], unit)
            )  # fmt: skip
    mine_now = host.resident() / 1e6
    rows.append(
        Row("originals", "resident after these requests", f"{mine_now:.1f} MB",
            f"{name} {memory:.1f}", mine_now / memory)
    )  # fmt: skip
    return rows


def _lines(program: str, home: str, rounds: int) -> list[Row]:
    """`zot rpc` on standard input and output beside `dragoman rpc`."""
    env = {**os.environ, "ZOT_HOME": home, "DRAGOMAN_CONFIG_DIR": os.path.join(home, "ours")}
    # A credential must be there before it answers; nothing is sent to anybody.
    theirs = [program, "rpc", "--provider", "anthropic", "--api-key", "unused", "--no-ext",
              "--cwd", home]  # fmt: skip
    commands = {"ours": [DRAGOMAN, "rpc", "--provider", "demo"], "zot": theirs}
    starts: dict[str, list[float]] = {name: [] for name in commands}
    trips: dict[str, list[float]] = {name: [] for name in commands}
    driver = build("stdio", home)
    for _ in range(rounds):
        for name, command in commands.items():
            starts[name].append(first_answer(command, _PING, env) * 1000)
            if driver is None:
                continue
            with on_one_core():
                done = subprocess.run(
                    [driver, "2000", *command],
                    input=_PING, env=env, capture_output=True, timeout=60, check=True,
                )  # fmt: skip
            trips[name].append(float(done.stdout.split()[0]))
    rows = [
        compared("originals", "dragoman rpc, first ping", starts["ours"], "zot", starts["zot"],
                 "ms", pick="median", digits=1)
    ]  # fmt: skip
    if driver is not None:
        rows.append(
            compared("originals", "dragoman rpc, ping, round trip", trips["ours"], "zot",
                     trips["zot"], "us")
        )  # fmt: skip
    return rows


def _port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]
