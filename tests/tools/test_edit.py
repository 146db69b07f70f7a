"""`edit`: exact replacements, all or none, every other byte kept."""

import os
import stat
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tools.making import Editor, Env, said, temporary

from dragoman.engine.faults import BadInput, Refused
from dragoman.tools import edit as edit_module
from dragoman.tools.replacing import replace_all

TEXT = "".join(f"line {n}\n" for n in range(1, 21))


def one(old: str, new: str) -> list[dict[str, str]]:
    return [{"oldText": old, "newText": new}]


async def test_several_edits_at_once(use: Any, work: Path) -> None:
    path = work / "a"
    path.write_text(TEXT)
    path.chmod(0o600)
    outcome = await use(
        "edit", path="a", edits=one("line 15\n", "") + one("line 2\nline 3", "two\nline 3\nnew")
    )
    new = TEXT.replace("line 15\n", "").replace("line 2\nline 3", "two\nline 3\nnew")
    assert path.read_text() == new
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert said(outcome).split("\n") == [
        *(" line 1", "-line 2", "+two", " line 3", "+new", " line 4", " line 5", " line 6", "..."),
        *(" line 12", " line 13", " line 14", "-line 15", " line 16", " line 17", " line 18"),
        "...",
    ]
    (diff,) = outcome.detail.diffs
    assert (diff.path, diff.old, diff.new) == (str(path), TEXT, new)
    assert outcome.detail.locations[0].line == 2


async def test_edits_of_one_line_are_one_change(use: Any, work: Path) -> None:
    (work / "a").write_text("a b c\n")
    outcome = await use("edit", path="a", edits=one("a", "1") + one("c", "3"))
    assert (work / "a").read_text() == "1 b 3\n"
    assert said(outcome) == "-a b c\n+1 b 3"


@pytest.mark.parametrize(
    "args",
    [
        {"old_string": "x", "new_string": "y"},
        {"oldText": "x", "newText": "y"},
        {"old_str": "x", "new_str": "y"},
        {"edits": [{"old_text": "x", "new_text": "y"}]},
        {"edits": '[{"oldText": "x", "newText": "y"}]'},
    ],
)
async def test_other_spellings(use: Any, work: Path, args: Any) -> None:
    (work / "a").write_text("x")
    await use("edit", file_path="a", **args)
    assert (work / "a").read_text() == "y"


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (b"a\r\nb\r\nc\r\n", "a\nb", "1\n2\n3", b"1\r\n2\r\n3\r\nc\r\n"),
        (b"a\r\nb\r\nc\r\n", "a\r\nb", "1\r\n2", b"1\r\n2\r\nc\r\n"),
        (b"a\r\nb\r\nc\r\n", "b", "x\ny", b"a\r\nx\r\ny\r\nc\r\n"),
        (b"a\r\nb\nc\r\n", "b\n", "x\ny\n", b"a\r\nx\ny\nc\r\n"),
        (b"a\r\nb\nc\r\n", "a\n", "x\ny\n", b"x\r\ny\r\nb\nc\r\n"),
        (b"a\r\nb", "\nb", "\nc", b"a\r\nc"),
        (b"a\r\nb\r\n", "a\n", "", b"b\r\n"),
        (b"\xef\xbb\xbfa\nb\n", "a\n", "x\n", b"\xef\xbb\xbfx\nb\n"),
        (b"\xef\xbb\xbfa\r\n", "\ufeffa", "x", b"\xef\xbb\xbfx\r\n"),
        (b"\xff\xfe raw a \x80", " a ", " b ", b"\xff\xfe raw b \x80"),
        (b"lone \r cr a", "a", "b\nc", b"lone \r cr b\nc"),
        (b"no end", "end", "end\n", b"no end\n"),
    ],
)
async def test_every_other_byte_is_kept(
    use: Any, work: Path, before: bytes, old: str, new: str, after: bytes
) -> None:
    (work / "a").write_bytes(before)
    outcome = await use("edit", path="a", edits=one(old, new))
    assert (work / "a").read_bytes() == after
    said(outcome).encode()  # can be sent
    for diff in outcome.detail.diffs:
        (diff.old + diff.new).encode()


async def test_only_changed_lines_show_on_a_file_with_crlf(use: Any, work: Path) -> None:
    (work / "a").write_bytes(b"a\r\nb\r\nc\r\n")
    assert said(await use("edit", path="a", edits=one("b", "x"))) == " a\n-b\n+x\n c"


@pytest.mark.parametrize(
    ("edits", "sentence"),
    [
        ([], "at least one edit is required"),
        (one("", "x"), "edit 1: oldText must not be empty"),
        (one("a", "a"), "edit 1: oldText equals newText"),
        (one("b", "x") + one("nope", "x"), "edit 2: oldText not found in f"),
        (one("a", "x"), "edit 1: oldText matches 3 times (must be unique) in f"),
        (one("a b", "x") + one("b c", "y"), "edits overlap; merge them into one edit"),
        ([{"oldText": "b"}], "edit 1: newText is required"),
        ([{"newText": "b"}], "edit 1: oldText is required"),
        ("[", "edits: expected a list"),
        ("[" * 100_000, "edits: expected a list"),
        (5, "edits: expected `array`"),
        ([{"oldText": "b", "newText": 5.5}], "expected `str`"),
    ],
)
async def test_nothing_changes_when_an_edit_is_wrong(
    use: Any, work: Path, edits: Any, sentence: str
) -> None:
    (work / "f").write_text("a b c a a\n")
    with pytest.raises(BadInput) as error:
        await use("edit", path="f", edits=edits)
    assert sentence in str(error.value)
    assert (work / "f").read_text() == "a b c a a\n"
    assert temporary(work) == []


async def test_overlapping_matches_count(use: Any, work: Path) -> None:
    (work / "f").write_text("aaa")
    with pytest.raises(BadInput, match="matches 2 times"):
        await use("edit", path="f", edits=one("aa", "b"))


async def test_what_cannot_be_edited(use: Any, work: Path) -> None:
    (work / "binary").write_bytes(b"a\0b")
    (work / "out").symlink_to("/etc/hostname")
    with pytest.raises(BadInput, match="looks binary"):
        await use("edit", path="binary", edits=one("a", "b"))
    with pytest.raises(BadInput, match="no such file"):
        await use("edit", path="none", edits=one("a", "b"))
    with pytest.raises(Refused):
        await use("edit", path="out", edits=one("a", "b"))


async def test_a_file_that_changes_meanwhile_is_not_overwritten(
    use: Any, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (work / "f").write_text("a")
    real = edit_module.replace_all

    def slow(*args: Any) -> Any:
        (work / "f").write_text("a, and somebody else's work")
        return real(*args)

    monkeypatch.setattr(edit_module, "replace_all", slow)
    with pytest.raises(BadInput, match="changed while it was edited"):
        await use("edit", path="f", edits=one("a", "b"))
    assert (work / "f").read_text() == "a, and somebody else's work"
    assert os.listdir(work) == ["f"]


async def test_an_editors_buffer_is_edited(use: Any, work: Path, env: Env) -> None:
    env.files = editor = Editor(a="unsaved")
    await use("edit", path="a", edits=one("un", "re"))
    assert editor.files == {"a": "resaved"}


@given(
    st.lists(st.sampled_from(["x", "yy", "", "\n", "\r\n", "é", "q\n"]), max_size=30),
    st.integers(0, 30),
    st.integers(0, 30),
    st.text(alphabet="ab\n", max_size=4),
)
def test_bytes_outside_the_replacement_stay(
    pieces: list[str], start: int, end: int, new: str
) -> None:
    before, old, after = pieces[:start], "<here>", pieces[end:]
    text = "".join(before) + old + "".join(after)
    result = replace_all(text, [(old, new)], "f")
    assert result.new.startswith("".join(before))
    assert result.new.endswith("".join(after))
    assert result.new.replace("\r\n", "\n") == text.replace("\r\n", "\n").replace(old, new)


@pytest.mark.parametrize(
    ("old", "hint"),
    [
        ("  if x:\n    y()", "other indentation, lines 2-3:\n    if x:"),
        ("    if x:   \n        y()", "white space at line ends"),
        ("if  x :", "other spaces within lines, line 2:"),
        ("    if xx:\n        y()", "nearest text is in lines 2-3:"),
        ("something else entirely", "Nothing similar"),
        ("\n\n\n", "match exactly"),
    ],
)
async def test_near_misses_are_told_apart(use: Any, work: Path, old: str, hint: str) -> None:
    (work / "a.py").write_text("def f(x):\n    if x:\n        y()\n")
    with pytest.raises(BadInput) as caught:
        await use("edit", path="a.py", edits=[{"oldText": old, "newText": "z"}])
    assert "oldText not found" in str(caught.value) and hint in str(caught.value)


async def test_a_near_miss_in_a_huge_file_costs_little(use: Any, work: Path) -> None:
    (work / "big").write_text(
        "".join(f"line {n} of many {n * 7919 % 1000}\n" for n in range(100_000))
    )
    began = time.process_time()
    with pytest.raises(BadInput, match="nearest"):
        await use("edit", path="big", edits=[{"oldText": "lime 77 of man", "newText": "z"}])
    assert time.process_time() - began < 5


async def test_the_result_of_a_change_in_a_huge_line_is_short(use: Any, work: Path) -> None:
    (work / "one.json").write_text('{"a": "' + "y" * 4_000_000 + '"}\n')
    outcome = await use("edit", path="one.json", oldText='y"}', newText='z"}')
    assert len(said(outcome)) < 5_000 and "[4,000,010 characters]" in said(outcome)
    assert outcome.detail is not None and not outcome.detail.diffs
    assert (work / "one.json").read_text().endswith('yz"}\n')


async def test_the_result_of_a_huge_change_is_cut(use: Any, work: Path) -> None:
    (work / "many.txt").write_text("start\n")
    new = "\n".join(f"line {number}" for number in range(20_000))
    shown = said(await use("edit", path="many.txt", oldText="start", newText=new))
    assert len(shown) < 52_000 and shown.endswith(" more lines of the change]")


async def test_bytes_that_are_no_text_are_told_from_a_near_miss(use: Any, work: Path) -> None:
    (work / "latin.txt").write_bytes("hällo\nwörld\n".encode("latin-1"))
    shown = said(await use("read", path="latin.txt"))
    with pytest.raises(BadInput, match="bytes that are no UTF-8"):
        await use("edit", path="latin.txt", oldText=shown.splitlines()[1], newText="x")
    await use("edit", path="latin.txt", oldText="rld", newText="x")
    assert (work / "latin.txt").read_bytes() == "hällo\nwöx\n".encode("latin-1")
