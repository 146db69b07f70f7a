"""What goes with a prompt: pictures as pictures, text under its name, nothing else."""

from pathlib import Path

import pytest

from dragoman.client import attachments as att
from dragoman.engine.content import Image, Text
from dragoman.engine.faults import BadInput

PNG = b"\x89PNG\r\n\x1a\nrest"


@pytest.mark.parametrize(
    ("data", "kind"),
    [(PNG, "image/png"), (b"\xff\xd8\xff\xe0", "image/jpeg"), (b"GIF89a", "image/gif"),
     (b"RIFF1234WEBPmore", "image/webp"), (b"RIFF1234WAVE", ""), (b"", ""), (b"text", "")],
)  # fmt: skip
def test_a_picture_is_known_by_its_first_bytes(data: bytes, kind: str) -> None:
    assert att.image_kind(data) == kind


def test_files_become_blocks(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello\n\n")
    (tmp_path / "p").write_bytes(PNG)
    assert att.file(str(tmp_path / "a.txt"), "a.txt") == Text(
        '\n\n<context name="a.txt">\nhello\n</context>'
    )
    assert (
        att.file(str(tmp_path / "p")) == Image("image/png", PNG) == att.image(str(tmp_path / "p"))
    )
    (tmp_path / "odd").write_bytes(b"caf\xe9")
    assert "caf\ufffd" in att.file(str(tmp_path / "odd")).text  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("data", "said"),
    [(b"a\0b", "neither text nor a picture"), (b"x" * (att.LARGEST_TEXT + 1), "more than")],
)
def test_what_cannot_be_given_says_why(tmp_path: Path, data: bytes, said: str) -> None:
    (tmp_path / "f").write_bytes(data)
    with pytest.raises(BadInput, match=said) as caught:
        att.file(str(tmp_path / "f"))
    assert "without the @" in caught.value.hint


def test_pictures_that_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "t").write_text("text")
    with pytest.raises(BadInput, match="is no picture"):
        att.image(str(tmp_path / "t"))
    with pytest.raises(BadInput, match="cannot be read: No such file"):
        att.image(str(tmp_path / "gone"))
    with pytest.raises(BadInput, match="cannot be read: Is a directory"):
        att.image(str(tmp_path))
    monkeypatch.setattr(att, "LARGEST_IMAGE", 1024 * 1024)
    (tmp_path / "big").write_bytes(PNG + bytes(1024 * 1024))
    with pytest.raises(BadInput, match="larger than 1 MB"):
        att.image(str(tmp_path / "big"))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("see @a.txt", ["a.txt"]), ("see @a.txt, and (@b c) @a.txt.", ["a.txt"]),
        ('@"b c.txt"!', ["b c.txt"]), ("mail me@a.txt", []), ("@gone.txt @", []), ("@sub", []),
        ("@sub/d.txt\n@a.txt", ["sub/d.txt", "a.txt"]),
    ],
)  # fmt: skip
def test_mentions(tmp_path: Path, text: str, names: list[str]) -> None:
    (tmp_path / "sub").mkdir()
    for name in ("a.txt", "b c.txt", "sub/d.txt"):
        (tmp_path / name).write_text(name)
    assert [name for name, _ in att.mentions(text, str(tmp_path))] == names
    said, *blocks = att.prompt(text, str(tmp_path), Text("more"))
    assert said == Text(text) and len(blocks) == len(names) + 1 and blocks[-1] == Text("more")
