"""Conversations as clients read them."""

import json

import pytest
from tests.dialects.humanlayer.desk import Client, make

from dragoman.testing.script import broken_call, call, turn


@pytest.mark.parametrize(
    "raw", ['{"command": "ec', "[1,2]", "null", '{"a":1e400}', '{"a":NaN}', "\n"]
)
async def test_the_input_of_a_call_is_json_whatever_the_model_wrote(raw: str) -> None:
    door, desk = make([turn(call("echo", b=1, a=2), broken_call("echo", raw)), "done"])
    client = Client(desk)
    started = await client.call("launchSession", query="x", dangerously_skip_permissions=True)
    await door.idle(started["session_id"])
    said = await client.call("getConversation", session_id=started["session_id"])
    inputs = [one["tool_input_json"] for one in said["events"] if one["event_type"] == "tool_call"]
    assert inputs[0] == '{"a":2,"b":1}'
    assert json.loads(inputs[1]) in ({"raw": raw}, {})
