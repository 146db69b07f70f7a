"""The moment before a prompt is committed: who comes, leaves, reads slowly or fails just then."""

import asyncio

import pytest
from tests.engine.tape import ME, Tape
from tests.engine.test_early import GO, Own, opened, slow

from dragoman.engine import events as ev
from dragoman.engine import inbox
from dragoman.engine.events import Event, Who
from dragoman.engine.faults import StaleEpoch, StoreFailed
from dragoman.engine.hub import Hub
from dragoman.engine.ports import TurnResult
from dragoman.testing.host import host_of, memory_door
from dragoman.testing.script import Scripted, hang, say, turn

IT = Who("it", "acp", "Editor")


async def settle():
    for _ in range(20):
        await asyncio.sleep(0)


async def early_turn(*turns):
    door = memory_door(Scripted(turns or [say("hello there", deltas=2)]))
    own = Own()
    sid = await opened(door, own)
    commit = await slow(door)
    work = await door.prompt(sid, GO, ME)
    await own.until(ev.TextDelta)
    return door, sid, own, commit, work


async def test_a_latecomer_whose_client_reads_again_still_hears_of_the_prompt_first():
    door, sid, own, commit, work = await early_turn(turn(say("hello"), hang(), say(" there")))
    tape = Tape()
    watch = await door.watch(sid, IT, tape, lambda said: None)
    script = host_of(door).agents.models.resolve("")[0]  # type: ignore[attr-defined]
    await script.hanging.wait()
    script.release()
    await own.until(ev.TextDelta, lambda e: "there" in own.text())
    watch.resume()  # as a connection does when its buffer has drained
    assert not tape.text()
    commit()
    await work.done
    assert tape.text() == "hello there"
    kinds = tape.kinds()
    assert kinds.index("TurnBegan") < kinds.index("TextDelta")


async def test_a_latecomer_is_told_of_facts_before_the_prompt_without_its_text():
    door = memory_door(Scripted([say("hello there", deltas=2)]))
    own, tape = Own(), Tape()
    sid = await opened(door, own)
    first, gates = host_of(door).store.post, []

    def post(batch, **how):
        gate, future = asyncio.Event(), asyncio.get_running_loop().create_future()
        gates.append((gate, batch, future))
        return future

    def let(number):
        _, batch, future = gates[number]
        first(batch).add_done_callback(lambda done: future.set_result(done.result()))

    host_of(door).store.post = post
    renaming = asyncio.ensure_future(door.rename(sid, "new"))
    await settle()
    work = await door.prompt(sid, GO, ME)
    await own.until(ev.TextDelta)
    await door.watch(sid, IT, tape, lambda said: None)
    let(0)
    await renaming
    await settle()
    assert not tape.text()
    for number in range(1, len(gates)):
        let(number)
    await work.done
    kinds = tape.kinds()
    assert kinds.index("TurnBegan") < kinds.index("TextDelta")
    assert tape.text() == "hello there"


async def test_facts_that_were_replayed_are_not_given_again_when_the_turn_settles():
    stored = [Event("s", 0, ev.Renamed("a"), 1), Event("s", 0, ev.Renamed("b"), 2)]
    go = asyncio.Event()

    async def read(after, limit):
        await go.wait()
        return [event for event in stored if event.seq > after]

    tape, tasks = Tape(), []
    hub = Hub("s", read, lambda work: tasks.append(asyncio.ensure_future(work)))
    hub.last = 1
    hub.watch(ME, tape, lambda said: None, since=0)
    await settle()
    hub.emit_kept(stored[1:])
    hub.early = True
    go.set()
    await asyncio.gather(*tasks)
    hub.emit_kept([Event("s", 0, ev.TurnBegan("t", GO, ME), 3)])
    assert [event.seq for event in tape.events] == [1, 2, 3]


@pytest.mark.parametrize("since", [None, 0])
async def test_a_latecomer_hears_that_the_session_was_deleted(since):
    door, sid, own, commit, work = await early_turn(turn(say("hello"), hang()))
    tape = Tape()
    await door.watch(sid, IT, tape, lambda said: None, since=since)
    deleting = asyncio.ensure_future(door.delete(sid, ME))
    await settle()
    commit()
    await deleting
    await own.until(ev.Deleted)
    assert tape.of(ev.Deleted) and tape.text() == "hello"


async def test_a_deletion_during_a_replay_is_not_lost_in_the_draft():
    door = memory_door(Scripted([turn(say("hello"), hang())]))
    own, tape = Own(), Tape()
    sid = await opened(door, own)
    await door.prompt(sid, GO, ME)
    await own.until(ev.TextDelta)
    read, go = host_of(door).store.entries, asyncio.Event()

    async def entries(*args):
        await go.wait()
        return await read(*args)

    host_of(door).store.entries = entries
    await door.watch(sid, IT, tape, lambda said: None, since=0)
    await settle()
    host_of(door).live[sid].ledger.emit(ev.Deleted(ME))
    go.set()
    await tape.until(ev.TextDelta)
    assert tape.of(ev.Deleted)
    door.cancel(sid)
    await door.idle(sid)


async def test_apps_hear_that_an_agent_starts_before_they_hear_what_it_says():
    door = memory_door(Scripted([say("hello")]))
    heard = []

    class App:
        name = "app"

        def observe(self, hook, data, context):
            heard.append(hook)

        async def intercept(self, hook, data, context):
            return None

    app = App()
    for hook in ("agent_starting", "message_sending", "message_sent", "agent_completed"):
        door.hooks.subscribe(hook, app, intercepts=False)
    sid = await opened(door, Own())
    commit = await slow(door)
    work = await door.prompt(sid, GO, ME)
    await settle()
    commit()
    await work.done
    assert heard == ["agent_starting", "message_sending", "message_sent", "agent_completed"]


async def test_an_agent_that_acts_by_itself_waits_for_the_commit():
    door = memory_door(Scripted([]), backend="acp")
    began = []

    class Hosted:
        async def run(self, turn):
            began.append(turn.id)
            return TurnResult()

    host_of(door).agents.backend = lambda profile: Hosted()  # type: ignore[assignment, return-value]
    sid = await opened(door, Own())
    commit = await slow(door)
    work = await door.prompt(sid, GO, ME)
    await settle()
    assert not began
    commit()
    await work.done
    assert began


async def test_nothing_is_kept_of_a_turn_whose_beginning_was_lost():
    """The state went back already, but nobody has told the agent yet."""
    door = memory_door(Scripted([]))
    failing, mended = asyncio.Event(), asyncio.Event()

    class Quick:
        async def run(self, turn):
            turn.step_began(1)
            turn.text("hello")
            await mended.wait()
            await turn.note("info", "too late")
            return TurnResult()

    host_of(door).agents.backend = lambda profile: Quick()  # type: ignore[assignment, return-value]
    own = Own()
    sid = await opened(door, own)
    post, rebuild = host_of(door).store.post, host_of(door).rebuild

    async def full(batch):
        await failing.wait()
        host_of(door).store.post = post  # there is room again
        raise StoreFailed("The disk is full.")

    async def rebuilt(session_id):
        mended.set()
        return await rebuild(session_id)

    host_of(door).store.post = lambda batch, **how: asyncio.ensure_future(full(batch))
    host_of(door).rebuild = rebuilt
    work = await door.prompt(sid, GO, ME)
    await own.until(ev.TextDelta)
    failing.set()
    with pytest.raises(StoreFailed):
        await work.done
    assert [type(e.body).__name__ for e in await door.history(sid)] == ["Opened"]


async def test_nothing_is_kept_of_a_turn_whose_beginning_is_lost_with_another_fact():
    """A fact before it failed and the state went back; its own commit has no answer yet."""
    door = memory_door(Scripted([]))
    mended, tried = asyncio.Event(), asyncio.Event()

    class Quick:
        async def run(self, turn):
            turn.step_began(1)
            turn.text("hello")
            await mended.wait()
            tried.set()
            await turn.note("info", "too late")
            return TurnResult()

    host_of(door).agents.backend = lambda profile: Quick()  # type: ignore[assignment, return-value]
    own = Own()
    sid = await opened(door, own)
    post, queue = host_of(door).store.post, []

    def queued(batch, **how):
        queue.append((batch, asyncio.get_running_loop().create_future()))
        return queue[-1][1]

    host_of(door).store.post = queued
    renaming = asyncio.ensure_future(door.rename(sid, "new"))
    await settle()
    work = await door.prompt(sid, GO, ME)
    await own.until(ev.TextDelta)
    queue[0][1].set_exception(StoreFailed("The disk is full."))
    with pytest.raises(StoreFailed):
        await renaming
    mended.set()
    await tried.wait()
    await settle()
    host_of(door).store.post = post  # there is room again
    for batch, future in queue[1:]:
        try:
            future.set_result(await host_of(door).store.append(batch))
        except StoreFailed as fault:
            future.set_exception(fault)
    with pytest.raises(StoreFailed):
        async with asyncio.timeout(60):
            await work.done
    assert [type(e.body).__name__ for e in await door.history(sid)] == ["Opened"]


async def test_an_agent_that_ignores_that_its_turn_cannot_begin_is_left(monkeypatch):
    monkeypatch.setattr(inbox, "UNWIND_SECONDS", 0.02)
    door = memory_door(Scripted([]))
    failing, end = asyncio.Event(), asyncio.Event()

    class Stubborn:
        async def run(self, turn):
            turn.step_began(1)
            turn.text("hello")
            for _ in range(100):
                if end.is_set():
                    break
                try:
                    await end.wait()
                except asyncio.CancelledError:
                    continue
            return TurnResult()

    host_of(door).agents.backend = lambda profile: Stubborn()  # type: ignore[assignment, return-value]
    own = Own()
    sid = await opened(door, own)

    async def full(batch):
        await failing.wait()
        raise StoreFailed("The disk is full.")

    host_of(door).store.post = lambda batch, **how: asyncio.ensure_future(full(batch))
    work = await door.prompt(sid, GO, ME)
    await own.until(ev.TextDelta)
    failing.set()
    with pytest.raises(StoreFailed):
        async with asyncio.timeout(60):
            await work.done
    end.set()
    await settle()


async def test_a_writer_that_was_overtaken_lets_the_turn_and_the_watchers_go():
    door = memory_door(Scripted([turn(say("hello"), hang()), "fine", "fine"]))
    own, tape = Own(), Tape()
    sid = await opened(door, own)
    post, failing = host_of(door).store.post, asyncio.Event()

    async def stale(batch):
        await failing.wait()
        raise StaleEpoch("taken over")

    host_of(door).store.post = lambda batch, **how: asyncio.ensure_future(stale(batch))
    work = await door.prompt(sid, GO, ME)
    waiting = await door.prompt(sid, GO, ME)
    await own.until(ev.TextDelta)
    await door.watch(sid, IT, tape, lambda said: None)
    failing.set()
    for one in (work, waiting):
        with pytest.raises(StaleEpoch):
            async with asyncio.timeout(60):
                await one.done
    assert door.live(sid) is None
    host_of(door).store.post = post
    own.events.clear(), tape.events.clear()
    assert (await (await door.prompt(sid, GO, ME)).done).text == "fine"
    for one in (own, tape):  # type: ignore[assignment]
        assert one.text() == "fine" and len(one.of(ev.TurnBegan)) == 1  # type: ignore[attr-defined]


@pytest.mark.parametrize("how", ["cancel", "interrupt", "close", "stop", "steer"])
async def test_whatever_happens_before_the_commit_leaves_a_whole_turn(how):
    door, sid, own, commit, work = await early_turn(turn(say("hello"), hang()), "next")
    doing = None
    if how == "cancel":
        door.cancel(sid)
    elif how == "interrupt":
        doing = asyncio.ensure_future(door.interrupt(sid, ME))
    elif how == "close":
        doing = asyncio.ensure_future(door.close(sid))
    elif how == "stop":
        doing = asyncio.ensure_future(host_of(door).stop())
    else:
        doing = asyncio.ensure_future(door.steer(sid, GO, ME))
        await settle()
        door.cancel(sid)
    await settle()
    assert not work.done.done()
    commit()
    async with asyncio.timeout(60):
        done = await work.done
        if doing is not None:
            await doing
    assert done.outcome in ("cancelled", "interrupted") and work.started.done()
    kept = [event for event in own.events if event.seq]
    assert [e.seq for e in kept] == list(range(kept[0].seq, kept[-1].seq + 1))
    kinds = [type(e.body).__name__ for e in kept]
    assert kinds[0] == "TurnBegan" and kinds.count("TurnEnded") == 1
    assert kinds.count("Steered") == (how == "steer")
    if how not in ("stop", "close"):
        await door.idle(sid)
        assert not host_of(door).live[sid].state.turn
