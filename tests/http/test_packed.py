"""Packed answers: unpacked in pieces, and what is wrong with them is said."""

import gzip
import zlib

import pytest

from dragoman.http import packed
from dragoman.http.packed import Unpacker

TEXT = b"some words, again and again. " * 5_000


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("gzip", gzip.compress(TEXT)),
        ("x-gzip", gzip.compress(TEXT)),
        ("gzip", gzip.compress(TEXT[:999]) + gzip.compress(TEXT[999:])),
        ("deflate", zlib.compress(TEXT)),
        ("deflate", zlib.compress(TEXT, wbits=-15)),
    ],
)
@pytest.mark.parametrize("size", [1, 7, 1_000_000])
def test_it_comes_out_as_it_went_in_however_it_is_cut(name: str, data: bytes, size: int) -> None:
    made: list[bytes] = []
    one = Unpacker(name)
    for at in range(0, len(data), size):
        if not at:
            assert one.whole  # an answer without a byte
        assert one.feed(data[at : at + size], made.append) == ""
    assert one.whole and b"".join(made) == TEXT
    cut = Unpacker(name)
    cut.feed(data[:-1], made.append)
    assert not cut.whole


def test_a_bomb_is_told_in_pieces() -> None:
    made: list[int] = []
    bomb = gzip.compress(bytes(20_000_000))
    assert Unpacker("gzip").feed(bomb, lambda piece: made.append(len(piece))) == ""
    assert sum(made) == 20_000_000 and max(made) <= packed._STEP


def test_what_is_no_packing_is_said() -> None:
    assert "cannot be unpacked" in Unpacker("gzip").feed(b"plain text", lambda piece: None)
    odd = Unpacker("br" * 100)
    assert odd.whole and "packed as brbr" in odd.feed(b"x", lambda piece: None)
    assert len(odd.feed(b"x", lambda piece: None)) < 120
