"""One nasty question on every surface that asks a human: whole, and with nothing hidden in it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dragoman.cli import dialogue
from dragoman.cli.screen import what
from dragoman.dialects.acp import calls
from dragoman.dialects.zeroclaw.speak import summary
from dragoman.dialects.zot.speak import request
from dragoman.engine import shown
from dragoman.engine.events import Ask
from dragoman.engine.ports import AskRow
from dragoman.gateway import views
from dragoman.tui.question import ask_rows

from .asking import Asking

BAD = {"\x1b": "<ESC>", "\u202e": "<U+202E>", "\u200b": "<U+200B>", "\u00a0": "<U+00A0>"}
NASTY = "".join(BAD)


def texts(value: Any) -> list[str]:
    """Every text in there that a client would show as words, not as an exact difference."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for one in value.values() for text in texts(one)]
    return [text for one in value for text in texts(one)] if isinstance(value, list | tuple) else []


def acp1(ask: Ask) -> list[str]:
    return texts([one for one in calls.question_of(ask) if one["type"] == "content"])


def rest(ask: Ask) -> list[str]:
    row = views.approval(AskRow(ask))
    return texts(msgspec.to_builtins([row.title, row.parts, row.options]))


WHOLE: dict[str, Callable[[Ask], list[str]]] = {
    "text": lambda ask: [shown.whole(ask)],
    "terminal": lambda ask: [*dialogue.head(ask), *dialogue.body(ask)],
    "screen": lambda ask: [row.shown.plain for row in ask_rows(ask, 50_000)],
    "acp 1": acp1,
    "acp 2": lambda ask: [calls.words_of(ask)],
    "zeroclaw": lambda ask: [summary(ask)],
    "zot": lambda ask: texts([request(ask)[key] for key in ("question", "summary", "title")]),
    "rest": rest,
}


def reads(name: str, ask: Ask) -> str:
    said = "\n".join(WHOLE[name](ask))
    assert not any(bad in said for bad in BAD), name
    return said


@pytest.mark.parametrize("name", WHOLE)
async def test_a_long_command_is_whole_and_hides_nothing(tmp_path: Path, name: str) -> None:
    at = await Asking(tmp_path).open()
    command = f"touch {NASTY} " + "x" * 40_000 + " END"
    work = await at.go(("bash", {"command": command}))
    ask = await at.asked()
    said = reads(name, ask)
    assert "x" * 40_000 in said.replace("\n", "") and "END" in said
    assert all(written in said for written in BAD.values())
    await at.answer(ask, "deny")
    await work.done


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("tool", ["write", "edit"])
async def test_a_change_hides_nothing_in_its_text_or_name(
    tmp_path: Path, name: str, tool: str
) -> None:
    file = f"a{NASTY}.txt"
    (tmp_path / file).write_text("what is lost\nstays\n")
    args: dict[str, Any] = {"path": file, "content": f"what comes {NASTY}\nstays\n"}
    if tool == "edit":
        edits = [{"oldText": "what is lost", "newText": f"what comes {NASTY}"}]
        args = {"path": file, "edits": edits}
    at = await Asking(tmp_path).open()
    work = await at.go((tool, args))
    ask = await at.asked()
    said = reads(name, ask)
    assert "-what is lost" in said and "+what comes " + "".join(BAD.values()) in said
    assert f"a{''.join(BAD.values())}.txt" in said
    await at.answer(ask, "deny")
    await work.done


@pytest.mark.parametrize("name", WHOLE)
def test_edits_that_another_agent_asks_for_are_shown(name: str) -> None:
    args = {"path": f"/w/{NASTY}", "edits": [{"old_string": "a\nb", "new_string": f"a\n{NASTY}"}]}
    ask = Ask("ask_1", "s", "tool", "Approve change?", 1, tool="change", args=args, external=True)
    said = reads(name, ask)
    assert "-b" in said and "+" + "".join(BAD.values()) in said


def test_no_edit_is_left_out_beside_others() -> None:
    """Too large to be drawn as a difference by version 1: it is told in words."""
    edits = [{"oldText": "a", "newText": "b"}, {"oldText": "c", "newText": "d" * 3_000_000}]
    args = {"path": "/w/a", "edits": edits}
    ask = Ask("ask_1", "s", "tool", "Approve edit?", 1, tool="edit", args=args, external=True)
    found = texts(calls.question_of(ask))
    assert any("d" * 3_000_000 in text for text in found)


@pytest.mark.parametrize("name", WHOLE)
def test_what_a_change_cannot_say_by_lines_is_said(name: str) -> None:
    from dragoman.engine.ask import Change

    note = "replaces a binary file of 3,000 bytes"
    ask = Ask(
        "ask_1", "s", "tool", "Approve write?", 1, tool="write",
        args={"path": "/w/a", "content": "x"}, changes=(Change("/w/a", "", "x", note=note),),
    )  # fmt: skip
    assert note in reads(name, ask)


def test_a_list_says_what_it_leaves_out_and_holds_no_digest() -> None:
    ask = Ask(
        "ask_1", "s", "tool", "Approve bash?", 1, tool="bash", digest="d",
        args={"command": NASTY + "y" * 40_000},
    )  # fmt: skip
    row = views.listed(AskRow(ask))
    assert row.left_out and not row.ask.digest and row.ask.args is None
    assert "more characters" in row.parts[0].text
    line = what(msgspec.to_builtins(ask))
    assert "more characters" in line and not any(bad in line for bad in BAD)
