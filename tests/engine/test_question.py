"""What a question offers to remember, and how its parts read."""

import os
from pathlib import Path
from typing import Any

import pytest

from dragoman.engine.ask import Ask, Change
from dragoman.engine.content import ToolCall
from dragoman.engine.foreign import look
from dragoman.engine.ports import Judgement
from dragoman.engine.question import scopes_of
from dragoman.engine.shown import diff_of, parts


def kinds(call: ToolCall, judgement: Judgement) -> list[tuple[str, str]]:
    return [(one.id, one.words) for one in scopes_of(call, judgement)]


def test_a_page_may_be_remembered_with_all_others_of_its_host() -> None:
    call = ToolCall("c", "web_fetch", {"url": "https://example.org/a"})
    judgement = Judgement("ask", commands=(("example.org",),))
    assert [one[0] for one in kinds(call, judgement)] == ["host", "exact", "tool"]
    assert scopes_of(call, judgement)[0].argv == ("example.org",)
    assert [one[0] for one in kinds(call, Judgement("ask"))] == ["tool", "exact"]


@pytest.mark.parametrize("file", ["/notes.txt", os.path.expanduser("~/notes.txt")])
def test_a_whole_disk_or_home_is_never_offered(file: str) -> None:
    found = [one[0] for one in kinds(ToolCall("c", "edit", {}), Judgement("ask", files=(file,)))]
    assert found == ["file", "tool"]


def asked(**more: Any) -> Ask:
    return Ask("a", "s", "question", "What now?", 1, **more)


def test_a_question_for_words_is_its_title_and_what_is_more() -> None:
    assert parts(asked()) == [] == parts(asked(summary="What now?"))
    (part,) = parts(asked(summary="Tell me\x1b more"))
    assert (part.kind, part.text) == ("text", "Tell me<ESC> more")


def test_a_difference_shows_what_stays_between() -> None:
    old, new = "a\nsame\nb\nsame2\n", "A\nsame\nB\nsame2\n"
    assert diff_of(Change("f", old, new)).splitlines() == [
        "-a", "+A", " same", "-b", "+B", " same2",
    ]  # fmt: skip
    assert diff_of(Change("f", old, old)) == "(nothing changes)"


UNENDED = "\\ No newline at end of file"


@pytest.mark.parametrize(
    ("old", "new", "shown"),
    [
        ("1\n", "theirs\n", ["-1", "+theirs"]),
        ("1\n", "theirs", ["-1", "+theirs", UNENDED]),
        ("1", "theirs\n", ["-1", UNENDED, "+theirs"]),
        ("1", "theirs", ["-1", "+theirs"]),
        ("1\n", "1", ["-1", "+1", UNENDED]),
        ("a\n1", "b\n1\n", ["-a", "-1", UNENDED, "+b", "+1"]),
        ("", "theirs", ["+theirs"]),
        ("1\n", "", ["-1"]),
        ("1\n", "1\n\n", [" 1", "+"]),
        ("1\n\n", "1\n", [" 1", "-"]),
        ("\n", "x\n", ["-", "+x"]),
        ("x\na\nb\nc\nd\n", "y\na\nb\nc\nd\n", ["-x", "+y", " a", " b", " c", "  (1 line stays)"]),
    ],
)
def test_the_end_of_the_last_line_is_no_line(old: str, new: str, shown: list[str]) -> None:
    assert diff_of(Change("f", old, new)).split("\n") == shown


def test_what_another_agent_describes_is_held_against_the_file(tmp_path: Path) -> None:
    gone = look({"path": "gone.txt", "old_string": "a", "new_string": "b"}, str(tmp_path))
    assert [one.note for one in gone.changes] == ["(the file does not hold this text now)"]
    assert [one.hash for one in gone.seen] == [""]
    # Only what is an object is an edit; the path may stand beside the list.
    (tmp_path / "f.txt").write_text("one two")
    edits = ["nonsense", {"old_string": "one", "new_string": "1"}]
    found = look({"path": "f.txt", "edits": edits}, str(tmp_path))
    assert [(one.old, one.new, one.line) for one in found.changes] == [("one", "1", 1)]
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    odd = look({"path": str(loop / "x"), "content": "new"}, str(tmp_path))
    assert len(odd.changes) == 1
    long = look({"path": "x" * 300, "content": "new"}, str(tmp_path))
    assert "cannot be read" in long.changes[0].note
