from tests.providers.parts import user

from dragoman.engine.content import Message, Text, ToolCall, ToolResult
from dragoman.providers.history import result_text, tidy


def called(*ids: str) -> Message:
    return Message("assistant", tuple(ToolCall(one, f"tool_{one}", {}) for one in ids))


def results(*ids: str) -> Message:
    return Message("tool", tuple(ToolResult(one, (Text(one),)) for one in ids))


def shape(messages: list[Message]) -> list[str]:
    return [
        message.role
        + "".join(f":{b.call_id}" for b in message.content if isinstance(b, ToolResult))
        for message in messages
    ]


def test_results_follow_their_calls_in_order() -> None:
    found = tidy([user("x"), called("a", "b"), results("b"), user("steer"), results("a")])
    assert shape(found) == ["user", "assistant", "tool:a:b", "user"]


def test_a_lost_result_is_told() -> None:
    found = tidy([user("x"), called("a", "b"), results("a"), called("c")])
    assert shape(found) == ["user", "assistant", "tool:a:b", "assistant", "tool:c"]
    lost = found[2].content[1]
    assert isinstance(lost, ToolResult) and lost.is_error and lost.name == "tool_b"


def test_a_result_without_a_call_is_left_out() -> None:
    assert shape(tidy([results("z"), user("x"), called("a"), results("a", "z")])) == [
        "user",
        "assistant",
        "tool:a",
    ]


def test_results_learn_the_name_of_their_tool() -> None:
    found = tidy([called("a"), results("a")])
    assert [block.name for block in found[1].content if isinstance(block, ToolResult)] == ["tool_a"]


def test_result_text() -> None:
    assert result_text(ToolResult("a", (Text("x"),))) == "x"
    assert result_text(ToolResult("a", ())) == "(no output)"
    assert "failed" in result_text(ToolResult("a", (), True))
    assert result_text(ToolResult("a", (Text("x"),), True)).startswith("x\n")
