"""What grows with what is merely stored: the same daemon beside a small and a large store."""

import asyncio
import contextlib
import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING
from uuid import uuid4

from bench.echo import cpu_ns
from bench.place import on_one_core

from .host import Line, Running, daemon, greeted, settled
from .rows import Row, compared, held_to
from .sizes import connections
from .streams import one_turn

if TYPE_CHECKING:
    import sqlite3

_DELTAS = 500
_SCRIPT = [{"parts": [{"type": "say", "text": "some text " * _DELTAS, "deltas": _DELTAS}]}]
_TURN = f"a turn of {_DELTAS} deltas"
_STARTS = 5
_OFTEN = 3  # times the rounds of other measures: a tenth more must not be a neighbour's doing
# In one run: sessions and messages of each, few and many; and what is compared there.
_SESSIONS = ("status", "open", "list of 10", "start to ready", "resident")
_MESSAGES = (*_SESSIONS, "a delta", _TURN, "idle session", "idle connection")
# what is compared -> unit, bar; CPU of the daemon, so that neighbours do not decide
_WHAT = {
    "status": ("us cpu", "<= 1.1"),
    "open": ("us cpu", "<= 1.1"),
    "list of 10": ("us cpu", "<= 1.1"),
    "start to ready": ("ms cpu", "<= 1.1"),
    "resident": ("MB", "<= 1.1"),
    "a delta": ("us cpu", "<= 1.1"),
    _TURN: ("us cpu", "<= 1.1"),
    "idle session": ("KB", "<= 1.1"),
    "idle connection": ("KB", "<= 1.1"),
}


def measure(folder: str, rounds: int, quick: bool) -> list[Row]:
    """1,000 to 100,000 sessions; 10 to 10,000 sessions with 1,000 to 1,000,000 messages."""
    shrink = 10 if quick else 1
    rows = _pair(folder, (1_000, 2), (100_000 // shrink, 2), _SESSIONS, rounds)
    rows += _pair(folder, (10, 100), (10_000 // shrink, 100), _MESSAGES, rounds)
    return rows


def _pair(
    folder: str, few: tuple[int, int], many: tuple[int, int], what: tuple[str, ...], rounds: int
) -> list[Row]:
    """Two daemons at once, asked in turn."""
    found: list[dict[str, list[float]]] = [{name: [] for name in what} for _ in range(2)]
    homes = []
    for sessions, messages in (few, many):
        homes.append(os.path.join(folder, f"stored-{sessions}-{messages}"))
        asyncio.run(_fill(os.path.join(homes[-1], "data"), sessions, messages))
    for _ in range(_STARTS):
        for home, values in zip(homes, found, strict=True):
            with daemon(home, list(_SCRIPT)) as host:
                values["start to ready"].append(cpu_ns(host.pid) / 1e6)
                values["resident"].append(host.resident() / 1e6)
    with contextlib.ExitStack() as stack:
        hosts = [stack.enter_context(daemon(home, list(_SCRIPT))) for home in homes]
        asked = [_Asked(host) for host in hosts]
        for name in what:
            for _ in range(rounds * _OFTEN if name in _Asked.costs else 0):
                for one, values in zip(asked, found, strict=True):
                    with on_one_core(one.host.pid):
                        values[name].append(_Asked.costs[name](one))
        if "idle session" in what:
            for host, values in zip(hosts, found, strict=True):
                values["idle session"] = _sessions(host)
                values["idle connection"] = connections(host.path("daemon.sock"), host.pid, 500)
        for one in asked:
            one.line.close()
    rows = []
    words = f"{many[0]:,} stored sessions, {many[0] * many[1]:,} messages"
    other = f"{few[0]:,}, {few[0] * few[1]:,}:"
    for name in what:
        unit, bar = _WHAT[name]
        mine, theirs = found[1][name], found[0][name]
        pick = "median" if unit in ("KB", "MB") else "best"
        rows.append(
            compared("growth", f"{name}: {words}", mine, other, theirs, unit, bar, pick=pick)
        )
    each = (min(found[1]["resident"]) - min(found[0]["resident"])) * 1e6 / (many[0] - few[0])
    if what is _SESSIONS:
        rows.append(
            held_to("memory", "resident per stored session that is not live", [max(each, 0.0)],
                    "B", "<= 1024")
        )  # fmt: skip
    return rows


class _Asked:
    """A daemon and a connection to ask it on."""

    def __init__(self, host: Running) -> None:
        self.host = host
        self.line: Line = greeted(host)

    def _cost(self, times: int, method: str, **params: object) -> float:
        before = cpu_ns(self.host.pid)
        for _ in range(times):
            self.line.call(method, **params)
        settled(self.host.pid)
        return (cpu_ns(self.host.pid) - before) / 1000 / times

    costs: dict[str, Callable[["_Asked"], float]] = {
        "status": lambda self: self._cost(400, "status"),
        "open": lambda self: self._cost(20, "session/new", agentAlias="default", cwd="/"),
        "list of 10": lambda self: self._cost(100, "dragoman/sessions", limit=10),
        "a delta": lambda self: one_turn(self.host, 1, _DELTAS),
        _TURN: lambda self: one_turn(self.host, 1, 1),
    }


def _sessions(host: Running, count: int = 300) -> list[float]:
    line = greeted(host)
    sizes = []
    for batch in range(4):
        before = host.resident()
        for _ in range(count):
            line.call("session/new", agentAlias="default", cwd="/")
        if batch:
            sizes.append((host.resident() - before) / count / 1024)
    line.close()
    return sizes


async def _fill(data: str, count: int, messages: int) -> None:
    """Store so many sessions of so many messages each; all say the same.

    The first ones are stored as ever, the rest are copies of theirs inside the database.
    """
    import sqlite3

    import msgspec

    from dragoman.engine import events as ev
    from dragoman.engine.content import Text
    from dragoman.engine.ports import Batch, Entry
    from dragoman.engine.state import State
    from dragoman.store.sqlite import open_store

    os.makedirs(data, mode=0o700, exist_ok=True)
    store, _ = open_store(os.path.join(data, "sessions.db"))
    now = time.time_ns() // 1_000_000
    state = State(str(uuid4()))
    blank = state.info()
    bodies: list[ev.Kept] = [ev.Opened("default", "/", "demo/demo", "full")]
    for number in range(messages // 2):
        turn = f"trn_{number}"
        bodies.append(ev.TurnBegan(turn, (Text("question " * 20),)))
        bodies.append(ev.Spoke(turn, 1, (Text("answer " * 50),), "end_turn"))
        bodies.append(ev.TurnEnded(turn, "completed", "end_turn", "answer"))
    entries = []
    for body in bodies:
        seq = state.apply(body, now)
        tag = str(type(body).__struct_config__.tag)
        entries.append(Entry(seq, now, tag, ev.encode_body(body)))
    full = state.info()

    async def one(number: int) -> None:
        name, at = str(uuid4()), now + number
        epoch = await store.create(
            msgspec.structs.replace(blank, id=name, created_at=at, updated_at=at), "fill"
        )
        info = msgspec.structs.replace(full, id=name, created_at=at, updated_at=at)
        await store.append(Batch(name, epoch, entries, info))
        await store.give(name, epoch)

    first = min(count, 1_000)
    for start in range(0, first, 250):
        await asyncio.gather(*(one(n) for n in range(start, min(start + 250, first))))
    await store.close()
    if count == first:
        return
    path = os.path.join(data, "sessions.db")
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN")
        for number in range(1, count // first):
            _copy(connection, first * number)
        connection.execute(
            "UPDATE counters SET value = max(value, (SELECT max(gseq) FROM events))"
            " WHERE name = 'gseq'"
        )
        connection.execute("COMMIT")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        total = connection.execute("SELECT count(*) FROM sessions").fetchone()[0]
        last = connection.execute("SELECT id FROM sessions ORDER BY num DESC LIMIT 1").fetchone()[0]
    store, _ = open_store(path)  # what was copied reads as what was stored
    found = await store.info(last)
    if total != count or found is None or len(await store.entries(last)) != len(entries):
        raise RuntimeError("the copies of stored sessions are not what was stored")
    await store.close()


def _copy(connection: "sqlite3.Connection", ahead: int) -> None:
    """Copy the first thousand sessions and their events under other names."""

    def columns(table: str) -> list[str]:
        return [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]

    fresh = f"printf('%08x', {ahead}) || substr(id, 9)"
    changed = {
        "num": f"num + {ahead}",
        "id": fresh,
        "info": f"CAST(replace(CAST(info AS TEXT), id, {fresh}) AS BLOB)",
    }
    names = columns("sessions")
    values = ", ".join(changed.get(name, name) for name in names)
    connection.execute(
        f"INSERT INTO sessions ({', '.join(names)}) SELECT {values} FROM sessions WHERE num <= 1000"
    )
    newest = connection.execute("SELECT max(gseq) FROM events WHERE session <= 1000").fetchone()[0]
    moved = {"session": f"session + {ahead}", "gseq": f"gseq + {newest * (ahead // 1000)}"}
    names = columns("events")
    values = ", ".join(moved.get(name, name) for name in names)
    connection.execute(
        f"INSERT INTO events ({', '.join(names)}) SELECT {values} FROM events WHERE session <= 1000"
    )
