"""A store that fails in the middle: a clear fault, a state that is true, a session that goes on."""

import asyncio

import pytest
from tests.engine.tape import ME, Tape

from dragoman.engine import events as ev
from dragoman.engine.content import Text
from dragoman.engine.faults import StoreFailed, UnknownModel
from dragoman.engine.host import OpenSpec
from dragoman.engine.info import SessionQuery
from dragoman.engine.traits import Correspondent
from dragoman.store.sqlite import open_store
from dragoman.testing.host import MODEL, EchoTool, host_of, memory_door
from dragoman.testing.script import Scripted, call, hang

GO = (Text("go"),)
FULL = "The disk is full: nothing was saved."


async def start(door, **spec):
    info = await door.open(OpenSpec(cwd="/", **spec), ME)
    tape = Tape()
    await door.watch(info.id, ME, tape, lambda said: None, exact=True)
    return info.id, tape


def fill(store, when=lambda batch: True):
    """Fail appends from now on; returns how to make room again."""
    append = store.append

    async def full(batch):
        if when(batch):
            await asyncio.sleep(0)
            raise StoreFailed(FULL)
        return await append(batch)

    post = store.post
    store.post = lambda batch, **how: asyncio.ensure_future(full(batch))

    def free():
        store.post = post

    return free


def kinds(batch):
    return {entry.kind for entry in batch.entries}


async def check_sound(door, sid):
    """The live state is the fold of what is stored."""
    live = host_of(door).live[sid].state
    stored = await host_of(door).rebuild(sid)
    assert {k: getattr(live, k) for k in live.__struct_fields__ if k[0] != "_"} == {
        k: getattr(stored, k) for k in live.__struct_fields__ if k[0] != "_"
    }


@pytest.mark.parametrize("kind", ["turn_began", "spoke", "asked", "settled", "call_started",
                                  "call_ended", "turn_ended"])  # fmt: skip
async def test_a_full_disk_at_any_moment_of_a_turn(kind):
    tool = EchoTool()
    door = memory_door(Scripted([call("echo", text="x"), "ok", "after", "after", "after"]), [tool])
    sid, tape = await start(door)
    free = fill(host_of(door).store, lambda batch: kind in kinds(batch))

    async def answering():
        seen = set()
        while True:
            asked = await tape.until(ev.Asked, lambda e: e.seq not in seen)
            seen.add(asked.seq)
            try:
                await door.answer(asked.body.ask.id, "allow", ME)
            except StoreFailed:
                free()
                await door.answer(asked.body.ask.id, "allow", ME)

    answers = asyncio.ensure_future(answering())
    work = await door.prompt(sid, GO, ME)
    try:
        done = await asyncio.wait_for(work.done, 60)
        told = done.error
    except StoreFailed as fault:
        told = str(fault)
    if kind != "settled":
        assert FULL in told
    free()
    await check_sound(door, sid)
    done = await (await door.prompt(sid, (Text("again"),), ME)).done
    assert done.outcome == "completed"
    answers.cancel()
    await check_sound(door, sid)
    seqs = [e.seq for e in tape.events if e.seq]
    assert seqs == sorted(set(seqs))


async def test_many_appends_that_fail_together_leave_a_true_state():
    door = memory_door(Scripted(["ok"]))
    sid, _ = await start(door)
    fails = iter([True, False, True, False])
    free = fill(host_of(door).store, lambda batch: next(fails, False))
    told = await asyncio.gather(
        *(door.rename(sid, f"title {n}") for n in range(8)), return_exceptions=True
    )
    assert any(isinstance(one, StoreFailed) for one in told)
    free()
    await check_sound(door, sid)
    await door.rename(sid, "at last")
    assert (await door.info(sid)).title == "at last"
    await check_sound(door, sid)


async def test_a_session_that_cannot_be_stored_says_why_and_leaves_nothing():
    door = memory_door(Scripted(["ok"]))
    free = fill(host_of(door).store)
    with pytest.raises(StoreFailed, match="disk is full"):
        await door.open(OpenSpec(cwd="/", id="mine"), ME)
    assert not host_of(door).live
    assert not (await door.list(SessionQuery())).sessions
    free()
    assert (await door.open(OpenSpec(cwd="/", id="mine"), ME)).id == "mine"


async def test_a_store_that_cannot_be_read_either_lets_the_session_go_and_take_up_again():
    door = memory_door(Scripted(["ok", "fine"]))
    sid, tape = await start(door)
    store = host_of(door).store
    free = fill(store)
    entries = store.entries

    async def broken(*args):
        raise StoreFailed("The disk is broken.")

    store.entries = broken
    with pytest.raises(StoreFailed, match="disk is full"):
        await (await door.prompt(sid, GO, ME)).done
    assert door.live(sid) is None
    store.entries = entries
    free()
    assert (await (await door.prompt(sid, GO, ME)).done).outcome == "completed"
    assert "TurnEnded" in tape.kinds()


async def test_what_cannot_be_stored_changes_nothing():
    door = memory_door(Scripted(["ok"]))
    sid, _ = await start(door)
    before = host_of(door).live[sid].state.seq
    with pytest.raises(Exception):  # noqa: B017
        await door.keep(sid, Correspondent, metadata={"bad": object()})
    assert host_of(door).live[sid].state.seq == before
    await door.rename(sid, "fine")
    await check_sound(door, sid)


async def test_text_that_is_no_unicode_is_the_same_live_and_stored(tmp_path):
    store, _ = open_store(tmp_path / "s.db")
    try:
        door = memory_door(Scripted(["a\ud800b"]), store=store)
        sid, tape = await start(door)
        done = await (await door.prompt(sid, (Text("x\udc00y"),), ME)).done
        assert done.outcome == "completed"
        await check_sound(door, sid)
        for event in tape.events:
            if event.seq:
                ev.encode_body(event.body)
        assert (await door.info(sid)).result == "a\N{REPLACEMENT CHARACTER}b"
    finally:
        await store.close()


async def test_a_session_loads_though_its_model_is_gone_and_says_so_when_prompted():
    script = Scripted(["ok", "fine"])
    door = memory_door(script)
    host_of(door).models.more["scripted/other"] = MODEL  # type: ignore[attr-defined]
    sid, _ = await start(door, model="scripted/other")
    session = host_of(door).live[sid]
    session.state.model = "gone/model"
    await host_of(door).live[sid].ledger.put(ev.ModelSet("gone/model"))
    await door.close(sid)
    assert (await door.load(sid)).model == "gone/model"
    done = await (await door.prompt(sid, GO, ME)).done
    assert done.outcome == "failed" and "gone/model" in done.error
    with pytest.raises(UnknownModel):
        await door.set_model(sid, "nonsense")
    await door.set_model(sid, MODEL.ref)
    assert (await (await door.prompt(sid, GO, ME)).done).outcome == "completed"


async def test_one_session_that_cannot_be_read_does_not_keep_the_others(tmp_path):
    store, _ = open_store(tmp_path / "s.db")
    try:
        script = Scripted([hang()])
        door = memory_door(script, store=store)
        ids = []
        for _ in range(3):
            sid, _ = await start(door)
            await door.prompt(sid, GO, ME)
            ids.append(sid)
        for sid in ids:
            await door.watch(sid, ME, tape := Tape(), lambda said: None, since=0)
            await tape.until(ev.TurnBegan)
        for session in host_of(door).live.values():
            session.park()
        fresh = memory_door(script, store=store)
        host_of(fresh).owner = "another"
        real = host_of(fresh).rebuild

        async def rebuild(sid):
            if sid == ids[1]:
                raise ValueError("an event nobody knows")
            return await real(sid)

        host_of(fresh).rebuild = rebuild
        found = []
        host_of(fresh).trouble = lambda what, error, **data: found.append(data.get("session"))
        assert await host_of(fresh).recover() == 2
        assert found == [ids[1]]
    finally:
        await store.close()


async def test_facts_of_many_writers_are_stored_and_told_in_one_order(tmp_path):
    store, _ = open_store(tmp_path / "s.db")
    try:
        door = memory_door(Scripted(["ok"], loop=True), store=store)
        all_of = Tape()
        door.watch_all(ME, all_of, lambda said: None)
        sessions = [await start(door) for _ in range(8)]

        async def write(sid, n):
            await door.rename(sid, f"{n}")
            await (await door.prompt(sid, GO, ME)).done

        await asyncio.gather(*(write(sid, n) for n in range(20) for sid, _ in sessions))
        for sid, tape in sessions:
            seqs = [e.seq for e in tape.events if e.seq]
            assert seqs == list(range(seqs[0], (await door.info(sid)).last_seq + 1))
            await check_sound(door, sid)
        places = [e.gseq for e in all_of.events if e.gseq]
        assert places == list(range(places[0], await door.newest() + 1))
    finally:
        await store.close()


async def test_an_answer_that_came_first_in_another_process_is_named(tmp_path):
    store, _ = open_store(tmp_path / "s.db")
    other, _ = open_store(tmp_path / "s.db")
    try:
        door = memory_door(Scripted([call("echo", text="x"), "ok"]), [EchoTool()], store=store)
        host_of(door).owner = "a"
        second = memory_door(Scripted([]), store=other)
        host_of(second).owner = "b"
        host_of(second).is_alive = lambda owner: True
        sid, tape = await start(door)
        work = await door.prompt(sid, GO, ME)
        ask = (await tape.until(ev.Asked)).body.ask.id
        told = await asyncio.gather(
            door.answer(ask, "allow", ME), second.answer(ask, "deny", ME), return_exceptions=True
        )
        assert not isinstance(told[0], Exception)
        assert type(told[1]).__name__ in ("InUse", "AlreadySettled")
        await work.done
        with pytest.raises(Exception, match="already decided: allow"):
            await second.answer(ask, "deny", ME)
    finally:
        await store.close()
        await other.close()
