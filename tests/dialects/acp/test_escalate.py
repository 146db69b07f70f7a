"""A matter that the model hands to the human, over ACP."""

from dragoman.testing.host import memory_door
from dragoman.testing.script import Scripted, call
from dragoman.tools.ask import EscalateToHuman
from dragoman.tools.registry import NAMES

from .talking import dismiss, select, talker


async def test_the_human_decides_how_to_go_on() -> None:
    assert "escalate_to_human" not in NAMES  # only agents that name it have it
    script = Scripted(
        [call("escalate_to_human", summary="The disk dies", urgency="high", context="SMART"), "ok"]
    )
    client = talker(memory_door(script, [EscalateToHuman()], mode="full"))
    client.answers["session/request_permission"] = select("choice-1")
    await client.prompt(await client.new())
    asked = next(m for m in client.heard if m.get("method") == "session/request_permission")
    assert [one["name"] for one in asked["params"]["options"]] == ["Go on", "Stop here"]
    assert "[high] The disk dies" in asked["params"]["toolCall"]["title"]
    last = [u for u in client.updates() if u["sessionUpdate"] == "tool_call_update"][-1]
    assert last["rawOutput"] == "The human says: Stop here"


async def test_silence_and_nonsense_are_no_leave() -> None:
    for args in ({"summary": "x"}, {"summary": " "}, {"summary": "x", "urgency": "now"}):
        script = Scripted([call("escalate_to_human", **args), "ok"])
        client = talker(memory_door(script, [EscalateToHuman()], mode="full"))
        client.answers["session/request_permission"] = dismiss
        await client.prompt(await client.new())
        last = [u for u in client.updates() if u["sessionUpdate"] == "tool_call_update"][-1]
        assert last["status"] == "failed", args
