"""What must hold of a fleet whatever happens; FLEET_SEEDS asks for the long forms."""

import asyncio
import os
import random
import signal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from tests.fleet.making import LEASE, Fleet, Member, place_of, until
from tests.fleet.test_dialects import Nodes
from tests.postgres import new_database
from tests.store.making import make_answer, make_ask, make_batch, make_info

from dragoman.engine import events as ev
from dragoman.engine.content import Text
from dragoman.engine.events import Who
from dragoman.engine.faults import AlreadySettled, Fault, InUse, StaleEpoch
from dragoman.engine.ids import WallClock
from dragoman.engine.state import State
from dragoman.fleet.desk import Desk, owner_name
from dragoman.providers.scripted import Call, Hang, Say, Scripted, Turn
from dragoman.store.copying import copy
from dragoman.store.postgres import PostgresStore
from dragoman.store.postgres.changes import Node as Named
from dragoman.store.sqlite import SqliteStore
from dragoman.testing.host import EchoTool
from dragoman.testing.postgres import Server

SEEDS = int(os.environ.get("FLEET_SEEDS", "0"))
LONG = SEEDS > 0
WHO = Who("acp", name="ann")
TURNS = (
    Turn((Call("echo", {"text": "1"}),)),
    Turn((Call("echo", {"text": "2"}),)),
    Turn((Say("ok"),)),
)


def seeds(few: int, first: int = 1) -> list[int]:
    return [*range(first, first + (SEEDS if LONG else few))]


# --- P1: killed before or after any write of the journal ---


class Doomed:
    """Kills a node before or after its n-th write of a session, as a crash would."""

    def __init__(self, member: Member, instant: int, after: bool) -> None:
        self._left = instant
        self._after = after
        self.died = asyncio.Event()
        self._post, member.store.post = member.store.post, self.post  # type: ignore[method-assign]

    def post(self, batch: Any, *, patient: bool = False) -> "asyncio.Future[int]":
        never: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._left -= 1
        if self.died.is_set():
            return never
        if self._left > 0:
            return self._post(batch, patient=patient)
        if self._after:
            self._post(batch, patient=patient).add_done_callback(lambda _: self.died.set())
        else:
            self.died.set()
        return never  # it never hears of it


INSTANTS = [(instant, after) for instant in range(1, 7) for after in (False, True)]


@pytest.mark.parametrize(("instant", "after"), INSTANTS if LONG else INSTANTS[::3])
async def test_p1_killed_at_an_instant(fleet: Fleet, instant: int, after: bool) -> None:
    ran: list[str] = []

    class Once(EchoTool):
        async def run(self, args: dict[str, Any], env: Any) -> Any:
            ran.append(args["text"])
            return await super().run(args, env)

    a = await fleet.join("a", Scripted(TURNS, resume=True), [Once()], mode="full")
    b = await fleet.join("b", Scripted(TURNS, resume=True), [Once()], mode="full")
    session = await a.open()
    await b.door.load(session)
    doomed = Doomed(a, instant, after)
    work = await b.say(session, "go", by=WHO, keep=True)
    await asyncio.wait_for(doomed.died.wait(), 60)
    await a.die()
    finished = await asyncio.wait_for(work.done, LEASE + 12)
    assert finished.outcome in ("completed", "interrupted")
    events = await b.door.history(session)
    assert [event.seq for event in events] == [*range(1, len(events) + 1)]
    began = [event.body for event in events if isinstance(event.body, ev.TurnBegan)]
    assert [body.turn for body in began] == [work.turn]  # acknowledged, and once
    assert len(ran) == len(set(ran)) and {*ran} <= {"1", "2"}  # each tool at most once
    assert sum(isinstance(event.body, ev.TurnEnded) for event in events) == 1


@pytest.mark.parametrize("seed", seeds(1))
async def test_p1_a_real_daemon_is_killed_at_any_moment(
    postgres: Server, tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    """In a stream, in a tool, with a question open, or between: the other daemon ends the turn."""
    print(f"seed {seed}")
    chance = random.Random(seed)
    nodes = Nodes(tmp_path_factory.mktemp("k"), await new_database(postgres), lease=1.5)
    a, b = await asyncio.gather(nodes.start("a"), nodes.start("b"))
    try:
        acp = await a.acp()
        made = await acp.call("session/new", {"cwd": str(nodes.work), "mcpServers": []})
        session = made["sessionId"]
        zot = await b.zot(session)
        prompt = chance.choice(("count slowly to 20", "run `echo x >> ran; sleep 1`"))
        await zot.command("prompt", message=prompt)  # acknowledged: it is not lost
        killed = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_later(chance.uniform(0.0, 2.0), killed.set_result, None)
        if prompt.startswith("run"):
            shown = await zot.until(lambda m: "approval" in m and m.get("type") != "response")
            if chance.random() < 0.5:
                await killed
            else:
                await zot.command("approve", approval=shown["approval"], decision="approve")
        await killed
        await a.kill()
        store = await PostgresStore.open(nodes.url)

        async def settled() -> bool:
            for row in await store.asks(session):
                speaker = await b.zeroclaw()
                wanted = {"id": row.ask.id, "verdict": "allow", "digest": row.ask.digest}
                await speaker.call("dragoman/answer", wanted)
            kinds = [entry.kind for entry in await store.entries(session)]
            return "turn_ended" in kinds

        await until(settled)
        entries = await store.entries(session)
        await store.close()
        assert [entry.seq for entry in entries] == [*range(1, len(entries) + 1)]
        kinds = [entry.kind for entry in entries]
        assert (kinds.count("turn_began"), kinds.count("turn_ended")) == (1, 1)
        ran = nodes.work / "ran"
        assert not ran.exists() or ran.read_text() == "x\n"  # at most once
    finally:
        await nodes.close()


# --- P2: paused past the lease ---


@pytest.mark.parametrize("seed", seeds(2))
async def test_p2_a_daemon_that_was_paused_past_its_lease_writes_nothing(
    postgres: Server, tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    """Odd seeds pause it in a stream, even ones in a tool, whose process must not outlive it.

    The lease lapses by itself with every second pair of seeds; with the others the database is told
    that it has, so that a busy machine lets no other lapse. The heir's is long: it loses nothing.
    """
    print(f"seed {seed}")
    chance = random.Random(seed)
    real = seed % 4 in (3, 0)
    nodes = Nodes(tmp_path_factory.mktemp("p"), await new_database(postgres))
    a, b = await asyncio.gather(nodes.start("a", 4.0 if real else 15.0), nodes.start("b", 60.0))
    begun = nodes.work / "begun"
    try:
        acp = await a.acp()
        made = await acp.call("session/new", {"cwd": str(nodes.work), "mcpServers": []})
        session = made["sessionId"]
        zot = await b.zot(session)
        if seed % 2:
            await zot.command("prompt", message="count slowly to 25")
            word = f"{chance.randint(1, 12)} "
            await acp.until(lambda m: "agent_message_chunk" in str(m) and word in str(m))
        else:
            await zot.command("prompt", message="run `echo $$ > begun; sleep 600`")
            shown = await zot.until(lambda m: "approval" in m and m.get("type") != "response")
            await zot.command("approve", approval=shown["approval"], decision="approve")
            await until(lambda: begun.exists() and begun.read_text())
        assert a.process is not None
        assert (await _held_by(nodes.url, session))[0].startswith("node:a:")
        a.process.send_signal(signal.SIGSTOP)
        if not real:
            await _lapse(nodes.url, "a")
        seen = await b.zeroclaw()
        await seen.call("dragoman/watch", {"session_id": session, "since": 0})
        await seen.until(lambda m: "Went on elsewhere" in str(m))
        tool = _sleepers(nodes.work)
        assert bool(tool) == (not seed % 2)
        taken = await _held_by(nodes.url, session)
        assert taken[0].startswith("node:b:")
        a.process.send_signal(signal.SIGCONT)
        await seen.until(lambda m: "turn_ended" in str(m))
        await until(lambda: not _sleepers(nodes.work))  # the first write was refused
        store = await PostgresStore.open(nodes.url)
        entries = await store.entries(session)
        await store.close()
        assert [entry.seq for entry in entries] == [*range(1, len(entries) + 1)]
        assert sum(entry.kind == "turn_ended" for entry in entries) == 1
        assert await _held_by(nodes.url, session) == taken  # it was taken over once, and kept
    finally:
        await nodes.close()


async def _held_by(url: str, session: str) -> tuple[str, int]:
    """Who has a session, and in which epoch."""
    store = await PostgresStore.open(url)
    try:
        rows = await store.fetch("SELECT owner, epoch FROM sessions WHERE id = $1", session)
        return rows[0]["owner"] or "", rows[0]["epoch"]
    finally:
        await store.close()


async def _lapse(url: str, node: str) -> None:
    """Let a node's lease be over, by the clock that counts."""
    store = await PostgresStore.open(url)
    try:
        await store.fetch("UPDATE nodes SET lease = clock_timestamp() WHERE name = $1", node)
    finally:
        await store.close()


def _sleepers(folder: Path) -> list[int]:
    """The processes that sleep in a folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if (entry / "comm").read_text() == "sleep\n" and os.readlink(entry / "cwd") == str(
                folder
            ):
                found.append(int(entry.name))
        except OSError:
            continue  # it has just ended
    return found


# --- P4: everything five times ---


async def test_p4_every_hint_and_command_five_times(fleet: Fleet) -> None:
    turns = Turn((Call("echo", {"text": "x"}),)), Turn((Say("x"), Hang()))
    echo = EchoTool()
    a = await fleet.join("a", Scripted(turns, loop=True), [echo], mode="supervised")
    b = await fleet.join("b", Scripted([]))
    send, hint, commands = b.node.desk.send, b.node.desk.hint, a.node.desk.commands
    read: list[Any] = []

    async def sent(id: str, session: str, command: Any) -> None:
        for _ in range(5):
            await send(id, session, command)

    async def hinted() -> None:
        for _ in range(5):
            await hint()

    async def every() -> list[Any]:
        """All that was ever to be done, as a reader would see it who comes late, five times."""
        read.extend(one for one in await commands() if one not in read)
        return [*read] * 5

    b.node.desk.send, b.node.desk.hint = sent, hinted  # type: ignore[method-assign]
    a.node.desk.commands = every  # type: ignore[method-assign]
    session = await a.open()
    work = await b.say(session, "go", by=WHO)
    (row,) = await until(b.door.asks)
    await b.door.answer(row.ask.id, "allow", WHO)
    await b.door.rename(session, "Blue", WHO)
    await until(lambda: len(echo.ran))
    await until(lambda: a.door.live(session).status == "running")  # type: ignore[union-attr]
    await b.door.steer(session, (Text("left"),), WHO)
    b.door.cancel(session)
    assert (await asyncio.wait_for(work.done, 60)).outcome == "cancelled"
    bodies = [event.body for event in await a.door.history(session)]

    def count(kind: type[Any]) -> int:
        return sum(isinstance(body, kind) for body in bodies)

    steers = [body for body in bodies if isinstance(body, ev.Queued) and body.steers]
    kinds = (ev.TurnBegan, ev.Settled, ev.Renamed, ev.TurnEnded)
    assert [count(kind) for kind in kinds] == [1, 1, 1, 1]
    assert (len(steers), len(echo.ran)) == (1, 1)


# --- P8: questions that outlive everything ---


class Later(WallClock):
    """The clock of a node, thirty days on."""

    def now_ms(self) -> int:
        return super().now_ms() + 30 * 86_400_000


async def test_p8_questions_wait_for_days_and_have_one_winner_each(fleet: Fleet) -> None:
    count = 1000 if LONG else 12
    script = Turn((Call("echo", {"text": "x"}),)), Turn((Say("done"),))
    kind: dict[str, Any] = {"mode": "supervised", "lease": 5.0, "approval_timeout": 0.0}
    a = await fleet.join("a", Scripted(script, resume=True), [EchoTool()], **kind)
    for _ in range(count):
        await a.say(await a.open(), "go", by=WHO)

    async def all_asked() -> bool:
        return len(await a.door.asks()) == count

    await until(all_asked, 60)
    await a.leave()
    tools = [EchoTool(), EchoTool()]
    b = await fleet.join("b", Scripted(script, resume=True), [tools[0]], **kind)
    c = await fleet.join("c", Scripted(script, resume=True), [tools[1]], **kind)
    b.host.clock, c.host.clock = Later(), Later()

    async def answer(member: Member, ask: str, name: str) -> Any:
        try:
            return await member.door.answer(ask, "allow", Who("acp", name=name))
        except AlreadySettled as fault:
            return fault

    rows = await b.door.asks()
    got = await asyncio.gather(
        *(answer(m, row.ask.id, m.node.name) for row in rows for m in (b, c))
    )
    pairs = [*zip(got[::2], got[1::2], strict=True)]
    for pair in pairs:
        (won,) = [one for one in pair if isinstance(one, ev.Settled)]
        (lost,) = [one for one in pair if isinstance(one, AlreadySettled)]
        assert lost.data["by"] == won.by
    await until(lambda: sum(len(tool.ran) for tool in tools) == count, 60)


# --- P11: the database is restarted ---


SCRIPT = Turn((Call("echo", {"text": "x"}),)), Turn((Say("a b c d e f g h", delay=0.1),))


class Retold(Scripted):
    """Asked once more with the same history, it says the same."""

    def _next(self, request: Any) -> Turn:
        return self.turns[sum(message.role == "assistant" for message in request.messages)]


async def _counted(member: Member, session: str) -> dict[str, int]:
    """How often each kind of fact is in a log, which has no gap."""
    entries = await member.store.entries(session)
    assert [entry.seq for entry in entries] == [*range(1, len(entries) + 1)]
    kinds = [entry.kind for entry in entries]
    return {kind: kinds.count(kind) for kind in kinds}


@pytest.mark.parametrize("seed", seeds(1))
async def test_p11_a_turn_outlives_a_restart_of_the_database(seed: int) -> None:
    """At any moment of a turn, within the lease; every second time the server crashes."""
    print(f"seed {seed}")
    chance = random.Random(seed)
    server = await asyncio.to_thread(Server, durable=True)
    fleet = Fleet(await new_database(server, migrated=False))
    try:
        echo = EchoTool()
        a = await fleet.join("a", Scripted(SCRIPT, loop=True), [echo], lease=120.0, mode="full")
        session = await a.open()
        epoch = a.host.live[session].ledger.epoch
        work = await a.say(session, "go", by=WHO)
        await work.started
        for _ in range(chance.randrange(5)):  # somewhere between its first writes
            await asyncio.sleep(0)
        await asyncio.to_thread(server.halt, crash=not seed % 2)
        await until(lambda: a.store.stalled)
        with pytest.raises(Fault) as caught:
            await a.say(session, "more", by=WHO)
        assert "Stalled" in str(caught.value)
        await asyncio.to_thread(server.start)
        assert (await asyncio.wait_for(work.done, 60)).outcome == "completed"
        assert (await asyncio.wait_for((await a.say(session, "more", by=WHO)).done, 60)).text
        found = await _counted(a, session)
        # The epoch held, so nothing was given up: each turn and each tool once, and no notice.
        assert a.host.live[session].ledger.epoch == epoch and "noted" not in found
        wanted = ("turn_began", "turn_ended", "call_started", "call_ended")
        assert [found[kind] for kind in wanted] == [2, 2, 2, 2]
        assert len(echo.ran) == 2
        await fleet.close()
    finally:
        await asyncio.to_thread(server.stop)


@pytest.mark.parametrize("seed", seeds(1))
async def test_p11_a_turn_goes_on_after_a_restart_that_took_longer_than_the_lease(
    seed: int,
) -> None:
    """What waited is discarded, with a notice; a tool that may have run is not run again."""
    print(f"seed {seed}")
    chance = random.Random(seed)
    server = await asyncio.to_thread(Server, durable=True)
    fleet = Fleet(await new_database(server, migrated=False))
    try:
        echo = EchoTool()
        lease = chance.uniform(1, 3)
        a = await fleet.join("a", Retold(SCRIPT), [echo], lease=lease, mode="full")
        session = await a.open()
        ledger = a.host.live[session].ledger
        work = await a.say(session, "go", by=WHO, keep=True)
        await work.started
        for _ in range(chance.randrange(5)):
            await asyncio.sleep(0)
        await asyncio.to_thread(server.halt, crash=not seed % 2)
        await until(lambda: ledger.lost)
        ran = len(echo.ran)
        await asyncio.to_thread(server.start)
        finished = await asyncio.wait_for(work.done, 60)
        assert finished.outcome == "completed", finished
        found = await _counted(a, session)
        assert [found[kind] for kind in ("turn_began", "turn_ended", "noted")] == [1, 1, 1]
        assert found["call_started"] == found["call_ended"] == 1
        ended = [one for one in await a.door.history(session) if isinstance(one.body, ev.CallEnded)]
        (outcome,) = [one.body.outcome for one in ended if isinstance(one.body, ev.CallEnded)]
        # Once it had begun nobody knows what became of it; else it runs now, for the first time.
        assert ran <= 1 and len(echo.ran) == (ran if outcome == "unknown" else 1)
        await fleet.close()
    finally:
        await asyncio.to_thread(server.stop)


# --- P12: claim, renew, append, settle, with arbitrary pauses ---


class Writers(RuleBasedStateMachine):
    """Three nodes and one session; a pause is a lease that lapses while its node believes in it."""

    server: Server

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.stores: list[PostgresStore] = []
        self.held: dict[int, tuple[int, int]] = {}  # node: epoch and head as it believes
        self.log: list[tuple[int, int]] = []  # epoch and node of what was stored
        self.asked = 0
        self.won: dict[str, list[int]] = {}  # who settled each question
        self.runner.run(self._begin())

    async def _begin(self) -> None:
        url = await new_database(self.server)
        for number in range(3):
            store = await PostgresStore.open(url)
            store.node = Named(f"n{number}", (), ("/",))
            self.stores.append(store)
            await self._desk(number).join(60.0, "test", {})
        epoch = await self.stores[0].create(make_info("s", status="running"), self._desk(0).owner)
        await self.stores[0].append(make_batch("s", epoch, 1, status="running"))
        self.held[0] = (epoch, 1)
        self.log.append((epoch, 0))

    def _desk(self, number: int) -> Desk:
        return Desk(self.stores[number], owner_name(f"n{number}", "x"))

    @rule(node=st.integers(0, 2))
    def pause(self, node: int) -> None:
        self.runner.run(
            self.stores[node].fetch(
                "UPDATE nodes SET lease = clock_timestamp() - interval '1 s' WHERE name = $1",
                f"n{node}",
            )
        )

    @rule(node=st.integers(0, 2))
    def renew(self, node: int) -> None:
        self.runner.run(self._desk(node).join(60.0, "test", {}))

    @rule(node=st.integers(0, 2))
    def claim(self, node: int) -> None:
        async def work() -> None:
            if await self._desk(node).claim(10):
                await self._believe(node)

        self.runner.run(work())

    @rule(node=st.integers(0, 2))
    def take(self, node: int) -> None:
        async def work() -> None:
            try:
                await self.stores[node].take("s", self._desk(node).owner, lambda owner: True)
            except InUse:
                return
            await self._believe(node)

        self.runner.run(work())

    async def _believe(self, node: int) -> None:
        epoch = (await place_of(self._desk(node), "s")).epoch
        head = len(await self.stores[node].entries("s"))
        self.held[node] = (epoch, head)

    @rule(nodes=st.lists(st.integers(0, 2), min_size=1, max_size=3, unique=True))
    def append(self, nodes: list[int]) -> None:
        async def one(node: int) -> None:
            if node not in self.held:
                return
            epoch, head = self.held[node]
            try:
                await self.stores[node].append(make_batch("s", epoch, head + 1, status="running"))
            except Fault:
                del self.held[node]
                return
            self.held[node] = (epoch, head + 1)
            self.log.append((epoch, node))

        async def all_at_once() -> None:
            await asyncio.gather(*(one(node) for node in nodes))

        self.runner.run(all_at_once())

    @rule(node=st.integers(0, 2))
    def ask(self, node: int) -> None:
        self.asked += 1
        self._write(node, asked=[make_ask(f"q{self.asked}", "s")])

    @rule(nodes=st.lists(st.integers(0, 2), min_size=1, max_size=3, unique=True))
    def settle(self, nodes: list[int]) -> None:
        """Each of them believes that it may answer the newest question."""
        for node in nodes:
            name = f"q{self.asked}"
            if self._write(node, settled=[make_answer(name, name=f"n{node}")]):
                self.won.setdefault(name, []).append(node)

    def _write(self, node: int, **more: Any) -> bool:
        if node not in self.held:
            return False
        epoch, head = self.held[node]
        batch = make_batch("s", epoch, head + 1, status="running", **more)
        try:
            self.runner.run(self.stores[node].append(batch))
        except StaleEpoch:
            del self.held[node]
            return False
        except Fault:  # settled before, never asked, or behind what is stored
            return False
        self.held[node] = (epoch, head + 1)
        self.log.append((epoch, node))
        return True

    @invariant()
    def one_winner(self) -> None:
        for name, nodes in self.won.items():
            assert len(nodes) == 1
            row = self.runner.run(self.stores[0].ask(name))
            assert row is not None and row.settled is not None and row.settled.by is not None
            assert row.settled.by.name == f"n{nodes[0]}"

    @invariant()
    def one_writer_in_an_epoch(self) -> None:
        epochs = [epoch for epoch, _ in self.log]
        assert epochs == sorted(epochs)  # they never fall
        writers = {epoch: {node for one, node in self.log if one == epoch} for epoch in epochs}
        assert all(len(nodes) == 1 for nodes in writers.values())
        stored = self.runner.run(self.stores[0].entries("s"))
        assert [entry.seq for entry in stored] == [*range(1, len(self.log) + 1)]

    def teardown(self) -> None:
        async def close() -> None:
            for store in self.stores:
                await store.close()

        self.runner.run(close())
        self.runner.close()


def test_p12_never_two_writers_in_an_epoch(postgres: Server) -> None:
    from hypothesis.stateful import run_state_machine_as_test

    Writers.server = postgres
    few = settings(max_examples=SEEDS or 4, stateful_step_count=20, deadline=None)
    run_state_machine_as_test(Writers, settings=few)  # type: ignore[no-untyped-call]


# --- P13: copied while it runs ---


async def fold(store: Any, session: str, upto: int) -> Any:
    state = State(session)
    for entry in await store.entries(session, 0, upto):
        state.apply(ev.decode_body(entry.body), entry.at)
    return state.info(), state.messages, {*state.asks}


@pytest.mark.parametrize("seed", seeds(1))
async def test_p13_a_copy_made_while_running_folds_to_the_same(
    fleet: Fleet, postgres: Server, tmp_path: Path, seed: int
) -> None:
    print(f"seed {seed}")
    chance = random.Random(seed)
    turns = Turn((Call("echo", {"text": "x"}),)), Turn((Say("done"),))
    a = await fleet.join("a", Scripted(turns, loop=True), [EchoTool()], mode="full", lease=10.0)
    sessions = [await a.open() for _ in range(6)]
    stop = asyncio.Event()

    async def busy() -> None:
        while not stop.is_set():
            await (await a.say(chance.choice(sessions), "go", by=WHO)).done

    await a.store.put("x", "key", b"value")
    working = asyncio.create_task(busy())
    target = SqliteStore(tmp_path / "copy.db")
    first = await copy(a.store, target)
    stop.set()
    await working
    again = await copy(a.store, target)
    assert first.events and not again.behind
    for session in sessions:
        whole = await a.store.entries(session)
        assert await fold(target, session, len(whole)) == await fold(a.store, session, len(whole))
        assert (await target.info(session)) == (await a.store.info(session))
    assert await target.get("x", "key") == b"value"
    back = await PostgresStore.open(await new_database(postgres))
    await copy(target, back)
    ours, theirs = await target.entries_since(0, 10_000), await back.entries_since(0, 10_000)
    assert [(e.session, e.seq, e.body) for e in ours] == [
        (e.session, e.seq, e.body) for e in theirs
    ]
    await back.close()
    await target.close()
