"""`read`: lines of files of any size, pictures, refusals."""

from pathlib import Path
from typing import Any

import pytest
from tests.tools.drawn import GIF, JPEG, WEBPS, png
from tests.tools.making import Editor, Env, said

from dragoman.engine.content import Image, Text
from dragoman.engine.faults import BadInput, Refused

PNG = png()


async def test_text_comes_as_it_is(use: Any, work: Path) -> None:
    (work / "a.txt").write_text("one\ntwo\nthree")
    assert said(await use("read", path="a.txt")) == "one\ntwo\nthree\n"
    assert said(await use("read", file_path="a.txt", offset="2", limit=1)) == "two\n"
    assert said(await use("read", path="a.txt", offset=3)) == "three\n"
    outcome = await use("read", path=str(work / "a.txt"), offset=2)
    assert outcome.detail.locations[0].line == 2


async def test_ends_of_files(use: Any, work: Path) -> None:
    (work / "empty").write_text("")
    (work / "a").write_text("1\n2\n")
    (work / "blank").write_text("\n\n")
    assert said(await use("read", path="empty")) == "[the file is empty]"
    assert said(await use("read", path="a", offset=3)) == "[nothing there: the file has 2 lines]"
    assert said(await use("read", path="a", offset=99)) == "[nothing there: the file has 2 lines]"
    assert said(await use("read", path="blank", offset=2)) == "\n"


async def test_many_lines_are_cut_and_can_be_read_on(use: Any, work: Path) -> None:
    (work / "a").write_text("".join(f"{n}\n" for n in range(1, 4501)))
    first = said(await use("read", path="a"))
    assert first.endswith("\n2000\n... [truncated at 2000 lines; read on with offset=2001]")
    assert said(await use("read", path="a", offset=2001, limit=9999)).startswith("2001\n")
    assert said(await use("read", path="a", offset=4001)).endswith("\n4500\n")


async def test_many_bytes_are_cut_at_a_line(use: Any, work: Path) -> None:
    (work / "a").write_text("".join(f"{n:04}{'ü' * 500}\n" for n in range(1, 201)))
    collected, offset = "", 1
    for _ in range(20):
        text = said(await use("read", path="a", offset=offset))
        body, mark, rest = text.partition("... [truncated at 51200 bytes; read on with offset=")
        assert len(body.encode()) <= 51_200
        collected += body
        if not mark:
            break
        offset = int(rest.rstrip("]"))
    assert collected == (work / "a").read_text()


async def test_a_very_long_line_can_be_read_to_its_end(use: Any, work: Path) -> None:
    line = "".join(chr(0x4E00 + n % 5000) for n in range(40_000))
    (work / "a").write_text("x\n" + line + "\nlast\n")
    collected, column = "", 1
    for _ in range(10):
        text = said(await use("read", path="a", offset=2, column=column))
        body, mark, rest = text.partition("\n... [truncated at 51200 bytes; read on with offset=2")
        collected += body
        if not mark:
            break
        column = int(rest.removeprefix(", column=").rstrip("]"))
    assert collected == line + "\nlast\n"


async def test_a_huge_file_is_not_read_whole(use: Any, work: Path) -> None:
    import tracemalloc

    with open(work / "huge", "wb") as file:
        for block in range(64):
            file.write(b"".join(b"line %07d\n" % (block * 65536 + n) for n in range(65536)))
    tracemalloc.start()
    try:
        text = said(await use("read", path="huge", offset=4_000_001, limit=2))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert text == "line 4000000\nline 4000001\n"
    assert peak < 4_000_000


@pytest.mark.parametrize("name", ["a.png", "b.PNG"])
async def test_pictures_are_pictures(use: Any, work: Path, name: str) -> None:
    (work / name).write_bytes(PNG)
    assert (await use("read", path=name)).content == (Image("image/png", PNG),)


@pytest.mark.parametrize(
    ("data", "mime"),
    [(JPEG, "image/jpeg"), (GIF, "image/gif"), *((one, "image/webp") for one in WEBPS)],
)
async def test_the_content_tells_the_kind(use: Any, work: Path, data: bytes, mime: str) -> None:
    (work / "x.jpg").write_bytes(data)
    assert (await use("read", path="x.jpg")).content == (Image(mime, data),)


async def test_a_model_without_eyes_is_told(use: Any, work: Path, env: Env) -> None:
    (work / "a.png").write_bytes(PNG)
    env.vision = False
    content = (await use("read", path="a.png")).content
    assert isinstance(content[0], Image)
    assert isinstance(content[1], Text) and "cannot see" in content[1].text


async def test_a_text_that_is_called_png_is_text(use: Any, work: Path) -> None:
    (work / "a.png").write_text("no picture")
    assert said(await use("read", path="a.png")) == "no picture\n"


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        ({}, "path is required"),
        ({"path": 5.5}, "path: expected `str`"),
        ({"path": ""}, "path is required"),
        ({"path": "a", "offset": 0}, "counted from 1"),
        ({"path": "a", "offset": "x"}, "offset: expected `int`"),
        ({"path": "a", "limit": 0}, "limit must be at least 1"),
        ({"path": "none"}, "none: no such file"),
        ({"path": "a/b"}, "a/b: not a directory"),
        ({"path": "dir"}, "is a directory"),
        ({"path": "binary"}, "binary looks binary; refusing to read as text"),
        ({"path": "bad.png"}, "looks binary"),
    ],
)
async def test_what_cannot_be_read(use: Any, work: Path, args: Any, sentence: str) -> None:
    (work / "a").write_text("x\n")
    (work / "dir").mkdir()
    (work / "binary").write_bytes(b"abc\0def")
    (work / "bad.png").write_bytes(b"abc\0def")
    with pytest.raises(BadInput) as error:
        await use("read", **args)
    assert sentence in str(error.value)


async def test_outside_is_refused(use: Any, work: Path) -> None:
    (work / "link").symlink_to("/etc/passwd")
    for path in ("/etc/passwd", "../x", "link", "/proc/self/environ"):
        with pytest.raises(Refused):
            await use("read", path=path)


async def test_an_editors_buffer_is_read_instead(use: Any, work: Path, env: Env) -> None:
    (work / "a.txt").write_text("on disk\n")
    env.files = Editor(a="unsaved\nsecond\n")
    assert said(await use("read", path="a.txt", offset=2)) == "second\n"
    with pytest.raises(Refused):
        await use("read", path="/etc/a")


async def test_a_pdf_is_read_as_text(use: Any, work: Path) -> None:
    from pypdf import PdfWriter
    from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

    writer = PdfWriter()
    page = writer.add_blank_page(200, 200)
    stream = DecodedStreamObject()
    stream.set_data(b"BT /F1 12 Tf 20 100 Td (Hello from PDF) Tj ET")
    font = {"/Type": "/Font", "/Subtype": "/Type1", "/BaseFont": "/Helvetica"}
    made = DictionaryObject({NameObject(k): NameObject(v) for k, v in font.items()})
    fonts = DictionaryObject({NameObject("/F1"): made})
    page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
    page[NameObject("/Contents")] = stream
    writer.write(work / "a.pdf")
    text = said(await use("read", path="a.pdf"))
    assert "[page 1 of 1]" in text and "Hello from PDF" in text
    (work / "bad.pdf").write_bytes(b"%PDF-1.4 broken")
    with pytest.raises(BadInput, match="cannot be read as PDF"):
        await use("read", path="bad.pdf")


async def test_a_notebook_is_read_by_cells(use: Any, work: Path) -> None:
    cells = (
        '{"cells":[{"cell_type":"markdown","source":["# T\\n","x"]},'
        '{"cell_type":"code","source":"1+1",'
        '"outputs":[{"data":{"text/plain":"2","image/png":"AA"}},{"ename":"E","evalue":"v"},5]},7]}'
    )
    (work / "n.ipynb").write_text(cells)
    text = said(await use("read", path="n.ipynb"))
    assert "[1: markdown]\n# T\nx" in text and "[output of 2]\n2\n[image/png]" in text
    assert "E: v" in text
    for odd in ("", "[]", '{"cells":5}', "[" * 5000):
        (work / "n.ipynb").write_text(odd)
        with pytest.raises(BadInput, match="no notebook"):
            await use("read", path="n.ipynb")
