"""What ZeroClaw's own terminal relies on, where it differs from scripts that speak the protocol."""

import asyncio
import json
from typing import Any

import pytest

from dragoman.dialects.zeroclaw import Desk, Settings
from dragoman.engine.content import Text
from dragoman.engine.events import Who
from dragoman.engine.host import OpenSpec
from dragoman.engine.ports import AgentProfile, Outcome, ToolSpec
from dragoman.testing.host import MODEL, EchoTool, host_of, memory_door
from dragoman.testing.script import Scripted, call

from .talking import Talker, desk_of


class Gate:
    """Runs until it is opened."""

    spec = ToolSpec("gate", "Wait.", {"type": "object"}, "read")

    def __init__(self):
        self.running = asyncio.Event()
        self.open = asyncio.Event()

    async def run(self, args, env):
        self.running.set()
        await self.open.wait()
        return Outcome((Text("opened"),))

    def summary(self, args):
        return "wait"


class AskTool:
    spec = ToolSpec("ask", "Ask the human.", {"type": "object"}, "think")

    async def run(self, args, env):
        answer = await env.ask(args["question"], tuple(args.get("choices", ())))
        return Outcome((Text(answer.text if answer.answered else "no answer"),))

    def summary(self, args):
        return args["question"]


HELLO = {"protocol_version": 1, "clientCapabilities": {"elicitation": {"form": {}}}}


def hello(**more):
    message = {"jsonrpc": "2.0", "method": "initialize", "params": {**HELLO, **more}, "id": 0}
    return json.dumps(message).encode()


def terminal(desk, **more):
    return Talker(desk, hello(**more))


async def opened(talker, session_id="s"):
    return await talker.ask("session/new", {"agent_alias": "default", "session_id": session_id})


# --- the version ---


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({}, "0.8.4"),
        ({"client_info": {"name": "zerocode", "version": "0.8.7"}}, "0.8.7"),
        ({"clientInfo": {"name": "zerocode", "version": "0.8.2"}}, "0.8.2"),
        ({"client_name": "ZeroCode", "client_version": "0.8.4-beta.1"}, "0.8.4-beta.1"),
        ({"clientInfo": "zerocode/0.8.3"}, "0.8.3"),
        ({"clientInfo": {"name": "zerocode", "version": "1.0.0"}}, "0.8.4"),
        ({"clientInfo": {"name": "zerocode", "version": 8}}, "0.8.4"),
        ({"clientInfo": {"name": "zerocode", "version": "0.8.4\n"}}, "0.8.4"),
        ({"clientInfo": {"name": "another"}}, None),
        ({"clientCapabilities": None}, None),
    ],
)
async def test_the_terminal_hears_its_own_version(more, told):
    desk = desk_of(Scripted(["hi"]))
    talker = terminal(desk, **more)
    version = told or desk.version
    assert talker.init["result"]["server_version"] == version
    assert (await talker.ask("status"))["server_version"] == version


async def test_a_version_of_the_configuration_counts_for_all():
    desk = desk_of(Scripted(["hi"]), settings=Settings(server_version="3"))
    assert terminal(desk).init["result"]["server_version"] == "3"


# --- closing ---


async def test_closing_leaves_what_another_runs():
    gate = Gate()
    desk = desk_of(Scripted([call("gate"), "done"]), [gate])
    worker, other = terminal(desk), terminal(desk)
    await opened(worker)
    await opened(other)
    turn = worker.say("session/prompt", {"session_id": "s", "prompt": "go"})
    await asyncio.wait_for(gate.running.wait(), 60)
    assert (await other.ask("session/close", {"session_id": "s"}))["closed"]
    gate.open.set()
    assert "error" not in await worker.answer(turn)
    assert worker.kinds()[-1] == "turn_complete"
    assert other.kinds().count("turn_complete") == 0  # it left
    assert (await worker.ask("session/close", {"session_id": "s"}))["closed"]
    assert desk.door.live("s") is None  # the last one lets it go


async def test_a_turn_whose_client_closed_ends_when_the_last_one_closes():
    gate = Gate()
    desk = desk_of(Scripted([call("gate"), "done"]), [gate])
    worker, other = terminal(desk), terminal(desk)
    await opened(worker)
    await opened(other)
    worker.say("session/prompt", {"session_id": "s", "prompt": "go"}, id=False)
    await asyncio.wait_for(gate.running.wait(), 60)
    await worker.ask("session/close", {"session_id": "s"})
    assert desk.door.live("s").turn  # the other one still looks
    await other.ask("session/close", {"session_id": "s"})
    assert desk.door.live("s") is None


async def test_whoever_comes_back_has_not_left():
    gate = Gate()
    desk = desk_of(Scripted([call("gate"), "done"]), [gate])
    worker, other = terminal(desk), terminal(desk)
    await opened(worker)
    await opened(other)
    turn = worker.say("session/prompt", {"session_id": "s", "prompt": "go"})
    await asyncio.wait_for(gate.running.wait(), 60)
    await worker.ask("session/close", {"session_id": "s"})
    await opened(worker)
    await other.ask("session/close", {"session_id": "s"})
    gate.open.set()
    assert "error" not in await worker.answer(turn)


async def test_closing_leaves_what_a_client_that_is_gone_began():
    gate = Gate()
    desk = desk_of(Scripted([call("gate"), "done"]), [gate])
    worker, other = terminal(desk), terminal(desk)
    await opened(worker)
    await opened(other)
    worker.say("session/prompt", {"session_id": "s", "prompt": "go"}, id=False)
    await asyncio.wait_for(gate.running.wait(), 60)
    await worker.leave(desk)
    await other.ask("session/close", {"session_id": "s"})
    gate.open.set()
    await asyncio.wait_for(desk.door.idle("s"), 60)
    found = await other.ask("session/messages", {"session_id": "s"})
    assert [one["role"] for one in found["messages"]] == ["user", "assistant"]


async def test_closing_ends_ones_own_turn_when_nobody_else_is_there():
    gate = Gate()
    desk = desk_of(Scripted([call("gate"), "never"]), [gate])
    talker = terminal(desk)
    await opened(talker)
    talker.say("session/prompt", {"session_id": "s", "prompt": "go"}, id=False)
    await asyncio.wait_for(gate.running.wait(), 60)
    await talker.ask("session/close", {"session_id": "s"})
    assert desk.door.live("s") is None


async def test_killing_ends_it_for_all():
    gate = Gate()
    desk = desk_of(Scripted([call("gate"), "never"]), [gate])
    worker, other = terminal(desk), terminal(desk)
    await opened(worker)
    await opened(other)
    worker.say("session/prompt", {"session_id": "s", "prompt": "go"}, id=False)
    await asyncio.wait_for(gate.running.wait(), 60)
    await other.ask("session/kill", {"session_id": "s"})
    assert (await worker.until("turn_complete"))["outcome"] == "cancelled"
    assert (await worker.refused("session/state", {"session_id": "s"}))["code"] == -32000


# --- questions ---


class Asking:
    """Waits for what a client is asked by a request."""

    @staticmethod
    async def request(talker):
        while True:
            message = json.loads(await talker.client.receive(60))
            if message.get("method") == "elicitation/create":
                return message
            talker.seen.append(message)

    @staticmethod
    def reply(talker, request, **what):
        talker.client.send(json.dumps({"jsonrpc": "2.0", "id": request["id"], **what}).encode())


async def question(choices=()):
    """Two terminals at a session in which a question is open."""
    args = {"question": "Which?", **({"choices": list(choices)} if choices else {})}
    desk = desk_of(Scripted([call("ask", **args), "done"]), [AskTool()])
    first, second = terminal(desk), terminal(desk)
    await opened(first)
    await opened(second)
    first.say("session/prompt", {"session_id": "s", "prompt": "go"}, id=False)
    return desk, first, second


async def test_a_question_without_choices_is_no_form_for_the_terminal():
    desk, first, second = await question()
    told = await first.until("agent_thought_chunk")
    assert "Which?" in told["text"]
    (row,) = await desk.door.asks("s")
    assert row.ask.id in told["text"]
    assert not [one for one in first.seen if one.get("method") == "elicitation/create"]
    await desk.door.answer(row.ask.id, "answer", Who("test", "here"), text="that one")
    assert (await first.until("tool_result"))["raw_output"] == "that one"
    assert (await second.until("turn_complete"))["outcome"] == "completed"
    assert not [one for one in second.seen if one.get("method") == "elicitation/create"]


@pytest.mark.parametrize(
    "inability",
    [
        {"result": {"action": "cancel"}},
        {"result": None},
        {"result": {"action": "accept"}},
        {"result": {"action": "accept", "content": {"choice": "choice-7"}}},
        {"result": {"action": 3}},
        {"error": {"code": -32601, "message": "unknown"}},
    ],
)
async def test_an_inability_settles_nothing(inability):
    desk, first, second = await question(["red", "blue"])
    Asking.reply(first, await Asking.request(first), **inability)
    asked = await Asking.request(second)
    assert await desk.door.asks("s")
    good = {"action": "accept", "content": {"choice": "choice-1"}}
    Asking.reply(second, asked, result=good)
    assert (await first.until("tool_result"))["raw_output"] == "blue"


async def test_a_human_who_is_alone_dismisses_a_question():
    desk, first, second = await question(["red", "blue"])
    await second.leave(desk)
    Asking.reply(first, await Asking.request(first), result={"action": "cancel"})
    assert (await first.until("turn_complete"))["outcome"] == "completed"
    assert not await desk.door.asks("s")


# --- what others say, and what is listed ---


@pytest.mark.parametrize("camel", [True, False])
async def test_a_watcher_sees_the_prompt_and_its_author_does_not(camel):
    desk = desk_of(Scripted(["one", "two"]))
    first, second = Talker(desk) if camel else terminal(desk), terminal(desk)
    await (first.new() if camel else opened(first))
    await opened(second)
    first.say("session/prompt", {"session_id": "s", "prompt": "hello there"}, id=False)
    told = await second.until("user_message_chunk")
    assert told["text"] == "hello there"
    drawn = await second.until("agent_thought_chunk")  # the terminal passes over the other kind
    assert drawn["text"] == "[another client asks] hello there\n\n"
    await second.until("turn_complete")
    second.say("session/prompt", {"session_id": "s", "prompt": "and you"}, id=False)
    assert (await first.until("user_message_chunk"))["text"] == "and you"
    await second.until("turn_complete")
    for kind in ("user_message_chunk", "agent_thought_chunk"):
        assert second.kinds().count(kind) == 1
    if not camel:
        assert "and you" in (await first.until("agent_thought_chunk"))["text"]


async def test_sessions_that_were_never_used_are_not_listed():
    desk = desk_of(Scripted(["hi"]))
    for number in range(3):
        talker = terminal(desk)
        await opened(talker, f"empty-{number}")
        assert [row["session_id"] for row in (await talker.ask("session/list", {}))["sessions"]]
        await talker.leave(desk)
        await asyncio.gather(*host_of(desk.door)._tasks)
    talker = terminal(desk)
    await opened(talker, "used")
    await talker.ask("session/prompt", {"session_id": "used", "prompt": "hello"})
    await talker.ask("session/close", {"session_id": "used"})
    (row,) = (await talker.ask("session/list", {"query": None}))["sessions"]
    assert row["session_id"] == "used" and row["channel_id"] is None and row["name"] == "hello"
    assert desk.door.live_ids() == ()


async def test_a_short_list_looks_behind_sessions_that_are_not_shown(monkeypatch):
    from dragoman.dialects.zeroclaw.verbs import sessions

    monkeypatch.setattr(sessions, "_FEWEST", 2)
    desk = desk_of(Scripted(["hi"]))
    talker = terminal(desk)
    await opened(talker, "used")
    await talker.ask("session/prompt", {"session_id": "used", "prompt": "hello"})
    await talker.ask("session/close", {"session_id": "used"})
    for _ in range(5):  # of scripts, which forget nothing
        await desk.door.open(OpenSpec(agent="default"), Who("acp", "there"))
    for params in ({"limit": 1}, {"limit": 3}, {"query": "hello", "limit": 1}):
        rows = (await talker.ask("session/list", params))["sessions"]
        assert [row["session_id"] for row in rows] == ["used"]


async def test_an_unused_session_comes_back_under_its_id():
    desk = desk_of(Scripted(["hi"]))
    talker = terminal(desk)
    await opened(talker, "s")
    await talker.leave(desk)
    await asyncio.gather(*host_of(desk.door)._tasks)
    again = terminal(desk)
    assert (await opened(again, "s"))["session_id"] == "s"
    answer = await again.ask("session/prompt", {"session_id": "s", "prompt": "hello"})
    assert answer["content"] == "hi"


async def test_messages_before_a_compaction_are_there():
    from dragoman.engine.entries import is_compacted
    from dragoman.engine.events import Compacted

    desk = desk_of(Scripted(["one", "two", "three", "four"]))
    talker = terminal(desk)
    await opened(talker)
    for text in ("a", "b"):
        await talker.ask("session/prompt", {"session_id": "s", "prompt": text})
    ledger = host_of(desk.door).live["s"].ledger
    await ledger.put(Compacted("all of it", 1))
    await talker.ask("session/prompt", {"session_id": "s", "prompt": "c"})
    await ledger.put(Compacted("all of that", 2))
    await talker.ask("session/prompt", {"session_id": "s", "prompt": "d"})
    assert is_compacted(desk.door.live("s").messages)
    found = await talker.ask("session/messages", {"session_id": "s"})
    texts = [one["content"] for one in found["messages"]]
    assert texts == ["a", "one", "b", "two", "c", "three", "d", "four"]
    assert found["total"] == 8 and found["start"] == 0
    page = await talker.ask("session/messages", {"session_id": "s", "limit": 2, "before_index": 3})
    assert [one["content"] for one in page["messages"]] == ["one", "b"] and page["start"] == 1
    assert (await opened(talker))["message_count"] == 8
    await desk.door.clear("s")
    assert (await talker.ask("session/messages", {"session_id": "s"}))["total"] == 0


# --- names ---


async def test_changes_to_files_are_spelled_as_the_terminal_draws_them():
    edits = [{"oldText": "a", "newText": "b"}, {"oldText": "c", "newText": "d"}]
    script = [
        call("write", path="x", content="text"),
        call("edit", path="x", edits=edits),
        "done",
    ]
    desk = desk_of(Scripted(script), [EchoTool("write", "read"), EchoTool("edit", "read")])
    talker = terminal(desk)
    await opened(talker)
    talker.say("session/prompt", {"session_id": "s", "prompt": "go"}, id=False)
    wrote = await talker.until("tool_call")
    assert wrote["name"] == "file_write"
    assert wrote["raw_input"] == {"path": "x", "content": "text"}
    assert (await talker.until("tool_result"))["name"] == "file_write"
    edited = await talker.until("tool_call")
    assert edited["name"] == "file_edit"
    assert (edited["raw_input"]["old_string"], edited["raw_input"]["new_string"]) == (
        "a\nc",
        "b\nd",
    )


@pytest.mark.parametrize("given", ["scripted", "scripted.default", "scripted@default"])
async def test_a_provider_is_taken_as_it_was_told(given):
    desk = desk_of(Scripted(["hi"]))
    talker = terminal(desk)
    await opened(talker)
    for overrides in ({"model_provider": given}, {"model_provider": given, "model": "test"}):
        params = {"session_id": "s", "overrides": overrides}
        told = await talker.ask("session/configure", params)
        assert told["overrides"]["model_provider"] == given
    assert desk.door.live("s").model == "scripted/test"
    await talker.refused(
        "session/configure", {"session_id": "s", "overrides": {"model_provider": "no.default"}}
    )


async def test_memories_of_all_agents_are_listed_without_an_agent():
    from dragoman.agents.memory import MemoryEntry

    class Kept:
        def __init__(self, *entries):
            self.entries = list(entries)

        def all(self, category, limit):
            return [e for e in self.entries if not category or e.category == category][:limit]

        def recall(self, query, limit):
            return [e for e in self.entries if query in e.content][:limit]

        def get(self, key):
            return next((e for e in self.entries if e.key == key), None)

        def forget(self, key):
            self.entries = [e for e in self.entries if e.key != key]
            return True

    def entry(key, at):
        return MemoryEntry(key, f"about {key}", "note", "", at, at)

    memories: dict[str, Any] = {
        "a": Kept(entry("x", 2), entry("both", 1)),
        "b": Kept(entry("y", 3), entry("both", 0)),
    }
    door = memory_door(
        Scripted(["hi"]), profiles=[AgentProfile(alias, model=MODEL.ref) for alias in "ab"]
    )
    door.facts.memory = memories.__getitem__
    talker = terminal(Desk(door))
    found = await talker.ask("memory/list", {"category": None})
    assert [(e["agent_alias"], e["key"]) for e in found["entries"]] == [
        ("b", "y"), ("a", "x"), ("a", "both"), ("b", "both"),
    ]  # fmt: skip
    found = await talker.ask("memory/search", {"query": "about y", "limit": 5})
    assert [e["agent_alias"] for e in found["entries"]] == ["b"]
    assert (await talker.ask("memory/get", {"key": "y"}))["entry"]["agent_alias"] == "b"
    assert (await talker.ask("memory/get", {"key": "nothing"}))["entry"] is None
    assert (await talker.ask("memory/delete", {"key": "y"}))["deleted"]
    assert "Several" in (await talker.refused("memory/delete", {"key": "both"}))["message"]
    assert (await talker.ask("memory/delete", {"key": "both", "agent": "b"}))["deleted"]
    assert len(memories["a"].entries) == 2


async def test_opening_another_protocols_session_is_no_channel():
    desk = desk_of(Scripted(["hi"]))
    info = await desk.door.open(OpenSpec(agent="default"), Who("acp", "there"))
    await desk.door.rename(info.id, "named")
    (row,) = (await terminal(desk).ask("session/list-acp", {}))["sessions"]
    assert row["channel_id"] is None and row["name"] == "named"
