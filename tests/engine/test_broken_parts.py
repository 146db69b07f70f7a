"""A broken part - hook, tool, policy, provider, watcher - hurts itself and nobody else."""

import asyncio

import pytest
from tests.engine.tape import ME, Tape

from dragoman.engine import events as ev
from dragoman.engine.content import Text
from dragoman.engine.host import OpenSpec
from dragoman.engine.ports import ModelCallArgs, ModelOpened
from dragoman.testing.host import EchoTool, host_of, memory_door
from dragoman.testing.script import Scripted, call, say

GO = (Text("go"),)


async def start(door, **spec):
    info = await door.open(OpenSpec(cwd="/", **spec), ME)
    tape = Tape()
    await door.watch(info.id, ME, tape, lambda said: None, exact=True)
    return info.id, tape


def troubles(door):
    found = []
    host_of(door).trouble = lambda what, error, **data: found.append((what, error))
    return found


class Bad:
    """Breaks at every event, or at those of one kind."""

    def __init__(self, kind=None):
        self.kind = kind
        self.events = []

    def speak(self, events):
        if self.kind is None or any(isinstance(e.body, self.kind) for e in events):
            raise RuntimeError("cannot say this")
        self.events.extend(events)


async def test_a_watcher_that_cannot_speak_hurts_nobody():
    door = memory_door(Scripted([say("one two three")]))
    found = troubles(door)
    info = await door.open(OpenSpec(cwd="/"), ME)
    some = Bad(ev.TextDelta)
    await door.watch(info.id, ME, Bad(), lambda said: None)
    await door.watch(info.id, ME, some, lambda said: None)
    tape = Tape()
    await door.watch(info.id, ME, tape, lambda said: None)
    done = await (await door.prompt(info.id, GO, ME)).done
    assert done.outcome == "completed"
    assert tape.text() == "one two three"
    assert "TurnEnded" in tape.kinds()
    assert any(isinstance(e.body, ev.TurnEnded) for e in some.events)
    assert found and "cannot say this" in str(found[0][1])


async def test_a_watcher_that_cannot_be_delivered_to_is_let_go():
    door = memory_door(Scripted([say("one two three")]))
    troubles(door)
    info = await door.open(OpenSpec(cwd="/"), ME)

    class Echo:
        def speak(self, events):
            return b"x"

    def broken(said):
        raise OSError("gone")

    shape = Echo()
    heard = []
    bad = await door.watch(info.id, ME, shape, broken)
    await door.watch(info.id, ME, shape, heard.append)
    done = await (await door.prompt(info.id, GO, ME)).done
    assert done.outcome == "completed" and heard
    assert bad.closed and len(host_of(door).live[info.id].ledger.hub.watches) == 1


async def test_a_watcher_closed_by_another_is_told_nothing_more():
    door = memory_door(Scripted([say("x")]))
    info = await door.open(OpenSpec(cwd="/"), ME)

    class Echo:
        def speak(self, events):
            return [type(e.body).__name__ for e in events]

    heard = []
    watches = []

    def close_all(said):
        if "TurnBegan" in said:
            for watch in watches:
                watch.close()

    watches.append(await door.watch(info.id, ME, Echo(), close_all))
    watches.append(await door.watch(info.id, ME, Echo(), heard.append))
    heard.clear()
    await (await door.prompt(info.id, GO, ME)).done
    assert heard == [["Presence"]]  # that the first one left
    assert not host_of(door).live[info.id].ledger.hub.watches


async def test_a_replay_that_fails_is_tried_again(monkeypatch):
    monkeypatch.setattr("dragoman.engine.hub.RETRY_SECONDS", 0.01)
    door = memory_door(Scripted([say("x")]))
    troubles(door)
    info = await door.open(OpenSpec(cwd="/"), ME)
    await (await door.prompt(info.id, GO, ME)).done
    entries = host_of(door).store.entries
    failed = []

    async def once(*args):
        if not failed:
            failed.append(1)
            raise OSError("disk")
        return await entries(*args)

    host_of(door).store.entries = once
    tape = Tape()
    await door.watch(info.id, ME, tape, lambda said: None, since=0)
    await tape.until(ev.TurnEnded)
    assert failed and [e.seq for e in tape.events if e.seq] == list(
        range(1, (await door.info(info.id)).last_seq + 1)
    )


@pytest.mark.parametrize("hook", ["message_received", "agent_starting", "agent_completed",
                                  "tool_executing", "tool_completed", "message_sending",
                                  "message_sent", "session_start", "session_end"])  # fmt: skip
async def test_an_observer_that_breaks_is_reported_and_nothing_else(hook):
    class App:
        name = "app"

        def observe(self, hook, data, context):
            raise RuntimeError("app broke")

    door = memory_door(Scripted([call("echo", text="x"), "ok"]), [EchoTool(kind="read")])
    said = []
    door.hooks.on_trouble = lambda hook, who, what: said.append((hook, who, what))
    door.hooks.subscribe(hook, App(), intercepts=False)
    sid, _ = await start(door)
    done = await (await door.prompt(sid, GO, ME)).done
    assert done.outcome == "completed"
    await door.close(sid)
    assert said and said[0][:2] == (hook, "app") and "app broke" in said[0][2]


@pytest.mark.parametrize("hook", ["tool_executing", "message_sending"])
@pytest.mark.parametrize("closed", [False, True])
async def test_an_interceptor_that_breaks_counts_as_one_that_did_not_answer(hook, closed):
    class App:
        name = "app"

        async def intercept(self, hook, data, context):
            raise KeyError("oops")

    tool = EchoTool(kind="read")
    door = memory_door(Scripted([call("echo", text="x"), "ok"]), [tool])
    door.hooks.fail_closed = frozenset({hook} if closed else ())
    door.hooks.subscribe(hook, App(), intercepts=True)
    sid, _ = await start(door)
    done = await (await door.prompt(sid, GO, ME)).done
    assert done.outcome == "completed"
    if hook == "tool_executing":
        assert len(tool.ran) == (0 if closed else 1)


async def test_a_policy_that_breaks_denies():
    class Policy:
        def judge(self, call, spec, *, mode, cwd, roots, plan=""):
            raise RuntimeError("policy broke")

    tool = EchoTool()
    door = memory_door(Scripted([call("echo", text="x"), "ok"]), [tool])
    found = troubles(door)
    host_of(door).agents.judge = Policy()  # type: ignore[attr-defined]
    sid, tape = await start(door)
    done = await (await door.prompt(sid, GO, ME)).done
    assert done.outcome == "completed" and not tool.ran
    assert tape.of(ev.CallEnded)[0].outcome == "denied"
    assert found


async def test_a_tool_that_cannot_say_what_it_would_do_is_asked_about_all_the_same():
    class Tool(EchoTool):
        def summary(self, args):
            raise KeyError("command")

    tool = Tool()
    door = memory_door(Scripted([call("echo"), "ok"]), [tool])
    troubles(door)
    sid, tape = await start(door)
    work = await door.prompt(sid, GO, ME)
    ask = (await tape.until(ev.Asked)).body.ask
    await door.answer(ask.id, "allow", ME)
    assert (await work.done).outcome == "completed" and len(tool.ran) == 1


@pytest.mark.parametrize("error", [RuntimeError("bang"), asyncio.CancelledError(), TimeoutError()])
async def test_a_tool_that_breaks_fails_its_call_only(error):
    class Tool(EchoTool):
        async def run(self, args, env):
            raise error

    door = memory_door(Scripted([call("echo"), "ok"]), [Tool(kind="read")])
    troubles(door)
    sid, tape = await start(door)
    done = await asyncio.wait_for((await door.prompt(sid, GO, ME)).done, 60)
    assert (done.outcome, done.text) == ("completed", "ok")
    assert tape.of(ev.CallEnded)[0].outcome == "failed"


@pytest.mark.parametrize("parts", [[ModelOpened(), ModelCallArgs("no such call", "{}")],
                                   [ModelOpened(), RuntimeError("bang")],
                                   [asyncio.CancelledError()]])  # fmt: skip
async def test_a_provider_that_breaks_fails_the_turn_and_the_session_goes_on(parts):
    class Provider:
        name = "broken"
        closed = False

        async def stream(self, request):
            try:
                for part in parts:
                    if isinstance(part, BaseException):
                        raise part
                    yield part
                await asyncio.Event().wait()
            finally:
                Provider.closed = True

    door = memory_door(Scripted(["fine"]))
    troubles(door)
    sid, _ = await start(door)
    good, host_of(door).models.provider = host_of(door).models.provider, Provider()  # type: ignore[attr-defined]
    done = await asyncio.wait_for((await door.prompt(sid, GO, ME)).done, 60)
    assert done.outcome == "failed" and done.error
    assert Provider.closed
    host_of(door).models.provider = good  # type: ignore[attr-defined]
    assert (await (await door.prompt(sid, GO, ME)).done).text == "fine"
