"""Prompts, what is streamed, and how turns end."""

import asyncio
import json
from typing import Any

import msgspec
import pytest

from dragoman.engine.content import Text, Usage
from dragoman.engine.events import Who
from dragoman.engine.ports import Outcome, ToolSpec
from dragoman.testing.host import EchoTool, host_of, memory_door
from dragoman.testing.script import Scripted, call, fail, hang, say, think, turn

from .talking import JOIN, Talker, desk_of, select, talker


async def test_a_prompt_is_streamed_and_then_answered() -> None:
    client = talker(memory_door(Scripted([say("one two three", deltas=3, delay=0.005)])))
    session = await client.new()
    result = await client.prompt(session)
    assert result == {"sessionId": session, "stopReason": "end_turn", "content": "one two three"}
    chunks = [u for u in client.updates() if u["sessionUpdate"] == "agent_message_chunk"]
    assert len(chunks) >= 2
    assert client.said() == "one two three"
    assert client.heard[-1]["result"] == result  # nothing follows the answer
    await client.silence()


async def test_the_client_that_typed_a_prompt_is_not_told_it() -> None:
    client = talker(memory_door(Scripted(["hi"])))
    await client.prompt(await client.new())
    assert "user_message_chunk" not in client.kinds()


@pytest.mark.parametrize(
    ("prompt", "seen"),
    [
        ("plain", "plain"),
        ([{"text": "a"}, {"text": "b"}], "a\n\nb"),
        ([{"type": "text", "text": "a"}], "a"),
        (
            [{"text": "a"}, {"type": "resource", "resource": {"uri": "file:///x", "text": "b"}}],
            "a\n\n/x:\nb",
        ),
        (
            [{"type": "resource", "resource": {"uri": "file:///%5Bid%5D.tsx#L10:20", "text": "b"}},
             {"type": "resource", "resource": {"uri": "file:///a.rs?symbol=Foo#L7", "text": "c"}}],
            "/[id].tsx:10-20:\nb\n\n/a.rs:7 (symbol Foo):\nc",
        ),
        (
            [{"type": "resource_link", "uri": "file://[slug]/page.tsx#L3-L9", "name": "page.tsx"},
             {"type": "resource_link", "uri": "https://[::1/x#L1", "name": "odd", "title": "Odd"}],
            "[page.tsx]([slug]/page.tsx:3-9)\n\n[Odd](https://[::1/x#L1)",
        ),
        (
            [{"type": "text", "text": "see"},
             {"type": "resource_link", "uri": "file:///a%20b.txt", "name": "a b.txt"}],
            "see\n\n[a b.txt](/a b.txt)",
        ),
        ([{"type": "resource", "resource": {"uri": "x", "blob": "aGk="}}], "x:\nhi"),
    ],
)  # fmt: skip
async def test_prompts_in_all_their_forms(prompt: object, seen: str) -> None:
    script = Scripted(["ok"])
    client = talker(memory_door(script))
    await client.prompt(await client.new(), prompt)
    said = script.requests[0].messages[-1].content[0]
    assert isinstance(said, Text) and said.text == seen


@pytest.mark.parametrize(
    "prompt",
    [
        None, 5, [], [5], [{"type": "audio", "data": "", "mimeType": "audio/wav"}],
        [{"type": "text"}], [{"type": "resource", "resource": {"uri": "x"}}],
        [{"type": "resource", "resource": {"uri": "x", "blob": "%%%"}}], {"text": "x"},
    ],
)  # fmt: skip
async def test_prompts_that_cannot_be_used(prompt: object) -> None:
    client = talker(memory_door(Scripted(["ok"])))
    session = await client.new()
    params = {"sessionId": session} | ({} if prompt is None else {"prompt": prompt})
    assert (await client.refused("session/prompt", params))["code"] == -32602
    assert (await client.prompt(session))["content"] == "ok"


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image", "data": "", "mimeType": "image/png"},
        {"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"},
        {"type": "image", "data": "PHN2Zy8+", "mimeType": "image/svg+xml"},
        {"type": "resource", "resource": {"uri": "file:///a", "blob": "", "mimeType": "image/png"}},
    ],
)
async def test_a_picture_that_is_none_is_refused_before_it_spoils_the_conversation(
    part: dict[str, Any],
) -> None:
    script = Scripted(["ok"])
    client = talker(memory_door(script))
    session = await client.new()
    error = await client.refused("session/prompt", {"sessionId": session, "prompt": [part]})
    assert error["code"] == -32602 and "no picture" in error["message"]
    jpeg = {"type": "image", "data": "/9j/4A==", "mimeType": "image/png"}
    await client.prompt(session, [jpeg])
    assert script.requests[0].messages[-1].content[0].mime_type == "image/jpeg"


async def test_images_go_to_models_that_see() -> None:
    script = Scripted(["ok", "ok"])
    door = memory_door(script)
    client = talker(door)
    session = await client.new()
    image = {"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo="}
    await client.prompt(session, [{"type": "text", "text": "look"}, image])
    assert script.requests[0].messages[-1].content[1].mime_type == "image/png"
    models: Any = host_of(door).models
    models.model = msgspec.structs.replace(models.model, vision=False)
    error = await client.refused("session/prompt", {"sessionId": session, "prompt": [image]})
    assert error["code"] == -32602 and "image" in error["message"]


async def test_a_tool_turn_shows_the_whole_life_of_the_call() -> None:
    tool = EchoTool()
    client = talker(memory_door(Scripted([call("echo", text="hi"), "done"]), [tool], mode="full"))
    session = await client.new()
    await client.prompt(session)
    calls = [u for u in client.updates() if u["sessionUpdate"].startswith("tool_call")]
    assert [(u["sessionUpdate"], u["status"]) for u in calls] == [
        ("tool_call", "pending"),
        ("tool_call_update", "in_progress"),
        ("tool_call_update", "completed"),
    ]
    assert len({u["toolCallId"] for u in calls}) == 1
    assert calls[0]["rawInput"] == {"text": "hi"} and calls[0]["kind"] == "execute"
    assert calls[0]["title"].startswith("echo") and calls[0]["name"] == "echo"
    assert calls[2]["rawOutput"] == "hi" and calls[2]["name"] == "echo"
    assert calls[2]["content"] == [{"type": "content", "content": {"type": "text", "text": "hi"}}]


async def test_toad_gets_objects_and_only_updates_it_knows() -> None:
    door = memory_door(Scripted([call("echo", text="hi"), "done"]), [EchoTool()], mode="full")
    client = talker(door)
    await client.greet("toad")
    session = await client.new()
    await client.prompt(session)
    await client.call("session/set_mode", {"sessionId": session, "modeId": "readonly"})
    last = [u for u in client.updates() if u["sessionUpdate"] == "tool_call_update"][-1]
    assert last["rawOutput"] == {"output": "hi"}
    assert not {"session_info_update", "config_option_update", "notice"} & set(client.kinds())
    client.end.send(b'{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"no"}}')
    await client.silence()


async def test_a_failed_tool_is_failed() -> None:
    client = talker(memory_door(Scripted([call("nope"), "done"])))
    await client.prompt(await client.new())
    assert [u for u in client.updates() if u["sessionUpdate"] == "tool_call_update"][-1][
        "status"
    ] == "failed"


async def test_thoughts_are_their_own_chunks() -> None:
    client = talker(memory_door(Scripted([turn(think("hmm hmm"), "well")])))
    await client.prompt(await client.new())
    assert client.said("agent_thought_chunk") == "hmm hmm"
    assert client.said() == "well"


async def test_usage_tells_what_is_in_the_context_and_what_it_cost() -> None:
    script = Scripted([turn("a", usage=Usage(input=1000, output=10)),
                       turn("b", usage=Usage(input=1500, output=10))])  # fmt: skip
    client = talker(memory_door(script))
    session = await client.new()
    await client.prompt(session)
    await client.prompt(session)
    used = [u for u in client.updates() if u["sessionUpdate"] == "usage_update"]
    assert [u["used"] for u in used] == [1010, 1510]
    assert all(u["used"] <= u["size"] for u in used)
    assert used[0]["cost"]["amount"] < used[1]["cost"]["amount"]


async def test_the_first_prompt_gives_the_session_its_title() -> None:
    client = talker(memory_door(Scripted(["a", "b"])))
    session = await client.new()
    await client.prompt(session, "fix the  build\nplease")
    await client.prompt(session, "again")
    titles = [u["title"] for u in client.updates() if u["sessionUpdate"] == "session_info_update"]
    assert titles == ["fix the build please"]


async def test_cancel_ends_the_turn_with_what_was_said_and_the_marker() -> None:
    script = Scripted([turn(say("partial answer", deltas=1), hang()), "next"])
    client = talker(memory_door(script))
    session = await client.new()
    waiting = client.ask("session/prompt", {"sessionId": session, "prompt": "go"})
    await client.update("agent_message_chunk")
    client.tell("session/cancel", {"sessionId": session})
    result = (await client.reply(waiting))["result"]
    assert result["stopReason"] == "cancelled"
    assert result["content"] == "partial answer\n\n[interrupted by user]"
    await client.silence()
    assert (await client.prompt(session))["content"] == "next"


async def test_a_turn_that_the_host_stops_is_not_laid_to_the_user() -> None:
    door = memory_door(Scripted([turn(say("partial answer", deltas=1), hang())]))
    client = talker(door)
    session = await client.new()
    waiting = client.ask("session/prompt", {"sessionId": session, "prompt": "go"})
    await client.update("agent_message_chunk")
    await host_of(door).stop(1.0)
    result = (await client.reply(waiting))["result"]
    assert result["stopReason"] == "cancelled"
    assert result["content"] == "partial answer\n\n[interrupted: the host stopped]"


async def test_a_cancel_in_the_same_write_as_the_prompt_counts() -> None:
    script = Scripted([turn("a", hang()), "next"])
    client = talker(memory_door(script))
    session = await client.new()
    prompt = {"jsonrpc": "2.0", "id": "p", "method": "session/prompt",
              "params": {"sessionId": session, "prompt": "go"}}  # fmt: skip
    cancel = {"jsonrpc": "2.0", "method": "session/cancel", "params": {"session_id": session}}
    client.end.send(json.dumps(prompt).encode(), json.dumps(cancel).encode())
    result = (await client.reply("p"))["result"]
    assert result["stopReason"] == "cancelled" and result["content"].endswith(
        "[interrupted by user]"
    )


async def test_cancel_as_a_request_and_with_nothing_to_cancel() -> None:
    client = talker(memory_door(Scripted(["x"])))
    session = await client.new()
    assert await client.call("session/cancel", {"sessionId": session}) == {}
    assert await client.call("session/cancel", {"sessionId": "ghost"}) == {}
    client.tell("session/cancel", {"sessionId": session})
    client.tell("session/cancel", {"sessionId": "ghost"})
    client.tell("session/cancel")
    await client.silence()


async def test_cancel_request_stops_the_prompt_and_answers_once() -> None:
    client = talker(memory_door(Scripted([turn("x", hang())])))
    session = await client.new()
    waiting = client.ask("session/prompt", {"sessionId": session, "prompt": "go"})
    await client.update("agent_message_chunk")
    client.tell("$/cancel_request", {"requestId": "other"})
    client.tell("$/cancel_request", {"requestId": waiting})
    assert (await client.reply(waiting))["result"]["stopReason"] == "cancelled"
    await client.silence()


async def test_a_second_prompt_is_refused_at_once_and_others_go_on() -> None:
    script = Scripted([turn("x", hang())])
    door = memory_door(script)
    client = talker(door)
    one, two = await client.new(), await client.new()
    first = client.ask("session/prompt", {"sessionId": one, "prompt": "go"})
    await client.update("agent_message_chunk")
    error = await client.refused("session/prompt", {"sessionId": one, "prompt": "again"})
    assert error["code"] == -32002
    assert error["data"] == {"code": "SESSION_BUSY", "sessionId": one,
                             "hint": "Wait for it to end, or cancel it."}  # fmt: skip
    other = client.ask("session/prompt", {"sessionId": two, "prompt": "go"})
    await client.update("agent_message_chunk")
    script.release()
    assert (await client.reply(first))["result"]["stopReason"] == "end_turn"
    assert (await client.reply(other))["result"]["stopReason"] == "end_turn"


async def test_a_turn_of_another_client_makes_the_session_busy() -> None:
    script = Scripted([turn("x", hang())])
    door = memory_door(script)
    client = talker(door)
    session = await client.new()
    work = await door.prompt(session, (Text("hi"),), Who("zeroclaw", id="z"))
    assert await client.update("user_message_chunk")
    error = await client.refused("session/prompt", {"sessionId": session, "prompt": "x"})
    assert error["code"] == -32002
    await script.hanging.wait()
    script.release()
    await work.done


@pytest.mark.parametrize(
    ("stop", "told"), [("length", "max_tokens"), ("refusal", "refusal"), ("end_turn", "end_turn")]
)
async def test_stop_reasons(stop: str, told: str) -> None:
    client = talker(memory_door(Scripted([turn("x", stop=stop)])))  # type: ignore[arg-type]
    assert (await client.prompt(await client.new()))["stopReason"] == told


async def test_too_many_steps_are_a_stop_reason() -> None:
    script = Scripted([call("echo", text="a")], loop=True)
    client = talker(memory_door(script, [EchoTool()], mode="full", max_steps=2))
    assert (await client.prompt(await client.new()))["stopReason"] == "max_turn_requests"


async def test_a_failed_turn_is_an_error_and_the_session_lives_on() -> None:
    client = talker(memory_door(Scripted([fail("auth", "no key"), "fine"])))
    session = await client.new()
    error = await client.refused("session/prompt", {"sessionId": session, "prompt": "x"})
    assert error["code"] == -32603 and "no key" in error["message"]
    assert (await client.prompt(session))["content"] == "fine"


async def test_an_unknown_session_has_the_documents_code() -> None:
    client = talker(memory_door(Scripted(["x"])))
    error = await client.refused("session/prompt", {"sessionId": "ghost", "prompt": "x"})
    assert error["code"] == -32000 and error["message"] == "Session not found: ghost"
    assert error["data"] == {"code": "SESSION_NOT_FOUND", "sessionId": "ghost"}


async def test_zed_and_the_setting_get_the_ecosystems_codes() -> None:
    door = memory_door(Scripted(["x"]))
    zed = talker(door)
    await zed.greet("zed")
    assert (await zed.refused("session/prompt", {"sessionId": "ghost", "prompt": "x"}))[
        "code"
    ] == -32002
    other = talker(door, error_codes="acp")
    assert (await other.refused("session/close", {"sessionId": "ghost"}))["code"] == -32002


async def test_two_clients_see_one_turn_live() -> None:
    script = Scripted([say("to both of you", deltas=4)])
    desk = desk_of(memory_door(script))
    one, two = Talker(desk, "one"), Talker(desk, "two")
    session = await one.new()
    await two.call("session/resume", {"sessionId": session, "_meta": JOIN})
    await one.prompt(session, "hello all")
    await two.update("usage_update")
    assert two.said("user_message_chunk") == "hello all"
    assert two.said() == one.said() == "to both of you"
    assert one.said("user_message_chunk") == ""


async def test_events_are_encoded_once_for_all_connections() -> None:
    desk = desk_of(memory_door(Scripted([say("word " * 50, deltas=50)])))
    clients = [Talker(desk, str(n)) for n in range(5)]
    session = await clients[0].new()
    for client in clients[1:]:
        await client.call("session/resume", {"sessionId": session, "_meta": JOIN})
    hub = host_of(desk.door).live[session].ledger.hub
    assert len({id(watch.shape) for watch in hub.watches}) == 1


async def test_odd_text_stays_on_one_line_of_utf8() -> None:
    text = "a\u2028b\x00c\ud800d\né"

    class Odd(EchoTool):
        async def run(self, args: dict, env: object) -> Outcome:  # type: ignore[override]
            return Outcome((Text(text),))

    client = talker(memory_door(Scripted([call("echo"), "done"]), [Odd()], mode="full"))
    await client.prompt(await client.new())
    assert b"\xe2\x80\xa8" not in client.end.wire.out
    last = [u for u in client.updates() if u["sessionUpdate"] == "tool_call_update"][-1]
    assert last["rawOutput"].replace("\ufffd", "?").startswith("a\u2028b\x00c?")


async def test_a_running_tools_output_is_shown_meanwhile() -> None:
    go = asyncio.Event()

    class Slow:
        spec = ToolSpec("slow", "Slow.", {"type": "object"}, "execute")

        async def run(self, args: dict, env: object) -> Outcome:
            env.progress("half of it\n")  # type: ignore[attr-defined]
            await go.wait()
            return Outcome((Text("all of it"),))

        def summary(self, args: dict) -> str:
            return "slow"

    client = talker(memory_door(Scripted([call("slow"), "done"]), [Slow()], mode="full"))
    session = await client.new()
    waiting = client.ask("session/prompt", {"sessionId": session, "prompt": "x"})
    while True:
        update = await client.update("tool_call_update")
        if "content" in update:
            break
    assert update["content"][0]["content"]["text"] == "half of it\n"
    assert update["status"] == "in_progress"
    go.set()
    await client.reply(waiting)


async def test_a_client_that_stops_reading_gets_the_whole_turn_before_the_answer() -> None:
    words = "x" * 2000
    client = talker(memory_door(Scripted([say(words * 400, deltas=400), "next"])))
    session = await client.new()
    client.end.wire.stuck = True
    waiting = client.ask("session/prompt", {"sessionId": session, "prompt": "x"})
    async with asyncio.timeout(60):
        while not client.end.pump.paused:  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.001)
    door = client.end.pump.hearer.door  # type: ignore[union-attr]
    await door.idle(session)
    client.end.wire.take()
    result = (await client.reply(waiting))["result"]
    assert client.said() == words * 400 == result["content"]
    await client.silence()


async def test_a_client_that_fell_far_behind_is_told_everything_once() -> None:
    piece = "0123456789" * 1_000
    text = "".join(f"{n}:{piece}" for n in range(700))  # more than is held for one client
    script = Scripted([turn(say(text, deltas=700), hang(), say(" the end", deltas=1))])
    client = talker(memory_door(script))
    session = await client.new()
    client.end.wire.stuck = True
    waiting = client.ask("session/prompt", {"sessionId": session, "prompt": "x"})
    async with asyncio.timeout(60):
        await script.hanging.wait()
    client.end.wire.take()
    while len(client.said()) < len(text):
        await client.next()
    script.release()
    result = (await client.reply(waiting))["result"]
    assert client.said() == text + " the end" == result["content"]


async def test_compactions_are_told_where_the_client_shows_them() -> None:
    long = "word " * 400
    script = Scripted([turn(long), turn(long), turn(long), turn(long), "a short summary"])
    client = talker(memory_door(script))
    await client.greet(session={"compaction": {}})
    session = await client.new()
    for _ in range(4):
        await client.prompt(session, long)
    await client.prompt(session, "/compact")
    told = [u for u in client.updates() if u["sessionUpdate"].startswith("compaction_")]
    assert told[0]["status"] == "in_progress" and told[-1]["status"] == "completed"
    assert "a short summary" in told[-1]["summary"][0]["text"]
    pieces = [u["content"]["text"] for u in told[1:-1]]
    assert "".join(pieces) == told[-1]["summary"][0]["text"]
    assert len({u["compactionId"] for u in told}) == 1


@pytest.mark.parametrize(("ending", "status"), [(fail("no"), "failed"), (hang(), "cancelled")])
async def test_a_compaction_that_comes_to_nothing_says_so(ending: Any, status: str) -> None:
    script = Scripted(["a", "b", "c", turn("half a", ending)])
    client = talker(memory_door(script))
    await client.greet(session={"compaction": {}})
    session = await client.new()
    for _ in range(3):
        await client.prompt(session, "say")
    waiting = client.ask("session/prompt", {"sessionId": session, "prompt": "/compact"})
    await client.update("compaction_summary_chunk")
    if status == "cancelled":
        client.tell("session/cancel", {"sessionId": session})
    await client.reply(waiting)
    told = [u for u in client.updates() if u["sessionUpdate"] == "compaction_update"]
    assert [u["status"] for u in told] == ["in_progress", status]
    assert ("error" in told[-1]) == (status == "failed")


async def test_client_events_are_kept_and_not_echoed() -> None:
    client = talker(memory_door(Scripted(["x"])))
    session = await client.new()
    result = await client.call("session/update", {"sessionId": session, "type": "x"})
    assert result == {"sessionId": session, "status": "processed", "type": "x"}
    client.tell("session/event", {"sessionId": session, "update": {"sessionUpdate": "y"}})
    client.tell("session/update", {"sessionId": "ghost"})
    await client.silence()
    assert (await client.refused("session/update", {"sessionId": "ghost"}))["code"] == -32000


async def test_allow_always_holds_for_the_session_only() -> None:
    script = Scripted([call("echo", text="1"), call("echo", text="2"), "done"])
    client = talker(memory_door(script, [EchoTool()]))
    client.answers["session/request_permission"] = select("allow-always")
    one = await client.new()
    await client.prompt(one)
    asked = [m for m in client.heard if m.get("method") == "session/request_permission"]
    assert len(asked) == 1
    await client.prompt(await client.new())
    asked = [m for m in client.heard if m.get("method") == "session/request_permission"]
    assert len(asked) == 2
