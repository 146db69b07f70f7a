"""Memory of an idle daemon, connection and session; and what grows with what is stored."""

import asyncio
import os
import resource
import shutil
import subprocess
import sys
import time
from uuid import uuid4

from bench.echo import REFS, build_go, cpu_ns

from .host import Line, Running, daemon, greeted, serving
from .rows import Row

_BARE = (
    "import asyncio, msgspec, uvloop, sys\n"
    "async def main():\n"
    "    await asyncio.get_running_loop().create_unix_server(asyncio.Protocol, sys.argv[1])\n"
    "    print('ready', flush=True)\n"
    "    await asyncio.Event().wait()\n"
    "uvloop.run(main())\n"
)


def idle(host: Running, folder: str) -> list[Row]:
    """Resident memory of a fresh daemon, per connection and per session."""
    ours = host.resident()
    bare = _bare(os.path.join(folder, "bare.sock"))
    rows = [
        Row("memory", "idle daemon", f"{ours / 1e6:.1f} MB", "45 MB", ours / 1e6, "<= 45"),
        Row("memory", "idle daemon against bare uvloop + msgspec", f"{ours / 1e6:.1f} MB",
            f"{bare / 1e6:.1f} MB", ours / bare, "<= 1.8"),
    ]  # fmt: skip
    line = greeted(host)
    before = host.resident()
    count = 1_000
    for _ in range(count):
        line.call("session/new", agentAlias="default", cwd="/")
    per = (host.resident() - before) / count / 1024
    rows.append(Row("memory", "idle session, live", f"{per:.2f} KB", "20 KB", per, "<= 20"))
    line.close()
    count = min(4_000, (_files() - 200) // 2)
    warm = [Line(host.path("daemon.sock")) for _ in range(count)]
    greeted(host).close()
    before = host.resident()
    lines = [Line(host.path("daemon.sock")) for _ in range(count)]
    greeted(host).close()  # all of them are accepted once this one is answered
    per = (host.resident() - before) / count / 1024
    node, go = shutil.which("node"), build_go(folder)
    peers = (
        ("Node net", [node, str(REFS / "node_net.js")] if node else None, "<= 0.7"),
        ("Go", [go] if go else None, "<= 0.5"),
    )
    for name, command, bar in peers:
        if command is None:
            rows.append(Row("memory", "idle connection", f"{per:.2f} KB", f"no {name}", per))
            continue
        size = _connection(command, os.path.join(folder, f"{name[:2]}.sock"), count)
        rows.append(
            Row("memory", "idle connection", f"{per:.2f} KB", f"{name} {size:.2f} KB",
                per / size, bar)
        )  # fmt: skip
    for line in (*warm, *lines):
        line.close()
    return rows


def _files() -> int:
    """How many files a process may open; the daemon's limit too when set before it starts."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def _connection(command: list[str], path: str, count: int) -> float:
    """KB per idle connection of a reference server."""
    with serving([*command, path], path) as pid:
        warm = [Line(path) for _ in range(count)]  # the heap's first growth is not the peer's cost
        _answered(warm[-1])
        before = resident(pid)
        more = [Line(path) for _ in range(count)]
        _answered(more[-1])
        size = (resident(pid) - before) / count / 1024
        for line in (*warm, *more):
            line.close()
        return max(size, 0.01)


def _answered(line: Line) -> None:
    line.send({"jsonrpc": "2.0", "id": 1, "method": "x", "params": {}})
    line.read()


def resident(pid: int) -> int:
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _bare(path: str) -> int:
    process = subprocess.Popen([sys.executable, "-c", _BARE, path], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    size = resident(process.pid)
    process.kill()
    process.wait()
    process.stdout.close()
    return size


def growth(folder: str, few: int, many: int) -> list[Row]:
    """CPU per request and per open, with few and with many stored sessions."""
    costs: dict[int, dict[str, float]] = {}
    for count in (few, many):
        home = os.path.join(folder, f"stored-{count}")
        asyncio.run(_fill(os.path.join(home, "data"), count))
        start = time.perf_counter()
        with daemon(home, ["x"]) as host:
            ready = (time.perf_counter() - start) * 1e6
            costs[count] = {"start to ready": ready, "resident": host.resident() / 1e3}
            costs[count] |= _costs(host)
    rows = []
    for what, bar in _BARS.items():
        a, b = costs[few][what], costs[many][what]
        unit = {"resident": "KB", "start to ready": "us"}.get(what, "us cpu")
        rows.append(
            Row("growth", f"{what}: {many:,} sessions ({many * 4:,} messages) against {few:,}",
                f"{b:.0f} {unit}", f"{a:.0f}", b / a, bar)
        )  # fmt: skip
    each = (costs[many]["resident"] - costs[few]["resident"]) * 1000 / (many - few)
    rows.append(
        Row("memory", "resident bytes per stored session that is not live", f"{each:.1f} B",
            "1,024 B", each, "<= 1024")
    )  # fmt: skip
    return rows


# Wall-clock time and pages of a list vary more than CPU on a shared machine.
_BARS = {
    "status": "<= 1.1",
    "open": "<= 1.1",
    "list of 100": "<= 1.25",
    "resident": "<= 1.1",
    "start to ready": "<= 1.5",
}


def _costs(host: Running) -> dict[str, float]:
    line = greeted(host)

    def cost(times: int, method: str, **params: object) -> float:
        best = 1e9
        for _ in range(5):
            before = cpu_ns(host.pid)
            for _ in range(times):
                line.call(method, **params)
            best = min(best, (cpu_ns(host.pid) - before) / 1000 / times)
        return best

    found = {
        "status": cost(500, "status"),
        "open": cost(50, "session/new", agentAlias="default", cwd="/"),
        "list of 100": cost(20, "dragoman/sessions", limit=100),
    }
    line.close()
    return found


async def _fill(data: str, count: int) -> None:
    """Store so many sessions, each with a few messages."""
    from dragoman.engine import events as ev
    from dragoman.engine.content import Text
    from dragoman.engine.ports import Batch, Entry
    from dragoman.engine.state import State
    from dragoman.store.sqlite import open_store

    os.makedirs(data, mode=0o700, exist_ok=True)
    store, _ = open_store(os.path.join(data, "sessions.db"))
    now = time.time_ns() // 1_000_000

    async def one(number: int) -> None:
        state = State(str(uuid4()))
        bodies: list[ev.Kept] = [ev.Opened("default", "/", "demo/demo", "full")]
        turn = f"trn_{number}"
        bodies.append(ev.TurnBegan(turn, (Text("question " * 20),)))
        bodies.append(ev.Spoke(turn, 1, (Text("answer " * 50),), "end_turn"))
        bodies.append(ev.TurnEnded(turn, "completed", "end_turn", "answer"))
        entries = []
        blank = state.info()
        epoch = await store.create(blank, "fill")
        for body in bodies:
            seq = state.apply(body, now + number)
            tag = str(type(body).__struct_config__.tag)
            entries.append(Entry(seq, now + number, tag, ev.encode_body(body)))
        await store.append(Batch(state.id, epoch, entries, state.info()))
        await store.give(state.id, epoch)

    for start in range(0, count, 256):
        await asyncio.gather(*(one(n) for n in range(start, min(start + 256, count))))
    await store.close()
