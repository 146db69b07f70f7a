"""A session that another node has, without a database: `mirror`, `following`, `doing`."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from dragoman.engine import events as ev
from dragoman.engine.ask import Ask, AskReply
from dragoman.engine.content import Text, Thinking, ToolCall
from dragoman.engine.events import encode_body
from dragoman.engine.faults import Busy, InUse, NothingRunning, UnknownSession, WrongState
from dragoman.engine.host import OpenSpec
from dragoman.engine.ports import Entry
from dragoman.engine.state import State
from dragoman.engine.work import Work
from dragoman.fleet import doing, words
from dragoman.fleet.doing import Moved, do
from dragoman.fleet.following import Following, _hear
from dragoman.fleet.mirror import FarLedger, Mirror
from dragoman.testing.host import host_of, memory_door
from dragoman.testing.script import Scripted, hang

OPENED = ev.Opened("default", "/", "scripted/test", "full")


def entry(seq: int, body: Any, session: str = "s1") -> Entry:
    tag = body.__struct_config__.tag
    return Entry(seq, seq, tag, encode_body(body), seq, session)


class Way:
    """The way to the owner; keeps what is asked and answers `result`."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.result: Any = words.Result(turn="t9")
        self.waits: list[Any] = []
        self.away: Exception | None = None

    async def ask(self, session: str, command: Any) -> Any:
        self.asked.append(command)
        if isinstance(self.result, Exception):
            raise self.result
        return self.result

    async def put_down(self, session: str, command: Any) -> str:
        self.asked.append(command)
        return "cmd"

    async def outcome(self, session: str, id: str) -> Any:
        return self.result

    async def catch_up(self, session: str) -> None:
        self.asked.append("catch up")

    def await_turn(self, session: str, after: int, work: Any) -> None:
        self.waits.append(work)

    def absence(self, session: str) -> Any:
        return self.away


@pytest.fixture
def far(monkeypatch: pytest.MonkeyPatch) -> tuple[Mirror, Way, list[Any]]:
    told: list[Any] = []
    home: Any = host_of(memory_door(Scripted([])))
    way = Way()

    def stream(ledger: Any, kind: Any, turn: str, text: str, more: Any) -> None:
        told.append(ev.CallArgs(turn, more, text) if kind is ev.CallArgs else kind(turn, text))

    monkeypatch.setattr(FarLedger, "_tell", lambda ledger, events: told.extend(events))
    monkeypatch.setattr(FarLedger, "emit", lambda ledger, body: told.append(body))
    monkeypatch.setattr(FarLedger, "stream", stream)
    return Mirror(home, State("s1"), None, way), way, told


# --- mirror ---


async def test_mirror_folds_in_order_and_says_a_message_as_if_streamed(far: Any) -> None:
    mirror, _, told = far
    spoke = ev.Spoke(
        "t1", 1, (Thinking("hm"), Text("hi"), ToolCall("c", "t", {"a": 1})), "tool_use"
    )
    began = ev.TurnBegan("t1", (Text("go"),))
    mirror.ledger.fold([entry(1, OPENED), entry(3, began), entry(2, began), entry(3, spoke)])
    kinds = [type(getattr(one, "body", one)).__name__ for one in told]
    assert kinds == [
        "Opened", "TurnBegan", "StepBegan", "StreamOpened", "ThoughtDelta", "TextDelta",
        "CallDrafted", "CallArgs", "CallReady", "Spoke",
    ]  # fmt: skip
    assert mirror.state.seq == 3 and mirror.ledger.turn.id == "t1" and mirror.inbox.busy
    mirror.ledger.fold([entry(4, ev.TurnEnded("t1", "completed", "end_turn"))])
    assert mirror.ledger.turn is None and mirror.spare


async def test_mirror_sends_a_prompt_and_takes_no_more_than_the_limit(far: Any) -> None:
    mirror, way, _ = far
    work = Work("prompt", "t1", (Text("x"),), None)
    mirror.inbox.put(work, limit=1, wait=None)
    with pytest.raises(Busy, match="queue full"):
        mirror.inbox.put(Work("prompt", "t2", (), None), limit=1, wait=None)
    await work.kept
    assert way.waits == [work] and way.asked[0].turn == "t1" and mirror.inbox.waiting == (work,)
    work.begin()
    await asyncio.sleep(0)
    assert mirror.inbox.waiting == ()
    way.away = InUse("the node is away")
    with pytest.raises(InUse):
        mirror.inbox.put(Work("prompt", "t3", (), None), limit=9, wait=None)
    await mirror.shut()
    with pytest.raises(Busy, match="is closing"):
        mirror.inbox.put(Work("prompt", "t4", (), None), limit=9, wait=None)


async def test_mirror_cancels_and_retracts_what_is_there(far: Any) -> None:
    mirror, way, _ = far
    for act in (mirror.inbox.cancel, lambda: mirror.inbox.retract("k")):
        with pytest.raises(NothingRunning):
            act()
    work = Work("prompt", "t1", (), None, key="k")
    mirror.inbox.put(work, limit=9, wait=None)
    assert mirror.inbox.taken("k") == "t1" and mirror.inbox.taken("other") == ""
    assert mirror.inbox.cancel() == "t1" and mirror.inbox.retract("k") == "t1"
    async with asyncio.timeout(60):
        while len(way.asked) < 2:  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.001)
    assert words.Cancel("t1", "client") in way.asked and words.Retract("k") in way.asked
    mirror.inbox.leave_waiting()
    with pytest.raises(Busy, match="runs on another one"):
        await work.done


async def test_mirror_has_kept_what_its_owner_has(far: Any, monkeypatch: Any) -> None:
    mirror, way, _ = far
    mirror.inbox.put(Work("prompt", "t1", (), None, key="k"), limit=9, wait=None)
    asked, ask = asyncio.Event(), way.ask

    async def slow(session: str, command: Any) -> Any:
        await asked.wait()
        return await ask(session, command)

    monkeypatch.setattr(way, "ask", slow)
    mirror.inbox.cancel()
    kept = asyncio.ensure_future(mirror.inbox.kept())
    for _ in range(5):
        await asyncio.sleep(0)
    assert not kept.done()
    asked.set()
    await kept
    assert words.Cancel("t1", "client") in way.asked
    way.result = InUse("the node is away")
    mirror.inbox.retract("k")
    with pytest.raises(InUse):
        await mirror.inbox.kept()


async def test_what_was_stopped_before_it_began_is_cancelled_and_not_failed(far: Any) -> None:
    mirror, way, _ = far
    work = Work("prompt", "t1", (), None)
    mirror.inbox.put(work, limit=9, wait=None)
    mirror.inbox.cancel()
    await mirror.inbox.kept()
    _hear(work, ev.Dropped("t1", "It was cancelled."))
    assert work.done.result().outcome == "cancelled"


async def test_mirror_answers_and_configures_through_its_owner(far: Any) -> None:
    mirror, way, _ = far
    settled = ev.Settled("a1", "allow")
    way.result = words.Result(settled=settled)
    assert await mirror.asks.answer(AskReply("a1", "allow", None)) == settled
    await mirror.ledger.put(ev.Renamed("T"))
    assert way.asked[-2] == words.Configure((ev.Renamed("T"),))
    ask = Ask("a", "s1", "tool", "x", 1, turn="t1")
    mirror.ledger.fold([entry(1, OPENED), entry(2, ev.Asked(ask))])
    assert mirror.asks.of("t1") == [ask] and mirror.asks.of("") == []
    await mirror.gear.equip()
    mirror.gear.servers = [{"name": "x"}]
    await mirror.gear.equip()
    assert way.asked[-1] == words.Equip([{"name": "x"}])


@pytest.mark.parametrize(
    ("result", "gone"),
    [(words.Result(), True), (UnknownSession("s1"), True), (InUse("away"), False)],
)
async def test_mirror_is_erased_by_its_owner_or_here(far: Any, result: Any, gone: bool) -> None:
    mirror, way, _ = far
    way.result = result
    assert await mirror.erase(None) is gone


async def test_what_a_client_brings_to_a_mirror_is_kept_here_and_used_nowhere(far: Any) -> None:
    mirror, _, _ = far
    mirror.gear.variables = {"EDITOR": "vi"}
    assert mirror.gear.variables == {"EDITOR": "vi"} and mirror.gear.roots == ()
    assert mirror.gear.toolbox is None


# --- following ---


def test_following_hears_what_becomes_of_a_turn() -> None:
    async def run() -> None:
        for body, state in (
            (ev.Queued("t1", ()), "kept"),
            (ev.TurnBegan("t1", ()), "started"),
            (ev.TurnEnded("t1", "completed", "end_turn", "text"), "done"),
        ):
            work = Work("prompt", "t1", (), None)
            _hear(work, ev.TurnBegan("other", ()))
            assert not work.started.done()
            _hear(work, body)
            assert getattr(work, state).done()
        dropped = Work("prompt", "t1", (), None)
        _hear(dropped, ev.Dropped("t1", "expired"))
        with pytest.raises(Busy, match="expired"):
            await dropped.done

    asyncio.run(run())


class Store:
    def __init__(self, entries: list[Entry]) -> None:
        self.rows = entries

    async def newest_gseq(self) -> int:
        return self.rows[-1].gseq if self.rows else 0

    async def entries(self, session: str, after: int, limit: int) -> list[Entry]:
        return [row for row in self.rows if row.session == session and row.seq > after][:limit]

    async def info(self, session: str) -> Any:
        return None


async def test_following_reads_others_and_settles_those_who_wait() -> None:
    rows = [entry(1, OPENED)]
    store = Store(rows)
    home: Any = host_of(memory_door(Scripted([])))
    mirror = Mirror(home, State("s1"), None, Way())
    hub = SimpleNamespace(watches=[], emit_kept=lambda events: told.extend(events))
    told: list[Any] = []
    host: Any = SimpleNamespace(live={"s1": mirror}, store=store, hub=hub)

    class Desk:
        async def foreign(self, after: int, newest: int, page: int) -> Any:
            return [row for row in rows if after < row.gseq <= newest], newest

    following = Following(host, Desk())
    await following.look()
    assert mirror.state.seq == 1 and isinstance(mirror.ledger, FarLedger)
    work, lost = Work("prompt", "t1", (), None), Work("prompt", "t2", (), None)
    following.await_turn("s1", 1, work)
    following.await_turn("gone", 0, lost)
    hub.watches.append("somebody")
    rows.append(entry(3, ev.TurnEnded("t1", "completed", "end_turn")))
    rows.insert(1, entry(2, ev.TurnBegan("t1", ())))
    rows.append(entry(4, ev.Renamed("x"), "unknown here"))
    await following.look()
    assert (await work.done).outcome == "completed" and mirror.state.seq == 3
    assert [one.session for one in told] == ["unknown here"] and following.lag == 3
    with pytest.raises(UnknownSession):
        await lost.done
    host.live.clear()
    hub.watches.clear()
    await following.look()
    assert following._place is None  # nobody is interested


# --- doing ---


@pytest.fixture
async def owner() -> Any:
    door = memory_door(Scripted(["one", hang()]))
    host = host_of(door)
    session = (await door.open(OpenSpec(cwd="/"))).id
    yield host, session
    await host.stop(0.2)


async def test_doing_a_prompt_twice_runs_it_once(owner: Any) -> None:
    host, session = owner
    command = words.Prompt("t1", (Text("x"),), None, "", None, 9, None)
    assert (await do(host, session, "cmd1", command)).turn == "t1"
    live = host.live[session]
    await live.inbox.idle()
    assert (await do(host, session, "cmd1", command)).turn == "t1"
    await live.inbox.idle()
    assert live.state.turns == 1
    with pytest.raises(WrongState):
        await do(host, session, "cmd1", words.Prompt("t2", (), None, "cmd1", None, 9, None))


async def test_doing_a_cancellation_means_its_turn_only(owner: Any) -> None:
    host, session = owner
    live = await host.get(session)
    assert (await do(host, session, "c", words.Cancel("t0", "client"))).turn == ""
    await do(host, session, "c1", words.Prompt("t1", (Text("x"),), None, "", None, 9, None))
    await live.inbox.idle()
    assert doing._cancel(live, words.Cancel("t1", "client")) == ""


async def test_doing_configures_and_refuses_what_moved(owner: Any) -> None:
    host, session = owner
    await do(host, session, "c2", words.Configure((ev.Renamed("T"), ev.ModelSet("no/such"))))
    live = host.live[session]
    assert live.state.title == "T" and live.gear.vision is False
    moved: Any = SimpleNamespace(get=lambda id: found(SimpleNamespace(own=False)))
    with pytest.raises(Moved):
        await do(moved, session, "c3", words.Checkpoints())


async def found(session: Any) -> Any:
    return session
