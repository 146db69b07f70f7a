"""One connection: limits, order, what it costs, and what happens when it goes away."""

import asyncio
import json

import pytest
from tests.dialects.zeroclaw.talking import INIT, Talker, desk_of

from dragoman.dialects.zeroclaw import speak
from dragoman.dialects.zeroclaw.hear import IN_FLIGHT, MAX_LINE
from dragoman.engine.content import Text
from dragoman.engine.ports import Outcome, ToolSpec
from dragoman.testing.script import Scripted, call, hang, say, turn
from dragoman.wire.lines import READ_ON


class Gate:
    """A tool that runs until it is let go."""

    spec = ToolSpec("gate", "Wait.", {"type": "object"}, "read")

    def __init__(self):
        self.running = asyncio.Event()
        self.open = asyncio.Event()

    async def run(self, args, env):
        self.running.set()
        await self.open.wait()
        return Outcome((Text("through"),))

    def summary(self, args):
        return ""


async def test_a_line_of_exactly_the_limit_is_heard():
    talker = Talker(desk_of(Scripted([])))
    line = b'{"jsonrpc":"2.0","method":"status","id":7,"more":"'
    talker.client.feed(line + b"x" * (MAX_LINE - len(line) - 3) + b'"}\n')
    assert (await talker.answer(7))["result"]["protocolVersion"] == 1


async def test_a_line_that_does_not_end_is_told_and_ends_the_connection():
    talker = Talker(desk_of(Scripted([])))
    for _ in range(READ_ON * 8 + 1):
        talker.client.feed(b"x" * 1_048_576)
    message = json.loads(await talker.client.receive())
    assert message["error"]["code"] == -32600 and message["id"] is None
    with pytest.raises(EOFError):
        await talker.client.receive()


async def test_status_needs_no_task_and_one_write():
    talker = Talker(desk_of(Scripted([])))
    wire = talker.client.wire
    before, tasks = len(wire.writes), len(asyncio.all_tasks())
    request = b'{"jsonrpc":"2.0","method":"status","params":{},"id":1}'
    talker.client.send(*[request] * 50)
    assert len(asyncio.all_tasks()) == tasks
    assert len(wire.writes) == before + 1
    assert len(talker.client.received()) == 50


async def test_status_follows_the_sessions_and_the_settings():
    desk = desk_of(Scripted([]))
    talker = Talker(desk)
    first = desk.status(True)
    assert desk.status(True) is first
    await talker.new("a")
    assert (await talker.ask("status"))["sessionIds"] == ["a"]
    from dragoman.dialects.zeroclaw import Settings

    desk.settings = Settings(server_version="7")
    assert (await talker.ask("status"))["serverVersion"] == "7"
    await talker.ask("session/close", {"sessionId": "a"})
    assert (await talker.ask("status"))["activeSessions"] == 0


async def test_requests_do_not_wait_for_each_other():
    gate = Gate()
    talker = Talker(desk_of(Scripted([call("gate"), "done"]), [gate]))
    await talker.new()
    prompt = talker.say("session/prompt", {"sessionId": "s", "prompt": "go"})
    await talker.until("tool_call")
    closing = talker.say("session/close", {"sessionId": "s"})
    assert (await talker.ask("status"))["activeSessions"] == 1
    assert (await talker.answer(prompt))["result"]["stopReason"] == "cancelled"
    assert (await talker.answer(closing))["result"] == {"sessionId": "s", "closed": True}
    assert (await talker.ask("status"))["activeSessions"] == 0


async def test_a_session_may_be_made_and_used_in_one_chunk():
    talker = Talker(desk_of(Scripted(["one", "two"])), init=None)
    lines = [
        INIT,
        b'{"jsonrpc":"2.0","method":"session/new","params":{"agentAlias":"default","sessionId":"s"},"id":1}',
        b'{"jsonrpc":"2.0","method":"session/prompt","params":{"sessionId":"s","prompt":"a"},"id":2}',
        b'{"jsonrpc":"2.0","method":"session/prompt","params":{"sessionId":"s","prompt":"b"},"id":3}',
        b'{"jsonrpc":"2.0","method":"session/messages","params":{"sessionId":"s"},"id":4}',
    ]
    talker.client.send(*lines)
    assert (await talker.answer(1))["result"]["sessionId"] == "s"
    assert (await talker.answer(2))["result"]["content"] == "one"
    assert (await talker.answer(3))["result"]["content"] == "two"


async def test_the_end_of_input_waits_for_the_answers():
    script = Scripted([turn(hang(), "late")])
    talker = Talker(desk_of(script))
    await talker.new()
    prompt = talker.say("session/prompt", {"sessionId": "s", "prompt": "go"})
    talker.client.end()
    await asyncio.wait_for(script.hanging.wait(), 60)
    script.release()
    assert (await talker.answer(prompt))["result"]["content"] == "late"
    with pytest.raises(EOFError):
        await talker.client.receive()


async def test_a_turn_goes_on_when_its_client_leaves():
    script = Scripted([turn(hang(), "after")])
    desk = desk_of(script)
    talker = Talker(desk)
    await talker.new()
    talker.say("session/prompt", {"sessionId": "s", "prompt": "go"}, id=False)
    await asyncio.wait_for(script.hanging.wait(), 60)
    await talker.leave(desk)
    assert not desk.door.present("s") and not desk.tuis
    script.release()
    await asyncio.wait_for(desk.door.idle("s"), 60)
    other = Talker(desk)
    assert (await other.new())["messageCount"] == 2
    messages = await other.ask("session/messages", {"sessionId": "s"})
    assert [one["content"] for one in messages["messages"]] == ["go", "after"]


async def test_the_answer_does_not_overtake_the_updates_of_a_slow_reader():
    talker = Talker(desk_of(Scripted([say("x" * 400_000, 2_000)])))
    await talker.new()
    talker.client.wire.stuck = True
    prompt = talker.say("session/prompt", {"sessionId": "s", "prompt": "go"})
    door = talker.client.pump.hearer.door
    async with asyncio.timeout(60):
        while not talker.client.pump.paused:  # noqa: ASYNC110
            await asyncio.sleep(0)
        await door.idle("s")
    assert talker.client.pump.paused
    assert talker.client.pump.buffered < 1_000_000
    talker.client.wire.take()
    answer = await talker.answer(prompt)
    text = "".join(one["params"].get("text", "") for one in talker.seen)
    assert text == answer["result"]["content"] == "x" * 400_000


async def test_watchers_of_a_spelling_share_one_encoding(monkeypatch):
    made = []
    spoken = speak.Updates.speak

    def counted(self, events):
        made.extend(events)
        return spoken(self, events)

    monkeypatch.setattr(speak.Updates, "speak", counted)
    desk = desk_of(Scripted([say("abc", 3)]))
    talkers = [Talker(desk) for _ in range(10)]
    for talker in talkers:
        await talker.new()
    await talkers[0].ask("session/prompt", {"sessionId": "s", "prompt": "go"})
    for talker in talkers[1:]:
        await talker.until("agent_message_chunk")
    ends = [event for event in made if type(event.body).__name__ == "TurnEnded"]
    assert len(ends) == 1


async def test_requests_in_flight_are_bounded():
    script = Scripted([hang()])
    talker = Talker(desk_of(script))
    await talker.new()
    hearer = talker.client.pump.hearer
    hearer.shell.working = IN_FLIGHT
    error = await talker.refused("session/list", {})
    assert error["code"] == -32603 and str(IN_FLIGHT) in error["message"]
    hearer.shell.working = 0


async def test_a_broken_verb_is_an_internal_error(monkeypatch):
    desk = desk_of(Scripted([]))
    talker = Talker(desk)
    monkeypatch.setattr(desk.door, "list", lambda query: 1 / 0)
    error = await talker.refused("session/list", {})
    assert error == {"code": -32603, "message": "Internal error: ZeroDivisionError"}
    assert (await talker.ask("status"))["protocolVersion"] == 1


async def test_a_client_that_claims_its_old_name_replaces_the_old_entry():
    desk = desk_of(Scripted([]))
    first = Talker(desk)
    name = first.init["result"]["tuiId"]
    init = {
        "jsonrpc": "2.0",
        "method": "initialize",
        "params": {"protocolVersion": 1, "tuiId": name},
        "id": 0,
    }
    again = Talker(desk, json.dumps(init).encode())
    assert again.init["result"]["tuiId"] == name
    assert len((await again.ask("tui/list"))["tuis"]) == 1
