"""The host: what it refuses while it stops or cannot write, whom it lets go, whom it takes up."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.engine.tape import ME, Tape

from dragoman.engine import events as ev
from dragoman.engine import host as host_module
from dragoman.engine import inbox as inbox_module
from dragoman.engine.content import Image, Text
from dragoman.engine.ending import UNKNOWN
from dragoman.engine.faults import (
    BadInput,
    Busy,
    InUse,
    NothingRunning,
    StoreFailed,
    UnknownAgent,
    UnknownSession,
)
from dragoman.engine.host import OpenSpec
from dragoman.engine.info import Page, SessionInfo, SessionQuery, each_session, plain_model
from dragoman.engine.opening import directory, whole_path
from dragoman.engine.ports import AgentProfile
from dragoman.engine.work import Work
from dragoman.store.memory import MemoryStore
from dragoman.testing.host import MODEL, EchoTool, FixedAgents, host_of, memory_door
from dragoman.testing.script import Scripted, call, hang

GO = (Text("go"),)


async def test_a_host_that_stops_takes_nothing_new() -> None:
    door = memory_door(Scripted(["ok"]))
    sid = (await door.open(OpenSpec(cwd="/"), ME)).id
    host_of(door).stopping = True
    with pytest.raises(Busy, match="shutting down"):
        await door.prompt(sid, GO, ME)
    with pytest.raises(Busy, match="shutting down"):
        await door.open(OpenSpec(cwd="/"), ME)
    await host_of(door).close(sid)
    with pytest.raises(Busy, match="shutting down"):
        await host_of(door).get(sid)


async def test_a_host_that_stops_while_a_command_is_read_takes_no_prompt() -> None:
    door = memory_door(Scripted(["ok"]))
    host = host_of(door)

    def stop(cwd: str) -> dict[str, Any]:
        host.stopping = True
        return {}

    host.commands = stop
    sid = (await door.open(OpenSpec(cwd="/"), ME)).id
    with pytest.raises(Busy, match="shutting down"):
        await door.prompt(sid, (Text("/review it"),), ME)


async def test_nothing_is_begun_while_nothing_can_be_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    door = memory_door(Scripted(["ok"]))
    sid = (await door.open(OpenSpec(cwd="/"), ME)).id
    monkeypatch.setattr(MemoryStore, "stalled", "the database is away")
    with pytest.raises(StoreFailed, match="the database is away"):
        await door.prompt(sid, GO, ME)
    with pytest.raises(StoreFailed, match="the database is away"):
        await door.open(OpenSpec(cwd="/"), ME)


async def test_only_text_is_looked_at_for_commands() -> None:
    door = memory_door(Scripted(["ok"]))
    image = Image(b"x", "image/png")
    content = (image, Text("/review"))
    assert await host_of(door).expanded(content, "/") is content
    assert await host_of(door).expanded((), "/") == ()


async def test_background_work_that_fails_is_reported() -> None:
    door = memory_door(Scripted([]))
    host = host_of(door)
    troubles: list[tuple[str, str]] = []
    host.on_trouble = lambda what, error, **data: troubles.append((what, str(error)))

    async def fail() -> None:
        raise OSError("no disk")

    async def wait() -> None:
        await asyncio.Event().wait()

    failing, waiting = host.spawn(fail()), host.spawn(wait())
    waiting.cancel()
    await asyncio.wait({failing, waiting})
    await asyncio.sleep(0)
    assert troubles == [("background work failed", "no disk")]


async def test_a_session_that_could_not_be_made_leaves_no_row_behind() -> None:
    store = MemoryStore()
    door = memory_door(Scripted([]), store=store)
    host = host_of(door)
    troubles: list[str] = []
    host.on_trouble = lambda what, error, **data: troubles.append(what)
    post, delete = store.post, store.delete

    def full(*given: Any, **how: Any) -> Any:
        future = asyncio.get_running_loop().create_future()
        future.set_exception(StoreFailed("The disk is full."))
        return future

    async def stuck(session: str) -> bool:
        raise StoreFailed("The disk is full.")

    store.post = full
    with pytest.raises(StoreFailed):
        await door.open(OpenSpec(cwd="/", id="one"), ME)
    assert (await door.list()).sessions == () and "one" not in host.live
    assert "an empty session stays in the store" not in troubles
    store.delete = stuck
    with pytest.raises(StoreFailed):
        await door.open(OpenSpec(cwd="/", id="two"), ME)
    assert "an empty session stays in the store" in troubles
    store.post, store.delete = post, delete


def agents_of(door: Any) -> FixedAgents:
    agents = host_of(door).agents
    assert isinstance(agents, FixedAgents)
    return agents


async def test_a_session_whose_agent_was_removed_goes_on_with_the_default_one() -> None:
    one = AgentProfile("one", model=MODEL.ref)
    door = memory_door(Scripted(["ok"]), profiles=[one, AgentProfile("default", model=MODEL.ref)])
    sid = (await door.open(OpenSpec(cwd="/", agent="one"), ME)).id
    await host_of(door).close(sid)
    del agents_of(door).profiles["one"]
    session = await host_of(door).get(sid)
    assert session.state.agent == session.state.info().agent == "default"
    assert (await (await door.prompt(sid, GO, ME)).done).text == "ok"


async def test_without_a_default_agent_it_is_said_which_one_is_missing() -> None:
    profiles = [AgentProfile(name, model=MODEL.ref) for name in ("one", "two", "three")]
    door = memory_door(Scripted(["ok"]), profiles=profiles)
    with pytest.raises(BadInput, match="none was named"):
        await door.open(OpenSpec(cwd="/"), ME)
    sid = (await door.open(OpenSpec(cwd="/", agent="one"), ME)).id
    await host_of(door).close(sid)
    del agents_of(door).profiles["one"]
    with pytest.raises(UnknownAgent):
        await host_of(door).get(sid)


async def test_a_session_of_another_node_is_used_from_here() -> None:
    """What a fleet sets: `elsewhere` speaks for a session that another process has."""
    store = MemoryStore()
    door = memory_door(Scripted([]), store=store)
    sid = (await door.open(OpenSpec(cwd="/"), ME)).id
    host = host_of(door)
    theirs = host.live[sid]
    here = memory_door(Scripted([]), store=store)
    other = host_of(here)
    other.owner, other.is_alive = "another", lambda owner: True
    with pytest.raises(InUse):
        await other.get(sid)
    told: list[str] = []

    async def elsewhere(session_id: str, fault: InUse) -> Any:
        told.append(session_id)
        return theirs

    other.elsewhere = elsewhere
    assert await other.get(sid) is theirs and told == [sid]
    with pytest.raises(BadInput, match="No checkpoints"):
        await here.checkpoints(sid)
    assert await here.delete("nowhere") is False


async def test_a_released_session_waits_for_whoever_takes_it_next() -> None:
    door = memory_door(Scripted([hang()]))
    host = host_of(door)
    sid = (await door.open(OpenSpec(cwd="/"), ME)).id
    tape = Tape()
    await door.watch(sid, ME, tape, lambda said: None)
    await host.release("nowhere")  # nothing to do
    first = await door.prompt(sid, GO, ME)
    await tape.until(ev.StatusChanged)
    await host.prompt(sid, (Text("later"),), ME, keep=True)
    assert not first.done.done()
    await host.release(sid)
    assert sid not in host.live and host.unheld == (sid,)
    hub = host.adopt_hub(sid)
    assert hub is not None and hub.watches and host.adopt_hub(sid) is None
    state = await host.rebuild(sid)
    assert [one.content for one in state.queued.values()] == [(Text("later"),)]


async def test_a_released_session_that_rests_is_found_by_what_waits_in_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    door = memory_door(Scripted([]))
    host = host_of(door)
    sid = (await door.open(OpenSpec(cwd="/"), ME)).id
    session = host.live[sid]
    await session.ledger.put(ev.Queued("trn_1", GO, ME))
    await host.release(sid)
    state = await host.rebuild(sid)
    assert state.status == "starting" and list(state.queued) == ["trn_1"]


async def test_a_node_does_not_take_up_by_itself_what_died() -> None:
    door = memory_door(Scripted([]))
    host = host_of(door)
    host.node = "n1"
    assert await host.recover() == 0


async def test_what_ends_while_others_are_looked_for_is_not_taken_up() -> None:
    store = MemoryStore()
    door = memory_door(Scripted([hang()], loop=True), store=store)
    host = host_of(door)
    sid = (await door.open(OpenSpec(cwd="/"), ME)).id
    await door.prompt(sid, GO, ME)
    await door.begun(sid)
    listing = store.list

    async def then_it_is_closed(query: SessionQuery) -> Page:
        found = await listing(query)
        assert [one.id for one in found.sessions] == [sid]
        await door.close(sid)
        return found

    store.list = then_it_is_closed  # type: ignore[method-assign]
    assert await host.recover() == 0 and not host.live


async def test_only_what_no_living_process_has_is_taken_up() -> None:
    store = MemoryStore()
    first = memory_door(Scripted([hang()], loop=True), store=store)
    ids = [(await first.open(OpenSpec(cwd="/", id=name), ME)).id for name in ("a", "b", "c")]
    for sid in ids:
        await first.prompt(sid, GO, ME)
        await first.begun(sid)
    second = memory_door(Scripted([]), store=store)
    host = host_of(second)
    host.owner = "second"
    host.is_alive = lambda owner: True
    assert await host.recover() == 0
    take = store.take

    async def taken(session: str, owner: str, is_alive: Callable[[str], bool]) -> int:
        if session == "a":
            raise InUse("It lives after all.")
        return await take(session, owner, is_alive)

    store.take = taken
    host.is_alive = lambda owner: False
    await host.get("b")
    assert await host.recover() == 1  # c: b is here already, a lives
    assert set(host.live) == {"b", "c"}


async def kill(door: Any) -> None:
    """As if the process ended: nothing more is written."""
    for session in host_of(door).live.values():
        session.park()
    for task in tuple(host_of(door)._tasks):
        task.cancel()
    await asyncio.sleep(0)


async def test_the_turn_of_a_dead_node_goes_on_at_another_once() -> None:
    store = MemoryStore()
    first = memory_door(Scripted([hang()]), store=store)
    sid = (await first.open(OpenSpec(cwd="/"), ME)).id
    await first.prompt(sid, GO, ME)
    await first.begun(sid)
    await kill(first)
    second = memory_door(Scripted(["went on"]), store=store)
    host = host_of(second)
    host.owner, host.node = "second", "n2"
    await host.get(sid)
    await second.idle(sid)
    said = [one for one in await second.messages(sid) if one.role == "assistant"]
    assert [one.content for one in said] == [(Text("went on"),)]
    notes = [e.body for e in await second.history(sid) if isinstance(e.body, ev.Noted)]
    assert [one.title for one in notes] == ["Went on elsewhere"]
    assert "It goes on on n2. The model is asked once more." in notes[0].text
    assert host.live[sid].state.resumed == notes[0].data["resumed"]  # type: ignore[index]


class Hangs(EchoTool):
    async def run(self, args: dict[str, Any], env: Any) -> Any:
        await asyncio.Event().wait()


async def test_what_had_begun_on_a_dead_node_is_not_done_again() -> None:
    store = MemoryStore()
    tool = Hangs()
    first = memory_door(Scripted([call("echo", text="x")]), [tool], store=store, mode="full")
    sid = (await first.open(OpenSpec(cwd="/"), ME)).id
    tape = Tape()
    await first.watch(sid, ME, tape, lambda said: None)
    await first.prompt(sid, GO, ME)
    await tape.until(ev.CallStarted)
    await kill(first)
    again = EchoTool()
    second = memory_door(Scripted(["I see"]), [again], store=store, mode="full")
    host = host_of(second)
    host.owner, host.node = "second", "n2"
    await host.get(sid)
    await second.idle(sid)
    ended = [e.body for e in await second.history(sid) if isinstance(e.body, ev.CallEnded)]
    assert [(one.outcome, one.content) for one in ended] == [("unknown", (Text(UNKNOWN),))]
    assert again.ran == []


async def test_a_session_that_only_began_to_start_rests_after_a_restart() -> None:
    store = MemoryStore()
    first = memory_door(Scripted([]), store=store)
    sid = (await first.open(OpenSpec(cwd="/"), ME)).id
    await host_of(first).live[sid].ledger.put(ev.StatusChanged("idle", "starting"))
    await kill(first)
    second = memory_door(Scripted([]), store=store)
    host_of(second).owner = "second"
    assert (await host_of(second).get(sid)).state.status == "interrupted"


async def test_a_long_history_is_read_in_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    door = memory_door(Scripted(["ok"], loop=True))
    host = host_of(door)
    sid = (await door.open(OpenSpec(cwd="/"), ME)).id
    for _ in range(3):
        await (await door.prompt(sid, GO, ME)).done
    monkeypatch.setattr(host_module, "_PAGE", 2)
    state = await host.rebuild(sid)
    assert (state.turns, len(state.messages)) == (3, 6)


async def test_closing_a_session_that_is_not_there_says_so() -> None:
    door = memory_door(Scripted([]))
    with pytest.raises(UnknownSession):
        await host_of(door).close("nowhere")


async def test_a_turn_that_ended_is_not_taken_up() -> None:
    """An answer and the end of a turn may cross each other."""
    door = memory_door(Scripted(["ok"]))
    host = host_of(door)
    troubles: list[str] = []
    host.on_trouble = lambda what, error, **data: troubles.append(str(error))
    sid = (await door.open(OpenSpec(cwd="/"), ME)).id
    inbox = host.live[sid].inbox
    inbox.resume()
    assert not inbox.busy
    work = Work("resume", "trn_gone")
    inbox.put(work, limit=1, wait=None)
    await asyncio.wait({work.done})
    assert "is over" in str(work.done.exception())
    host.take_up("nowhere")  # nobody is there


async def test_only_so_many_may_speak_into_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbox_module, "_MOST_STEERS", 2)
    door = memory_door(Scripted([hang()]))
    sid = (await door.open(OpenSpec(cwd="/"), ME)).id
    with pytest.raises(NothingRunning):
        await door.steer(sid, GO, ME)
    await door.prompt(sid, GO, ME)
    await door.begun(sid)
    for _ in range(2):
        await door.steer(sid, GO, ME)
    with pytest.raises(Busy, match="Too many"):
        await door.steer(sid, GO, ME)


async def test_a_closing_session_takes_no_prompt() -> None:
    door = memory_door(Scripted(["ok"]))
    sid = (await door.open(OpenSpec(cwd="/"), ME)).id
    session = host_of(door).live[sid]
    session.ledger.closing = True

    with pytest.raises(Busy, match="is closing"):
        session.inbox.put(Work("prompt", "trn_1", GO, ME), limit=5, wait=None)
    await session.gear.equip()
    assert session.gear.toolbox is None  # nothing is made for one that leaves


async def test_a_prompt_that_could_not_be_kept_is_refused() -> None:
    store = MemoryStore()
    door = memory_door(Scripted([hang()]), store=store)
    host = host_of(door)
    sid = (await door.open(OpenSpec(cwd="/"), ME)).id
    await door.prompt(sid, GO, ME)
    await door.begun(sid)
    post = store.post

    def full(*given: Any, **how: Any) -> Any:
        store.post = post
        future = asyncio.get_running_loop().create_future()
        future.set_exception(StoreFailed("The disk is full."))
        return future

    store.post = full
    with pytest.raises(StoreFailed, match="full"):
        await host.prompt(sid, (Text("later"),), ME, keep=True)
    assert host.live[sid].inbox.waiting == ()


async def test_efforts_and_servers_are_checked() -> None:
    door = memory_door(Scripted(["ok"]))
    sid = (await door.open(OpenSpec(cwd="/"), ME)).id
    with pytest.raises(BadInput, match="Unknown effort"):
        await door.set_reasoning(sid, "huge")
    with pytest.raises(BadInput, match="Unknown effort: huge"):
        await door.open(OpenSpec(reasoning="huge"), ME)
    assert len(door.live_infos()) == 1
    await door.set_reasoning(sid, "")
    session = host_of(door).live[sid]
    await door.equip(sid, [{"name": "s", "command": "x"}])
    assert session.gear.servers == [{"name": "s", "command": "x"}] and session.gear.toolbox


async def test_all_watchers_of_everything_share_a_shape() -> None:
    door = memory_door(Scripted([]))
    first, second = Tape(), Tape()
    watch = door.watch_all(ME, door.shared("k", first), lambda said: None)
    assert door.shared("k", second) is first
    watch.close()
    assert door.shared("k", second) is second  # nobody uses the first one any more


async def test_an_answer_is_told_with_the_node_that_took_it() -> None:
    door = memory_door(Scripted([call("echo", text="x"), "ok"]), [EchoTool()])
    host_of(door).node = "n7"
    sid = (await door.open(OpenSpec(cwd="/"), ME)).id
    tape = Tape()
    await door.watch(sid, ME, tape, lambda said: None)
    await door.prompt(sid, GO, ME)
    ask = (await tape.until(ev.Asked)).body.ask
    settled = await door.answer(ask.id, "deny", ME)
    assert settled.by == msgspec.structs.replace(ME, node="n7")
    await door.idle(sid)


async def test_pages_are_read_to_the_last_one() -> None:
    def info(name: str) -> SessionInfo:
        return SessionInfo(name, "a", "/", "m", "full", "idle", 1, 1)

    pages = {"": Page((info("1"), info("2")), "next"), "next": Page((info("3"),))}

    async def listed(query: SessionQuery) -> Page:
        return pages[query.cursor]

    asked: Callable[[SessionQuery], Awaitable[Page]] = listed
    assert [info.id async for info in each_session(asked, SessionQuery())] == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("ref", "plain"),
    [
        ("openai/gpt", "openai/gpt"),
        ("openai@work/gpt", "openai/gpt"),
        ("openai/gpt@2026", "openai/gpt@2026"),
        ("gpt@2026", "gpt@2026"),
    ],
)
def test_a_model_is_told_without_whose_variant_it_was(ref: str, plain: str) -> None:
    assert plain_model(ref) == plain


def test_where_a_session_is_to_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert whole_path("", "/launch", relative=False) == "/launch"
    assert whole_path("/a/../b", "/launch", relative=False) == "/a/../b"
    assert whole_path("a/../b", "/launch", relative=True) == "/launch/b"
    with pytest.raises(BadInput, match="is relative"):
        whole_path("a", "/launch", relative=False)
    with pytest.raises(BadInput, match="NUL"):
        whole_path("/a\0b", "/launch", relative=True)
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    assert directory(str(link)) == str(tmp_path.resolve())
    (tmp_path / "file").touch()
    with pytest.raises(BadInput, match="is not a directory"):
        directory(str(tmp_path / "file"))
    with pytest.raises(BadInput, match="does not exist"):
        directory(str(tmp_path / "nothing"))
    with monkeypatch.context() as dark, pytest.raises(BadInput, match="may not be entered"):
        dark.setattr(os, "access", lambda path, how: how != os.X_OK)
        directory(str(tmp_path))
    odd = tmp_path / "\udcff"
    odd.mkdir()
    with pytest.raises(BadInput, match="no UTF-8"):
        directory(str(odd))
