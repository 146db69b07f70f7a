"""Promises with a number: how fast a turn stops, how little an idle session is."""

import asyncio
import gc
import os
import time
import tracemalloc

import pytest
from tests.engine.tape import ME, Tape
from tests.timed import promised

from dragoman.engine import events as ev
from dragoman.engine.content import Text
from dragoman.engine.faults import BadInput
from dragoman.engine.host import OpenSpec
from dragoman.store.sqlite import open_store
from dragoman.testing.host import EchoTool, host_of, memory_door
from dragoman.testing.script import Scripted, call, hang, say

GO = (Text("go"),)


@pytest.mark.parametrize("part", [hang(), say("word " * 50_000, delay=0.001), say("w " * 200_000)])
@promised(0.1)
async def test_a_model_stream_stops_soon(part, within):
    script = Scripted([part])
    door = memory_door(script)
    sid = (await door.open(OpenSpec(cwd="/"), ME)).id
    tape = Tape()
    await door.watch(sid, ME, tape, lambda said: None)
    work = await door.prompt(sid, GO, ME)
    await tape.until(ev.StreamOpened)
    began = time.perf_counter()
    door.cancel(sid)
    done = await asyncio.wait_for(work.done, 60)
    assert time.perf_counter() - began < within
    assert done.outcome == "cancelled" and script.aborted == 1


async def test_a_thousand_idle_sessions_are_small_and_have_no_task():
    door = memory_door(Scripted(["ok"], loop=True))
    # Warm up what is made once.
    first = (await door.open(OpenSpec(cwd="/"), ME)).id
    await (await door.prompt(first, GO, ME)).done
    gc.collect()
    tasks = len(asyncio.all_tasks())
    tracemalloc.start()
    try:
        for _ in range(1_000):
            sid = (await door.open(OpenSpec(cwd="/"), ME)).id
            await (await door.prompt(sid, GO, ME)).done
        gc.collect()
        used = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert len(host_of(door).live) == 1_001
    assert len(asyncio.all_tasks()) == tasks
    assert used < 20 * 1024 * 1024, f"{used / 1e6:.1f} MB"


async def test_a_session_that_never_worked_is_less_than_a_kilobyte(tmp_path):
    store, _ = open_store(str(tmp_path / "idle.db"))
    door = memory_door(Scripted(["ok"]), store=store)
    for _ in range(50):
        await door.open(OpenSpec(cwd="/"), ME)
    gc.collect()
    tracemalloc.start()
    least, before = 1e9, 0
    try:
        # A table that grows just then counts for one thousand of them, what sessions keep for each.
        for _ in range(3):
            for _ in range(1_000):
                await door.open(OpenSpec(cwd="/"), ME)
            gc.collect()
            now = tracemalloc.get_traced_memory()[0]
            least, before = min(least, (now - before) / 1_000), now
            if least < 1024:
                break
    finally:
        tracemalloc.stop()
        await host_of(door).stop()
        await store.close()
    assert least < 1024, least


async def test_an_agent_that_cannot_run_leaves_no_session_behind():
    door = memory_door(Scripted(["ok"]))

    def lacks(profile):
        raise BadInput("agents.default has no command.")

    host_of(door).agents.backend = lacks
    with pytest.raises(BadInput):
        await door.open(OpenSpec(cwd="/"), ME)
    assert not (await door.list()).sessions


async def test_nothing_but_the_history_grows_with_the_number_of_turns():
    tool = EchoTool()
    door = memory_door(Scripted([call("echo", text="x"), "ok"], loop=True), [tool])
    sid = (await door.open(OpenSpec(cwd="/"), ME)).id
    tape = Tape()
    await door.watch(sid, ME, tape, lambda said: None)
    for n in range(400):
        work = await door.prompt(sid, GO, ME, key=f"k{n}")
        await door.answer((await tape.until(ev.Asked)).body.ask.id, "allow", ME)
        await work.done
        tape.events.clear()
    session = host_of(door).live[sid]
    state = session.state
    assert len(state.keys) == len(state.settled) == 256
    asks, ledger, host = session.asks, session.ledger, host_of(door)
    for few in (state.asks, state.journal, state.answers, asks._waiting, asks._timers,
                ledger._committing, session.inbox.waiting, ledger.hub._pending, host._loading,
                host._leaving, host._hubs):  # fmt: skip
        assert not few
    assert len(host_of(door)._tasks) <= 1


def alive(group):
    """Processes of a group that run; the dead that nobody has reaped yet do not count."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as file:
                state, _, its_group = file.read().rpartition(")")[2].split()[:3]
        except OSError:
            continue  # gone meanwhile
        if int(its_group) == group and state not in "ZX":
            found.append(name)
    return found


@promised(3.0)
async def test_a_tools_process_group_dies_soon(tmp_path, within):
    from dragoman.policy.autonomy import AutonomyPolicy, Rules
    from dragoman.tools.registry import Registry

    policy = AutonomyPolicy(Rules())
    registry = Registry(
        lambda env: policy.boundary(env.mode, env.cwd, env.roots), outputs=str(tmp_path / "out")
    )
    bash = registry.toolbox(None).find("bash")
    command = "trap '' TERM INT; echo $$ > pids; (trap '' TERM; sleep 300) & echo up; wait"
    door = memory_door(Scripted([call("bash", command=command)]), [bash])  # type: ignore[list-item]
    place = tmp_path / "work"
    place.mkdir()
    sid = (await door.open(OpenSpec(cwd=str(place), mode="full"), ME)).id
    tape = Tape()
    await door.watch(sid, ME, tape, lambda said: None)
    work = await door.prompt(sid, GO, ME)
    await tape.until(ev.Progress)
    leader = int((place / "pids").read_text())
    group = os.getpgid(leader)
    assert group != os.getpgid(0) and alive(group)
    began = time.perf_counter()
    door.cancel(sid)
    assert (await asyncio.wait_for(work.done, 60)).outcome == "cancelled"
    assert time.perf_counter() - began < within
    assert alive(group) == []
