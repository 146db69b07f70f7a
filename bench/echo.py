"""Round trips and server CPU per message, for any line server on a Unix socket.

As a module: `compare([Target(...), ...])` measures targets side by side, turn by turn, so that a
busy machine hurts all of them alike. Round trips have client and server on one core, throughput is
measured on one core and on all of them (see `place.py`). Trust the best round trip and the CPU per
message; the rate moves with the neighbours. As a program: our transport beside the references in
`refs/`.

    python -m bench.echo [--rounds N] [--json]
"""

import argparse
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.place import placed

REFS = Path(__file__).with_name("refs")
REQUEST = (
    b'{"jsonrpc":"2.0","id":12,"method":"session/health",'
    b'"params":{"session_id":"0f8fad5b-d9cb-469f","cursor":7}}'
)


@dataclass(frozen=True)
class Load:
    """A way to ask: connections, requests in flight on each, how many rounds of that, and where."""

    name: str
    connections: int
    inflight: int
    turns: int
    one_core: tuple[bool, ...] = (True,)  # True: with its server on one core; False: on any


BOTH = (True, False)
LOADS = (
    Load("one at a time", 1, 1, 3000),
    Load("32 in flight", 1, 32, 300, BOTH),
    Load("64 connections", 64, 1, 60, BOTH),
)


@dataclass
class Target:
    """A running server: where it listens, what to ask it, and whose CPU to count."""

    name: str
    path: str
    request: bytes
    pid: int
    greeting: tuple[bytes, ...] = ()  # lines sent first on each connection, one answer each
    samples: dict[str, list["Sample"]] = field(default_factory=dict)


@dataclass(frozen=True)
class Sample:
    """One measurement. `p50` and `p99` are of a round (all in flight answered), in us."""

    p50: float
    p99: float
    rate: float
    cpu: float  # server CPU per message, us


def cpu_ns(pid: int) -> int:
    """CPU time of all threads of a process."""
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        with (
            contextlib.suppress(FileNotFoundError),
            open(f"/proc/{pid}/task/{task}/schedstat") as f,
        ):
            total += int(f.read().split()[0])
    return total


class Client:
    """The C client where a compiler is found, else a plain Python one (slower, same shape)."""

    def __init__(self, folder: str, program: str = "client") -> None:
        self._program = build(program, folder)

    @property
    def compiled(self) -> bool:
        return self._program is not None

    def run(self, target: Target, load: Load, one_core: bool = False) -> Sample:
        """Put one load on one target."""
        with placed(one_core, target.pid):
            before = cpu_ns(target.pid)
            if self._program:
                p50, p99, rate = self._run_c(target, load)
            else:
                p50, p99, rate = _run_python(target, load)
            spent = cpu_ns(target.pid) - before
        messages = load.connections * load.inflight * load.turns
        return Sample(p50, p99, rate, spent / 1000 / messages)

    def _run_c(self, target: Target, load: Load) -> tuple[float, float, float]:
        assert self._program is not None
        done = subprocess.run(
            [self._program, target.path, *map(str, (load.connections, load.inflight, load.turns))],
            input=b"\n".join((*target.greeting, target.request)),
            capture_output=True,
            timeout=120,
        )
        if done.returncode:
            raise RuntimeError(f"{target.name}, {load.name}: {done.stderr.decode().strip()}")
        p50, p99, rate = map(float, done.stdout.split())
        return p50, p99, rate


def _run_python(target: Target, load: Load) -> tuple[float, float, float]:
    batch = (target.request + b"\n") * load.inflight
    links = []
    for number in range(load.connections):
        link = socket.socket(socket.AF_UNIX)
        link.connect(target.path)
        for line in target.greeting:
            link.sendall(line.replace(b"@@@", b"%03d" % number) + b"\n")
            while not link.recv(1 << 18).endswith(b"\n"):
                continue
        links.append(link)
    times = []
    began = time.perf_counter()
    for _ in range(load.turns):
        start = time.perf_counter()
        for link in links:
            link.sendall(batch)
        for link in links:
            left = load.inflight
            while left > 0:
                left -= link.recv(1 << 18).count(b"\n")
        times.append((time.perf_counter() - start) * 1e6)
    rate = load.turns * load.connections * load.inflight / (time.perf_counter() - began)
    for link in links:
        link.close()
    times.sort()
    return times[len(times) // 2], times[-1 - len(times) // 100], rate


def build(name: str, folder: str) -> str | None:
    """Compile `refs/NAME.c`; None without a compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    program = os.path.join(folder, name)
    subprocess.run([compiler, "-O2", "-o", program, str(REFS / f"{name}.c")], check=True)
    return program


def build_go(
    folder: str, name: str = "go_json", packages: Mapping[str, Path] | None = None
) -> str | None:
    """Compile a Go reference; None without a toolchain (one may be beside our Python).

    `packages` are modules that the program needs, and where their source is installed.
    """
    compiler = shutil.which("go") or shutil.which("go", path=os.path.dirname(sys.executable))
    if compiler is None:
        return None
    program = os.path.join(folder, name)
    cache = os.environ.get("GOCACHE") or os.path.join(folder, "gocache")
    env = {**os.environ, "GOCACHE": cache, "GOFLAGS": "-mod=mod", "GOPROXY": "off"}
    source = REFS / name
    if packages:  # without any index: a copy of the program, and the packages by their paths
        source = Path(shutil.copytree(source, os.path.join(folder, f"{name}.src")))
        with (source / "go.mod").open("a") as file:
            for package, place in packages.items():
                copy = shutil.copytree(place, os.path.join(folder, package.replace("/", "-")))
                Path(copy, "go.mod").write_text(f"module {package}\n\ngo 1.19\n")
                file.write(f"\nrequire {package} v0.0.0\nreplace {package} => {copy}\n")
    made = subprocess.run([compiler, "build", "-o", program, "."], cwd=source, env=env)
    return program if made.returncode == 0 else None


def wait_for(path: str, process: subprocess.Popen | None = None, seconds: float = 15) -> None:
    """Wait until somebody listens at a path."""
    limit = time.monotonic() + seconds
    while True:
        with socket.socket(socket.AF_UNIX) as link:
            with contextlib.suppress(FileNotFoundError, ConnectionRefusedError):
                link.connect(path)
                return
        if process is not None and process.poll() is not None:
            raise RuntimeError(f"the server at {path} ended with {process.returncode}")
        if time.monotonic() > limit:
            raise TimeoutError(f"nobody listens at {path}")
        time.sleep(0.01)


@contextlib.contextmanager
def references(folder: str, request: bytes = REQUEST) -> Iterator[list[Target]]:
    """Start every reference server that this machine can run."""
    python, node = sys.executable, shutil.which("node")
    floor = build("echo", folder)
    go_program = build_go(folder)
    commands = {
        "C epoll echo": [floor] if floor else None,
        "Go encoding/json": [go_program] if go_program else None,
        "Go, one write per batch": [go_program, "--flush-when-drained"] if go_program else None,
        "uvloop echo": [python, str(REFS / "uvloop_echo.py")],
        "dragoman pump": [python, str(REFS / "pump_jsonrpc.py")],
        "Node net": [node, str(REFS / "node_net.js")] if node else None,
        "asyncio streams": [python, str(REFS / "streams_json.py")],
    }
    running: list[subprocess.Popen] = []
    targets = []
    try:
        for number, (name, command) in enumerate(commands.items()):
            if command is None:
                continue
            path = os.path.join(folder, f"{number}.sock")
            process = subprocess.Popen([*command, path])
            running.append(process)
            wait_for(path, process)
            targets.append(Target(name, path, request, process.pid))
        yield targets
    finally:
        for process in running:
            process.kill()
            process.wait()


def compare(
    targets: Sequence[Target],
    client: Client,
    loads: Sequence[Load] = LOADS,
    rounds: int = 7,
) -> None:
    """Measure every load on every target in turn; the first round only warms up."""
    for round in range(rounds + 1):
        for load in loads:
            for target in targets:
                for one_core in load.one_core:
                    sample = client.run(target, load, one_core)
                    if round:
                        target.samples.setdefault(load.name, []).append(sample)


def best(target: Target, load: str) -> Sample:
    """The best of each figure over all rounds."""
    samples = target.samples[load]
    return Sample(
        min(s.p50 for s in samples),
        min(s.p99 for s in samples),
        max(s.rate for s in samples),
        min(s.cpu for s in samples),
    )


def table(targets: Sequence[Target], loads: Sequence[Load] = LOADS) -> str:
    """A Markdown table: best p50 of a round, best rate, best CPU per message."""
    head = ["server", *(f"{load.name}: p50 us, kmsg/s, cpu us" for load in loads)]
    rows = [head, ["---"] * len(head)]
    for target in targets:
        cells = [target.name]
        for load in loads:
            found = best(target, load.name)
            cells.append(f"{found.p50:.1f}, {found.rate / 1000:.0f}, {found.cpu:.2f}")
        rows.append(cells)
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def main() -> None:
    """Measure our transport beside the references."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        client = Client(folder)
        with references(folder) as targets:
            compare(targets, client, rounds=options.rounds)
    if options.json:
        found = {
            target.name: {load.name: best(target, load.name).__dict__ for load in LOADS}
            for target in targets
        }
        print(json.dumps(found, indent=2))
    else:
        print(table(targets))


if __name__ == "__main__":
    main()
