"""pi's RPC mode, case by case: framing, the order of events, queues, aborts, dialogs, sessions."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman.testing.script import call, fail, hang, retry, say, think, turn
from dragoman.transports.memory import Client

from .talking import Pi, names

Make = Callable[..., Pi]


@pytest.fixture
async def pi(target: Path) -> AsyncIterator[Make]:
    made: list[Pi] = []

    def make(*script: Any, **settings: Any) -> Pi:
        made.append(Pi(list(script), **settings))
        return made[-1]

    yield make
    for one in made:
        await one.close()


# --- framing ---


@pytest.mark.parametrize(
    ("line", "command"),
    [(b"{oops", "parse"), (b"5", None), (b"[]", None), (b'"x"', None), (b"null", None),
     (b"\xef\xbb\xbf{}", "parse"), (b"{}", None), (b'{"type":5}', None), (b"[" * 500, "parse"),
     (b'{"type":"get_state","x":' + b"[" * 300 + b"]" * 300 + b"}", "parse")],
)  # fmt: skip
async def test_what_is_no_command(pi: Make, line: bytes, command: str | None) -> None:
    client = pi()
    client.client.send(line)
    answer = await client.next()
    assert answer["type"] == "response" and answer["success"] is False and answer["error"]
    assert answer.get("command") == command and "id" not in answer
    assert (await client.data("get_state"))["messageCount"] == 0


@pytest.mark.parametrize("id", [7, None, {}, "x", [1], 1.5, True])
async def test_an_id_is_repeated_as_it_was_given(pi: Make, id: Any) -> None:
    client = pi()
    client.send({"type": "get_session_stats", "id": id}, {"type": "nope", "id": id})
    first, second = await client.next(), await client.next()
    if first["command"] == "nope":
        first, second = second, first
    assert (first["id"], first["success"]) == (id, True)
    assert (second["id"], second["error"]) == (id, "Unknown command: nope")


async def test_no_id_crlf_two_records_in_one_write_and_one_in_two(pi: Make) -> None:
    client = pi()
    client.client.feed(b'{"type":"get_tree"}\r\n{"type":"get_tree"}\n{"type":')
    client.client.feed(b'"get_tree"}\n')
    for _ in range(3):
        answer = await client.next()
        assert answer["success"] and "id" not in answer


async def test_a_last_line_without_newline_is_answered_before_the_end(pi: Make) -> None:
    client = pi()
    client.client.feed(b'{"type":"get_state"}')
    client.client.end()
    assert (await client.next())["success"]
    with pytest.raises(EOFError):
        await client.next()


# --- prompts ---


async def test_the_plain_order(pi: Make) -> None:
    client = pi(say("hello world", deltas=2))
    answer = await client.ask("prompt", message="hi")
    assert answer["data"] == {"disposition": "started"} and client.seen[-1] is answer
    await client.event("agent_settled")
    assert names(client.seen) == [
        "agent_start", "turn_start", "message_start:user", "message_end:user",
        "message_start:assistant", "text_start", "text_delta", "text_end",
        "message_end:assistant", "turn_end", "agent_end", "agent_settled",
    ]  # fmt: skip
    ended = next(one for one in client.seen if one["type"] == "agent_end")
    assert [one["role"] for one in ended["messages"]] == ["user", "assistant"]
    assert ended["willRetry"] is False and ended["messages"][1]["stopReason"] == "stop"
    assert (await client.data("get_state"))["messageCount"] == 2
    assert (await client.data("get_last_assistant_text")) == {"text": "hello world"}


async def test_thinking_and_text_are_two_blocks(pi: Make) -> None:
    client = pi(turn(think("hm"), say("well", deltas=1)))
    await client.run("hi")
    events = [one["assistantMessageEvent"] for one in client.seen if "assistantMessageEvent" in one]
    found = {(one["type"], one["contentIndex"]) for one in events}
    assert {("thinking_start", 0), ("thinking_end", 0), ("text_start", 1), ("text_end", 1)} <= found


async def test_a_line_separator_stays_in_one_record(pi: Make) -> None:
    client = pi(say("a\u2028b\u2029c", deltas=1))
    await client.run("hi")
    assert b"\xe2\x80\xa8" not in bytes(client.client.wire.out)
    assert (await client.data("get_last_assistant_text")) == {"text": "a\u2028b\u2029c"}


async def test_prompts_that_are_refused(pi: Make) -> None:
    client = pi(turn("a", hang()))
    assert "message" in await client.refused("prompt")
    bad = [{"type": "image", "data": "***", "mimeType": "image/png"}]
    assert "base64" in await client.refused("prompt", message="x", images=bad)
    client.send(
        {"type": "prompt", "id": 1, "message": "a"}, {"type": "prompt", "id": 2, "message": ""}
    )
    answers = [await client.until(lambda m: m["type"] == "response") for _ in range(2)]
    assert [(one["id"], one["success"]) for one in answers] == [(1, True), (2, False)]
    assert "streamingBehavior" in answers[1]["error"]
    await client.data("abort")


async def test_a_picture_is_the_second_block(pi: Make) -> None:
    client = pi("ok")
    picture = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
    await client.run("see", images=[picture])
    said = next(one for one in client.seen if one["type"] == "message_end")["message"]
    assert [one["type"] for one in said["content"]] == ["text", "image"]
    assert said["content"][1]["data"] == "aGk="


# --- tools ---


async def test_two_tools_begin_before_either_ends(pi: Make) -> None:
    client = pi(turn(call("echo", text="1"), call("echo", text="2")), "done")
    await client.run("go")
    kinds = [one["type"] for one in client.seen if one["type"].startswith("tool_execution")]
    assert kinds[:2] == ["tool_execution_start"] * 2 and kinds.count("tool_execution_end") == 2
    order = [one["toolCallId"] for one in client.seen if one["type"] == "tool_execution_start"]
    results = [
        one["message"]["toolCallId"]
        for one in client.seen
        if one["type"] == "message_end" and one["message"]["role"] == "toolResult"
    ]
    assert results == order
    turns = [one for one in client.seen if one["type"] == "turn_end"]
    assert [len(one["toolResults"]) for one in turns] == [2, 0]
    assert [one["message"]["stopReason"] for one in turns] == ["toolUse", "stop"]


async def test_an_unknown_tool_ends_with_an_error(pi: Make) -> None:
    client = pi(call("nothing"), "done")
    await client.run("go")
    ended = next(one for one in client.seen if one["type"] == "tool_execution_end")
    assert ended["isError"] and ended["toolName"] == "nothing"


async def test_an_abort_in_text_is_answered_last(pi: Make) -> None:
    client = pi(turn(say("some", deltas=1), hang()), "again")
    await client.data("prompt", message="go")
    await client.until(lambda m: m["type"] == "message_update")
    answer = await client.ask("abort")
    assert answer["success"] and names(client.seen)[-4:] == [
        "message_end:assistant", "turn_end", "agent_end", "agent_settled",
    ]  # fmt: skip
    settled = next(one for one in client.seen if one["type"] == "agent_settled")
    assert settled["aborted"] is True
    assert "agent_settled" in await client.run("once more")


async def test_an_abort_in_a_tool_ends_it_with_an_error(pi: Make) -> None:
    client = pi(call("slow"))
    await client.data("prompt", message="go")
    update = await client.event("tool_execution_update")
    assert update["partialResult"]["content"][0]["text"] == "working\n"
    await client.data("abort")
    ended = [one for one in client.seen if one["type"] == "tool_execution_end"]
    assert [one["isError"] for one in ended] == [True]
    assert client.seen[-2]["type"] == "agent_settled"


async def test_an_abort_of_nothing(pi: Make) -> None:
    client = pi()
    assert (await client.ask("abort"))["success"]
    await client.data("get_state")
    assert (await client.ask("abort"))["success"]


async def test_a_failure_is_told_by_events_only(pi: Make) -> None:
    client = pi(fail("bad_request", "bad request"))
    await client.run("go")
    last = [one for one in client.seen if one["type"] == "message_end"][-1]["message"]
    assert last["stopReason"] == "error" and "bad request" in last["errorMessage"]


async def test_a_retry(pi: Make) -> None:
    client = pi(turn(retry(1, 0.0, "overloaded"), "fine"))
    found = await client.run("go")
    at = found.index("auto_retry_start")
    assert found[at - 1] == "agent_end" and "agent_start" in found[at:]
    assert "auto_retry_end" in found[at:] and found[-1] == "agent_settled"
    ends = [one["willRetry"] for one in client.seen if one["type"] == "agent_end"]
    assert ends == [True, False]


# --- the queue ---


async def test_three_follow_ups_are_three_turns_of_one_run(pi: Make) -> None:
    client = pi(turn("a", hang()), "b", "c", "d")
    await client.data("prompt", message="first")
    await client.until(lambda m: m["type"] == "message_update")
    for text in ("one", "two", "three"):
        assert await client.data("follow_up", message=text) == {"disposition": "queued"}
    assert (await client.data("get_state"))["pendingMessageCount"] == 3
    await client.data("abort")  # the queue stays
    assert (await client.data("get_state"))["pendingMessageCount"] == 3
    start = len(client.seen)
    await client.run("go on")
    seen = client.seen[start:]
    said = [
        one["message"]["content"][0]["text"]
        for one in seen
        if one["type"] == "message_end" and one["message"]["role"] == "user"
    ]
    assert said == ["go on", "one", "two", "three"]
    assert sum(one["type"] == "agent_end" for one in seen) == 1
    assert (await client.data("get_state"))["pendingMessageCount"] == 0


async def test_all_follow_ups_at_once(pi: Make) -> None:
    client = pi("a", "b")
    await client.data("set_follow_up_mode", mode="all")
    assert "mode must be" in await client.refused("set_follow_up_mode", mode="some")
    for text in ("one", "two"):
        await client.data("follow_up", message=text)
    start = len(client.seen)
    await client.run("go")
    turns = [one for one in client.seen[start:] if one["type"] == "turn_end"]
    assert len(turns) == 2


async def test_steering_reaches_the_next_step(pi: Make) -> None:
    client = pi(call("ask"), "done")
    await client.data("prompt", message="go")
    dialog = await client.event("extension_ui_request")
    steered = {"message": "left", "streamingBehavior": "steer"}
    assert await client.data("prompt", **steered) == {"disposition": "queued"}
    client.send({"type": "extension_ui_response", "id": dialog["id"], "value": "red"})
    await client.event("agent_settled")
    said = [
        one["message"]["content"][0]["text"]
        for one in client.seen
        if one["type"] == "message_end" and one["message"]["role"] == "user"
    ]
    assert said == ["go", "left"]
    updates = [one for one in client.seen if one["type"] == "queue_update"]
    assert [one["steering"] for one in updates] == [["left"], []]


async def test_steering_while_idle_waits_for_the_next_prompt(pi: Make) -> None:
    client = pi("a", "b")
    await client.data("steer", message="kept")
    assert (await client.data("get_state"))["pendingMessageCount"] == 1
    await client.run("go")
    said = [
        one["message"]["content"][0]["text"]
        for one in client.seen
        if one["type"] == "message_end" and one["message"]["role"] == "user"
    ]
    assert said == ["go", "kept"]


async def test_the_queue_can_be_cleared(pi: Make) -> None:
    client = pi()
    await client.data("follow_up", message="later")
    assert await client.data("clear_queue") == {"steering": [], "followUp": ["later"]}
    assert (await client.data("get_state"))["pendingMessageCount"] == 0


async def test_what_waits_survives_its_connection(pi: Make) -> None:
    client = pi("a", "b", "c")
    await client.data("follow_up", message="later")
    await client.data("steer", message="kept")
    session = (await client.data("get_state"))["sessionId"]
    client.client.drop()
    await asyncio.sleep(0)
    client.client = Client(client.desk.hearer)
    await client.data("switch_session", sessionPath=f"{session}.jsonl")
    assert (await client.data("get_state"))["pendingMessageCount"] == 2
    await client.run("go")
    said = [
        one["message"]["content"][0]["text"]
        for one in client.seen
        if one["type"] == "message_end" and one["message"]["role"] == "user"
    ]
    assert said == ["go", "kept", "later"]
    assert await client.door.shelf.pairs("pi.queue") == []


@pytest.mark.parametrize("command", ["follow_up", "steer"])
async def test_nothing_is_called_queued_before_it_is_stored(
    pi: Make, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    client = pi()
    await client.data("get_state")
    may, put = asyncio.Event(), client.door.shelf.put

    async def slow(*row: Any) -> None:
        await may.wait()
        await put(*row)

    monkeypatch.setattr(client.door.shelf, "put", slow)
    client.send({"type": command, "id": "x", "message": "later"})
    for _ in range(20):
        await asyncio.sleep(0)
    assert not [line for line in client.client.received() if b'"response"' in line]
    may.set()
    assert (await client.until(lambda m: m.get("id") == "x"))["success"]


# --- dialogs ---


@pytest.mark.parametrize(
    ("reply", "runs"),
    [({"confirmed": True}, True), ({"confirmed": False}, False), ({"cancelled": True}, False),
     ({"value": "yes"}, False), ({"confirmed": "true"}, False), ({}, False)],
)  # fmt: skip
async def test_an_approval_is_a_dialog(pi: Make, reply: dict[str, Any], runs: bool) -> None:
    client = pi(call("echo", text="x"), "done", mode="supervised")
    await client.data("prompt", message="go")
    dialog = await client.event("extension_ui_request")
    assert dialog["method"] == "confirm" and dialog["title"] == "echo" and dialog["message"]
    kinds = [one["type"] for one in client.seen]
    assert "tool_execution_start" in kinds
    client.send({"type": "extension_ui_response", "id": "stray", "confirmed": True})
    client.send({"type": "extension_ui_response", "id": dialog["id"], **reply})
    ended = await client.event("tool_execution_end")
    assert ended["isError"] is not runs and bool(client.echo.ran) is runs
    await client.event("agent_settled")
    notices = [one for one in client.seen if one.get("method") == "notify"]
    assert notices == [] and not any(one.get("command") == "parse" for one in client.seen)


@pytest.mark.parametrize(
    ("reply", "told"), [({"value": "blue"}, "blue"), ({"confirmed": True}, "")]
)
async def test_a_question_is_a_choice(pi: Make, reply: dict[str, Any], told: str) -> None:
    client = pi(call("ask"), "done")
    await client.data("prompt", message="go")
    dialog = await client.event("extension_ui_request")
    assert dialog["method"] == "select" and dialog["options"] == ["red", "blue"]
    client.send({"type": "extension_ui_response", "id": dialog["id"], **reply})
    ended = await client.event("tool_execution_end")
    assert told in json.dumps(ended["result"])
    await client.event("agent_settled")


async def test_an_abort_closes_an_open_dialog(pi: Make) -> None:
    client = pi(call("echo", text="x"), mode="supervised")
    await client.data("prompt", message="go")
    await client.event("extension_ui_request")
    assert (await client.ask("abort"))["success"]
    assert not client.echo.ran


async def test_an_answer_from_elsewhere_is_told(pi: Make) -> None:
    client = pi(call("echo", text="x"), "done", mode="supervised")
    await client.data("prompt", message="go")
    dialog = await client.event("extension_ui_request")
    await client.door.answer(dialog["id"], "allow")
    notice = await client.event("extension_ui_request")
    assert notice["method"] == "notify" and "allow" in notice["message"]
    await client.event("agent_settled")
    client.send({"type": "extension_ui_response", "id": dialog["id"], "confirmed": False})
    assert (await client.data("get_state"))["isStreaming"] is False


# --- models, thinking, sessions ---


async def test_models_and_thinking(pi: Make) -> None:
    client = pi()
    known = (await client.data("get_available_models"))["models"]
    assert [one["id"] for one in known] == ["test"]
    assert await client.refused("set_model", provider="x", modelId="y") == "Model not found: x/y"
    assert (await client.data("set_model", provider="scripted", modelId="test"))["id"] == "test"
    assert await client.data("cycle_model") is None
    assert await client.data("cycle_thinking_level") is None  # it cannot think
    assert (await client.data("get_available_thinking_levels"))["levels"] == ["off"]
    await client.data("set_thinking_level", level="bogus")
    assert (await client.data("get_state"))["thinkingLevel"] == "off"


async def test_names_are_trimmed_and_never_empty(pi: Make) -> None:
    client = pi()
    assert "empty" in await client.refused("set_session_name", name="  ")
    await client.data("set_session_name", name=" N ")
    assert (await client.data("get_state"))["sessionName"] == "N"
    assert any(one["type"] == "session_info_changed" for one in client.seen)


async def test_forks_clones_and_the_way_back(pi: Make) -> None:
    client = pi("one", "two", "three")
    await client.run("first")
    await client.run("second")
    before = await client.data("get_state")
    listed = (await client.data("get_fork_messages"))["messages"]
    assert [one["text"] for one in listed] == ["first", "second"]
    assert "entry" in await client.refused("fork", entryId="zz")
    answer = await client.data("fork", entryId=listed[1]["entryId"])
    assert answer == {"text": "second", "cancelled": False}
    forked = await client.data("get_state")
    assert forked["sessionId"] != before["sessionId"] and forked["messageCount"] == 2
    await client.data("switch_session", sessionPath=f"/x/{before['sessionId']}.jsonl")
    again = await client.data("get_state")
    assert (again["sessionId"], again["messageCount"]) == (before["sessionId"], 4)
    await client.data("clone")
    assert (await client.data("get_state"))["messageCount"] == 4
    await client.data("switch_session", sessionPath="/nowhere/at/all.jsonl")
    assert (await client.data("get_state"))["messageCount"] == 0


async def test_a_new_session_closes_the_running_turn_first(pi: Make) -> None:
    client = pi(turn("a", hang()))
    await client.data("prompt", message="go")
    await client.until(lambda m: m["type"] == "message_update")
    assert await client.data("new_session") == {"cancelled": False}
    assert "agent_settled" in names(client.seen)
    fresh = await client.data("get_state")
    assert fresh["messageCount"] == 0 and fresh["isStreaming"] is False
    assert await client.data("get_last_assistant_text") == {}


async def test_entries_stats_and_the_tree(pi: Make) -> None:
    client = pi(call("echo", text="x"), "done")
    await client.run("go")
    found = await client.data("get_entries")
    assert found["leafId"] == found["entries"][-1]["id"]
    rest = await client.data("get_entries", since=found["entries"][0]["id"])
    assert len(rest["entries"]) == len(found["entries"]) - 1
    assert "not found" in await client.refused("get_entries", since="q")
    stats = await client.data("get_session_stats")
    counted = (stats["userMessages"], stats["toolCalls"], stats["toolResults"])
    assert counted == (1, 1, 1) and stats["totalMessages"] == 4
    assert (await client.data("get_tree"))["tree"][0]["entry"]["id"] == "m1"
    roles = [one["role"] for one in (await client.data("get_messages"))["messages"]]
    assert roles == ["user", "assistant", "toolResult", "assistant"]


async def test_compaction(pi: Make) -> None:
    client = pi("one", "two", "three", "a summary")
    await client.run("first")
    await client.run("second")
    await client.run("third")
    found = await client.data("compact")
    assert found["summary"]
    kinds = names(client.seen)
    assert kinds.index("compaction_start") < kinds.index("compaction_end")


async def test_what_this_host_does_not_do_is_said(pi: Make) -> None:
    client = pi()
    assert "policy" in await client.refused("bash")
    assert "dragoman" in await client.refused("export_html")
    assert "configuration" in await client.refused("set_auto_retry", enabled=False)
    await client.data("set_auto_compaction", enabled=True)
    await client.data("abort_bash")
    await client.data("abort_retry")
    assert (await client.data("get_commands"))["commands"] == []


async def test_an_older_client_gets_whole_messages(pi: Make) -> None:
    client = pi(say("hello", deltas=1), older=True)
    await client.run("hi")
    update = next(one for one in client.seen if one["type"] == "message_update")
    assert "message" in update and "partial" in update["assistantMessageEvent"]
