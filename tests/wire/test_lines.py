"""LF framing: any chunking gives the same lines, limits hold, nothing over-long is kept."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.wire.lines import Lines

ALPHABET = st.sampled_from([b"a", b"bc", b"\xc3", b"\xa9", b"\n", b"\r", b"\r\n", b"x" * 9, b" "])
STREAMS = st.lists(ALPHABET, max_size=60).map(b"".join)


def expected(data: bytes, limit: int) -> tuple[list[bytes], int]:
    """Lines and number of over-long ones, by the plainest means; the last one has no newline."""
    kept, over = [], 0
    for line in data.split(b"\n"):
        if line.endswith(b"\r"):
            line = line[:-1]
        if len(line) > limit:
            over += 1
        elif line:
            kept.append(line)
    return kept, over


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = sorted({min(place, len(data)) for place in places} | {0, len(data)})
    return [data[a:b] for a, b in zip(edges, edges[1:], strict=False)]


@given(STREAMS, st.lists(st.integers(0, 300), max_size=30), st.integers(2, 12), st.booleans())
def test_any_chunking_gives_the_same_lines(data, places, limit, late):
    framer = Lines(limit, max_pending=50 if late else 0)
    lines, over = [], 0
    for chunk in cut(data, places):
        lines += framer.feed(chunk)
        over += len(framer.overlong)
        assert framer.pending <= limit + 1
    lines += framer.end()
    over += len(framer.overlong)
    assert (lines, over) == expected(data, limit)


@given(STREAMS)
def test_byte_by_byte_equals_all_at_once(data):
    one, many = Lines(1000), Lines(1000)
    lines = one.feed(data) + one.end()
    drip = [line for byte in data for line in many.feed(bytes((byte,)))] + many.end()
    assert lines == drip


def test_only_lf_ends_a_line():
    text = "a\u2028b\u2029c\x85d\x0ce\rf".encode()
    assert Lines(100).feed(text + b"\n") == [text]


def test_a_character_split_between_chunks_survives():
    framer = Lines(100)
    assert framer.feed("ü".encode()[:1]) == []
    assert framer.feed("ü".encode()[1:] + b"\n") == ["ü".encode()]


def test_limit_is_exact_and_may_count_the_newline():
    assert Lines(8).feed(b"12345678\n") == [b"12345678"]
    counting = Lines(8, counts_newline=True)
    assert counting.feed(b"12345678\n") == []
    assert counting.overlong == [(0, 8)]
    assert counting.feed(b"1234567\n") == [b"1234567"]
    assert counting.overlong == []


def test_overlong_is_told_at_once_skipped_and_forgotten():
    framer = Lines(4)
    assert framer.feed(b"ok\n123456") == [b"ok"]
    assert framer.overlong == [(1, 6)]
    assert framer.feed(b"789") == [] and framer.overlong == []
    assert framer.pending == 0
    assert framer.feed(b"0\nfine\n") == [b"fine"]
    assert framer.overlong == []


def test_overlong_keeps_its_place_among_the_lines():
    framer = Lines(4)
    assert framer.feed(b"a\nb\n123456\nc\n1234567\n") == [b"a", b"b", b"c"]
    assert framer.overlong == [(2, 6), (3, 7)]


def test_with_max_pending_an_overlong_line_is_told_at_its_newline_or_at_the_ceiling():
    framer = Lines(4, max_pending=10)
    framer.feed(b"12345678")
    assert framer.overlong == []
    framer.feed(b"9\n")
    assert framer.overlong == [(0, 9)]
    framer.feed(b"12345678")
    framer.feed(b"90ab")
    assert framer.overlong == [(0, 12)]
    assert framer.feed(b"cd\nok\n") == [b"ok"]
    assert framer.overlong == []


def test_a_long_line_in_many_chunks_is_not_quadratic():
    framer, chunk = Lines(1 << 30), b"x" * 256
    began = time.process_time()  # not what others take
    for _ in range(100_000):
        framer.feed(chunk)
    assert framer.feed(b"\n") == [chunk * 100_000]
    assert time.process_time() - began < 10  # minutes when every chunk copies all before it


def test_a_limit_too_small_to_be_one_is_refused():
    with pytest.raises(ValueError, match="two bytes"):
        Lines(1)
