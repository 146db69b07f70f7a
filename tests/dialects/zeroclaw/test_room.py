"""Opening at the same time, and what makes room when as many sessions are live as may be."""

import asyncio
import json

import pytest
from tests.dialects.zeroclaw.talking import INIT, Talker, desk_of
from tests.transcripts.zeroclaw.starter import AskTool

from dragoman.dialects.zeroclaw import Desk, Settings
from dragoman.engine.content import text_of
from dragoman.engine.events import Steered, TurnBegan
from dragoman.engine.faults import TooMany
from dragoman.engine.host import OpenSpec
from dragoman.store.sqlite import SqliteStore
from dragoman.testing.host import EchoTool, host_of, memory_door
from dragoman.testing.script import Scripted, call, hang, turn

FORM = INIT.replace(b'"protocolVersion":1', b'"clientCapabilities":{"elicitation":{"form":{}}}')


@pytest.fixture
async def durable(tmp_path):
    """Makes desks on a stored host."""
    made = []

    def make(script, **settings):
        store = SqliteStore(tmp_path / "s.db")
        door = memory_door(script, [EchoTool()], store=store)
        made.append((door, store))
        return Desk(door, Settings(**settings))

    yield make
    for door, store in made:
        await host_of(door).stop(1.0)
        await store.close()


def opening(session_id):
    return {"agentAlias": "default", "sessionId": session_id}


async def test_all_who_open_the_same_new_session_at_once_are_in_it(durable):
    desk = durable(Scripted(["hello"]), max_sessions=1)
    talkers = [Talker(desk) for _ in range(20)]
    ids = [talker.say("session/new", opening("s")) for talker in talkers]
    for talker, id in zip(talkers, ids, strict=True):
        assert (await talker.answer(id))["result"]["sessionId"] == "s"
    await talkers[7].ask("session/prompt", {"sessionId": "s", "prompt": "go"})
    for talker in talkers[:7] + talkers[8:]:
        assert (await talker.until("agent_message_chunk"))["text"] == "hello"
    assert not desk.opening and list(host_of(desk.door).live) == ["s"]


@pytest.mark.parametrize("way", ["close", "delete"])
async def test_a_session_that_is_left_and_opened_in_one_write_is_there(durable, way):
    desk = durable(Scripted([turn("one", hang()), "two", "three"]))
    talker = Talker(desk)
    await talker.ask("session/new", opening("s"))
    first = talker.say("session/prompt", {"sessionId": "s", "prompt": "a"})
    await talker.until("agent_message_chunk")
    left = talker.say(f"session/{way}", {"sessionId": "s"})
    again = talker.say("session/new", opening("s"))
    asked = talker.say("session/prompt", {"sessionId": "s", "prompt": "b"})
    for id in (first, left, again):
        assert "result" in await talker.answer(id)
    assert (await talker.answer(asked))["result"]["content"] == "two"
    assert len(host_of(desk.door).live["s"].ledger.watches) == 1
    assert (await talker.ask("session/prompt", {"sessionId": "s", "prompt": "c"}))[
        "content"
    ] == "three"


async def test_prompts_that_meet_a_session_being_closed_keep_their_order(durable):
    desk = durable(Scripted(["x"] * 9))
    talker = Talker(desk)
    await talker.ask("session/new", opening("s"))
    host, gate = host_of(desk.door), asyncio.Event()
    shut = host._let_go

    async def slowly(session):
        await gate.wait()
        await shut(session)

    host._let_go = slowly
    closing = asyncio.ensure_future(host.close("s"))
    await asyncio.sleep(0)
    ids = []
    for number in range(9):  # some before it is gone, some while it is brought back, some after
        ids.append(talker.say("session/prompt", {"sessionId": "s", "prompt": f"p{number}"}))
        if number == 2:
            gate.set()
        await asyncio.sleep(0)
    await closing
    for id in ids:
        await talker.answer(id)
    said = [e.body.content for e in await desk.door.history("s") if isinstance(e.body, TurnBegan)]
    assert [text_of(content) for content in said] == [f"p{number}" for number in range(9)]


async def test_our_own_requests_of_one_write_take_effect_in_their_order(durable):
    desk = durable(Scripted([turn("one", hang()), "two", "three"]))
    talker = Talker(desk)
    of = {"session_id": "n"}
    words = {"text": "said into the first"}
    ids = [
        talker.say(f"dragoman/{method}", params)
        for method, params in (
            ("open", {"id": "n", "cwd": "/"}),
            ("watch", {**of, "since": 0}),
            ("prompt", {**of, "text": "a", "detach": True}),
            ("steer", {**of, **words}),
            ("prompt", {**of, "text": "b", "detach": True, "key": "k"}),
            ("retract", {**of, "key": "k"}),
            ("cancel", of),
            ("close", of),
            ("prompt", {**of, "text": "c"}),
            ("history", of),
        )
    ]
    said = {}
    while set(ids) - said.keys():
        message = json.loads(await talker.client.receive(30))
        said[message.get("id")] = message
    answers = [said[id].get("result") for id in ids]
    assert all(answers), said
    assert answers[1]["last"] == 0
    first = answers[2]["turn"]
    assert [answers[n]["turn"] for n in (3, 6)] == [first, first]
    assert answers[5]["turn"] == answers[4]["turn"] != first
    events = [e.body for e in await desk.door.history("n")]
    told = [
        e.turn for e in events if isinstance(e, Steered) and text_of(e.content) in words["text"]
    ]
    assert told == [first]
    assert [text_of(e.content) for e in events if isinstance(e, TurnBegan)] == ["a", "c"]


async def test_a_session_that_another_protocol_opens_meanwhile_is_joined(durable):
    desk = durable(Scripted([]))
    talker = Talker(desk)
    id = talker.say("session/new", opening("s"))
    made = asyncio.ensure_future(desk.door.open(OpenSpec(agent="default", cwd="/", id="s")))
    answer = await talker.answer(id)
    assert answer["result"]["workspaceDir"] == "/"
    assert (await made).id == "s"


async def test_an_opening_that_fails_does_not_keep_the_next_from_it():
    desk = desk_of(Scripted([]))
    first, second = Talker(desk), Talker(desk)
    bad = first.say("session/new", {"agentAlias": "nobody", "sessionId": "s"})
    good = second.say("session/new", opening("s"))
    assert (await first.answer(bad))["error"]["code"] == -32603
    assert (await second.answer(good))["result"]["sessionId"] == "s"


async def test_idle_sessions_that_nobody_watches_make_room(durable):
    desk = durable(Scripted(["one"]), max_sessions=3)
    for name in ("a", "b", "c"):
        talker = Talker(desk)
        await talker.new(name)
        if name == "b":
            await talker.ask("session/prompt", {"sessionId": "b", "prompt": "go"})
        await talker.leave(desk)
    stays = Talker(desk)
    await stays.new("d")
    assert set(host_of(desk.door).live) == {"b", "c", "d"}  # a is the longest idle
    others = [Talker(desk) for _ in range(2)]
    ids = [talker.say("session/new", opening(f"e{n}")) for n, talker in enumerate(others)]
    for talker, id in zip(others, ids, strict=True):
        assert "result" in await talker.answer(id)
    assert set(host_of(desk.door).live) == {"d", "e0", "e1"}
    assert (await stays.refused("session/new", opening("f")))["code"] == -32001
    await others[0].leave(desk)
    assert (await stays.new("b"))["messageCount"] == 2  # nothing was lost


async def test_busy_and_asking_sessions_do_not_make_room(durable):
    script = Scripted([turn(hang(), "end")])
    desk = durable(Scripted([call("echo", text="x")]), max_sessions=2)
    asks, runs = Talker(desk), Talker(desk)
    await asks.new("asks")
    asks.say("session/prompt", {"sessionId": "asks", "prompt": "go"}, id=False)
    await asks.until("approval_request")
    await asks.leave(desk)
    host_of(desk.door).models.provider = script  # type: ignore[attr-defined]
    await runs.new("runs")
    runs.say("session/prompt", {"sessionId": "runs", "prompt": "go"}, id=False)
    await asyncio.wait_for(script.hanging.wait(), 60)
    await runs.leave(desk)
    talker = Talker(desk)
    assert (await talker.refused("session/new", opening("more")))["code"] == -32001
    script.release()
    await asyncio.wait_for(desk.door.idle("runs"), 60)
    await talker.new("more")
    assert set(host_of(desk.door).live) == {"asks", "more"}


async def test_sessions_that_are_not_stored_are_kept():
    desk = desk_of(Scripted([]), settings=Settings(max_sessions=1))
    talker = Talker(desk)
    await talker.new("a")
    await talker.leave(desk)
    other = Talker(desk)
    assert (await other.refused("session/new", opening("b")))["code"] == -32001
    assert list(host_of(desk.door).live) == ["a"]


async def test_the_limit_of_the_host_is_kept_the_same_way(durable):
    desk = durable(Scripted([]))
    door = desk.door
    host_of(door).max_sessions = 2
    for name in ("a", "b", "c"):
        await door.open(OpenSpec(cwd="/", id=name))
    assert set(host_of(door).live) == {"b", "c"}
    await door.load("a")
    assert set(host_of(door).live) == {"c", "a"}
    talker = Talker(desk)
    await talker.new("a")
    await talker.new("c")
    with pytest.raises(TooMany):
        await door.open(OpenSpec(cwd="/", id="d"))


async def test_a_question_that_somebody_else_answered_is_not_waited_for():
    desk = desk_of(Scripted([call("ask", question="Which?"), "done"]), [AskTool()])
    asked, other = Talker(desk, FORM), Talker(desk)
    await asked.new()
    await other.new()
    prompt = asked.say("session/prompt", {"sessionId": "s", "prompt": "go"})
    question = await other.until("approval_request")
    while True:
        message = json.loads(await asked.client.receive())
        if message.get("method") == "elicitation/create":
            break
    hearer = asked.client.pump.hearer
    assert hearer.outbound.pending == 1
    chosen = {"decision": "answer", "replacement": "red"}
    answer = {"sessionId": "s", "requestId": question["requestId"], **chosen}
    await other.ask("session/approve", answer)
    assert (await asked.answer(prompt))["result"]["content"] == "done"
    assert hearer.outbound.pending == 0
    late = {"action": "accept", "content": {"answer": "blue"}}
    asked.client.send(json.dumps({"jsonrpc": "2.0", "result": late, "id": message["id"]}).encode())
    await asked.ask("status")
    (row,) = await desk.door.asks(pending=False)
    assert (row.settled.text, row.settled.by.id) == ("red", other.client.pump.hearer.who.id)
