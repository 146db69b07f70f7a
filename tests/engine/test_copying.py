"""A copied history is one that a model accepts: every call in it has its result."""

from dragoman.engine.content import Message, Text, ToolCall, ToolResult
from dragoman.engine.copying import ELSEWHERE, copied


def said(role: str, *blocks: object) -> Message:
    return Message(role, blocks, 7)  # type: ignore[arg-type]


HI = said("user", Text("hi"))
CALLS = said("assistant", ToolCall("a", "x", {}), ToolCall("b", "y", {}))
DONE = ToolResult("a", (Text("ok"),), False, "x")
MISSING = ToolResult("b", (Text(ELSEWHERE),), True, "y")


def test_a_whole_history_stays_as_it_is() -> None:
    whole = (HI, said("assistant", ToolCall("a", "x", {})), said("tool", DONE), HI)
    assert copied(whole) == whole
    assert copied(()) == ()


def test_a_call_under_way_gets_a_result() -> None:
    assert copied((HI, CALLS))[-1].content == (
        ToolResult("a", (Text(ELSEWHERE),), True, "x"),
        MISSING,
    )
    # some results are there already: the missing one joins them
    assert copied((HI, CALLS, said("tool", DONE)))[-1].content == (DONE, MISSING)
    # somebody spoke after the calls without any result
    made = copied((HI, said("assistant", ToolCall("b", "y", {})), HI))
    assert [one.role for one in made] == ["user", "assistant", "tool", "user"]
    assert made[2].content == (MISSING,)
