"""Watchers: late joiners, slow readers, shared encoding."""

import asyncio

from tests.engine.tape import ME, Tape

from dragoman.engine import events as ev
from dragoman.engine import hub as watching
from dragoman.engine.content import Text
from dragoman.engine.deltas import merge
from dragoman.engine.events import Event, Who
from dragoman.engine.host import OpenSpec
from dragoman.testing.host import EchoTool, host_of, memory_door
from dragoman.testing.script import Scripted, call, hang, say, turn


def test_neighbouring_deltas_of_one_stream_merge_and_others_do_not():
    def event(body):
        return Event("s", 0, body)

    merged = merge(
        [
            event(ev.TextDelta("t", "a")),
            event(ev.TextDelta("t", "b")),
            event(ev.ThoughtDelta("t", "c")),
            event(ev.TextDelta("t", "d")),
            event(ev.Progress("t", "1", "e")),
            event(ev.Progress("t", "2", "f")),
            event(ev.Progress("t", "2", "g")),
        ]
    )
    assert [e.body for e in merged] == [
        ev.TextDelta("t", "ab"),
        ev.ThoughtDelta("t", "c"),
        ev.TextDelta("t", "d"),
        ev.Progress("t", "1", "e"),
        ev.Progress("t", "2", "fg"),
    ]


async def test_each_event_is_encoded_once_however_many_watch():
    door = memory_door(Scripted([say("abc" * 100, deltas=100)]))
    info = await door.open(OpenSpec(cwd="/"), ME)
    tape = Tape()
    got: list[object] = []
    for n in range(50):
        who = Who("test", id=f"c{n}")
        shape = await door.shape_of(info.id, "shared", tape)
        await door.watch(info.id, who, shape, got.append, draft=False)
    tape.events.clear()
    await (await door.prompt(info.id, (Text("x"),), ME)).done
    assert tape.text() == "abc" * 100
    assert len(tape.of(ev.TurnEnded)) == 1


async def test_a_late_joiner_gets_the_history_the_draft_and_then_the_rest_without_gap_or_repeat():
    script = Scripted([turn(say("one two ", deltas=2), hang()), "next"])
    door = memory_door(script, [EchoTool()])
    info = await door.open(OpenSpec(cwd="/"), ME)
    early = Tape()
    await door.watch(info.id, ME, early, lambda said: None)
    work = await door.prompt(info.id, (Text("x"),), ME)
    await early.until(ev.TextDelta, lambda e: "two" in early.text())
    late = Tape()
    await door.watch(info.id, Who("test", id="c2"), late, lambda said: None, since=0)
    await late.until(ev.TextDelta)
    assert late.text() == "one two "
    door.cancel(info.id)
    await work.done
    await late.until(ev.TurnEnded)
    kept = [(e.seq, type(e.body)) for e in late.events if e.seq]
    assert kept == [(e.seq, type(e.body)) for e in await door.history(info.id)]
    assert [e.seq for e in late.events if e.seq] == list(range(1, len(kept) + 1))


async def test_a_reader_that_stalls_holds_merged_text_and_loses_nothing():
    door = memory_door(Scripted([say("x" * 5_000, deltas=5_000)]))
    info = await door.open(OpenSpec(cwd="/"), ME)
    slow, paused = Tape(), [True]
    watch = await door.watch(info.id, ME, slow, lambda said: None, lambda: paused[0], draft=False)
    await (await door.prompt(info.id, (Text("x"),), ME)).done
    assert slow.events == []
    assert len(merge(watch.held)) < 50
    paused[0] = False
    watch.resume()
    assert slow.text() == "x" * 5_000
    assert slow.of(ev.TurnEnded)


async def test_a_reader_that_stalls_too_long_is_told_and_gets_kept_events_from_the_store(
    monkeypatch,
):
    monkeypatch.setattr("dragoman.engine.hub.HOLD_BYTES", 2_000)
    door = memory_door(Scripted([say("x" * 50_000, deltas=50)] * 3))
    info = await door.open(OpenSpec(cwd="/"), ME)
    slow, paused = Tape(), [True]
    watch = await door.watch(info.id, ME, slow, lambda said: None, lambda: paused[0], draft=False)
    for _ in range(3):
        await (await door.prompt(info.id, (Text("x"),), ME)).done
    assert watch.weight <= 2_000
    paused[0] = False
    watch.resume()
    await slow.until(ev.Lagged)
    await slow.until(ev.TurnEnded, lambda e: e.seq == host_of(door).live[info.id].state.seq - 1)
    seqs = [e.seq for e in slow.events if e.seq]
    assert seqs == list(range(2, host_of(door).live[info.id].state.seq + 1))


async def test_one_that_lagged_is_told_how_much_it_missed(monkeypatch):
    monkeypatch.setattr("dragoman.engine.hub.HOLD_BYTES", 2_000)
    script = Scripted([say("x" * 9_000, deltas=30, delay=0.002)] * 2 + ["short"])
    door = memory_door(script)
    info = await door.open(OpenSpec(cwd="/"), ME)
    fast, slow, paused = Tape(), Tape(), [True]
    await door.watch(info.id, ME, fast, lambda said: None, draft=False)
    watch = await door.watch(info.id, ME, slow, lambda said: None, lambda: paused[0], draft=False)
    for _ in range(2):
        await (await door.prompt(info.id, (Text("x"),), ME)).done
    passed = sum(not event.seq for event in fast.events) - 1  # without its own coming
    paused[0] = False
    watch.resume()
    await slow.until(ev.TurnEnded, lambda e: e.seq == host_of(door).live[info.id].state.seq - 1)
    (lagged,) = slow.of(ev.Lagged)
    given = sum(not event.seq for event in slow.events) - 1
    assert passed > 30 and lagged.dropped == passed - given
    await (await door.prompt(info.id, (Text("x"),), ME)).done
    assert slow.text().endswith("short") and len(slow.of(ev.Lagged)) == 1


async def test_a_watcher_of_everything_can_come_back_without_a_gap():
    door = memory_door(Scripted(["a", "b", "c"]))
    first = Tape()
    watch = door.watch_all(ME, first, lambda said: None)
    one = await door.open(OpenSpec(cwd="/"), ME)
    await (await door.prompt(one.id, (Text("1"),), ME)).done
    watch.close()
    last = first.events[-1].gseq
    two = await door.open(OpenSpec(cwd="/"), ME)
    await (await door.prompt(two.id, (Text("2"),), ME)).done
    again = Tape()
    door.watch_all(ME, again, lambda said: None, since=last)
    await again.until(ev.TurnEnded)
    gseqs = [e.gseq for e in again.events if e.gseq]
    assert gseqs == list(range(last + 1, last + 1 + len(gseqs)))
    assert {e.session for e in again.events if e.gseq} == {two.id}


async def test_presence_names_everybody_attached():
    door = memory_door(Scripted([call("echo", text="x")]), [EchoTool()])
    info = await door.open(OpenSpec(cwd="/"), ME)
    tape = Tape()
    await door.watch(info.id, ME, tape, lambda said: None)
    other = Who("acp", name="zed", id="c9")
    watch = await door.watch(info.id, other, Tape(), lambda said: None)
    await tape.until(ev.Presence, lambda e: e.body.clients == (ME, other))
    watch.close()
    await asyncio.sleep(0)
    assert tape.of(ev.Presence)[-1].clients == (ME,)


async def test_a_replay_stops_for_a_client_that_does_not_read_and_goes_on_when_it_does(monkeypatch):
    monkeypatch.setattr(watching, "_REPLAY_PAGE", 4)
    door = memory_door(Scripted(["one", "two", "three", "four"]))
    info = await door.open(OpenSpec(cwd="/"), ME)
    for _ in range(4):
        await (await door.prompt(info.id, (Text("go"),), ME)).done
    paused = False
    places: asyncio.Queue[int] = asyncio.Queue()

    class Stalling:
        def speak(self, events):
            nonlocal paused
            paused = True
            places.put_nowait(events[-1].gseq)

    watch = door.watch_all(ME, Stalling(), lambda said: None, lambda: paused, since=0)
    for place in (4, 8, 12):
        assert await asyncio.wait_for(places.get(), 60) == place
        await asyncio.wait_for(door.idle(info.id), 60)
        assert places.empty()
        paused = False
        watch.resume()
    watch.close()


async def test_the_hub_of_the_host_replays_what_was_kept_before_this_process():
    door = memory_door(Scripted(["one"]))
    info = await door.open(OpenSpec(cwd="/"), ME)
    await (await door.prompt(info.id, (Text("go"),), ME)).done
    host_of(door).hub.last = 0  # as after a start: nothing was emitted yet
    tape = Tape()
    watch = door.watch_all(ME, tape, lambda said: None, since=1)
    await tape.until(ev.TurnEnded)
    assert [event.gseq for event in tape.events if event.seq][0] == 2
    watch.close()
