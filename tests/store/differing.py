"""Random work on stores that share a file, beside a store in memory that says what is right.

One store is in this process, the other in a child that takes its work from a pipe and may be
killed in the middle of it.
"""

import asyncio
import pickle
import random
import struct
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from tests.store.making import ROOT, make_answer, make_ask, make_batch, make_info

from dragoman.engine.faults import Fault
from dragoman.engine.info import SessionQuery
from dragoman.engine.ports import Batch, Store
from dragoman.store import known, writer
from dragoman.store.memory import MemorySession, MemoryStore
from dragoman.store.sqlite import SqliteStore

Work = tuple[str, tuple[Any, ...]]  # a method of the store port, and its arguments
NAMES = [f"s{n}" for n in range(12)]
STATUSES = ("idle", "running", "failed", "waiting_input")
SIZES = (0, 1, 1, 2, 3, 7, 64, 65, 130)


def dead(owner: str) -> bool:
    return False


async def perform(store: Store, work: Work) -> Any:
    """What came of it: a value, or the kind of the refusal."""
    name, arguments = work
    try:
        if name == "post":
            batch, patient = arguments
            return await store.post(batch, patient=patient)
        if name == "cool":
            return await store.writer.run(known.settle) if isinstance(store, SqliteStore) else None
        return await getattr(store, name)(*arguments)
    except Fault as fault:
        return f"refused: {type(fault).__name__}"


# --- the child -------------------------------------------------------------------------------


def _send(pipe: Any, value: Any) -> None:
    data = pickle.dumps(value)
    pipe.write(struct.pack("!I", len(data)) + data)
    pipe.flush()


def _receive(pipe: Any) -> Any:
    head = pipe.read(4)
    if len(head) < 4:
        raise EOFError
    size = struct.unpack("!I", head)[0]
    data = pipe.read(size)
    if len(data) < size:
        raise EOFError
    return pickle.loads(data)


async def serve(path: str, synchronous: str) -> None:
    """Do bursts of work from standard input, and tell of each as soon as it is done."""
    writer.HOT, known.KNOWN = 3, 5  # as if there were many more sessions
    store = SqliteStore(path, synchronous=synchronous, idle=0.02, group=4)

    async def one(number: int, work: Work) -> None:
        _send(sys.stdout.buffer, (number, await perform(store, work)))

    while (burst := _receive(sys.stdin.buffer)) is not None:
        await asyncio.gather(*(one(number, work) for number, work in enumerate(burst)))
    await store.close()


class Child:
    """A store in a process of its own."""

    def __init__(self, path: Path, synchronous: str) -> None:
        code = "import sys, asyncio; from tests.store.differing import serve;"
        self._process = subprocess.Popen(
            [sys.executable, "-c", f"{code} asyncio.run(serve(*sys.argv[1:]))", path, synchronous],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
        )

    async def do(self, burst: Sequence[Work]) -> list[Any]:
        _send(self._process.stdin, burst)
        done = dict(_receive(self._process.stdout) for _ in burst)
        return [done[number] for number in range(len(burst))]

    async def kill_during(self, burst: Sequence[Work], seconds: float) -> dict[int, Any]:
        """Kill it in the middle; returns what it had told until then."""
        _send(self._process.stdin, burst)
        await asyncio.sleep(seconds)
        self._process.kill()
        told: dict[int, Any] = {}
        try:
            while True:
                number, value = _receive(self._process.stdout)
                told[number] = value
        except EOFError:
            self._end()
        return told

    async def close(self) -> None:
        _send(self._process.stdin, None)
        assert self._process.wait(60) == 0
        self._end()

    def kill(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._end()

    def _end(self) -> None:
        self._process.wait(60)
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdout.close()
        self._process.stdin.close()


class Here:
    """A store in this process, with the same face."""

    def __init__(self, path: Path, synchronous: str) -> None:
        self.store = SqliteStore(path, synchronous=synchronous, idle=0.02)

    async def do(self, burst: Sequence[Work]) -> list[Any]:
        return await asyncio.gather(*(perform(self.store, work) for work in burst))

    async def close(self) -> None:
        await self.store.close()


# --- what to do ------------------------------------------------------------------------------


def clone(model: MemoryStore) -> MemoryStore:
    other = MemoryStore()
    other._gseq = model._gseq
    other._recent = [*model._recent]
    other._asks = dict(model._asks)
    other._pairs = {space: dict(pairs) for space, pairs in model._pairs.items()}
    for name, kept in model._sessions.items():
        copy = other._sessions[name] = MemorySession(kept.info, "")
        copy.owner, copy.epoch, copy.entries = kept.owner, kept.epoch, [*kept.entries]
    return other


class Trial:
    """Random work and reading, and the model that knows what should come of it."""

    def __init__(self, path: Path, seed: int) -> None:
        self.chance = random.Random(seed)
        self.model = MemoryStore()
        self.synchronous = self.chance.choice(["NORMAL", "NORMAL", "FULL"])
        self._path = path
        self._at = 1000
        self._asks = 0
        self.stores: list[Here | Child] = [self._open(Here), self._open(Child)]

    def _open(self, kind: type[Here] | type[Child]) -> Here | Child:
        return kind(self._path, self.synchronous)

    def abandon(self) -> None:
        """Leave no child behind, whatever happened."""
        for store in self.stores:
            if isinstance(store, Child):
                store.kill()

    async def step(self) -> None:
        dice = self.chance.random()
        if dice < 0.02:
            number = self.chance.randrange(2)
            await self.stores[number].close()
            self.stores[number] = self._open(type(self.stores[number]))
        elif dice < 0.05:
            await self._crash()
        else:
            burst, expected = await self._burst(self.model)
            got = await self.chance.choice(self.stores).do(burst)
            assert got == expected, [work[0] for work in burst]
        for _ in range(3):
            await self._compare(self._read())

    async def end(self) -> None:
        for name in NAMES:
            await self._compare(("entries", (name,)))
            await self._compare(("owner", (name,)))
        await self._compare(("entries_since", (0, 10**6)))
        for store in self.stores:
            await store.close()

    async def _compare(self, read: Work) -> None:
        expected = await perform(self.model, read)
        got = (await self.chance.choice(self.stores).do([read]))[0]
        assert _plain(got) == _plain(expected), read
        if read[0] == "list" and not isinstance(got, str) and got.cursor:
            query = msgspec.structs.replace(read[1][0], cursor=got.cursor, offset=0)
            if self.chance.random() < 0.3:  # somebody is busy between the pages
                burst, result = await self._burst(self.model)
                assert await self.chance.choice(self.stores).do(burst) == result
            await self._compare(("list", (query,)))

    async def _crash(self) -> None:
        """Kill the child in the middle of a burst: what it told is there, and a prefix of it."""
        child = self.stores[1]
        assert isinstance(child, Child)
        ahead = clone(self.model)
        burst: list[Work] = []
        expected: list[Any] = []
        for _ in range(3):
            more, results = await self._burst(ahead, take=False)
            burst += more
            expected += results
        told = await child.kill_during(burst, self.chance.random() * 0.006)
        assert told == {number: expected[number] for number in told}
        here = self.stores[0]
        assert isinstance(here, Here)
        if self.chance.random() < 0.5:  # whoever comes now is alone, and tidies up
            await here.close()
            here = self.stores[0] = self._open(Here)  # type: ignore[assignment]
        assert isinstance(here, Here)
        found = await _state(here.store)
        least = max(told, default=-1) + 1
        for number, work in enumerate(burst):
            if number >= least and await _state(self.model) == found:
                break
            await perform(self.model, work)
        assert await _state(self.model) == found, "neither before nor after any of it"
        self.stores[1] = self._open(Child)

    # --- writing ---

    async def _burst(self, model: MemoryStore, take: bool = True) -> tuple[list[Work], list[Any]]:
        """Some work that is asked for at one moment, and what should come of it."""
        if take and self.chance.random() < 0.15:  # asks more than once, so it comes alone
            burst = [("take", (self.chance.choice(NAMES), f"o{self.chance.randrange(3)}", dead))]
            return burst, [await perform(model, burst[0])]
        burst, expected = [], []
        for _ in range(self.chance.choice((1, 1, 1, 2, 4, 9))):
            work = self._work(model)
            burst.append(work)
            expected.append(await perform(model, work))
        return burst, expected

    def _work(self, model: MemoryStore) -> Work:
        chance = self.chance
        name = chance.choice(NAMES)
        kept = model._sessions.get(name)
        dice = chance.random()
        if dice < 0.03:
            return "cool", ()
        if dice < 0.05:
            return "delete", (name,)
        if dice < 0.08:
            return "give", (name, kept.epoch if kept else 1)
        if dice < 0.11:
            return "put", (chance.choice("xy"), chance.choice("ab"), chance.choice((b"v", None)))
        if kept is None or dice < 0.14:
            return "create", (self._info(name), "o0")
        return "post", (self._batch(model, kept), chance.random() < 0.4)

    def _info(self, name: str, **other: Any) -> Any:
        self._at += self.chance.choice((0, 0, 1, 5))
        return make_info(name, self._at, **other)

    def _batch(self, model: MemoryStore, kept: MemorySession) -> Batch:
        chance, info = self.chance, kept.info
        self._at += chance.choice((0, 0, 1, 5))
        other = msgspec.structs.asdict(info) | {
            "updated_at": self._at,
            "status": chance.choice(STATUSES),
        }
        del other["id"], other["last_seq"]
        if chance.random() < 0.15:
            change = chance.choice(("cwd", "agent", "parent", "archived", "title", "extra"))
            other[change] = {
                "cwd": chance.choice(("/p", "/home/ann")),
                "agent": chance.choice(("coder", "main")),
                "parent": chance.choice((None, *NAMES)),
                "archived": chance.random() < 0.5,
                "title": chance.choice(("Red bike", "Ärger", "50% off")),
                "extra": chance.choice(
                    (
                        {},
                        {"correspondent": {"key": "k"}},
                        {"team": 1},
                        {"humanlayer": {"run_id": "r"}, "t": "x"},
                    )
                ),
            }[change]
        count = chance.choice(SIZES)
        first, epoch = len(kept.entries) + 1, kept.epoch
        asked, settled = [], []
        dice = chance.random()
        if dice < 0.03:
            first += 1
        elif dice < 0.06:
            epoch -= 1
        elif dice < 0.12:
            self._asks += 1
            asked = [make_ask(f"a{self._asks}", info.id, self._at)]
        elif dice < 0.18 and model._asks:
            settled = [make_answer(chance.choice([*model._asks]))]
        text = "x" * chance.choice((1, 50, 5000))
        return make_batch(
            info.id, epoch, first, count, text=text, asked=asked, settled=settled, **other
        )

    # --- reading ---

    def _read(self) -> Work:
        chance = self.chance
        name = chance.choice(NAMES)
        kind = chance.choice(("list", "list", "list", "entries", "since", "newest", "few"))
        if kind == "list":
            return "list", (self._query(),)
        if kind == "entries":
            kept = self.model._sessions.get(name)
            length = len(kept.entries) if kept else 0
            after = chance.randrange(length + 2)
            return "entries", (name, after, chance.choice((None, 0, 1, 2, 63, 64, 65, 200)))
        if kind == "since":
            after = chance.randrange(self.model._gseq + 2)
            return "entries_since", (after, chance.choice((0, 1, 2, 64, 500)))
        if kind == "newest":
            return "newest_gseq", ()
        few: tuple[Work, ...] = (
            ("info", (name,)),
            ("owner", (name,)),
            ("ancestry", (name,)),
            ("asks", ()),
            ("asks", (name,)),
            ("pairs", (chance.choice("xy"),)),
        )
        return chance.choice(few)

    def _query(self) -> SessionQuery:
        chance = self.chance
        values: dict[str, Any] = {"limit": chance.choice((1, 2, 3, 5, 100))}
        if chance.random() < 0.3:
            values["offset"] = chance.randrange(6)
        picks: dict[str, Any] = {
            "status": tuple(chance.sample(STATUSES, chance.randrange(1, 4))),
            "cwd": "/p",
            "agent": "coder",
            "parent": chance.choice(NAMES),
            "archived": chance.random() < 0.5,
            "leaves": True,
            "text": chance.choice(("red", "ÄRGER", "50%", "bike red")),
            "extra": chance.choice(
                (
                    {"correspondent": {"key": "k"}},
                    {"team": 1},
                    {"humanlayer": {"run_id": "r"}, "t": "x"},
                )
            ),
        }
        for name in chance.sample([*picks], chance.choice((0, 1, 1, 2))):
            values[name] = picks[name]
        return SessionQuery(**values)


def _plain(value: Any) -> Any:
    return [*value] if isinstance(value, tuple | list) else value


async def _state(store: Store) -> Any:
    """Everything that a burst of the random work may change."""
    if isinstance(store, SqliteStore):
        epochs = dict(await store.rows("SELECT id, epoch FROM sessions"))
    else:
        assert isinstance(store, MemoryStore)
        epochs = {name: kept.epoch for name, kept in store._sessions.items()}
    return (
        epochs,
        await store.newest_gseq(),
        [await store.info(name) for name in NAMES],
        [await store.owner(name) for name in NAMES],
        [*await store.asks(pending=False)],
        [[*await store.pairs(space)] for space in "xy"],
    )
