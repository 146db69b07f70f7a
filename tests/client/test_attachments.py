"""Files, pictures and piped text as blocks of a prompt."""

from pathlib import Path

import pytest

from dragoman.client import attachments
from dragoman.engine.content import Image, Text, picture_type
from dragoman.engine.faults import BadInput

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20


def test_only_files_that_are_there_are_meant_by_an_at(tmp_path: Path) -> None:
    (tmp_path / "a b.txt").write_text("spaced")
    (tmp_path / "n.md").write_text("notes")
    said = 'mail me@example.org about @n.md, @"a b.txt" and @nothing.'
    found = attachments.mentions(said, str(tmp_path))
    assert [name for name, _ in found] == ["n.md", "a b.txt"]
    first, *more = attachments.prompt(said, str(tmp_path))
    assert first == Text(said) and [type(one) for one in more] == [Text, Text]
    assert "spaced" in more[1].text and 'name="a b.txt"' in more[1].text


def test_a_file_that_is_not_there_is_told_and_other_words_are_not(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "main.py").touch()
    (tmp_path / "dangling.txt").symlink_to("gone")
    for said in (
        "@src/main.py", "@src", "me@example.org", "@me/weather", "@property", "@ann: look", "@",
        "@.", "@..", '@app.get("/x")', "@pytest.fixture", "@dangling.txt",
    ):  # fmt: skip
        assert attachments.missed(said, str(tmp_path)) == "", said
    told = attachments.missed('@src/mian, @nope.py. @"a b.txt", @nope.py', str(tmp_path))
    assert told.startswith(f"there is no file src/mian, nope.py, a b.txt in {tmp_path};")


def test_a_picture_is_known_by_its_bytes_and_not_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "odd.txt").write_bytes(PNG)
    assert attachments.file(str(tmp_path / "odd.txt")) == Image("image/png", PNG)
    (tmp_path / "fake.png").write_text("no picture")
    with pytest.raises(BadInput, match="is no picture"):
        attachments.image(str(tmp_path / "fake.png"))
    assert picture_type(b"RIFF1234WEBPxx") == "image/webp"
    assert picture_type(b"RIFF1234WAVExx") == ""


def test_what_is_too_large_or_no_text_is_refused_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "large").write_text("x" * (attachments.LARGEST_TEXT + 1))
    (tmp_path / "binary").write_bytes(b"\0\1\2")
    for name in ("large", "binary", "missing"):
        with pytest.raises(BadInput) as told:
            attachments.file(str(tmp_path / name))
        assert name in str(told.value)
