"""`dragoman.client` against a real daemon: typed events, everything a program wants."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.cross.house import House

from dragoman.client import ConnectionGone, HostClient, NotRunning, connect
from dragoman.engine import events as ev
from dragoman.engine.content import Text
from dragoman.engine.faults import (
    AlreadySettled,
    BadInput,
    Busy,
    NothingRunning,
    UnknownSession,
    WrongState,
)


@pytest.fixture
async def house(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[House]:
    folder: Path = tmp_path_factory.mktemp("c")
    made = House(folder)
    await made.start()
    yield made
    await made.close()


@pytest.fixture
async def host(house: House) -> AsyncIterator[HostClient]:
    async with connect(house.socket("daemon"), name="a test") as made:
        yield made


async def test_a_prompt_is_an_iterator_of_typed_events(host: HostClient, house: House) -> None:
    session = await host.open(cwd=str(house.work), title="first")
    (house.work / "a.txt").write_text("x")
    bodies = [event.body async for event in host.prompt(session.id, "list the files")]
    assert isinstance(bodies[0], ev.TurnBegan)
    assert bodies[0].by is not None and bodies[0].by.name == "a test"
    kinds = [type(body) for body in bodies]
    assert kinds.index(ev.CallStarted) < kinds.index(ev.CallEnded) < kinds.index(ev.TurnEnded)
    ended = next(body for body in bodies if isinstance(body, ev.CallEnded))
    assert ended.content == (Text("a.txt\n"),) or "a.txt" in str(ended.content)
    text = "".join(body.text for body in bodies if isinstance(body, ev.TextDelta))
    spoke = [body for body in bodies if isinstance(body, ev.Spoke)]
    assert text == "".join(b.text for body in spoke for b in body.content if isinstance(b, Text))
    last = next(body for body in bodies if isinstance(body, ev.TurnEnded))
    assert last.outcome == "completed"


async def test_lists_history_and_changes(host: HostClient, house: House) -> None:
    session = await host.open(cwd=str(house.work))
    assert (await host.run(session.id, "what is dragoman")).outcome == "completed"
    assert [one.id for one in await host.list()] == [session.id]
    assert [one.id for one in await host.list(status=["running"])] == []
    kept = [event async for event in host.history(session.id)]
    assert [event.seq for event in kept] == list(range(1, len(kept) + 1))
    assert [event.seq async for event in host.history(session.id, 2, 2)] == [3, 4]
    assert (await host.rename(session.id, "named")).title == "named"
    assert (await host.set_mode(session.id, "full")).mode == "full"
    assert (await host.set_reasoning(session.id, "low")).reasoning == "low"
    assert (await host.set_model(session.id, "demo/demo")).model == "demo/demo"
    fork = await host.fork(session.id, title="other")
    assert fork.parent == session.id and fork.messages == 2
    assert (await host.archive(fork.id)).archived
    assert fork.id not in [one.id for one in await host.list()]
    assert fork.id in [one.id for one in await host.list(archived=None)]
    assert await host.delete(fork.id) and not await host.delete(fork.id)
    assert (await host.clear(session.id)).messages == 0
    facts = await host.session(session.id)
    assert facts.live and not facts.busy and facts.asks == ()
    assert (await host.agents())[0].alias == "default"
    assert "demo/demo" in [row.ref for row in await host.models()]
    assert "a test" in [row.name for row in await host.clients()]
    assert (await host.status())["sessions"]["live"] == 1


async def test_approvals(host: HostClient, house: House) -> None:
    session = await host.open(cwd=str(house.work))
    outcome = ""
    async for event in host.prompt(session.id, 'write "x" to a.txt'):
        match event.body:
            case ev.Asked(ask=ask):
                assert [one.ask.id for one in await host.approvals()] == [ask.id]
                settled = await host.answer(ask.id, "allow", comment="fine", digest=ask.digest)
                assert settled.by is not None and settled.by.dialect == "zeroclaw"
                with pytest.raises(AlreadySettled):
                    await host.answer(ask.id, "deny")
            case ev.TurnEnded(outcome=outcome):
                pass
    assert outcome == "completed" and (house.work / "a.txt").exists()
    (row,) = await host.approvals(session.id, pending=False)
    assert row.settled is not None and row.settled.comment == "fine"


async def test_cancel_steer_and_busy(host: HostClient, house: House) -> None:
    session = await host.open(cwd=str(house.work))
    with pytest.raises(NothingRunning):
        await host.cancel(session.id)
    turn = ""
    outcome = ""
    async for event in host.prompt(session.id, "count slowly to 300"):
        match event.body:
            case ev.TextDelta() if not turn:
                with pytest.raises(Busy):
                    async for _ in host.prompt(session.id, "x", when_busy="refuse"):
                        assert False
                turn = await host.steer(session.id, "faster")
                assert await host.cancel(session.id) == turn
            case ev.TurnEnded(outcome=outcome):
                assert event.body.turn == turn
    assert outcome == "cancelled"


async def test_a_queued_prompt_shows_only_its_own_turn(host: HostClient, house: House) -> None:
    session = await host.open(cwd=str(house.work))
    began = asyncio.Event()

    async def first() -> list[str]:
        seen = []
        async for event in host.prompt(session.id, "count slowly to 5"):
            began.set()
            seen.append(str(getattr(event.body, "turn", "")))
        return seen

    running = asyncio.ensure_future(first())
    await asyncio.wait_for(began.wait(), 60)
    second = [event async for event in host.prompt(session.id, "what is dragoman", key="k")]
    turns = {str(getattr(event.body, "turn", "")) for event in second} - {""}
    assert len(turns) == 1 and turns.isdisjoint(await running)
    with pytest.raises(WrongState):
        async for _ in host.prompt(session.id, "what is dragoman", key="k"):
            assert False


async def test_attach_from_a_place_and_go_on_after_a_crash(host: HostClient, house: House) -> None:
    session = await host.open(cwd=str(house.work))
    await host.run(session.id, "what is dragoman")
    seen: list[int] = []
    async with host.attach(session.id, since=2) as events:
        last = events.last
        async for event in events:
            if event.seq:
                seen.append(event.seq)
            if event.seq == last:
                break
        place = events.place
    assert seen == list(range(3, last + 1)) and place == last
    await house.kill()
    with pytest.raises(ConnectionGone):
        await host.status()
    await house.start()
    async with connect(house.socket("daemon")) as again:
        async with again.attach(session.id, since=place) as events:
            await again.rename(session.id, "still here")
            async for event in events:
                if event.seq:
                    assert event.seq == last + 1
                    assert isinstance(event.body, ev.Renamed)
                    break


async def test_watching_all_sessions(host: HostClient, house: House) -> None:
    async with host.watch() as events:
        one = await host.open(cwd=str(house.work))
        two = await host.open(cwd=str(house.work))
        opened = []
        async with asyncio.timeout(60):
            async for event in events:
                if isinstance(event.body, ev.Opened):
                    opened.append(event.session)
                if len(opened) == 2:
                    break
    assert opened == [one.id, two.id]


async def test_a_slow_reader_misses_nothing_that_is_kept(host: HostClient, house: House) -> None:
    session = await host.open(cwd=str(house.work))
    async with host.attach(session.id) as events:
        for _ in range(20):
            await host.run(session.id, "what is dragoman")
        last = (await host.session(session.id)).session.last_seq
        kept = []
        async with asyncio.timeout(60):
            async for event in events:
                if event.seq:
                    kept.append(event.seq)
                if event.seq == last:
                    break
    assert kept == list(range(2, last + 1))


async def test_what_goes_wrong_is_the_hosts_own_fault(host: HostClient) -> None:
    with pytest.raises(UnknownSession, match="nope"):
        await host.session("nope")
    with pytest.raises(UnknownSession):
        async for _ in host.prompt("nope", "x"):
            assert False
    with pytest.raises(BadInput):
        await host.open(cwd="/does/not/exist")
    assert (await host.status())["pid"]  # the connection goes on


async def test_the_wire_of_others_and_answers_that_always_get_through(
    host: HostClient, house: House
) -> None:
    await host.call("dragoman/tap")
    async with connect(house.socket("daemon"), name="noisy") as noisy:
        for _ in range(400):
            await noisy.status()
        assert (await host.status())["pid"]  # though nobody has taken what was told
        async with asyncio.timeout(60):
            async for method, row in host.notices():
                assert method == "dragoman/wire" and row["dialect"] == "zeroclaw"
                break


async def test_nobody_listens(tmp_path: Path) -> None:
    with pytest.raises(NotRunning, match="dragoman daemon"):
        async with connect(str(tmp_path / "no.sock")):
            assert False


async def test_the_address_is_found_by_the_configuration(house: House, tmp_path: Path) -> None:
    async with connect(config_dir=str(house.config)) as host:
        assert (await host.status())["config_dir"] == str(house.config)
