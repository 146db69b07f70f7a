"""Text in UTF-16: read, searched and edited like other text, and kept in its encoding."""

from pathlib import Path
from typing import Any

import pytest
from tests.tools.making import said

from dragoman.engine.faults import BadInput
from dragoman.tools import ripgrep
from dragoman.tools.wide import mark_of, narrowed


def test_the_mark_tells() -> None:
    assert mark_of(b"\xff\xfea\0") == (b"\xff\xfe", "utf-16-le")
    assert mark_of(b"plain") == (b"", "")
    assert mark_of(b"\xff\xfe raw") == (b"", "")
    assert narrowed(b"plain\xff") == b"plain\xff"
    assert narrowed("\ufeffwörld\n".encode("utf-16-be")) == "wörld\n".encode()
    assert narrowed(b"\xff\xfea\0b") == "a\ufffd".encode()  # cut in the middle of a sign


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
async def test_it_is_text(use: Any, work: Path, encoding: str) -> None:
    file = work / "wide.txt"
    file.write_bytes("\ufeffhällo\r\nwörld 🦜\r\n".encode(encoding))
    assert said(await use("read", path="wide.txt")) == "hällo\r\nwörld 🦜\r\n"
    assert said(await use("read", path="wide.txt", offset=2)) == "wörld 🦜\r\n"
    assert said(await use("grep", pattern="w.rld", path="wide.txt")) == "wide.txt:2: wörld 🦜"
    assert "+one" in said(await use("edit", path="wide.txt", oldText="hällo", newText="one\ntwo"))
    assert file.read_bytes() == "\ufeffone\r\ntwo\r\nwörld 🦜\r\n".encode(encoding)


async def test_both_ways_find_it(use: Any, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (work / "wide.txt").write_bytes("\ufeffone\nneedle\n".encode("utf-16-le"))
    (work / "much.txt").write_bytes(("\ufeff" + "x" * 99_999 + "\nneedle\n").encode("utf-16-be"))
    both = said(await use("grep", pattern="needle"))
    monkeypatch.setattr(ripgrep, "program", lambda: "")
    assert said(await use("grep", pattern="needle")) == both
    assert sorted(both.splitlines()) == ["much.txt:2: needle", "wide.txt:2: needle"]


async def test_what_only_begins_so_is_binary(use: Any, work: Path) -> None:
    (work / "odd").write_bytes(b"\xff\xfe\0\0a\0\0\0")
    for name, more in (("read", {}), ("edit", {"oldText": "a", "newText": "b"})):
        with pytest.raises(BadInput, match="looks binary"):
            await use(name, path="odd", **more)
    (work / "odd").write_bytes(b"\xff\xfea\0b")
    with pytest.raises(BadInput, match="is none"):
        await use("edit", path="odd", oldText="a", newText="b")
