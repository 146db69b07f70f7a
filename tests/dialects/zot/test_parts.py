"""Parts of this dialect by themselves: `blocks`, `hear`, `verbs`."""

import asyncio
import json
from typing import Any

import msgspec
import pytest

from dragoman.dialects.zot import Desk, Settings, hear, verbs
from dragoman.dialects.zot.hear import _lower_keys, _second_look, _token_fits
from dragoman.dialects.zot.shapes import Envelope
from dragoman.dialects.zot.speak import blocks, message, result_blocks, usage
from dragoman.engine.content import Image, Message, Text, Thinking, ToolCall, ToolResult, Usage
from dragoman.testing.host import memory_door
from dragoman.testing.script import Scripted, hang
from dragoman.transports.memory import Client

# --- blocks ---


def test_blocks_count_pictures_and_leave_thoughts_out() -> None:
    content = (
        Text("a"), Text(""), Thinking("hm"), Image("image/png", b"123"), ToolCall("c", "t", None),
        ToolResult("c", (Text(""), Image("image/gif", b"1")), True),
    )  # fmt: skip
    made = blocks(content)
    assert [one["type"] for one in made] == ["text", "image", "tool_call", "tool_result"]
    assert made[1] == {"bytes": 3, "mime_type": "image/png", "type": "image"}
    assert made[3]["content"][0] == {"text": "", "type": "text"}  # it is the whole result
    assert result_blocks(()) == []


def test_blocks_messages_and_usage() -> None:
    said = message(Message("assistant", (Text("x"),), 0, cut=True))
    assert said["cut"] is True and said["role"] == "assistant"
    assert "cut" not in message(Message("user", ()))
    assert usage(Usage(1, 2, 3, 4), 0.5)["cost_usd"] == 0.5


# --- hear ---


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (b"null", Envelope()),
        (b'{"type":"ping","id":"\\ud800"}', None),
        (b"{", ""),
        (b"[" * 30_000, ""),
    ],
)
def test_hear_looks_a_second_time(line: bytes, found: Any) -> None:
    try:
        hear._decode(line)
        trouble: Exception = ValueError("x")
    except (msgspec.DecodeError, RecursionError) as error:
        trouble = error
    _, seen = _second_look(line, trouble)
    if found is None:
        assert isinstance(seen, Envelope) and seen.type == "ping"
    elif isinstance(found, Envelope):
        assert seen.type == found.type
    else:
        assert isinstance(seen, str) and seen


def test_hear_names_in_any_case_an_exact_one_wins() -> None:
    line, envelope = _lower_keys(b'{"Type":"ping","ID":"1","TYPE":"x","type":"pong"}', Envelope())
    assert (envelope.type, envelope.id) == ("pong", "1") and json.loads(line)["type"] == "pong"
    assert _lower_keys(b"{", Envelope(type="as it was"))[1].type == "as it was"


@pytest.mark.parametrize(
    ("line", "fits"),
    [
        (b'{"token":"secret"}', True), (b'{"token":"Secret"}', False), (b'{"token":5}', False),
        (b"{}", False), (b'{"token":null}', False), (b"{", False),
    ],
)  # fmt: skip
def test_hear_a_token_is_a_text_that_fits(line: bytes, fits: bool) -> None:
    assert _token_fits(line, "secret") is fits


def desk(*script: Any, **settings: Any) -> Desk:
    return Desk(memory_door(Scripted(list(script))), Settings(cwd="/", **settings))


async def said(client: Client, command: str, id: str = "1", **more: Any) -> Any:
    client.send(json.dumps({"type": command, "id": id, **more}).encode())
    while True:
        answer = json.loads(await client.receive())
        if answer["type"] == "response" and answer.get("id") == id:
            return answer


async def test_hear_without_the_token_nobody_stays() -> None:
    made = desk(token="secret")
    client = Client(made.hearer)
    answer = await said(client, "ping")
    assert not answer["success"] and made.failure == "rpc: bad auth token"
    with pytest.raises(EOFError):
        await client.receive()
    friend = Client(made.hearer)
    assert (await said(friend, "hello", token="secret"))["success"]
    assert (await said(friend, "ping"))["data"] == {"pong": True}


async def test_hear_refusals_stand_in_the_order_of_their_lines() -> None:
    client = Client(desk(hang()).hearer)
    client.send(
        b'{"type":"get_state","id":"1"}', b"{broken", b'{"type":"odd","id":"2"}', b'{"id":"3"}',
    )  # fmt: skip
    answers = [json.loads(await client.receive()) for _ in range(4)]
    assert [(one.get("id", ""), one["success"]) for one in answers] == [
        ("1", True), ("", False), ("2", False), ("3", False),
    ]  # fmt: skip
    assert "malformed json" in answers[1]["error"]


async def test_hear_leaves_when_all_is_said() -> None:
    client = Client(desk("hi").hearer)
    client.send(b'{"type":"prompt","id":"1","message":"x"}')
    client.end()
    lines = []
    with pytest.raises(EOFError):
        while True:
            lines.append(json.loads(await client.receive())["type"])
    assert lines[0] == "response" and lines[-1] == "done"


# --- verbs ---


def test_verbs_prompts_are_checked_before_anything_is_queued() -> None:
    read = verbs.read_prompt
    assert read(b'{"message":"x"}') == (Text("x"),) and read(b'{"message":""}') == ()
    picture = b'{"message":"","images":[{"data":"cG\\nNn","mime_type":"image/png"}]}'
    assert read(picture) == (Image("image/png", b"pcg"),)
    for data in ("%%%", "cG", "ä"):
        line = json.dumps({"message": "x", "images": [{"data": data}]}).encode()
        with pytest.raises(ValueError, match="image 1 is not base64"):
            read(line)


def test_verbs_read_names_in_any_case_and_broken_texts() -> None:
    read = verbs._mending(verbs.read_prompt)
    assert read(b'{"Message":"x","IMAGES":[]}') == (Text("x"),)
    assert read(b'{"message":"a\\ud800b"}') == (Text("a\ufffdb"),)
    with pytest.raises(msgspec.DecodeError):
        read(b'{"message":5}')


async def test_verbs_state_before_and_after_a_session() -> None:
    client = Client(desk("hi", cwd_shown="~/here").hearer)
    before = (await said(client, "get_state"))["data"]
    assert before["message_count"] == 0 and before["cwd"] == "~/here" and "session" not in before
    assert (await said(client, "get_messages"))["data"] == {"messages": []}
    opened = (await said(client, "open"))["data"]
    assert opened["state"]["session"] == opened["session"]
    listed = (await said(client, "list_sessions", limit=0))["data"]["sessions"]
    assert [row["id"] for row in listed] == [opened["session"]]


@pytest.mark.parametrize(
    ("command", "params", "why"),
    [
        ("set_model", {"model": "none"}, 'unknown model "none" (provider="scripted")'),
        ("set_model", {}, 'unknown model ""'),
        ("set_reasoning", {"reasoning": "odd"}, 'unknown reasoning "odd"'),
        ("steer", {"message": "x"}, "nothing is running"),
        ("approve", {}, '"approval" is missing and 0 approvals are open'),
        ("approve", {"approval": "a", "decision": "odd"}, 'unknown decision "odd"'),
        ("open", {"session": "nope"}, "nope"),
    ],
)
async def test_verbs_say_what_cannot_be(command: str, params: Any, why: str) -> None:
    answer = await said(Client(desk().hearer), command, **params)
    assert not answer["success"] and why in answer["error"]


async def test_verbs_what_runs_is_not_changed() -> None:
    client = Client(desk(hang()).hearer)
    client.send(b'{"type":"prompt","id":"p","message":"x"}')
    assert (await said(client, "get_state"))["data"]["busy"]
    for command in ("clear", "open", "set_reasoning"):
        assert not (await said(client, command, reasoning="high"))["success"]
    assert (await said(client, "steer", message="more"))["data"] == {"steered": True}
    assert (await said(client, "abort"))["success"]
    capable = (await said(client, "get_capabilities"))["data"]
    assert "ping" in capable["commands"] and capable["protocol_version"] == 1
    client.drop()
    await asyncio.sleep(0)
