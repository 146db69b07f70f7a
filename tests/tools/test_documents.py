"""Documents, near misses and what was read, each by itself."""

import subprocess
import sys

import pytest
from tests.tools.making import Env

from dragoman.engine.faults import BadInput
from dragoman.tools import extract
from dragoman.tools.disk import Stamp
from dragoman.tools.documents import extracted, notebook
from dragoman.tools.nearest import nearest
from dragoman.tools.reads import Reads


@pytest.mark.parametrize("data", [b"", b"%PDF-1.7", b"%PDF-" + b"(" * 100_000, b"\0" * 1000])
async def test_broken_documents_end_only_themselves(data: bytes) -> None:
    with pytest.raises(BadInput, match=r"a\.pdf cannot be read as PDF"):
        await extracted("pdf", data, 1000, "a.pdf")


async def test_html_is_made_readable() -> None:
    text = await extracted("html", b"<h2>A</h2><ul><li>b<li>c</ul><style>x{}</style>", 1000, "p")
    assert text.startswith("## A") and "* b" in text and "x{}" not in text


def test_the_program_is_bounded_in_what_it_says() -> None:
    done = subprocess.run(
        [sys.executable, "-I", extract.__file__, "html", "10"], input=b"<p>" + b"word " * 100,
        capture_output=True, timeout=60, check=True,
    )  # fmt: skip
    assert len(done.stdout) == 11


def test_an_empty_notebook() -> None:
    assert "empty" in notebook(b'{"cells": []}', "n")


def test_nothing_is_near_an_empty_file() -> None:
    assert "Nothing similar" in nearest("", "x = 1")


def test_what_was_read_is_bounded_and_by_session() -> None:
    reads, env, other = Reads(), Env("/"), Env("/")
    other.session = "other"  # type: ignore[misc]
    stamp = Stamp(1, 2, 3, 4)
    for n in range(5_000):
        reads.saw(env, f"/{n}", stamp)  # type: ignore[arg-type]
    reads.check(env, "/4999", stamp, "f", must=True)  # type: ignore[arg-type]
    for one, path in ((env, "/0"), (other, "/4999")):
        with pytest.raises(BadInput, match="was not read"):
            reads.check(one, path, stamp, "f", must=True)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="changed"):
        reads.check(env, "/4999", Stamp(1, 2, 3, 5), "f")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("there", "asked", "told"),
    [
        ("say = \u201chi\u201d", 'say = "hi"', "(U+201C where you have U+0022)"),
        ("name = 'cafe\u0301'", "name = 'caf\u00e9'", "(U+0065 where you have U+00E9)"),
        ("a \u2013 b", "a - b", "(U+2013 where you have U+002D)"),
        ("x\u200b = 1", "x = 1", "(U+200B where you have U+0020)"),
        ("\uff11 + 2", "1 + 2", "(U+FF11 where you have U+0031)"),
    ],
)
def test_characters_that_look_alike_are_named(there: str, asked: str, told: str) -> None:
    hint = nearest(f"first\n    {there}\nlast", asked)
    assert "look alike" in hint and told in hint and "line 2:" in hint
