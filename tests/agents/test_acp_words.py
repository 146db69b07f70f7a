"""What a hosted agent says in our words: whatever it sends, nothing here breaks."""

from base64 import b64encode
from typing import Any

import pytest

from dragoman.agents import acp_words as words
from dragoman.agents.acp_words import HostedCall
from dragoman.engine.ask import Change
from dragoman.engine.content import Image, Message, PlanEntry, Text, ToolCall


def made(**update: Any) -> HostedCall:
    call = HostedCall("c1")
    call.take(update)
    return call


def diff(path: Any, new: Any, **old: Any) -> dict[str, Any]:
    return {"type": "diff", "path": path, "newText": new, **old}


def test_a_call_takes_what_is_there_and_keeps_the_rest() -> None:
    call = made(kind="edit", title="Edit a", rawInput={"path": "a"}, name="Edit")
    call.take({"kind": "nonsense", "title": "", "rawInput": {}, "content": "no list"})
    assert (call.kind, call.title, call.args, call.name) == (
        "edit",
        "Edit a",
        {"path": "a"},
        "Edit",
    )
    assert call.tool_call() == ToolCall("c1", "Edit", {"path": "a"})
    call.take({"rawInput": ["x"], "name": "Other"})
    assert call.args == {"input": ["x"]} and call.name == "Edit"  # a name is told once


def test_a_call_without_a_name_or_input_is_called_by_its_kind_and_title() -> None:
    assert made(kind="fetch", title="Get it").tool_call() == ToolCall(
        "c1", "fetch", {"title": "Get it"}
    )
    assert made(_meta={"x": {"toolName": "n" * 99}}).name == "n" * 64
    assert made(_meta="odd").name == ""


@pytest.mark.parametrize(
    ("update", "summary"),
    [
        ({"title": "Run", "rawInput": {"command": "ls"}}, "Run: ls"),
        ({"title": "ls", "rawInput": {"command": "ls"}}, "ls"),
        ({"rawInput": {"path": ""}, "title": "Look"}, "Look"),
        ({"content": [{"type": "content", "content": {"type": "text", "text": "why"}}]}, "why"),
        (
            {"title": "Approve write?", "kind": "edit", "name": "write", "rawInput": {"path": "a"}},
            "a",
        ),
        ({"title": "Approve write?", "name": "write"}, "Approve write?"),
        ({}, ""),
    ],
)
def test_a_call_in_one_line(update: dict[str, Any], summary: str) -> None:
    assert made(**update).summary == summary


def test_changes_and_results_of_odd_differences() -> None:
    call = made(
        content=[diff("a", "new", oldText="old"), diff("b", "x", oldText=7), diff(1, "x"), 5]
    )
    assert call.changes == (Change("a", "old", "new"), Change("b", None, "x"))
    content, detail = call.result()
    assert content == (Text("Changed a, b."),)
    assert detail is not None and [one.path for one in detail.diffs] == ["a", "b"]
    large = made(content=[diff("a", "x" * 300_000)])
    assert large.result() == ((Text("(no output)"),), None)


def test_a_result_has_text_pictures_and_places() -> None:
    picture = {"type": "image", "data": b64encode(b"png").decode(), "mimeType": "image/gif"}
    broken = {"type": "image", "data": "%%%"}
    call = made(
        content=[{"type": "content", "content": one} for one in (picture, broken)],
        locations=[{"path": "a", "line": 3}, {"path": "b", "line": "x"}, {"line": 1}, "odd"],
    )
    content, detail = call.result()
    assert content == (Text("[image]\n[image]"), Image("image/gif", b"png"))
    assert detail is not None
    assert [(one.path, one.line) for one in detail.locations] == [("a", 3), ("b", None)]


@pytest.mark.parametrize(
    ("output", "text"),
    [("plain", "plain"), ({"output": "of it"}, "of it"), ({"code": 1}, '{"code":1}'), ([], "[]")],
)
def test_raw_output_stands_in_where_there_is_no_content(output: Any, text: str) -> None:
    assert made(rawOutput=output).text() == text


@pytest.mark.parametrize(
    ("block", "text"),
    [
        ({"type": "resource", "resource": {"uri": "u", "text": "t"}}, "t"),
        ({"type": "resource", "resource": {"uri": "u"}}, "[u]"),
        ({"type": "resource_link", "uri": "u", "name": "n"}, "[n](u)"),
        ({"type": "audio"}, "[audio]"),
        ({"type": "text", "text": 5}, ""),
        (None, ""),
    ],
)
def test_block_text_names_what_is_no_text(block: Any, text: str) -> None:
    assert words.block_text(block) == text


@pytest.mark.parametrize("entries", [None, 5, "text", {"a": 1}, []])
def test_a_plan_that_is_none_is_empty(entries: Any) -> None:
    assert words.plan_of({"entries": entries}) == []


def test_a_plan_keeps_steps_of_odd_states() -> None:
    given = [{"content": "a", "status": "completed"}, {"content": "b", "status": "odd"}, "c"]
    assert words.plan_of({"entries": given}) == [PlanEntry("a", status="completed"), PlanEntry("b")]


def test_a_prompt_without_pictures_says_that_there_were_some() -> None:
    content = (Text("look"), Image("image/png", b"x"))
    assert words.prompt_blocks(content, False)[1]["text"].startswith("[an image")
    assert words.prompt_blocks(content, True)[1]["data"] == "eA=="


def test_earlier_is_the_end_of_what_was_said() -> None:
    assert words.earlier([]) == "" and words.earlier([Message("tool", ())]) == ""
    said = words.earlier(
        [Message("user", (Text("x" * 40_000),)), Message("assistant", (Text("y"),))]
    )
    assert said.endswith("assistant: y") and len(said) < 33_000


OPTIONS = [
    {"kind": "allow_always", "optionId": "aa", "name": "Always"},
    {"kind": "allow_once", "optionId": "a1", "name": "Yes"},
    {"kind": "reject_once", "optionId": "r1", "name": "No"},
]


@pytest.mark.parametrize(
    ("verdict", "option"),
    [("allow", "a1"), ("allow_always", "a1"), ("deny", "r1"), ("expired", "r1")],
)
def test_a_verdict_chooses_the_nearest_option_and_never_the_agents_always(
    verdict: str, option: str
) -> None:
    assert words.chosen(OPTIONS, verdict)["outcome"]["optionId"] == option


def test_what_cannot_be_chosen_is_cancelled() -> None:
    cancelled = {"outcome": {"outcome": "cancelled"}}
    assert words.chosen(OPTIONS, "cancelled") == words.chosen([], "allow") == cancelled
    assert words.picked(OPTIONS, "Maybe") == cancelled
    assert words.picked(OPTIONS, "No")["outcome"]["optionId"] == "r1"
    assert words.options_of({"options": 5}) == [] and words.options_of({"options": [1, {}]}) == [{}]
    assert words.is_question([*OPTIONS, OPTIONS[1]]) and not words.is_question(OPTIONS)
