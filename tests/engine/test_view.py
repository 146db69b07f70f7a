"""What others see of a session: of a live one all, of a stored one what is stored."""

from tests.engine.tape import ME, Tape

from dragoman.engine import events as ev
from dragoman.engine.content import Text, ToolCall
from dragoman.engine.host import OpenSpec
from dragoman.engine.view import Read, SessionView
from dragoman.testing.host import EchoTool, host_of, memory_door
from dragoman.testing.script import Scripted, call


async def test_a_live_view_tells_what_runs_and_who_waits() -> None:
    door = memory_door(Scripted([call("echo", text="x"), "ok"]), [EchoTool()])
    sid = (await door.open(OpenSpec(cwd="/"), ME)).id
    tape = Tape()
    await door.watch(sid, ME, tape, lambda said: None)
    session = host_of(door).live[sid]
    view = SessionView(session.ledger, session)
    assert (view.live, view.busy, view.works_on, view.begun_by, view.waiting) == (
        True, False, "", (), 0,
    )  # fmt: skip
    work = await door.prompt(sid, (Text("one"),), ME)
    await door.prompt(sid, (Text("two"),), None)
    ask = (await tape.until(ev.Asked)).body.ask
    assert (view.busy, view.begun_by, view.waiting) == (True, (ME, None), 1)
    assert view.works_on == work.turn
    assert view.vision and view.tool("echo") is not None and view.tool("other") is None
    assert view.running() == []  # it waits for a human: it has not begun
    await door.answer(ask.id, "deny", ME)
    await work.done
    await door.idle(sid)
    assert not view.closing
    assert view.info() == await door.info(sid)


async def test_a_stored_view_has_nothing_that_lives() -> None:
    door = memory_door(Scripted(["ok"]))
    sid = (await door.open(OpenSpec(cwd="/"), ME)).id
    await (await door.prompt(sid, (Text("one"),), ME)).done
    state = await host_of(door).rebuild(sid)
    view = SessionView(Read(state))
    assert (view.live, view.busy, view.works_on, view.waiting) == (False, False, "", 0)
    assert view.begun_by == () and not view.closing and not view.vision
    assert view.tool("echo") is None
    assert [one.role for one in view.messages] == ["user", "assistant"]
    state.journal = {"c": ("echo", True), "d": ("echo", False)}
    state.messages = [
        *state.messages[:1],
        type(state.messages[0])(
            "assistant", (ToolCall("c", "echo", {}), ToolCall("d", "echo", {}))
        ),
    ]
    assert [one.id for one in view.running()] == ["c"]


async def test_a_stored_view_is_as_busy_as_the_live_one() -> None:
    door = memory_door(Scripted([call("echo", text="x"), "ok"]), [EchoTool()])
    sid = (await door.open(OpenSpec(cwd="/"), ME)).id
    tape = Tape()
    await door.watch(sid, ME, tape, lambda said: None)
    await door.prompt(sid, (Text("one"),), ME)
    await tape.until(ev.Asked)
    await door.prompt(sid, (Text("two"),), ME, keep=True)
    await door.steer(sid, (Text("a word"),), ME)
    live, stored = await door.look(sid), SessionView(Read(await host_of(door).rebuild(sid)))
    assert (stored.live, stored.busy, stored.waiting) == (False, live.busy, live.waiting)
    assert (stored.busy, stored.waiting) == (True, 1)
