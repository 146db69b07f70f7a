import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.providers.sse import EventParser, EventTooLong


def whole(data: bytes) -> list[bytes]:
    parser = EventParser()
    return parser.feed(data) + parser.flush()


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        (b"data: a\n\ndata: b\n\n", [b"a", b"b"]),
        (b"data: a\r\n\r\ndata: b\r\n\r\n", [b"a", b"b"]),
        (b"data: a\r\rdata: b\r\r", [b"a", b"b"]),
        (b"data: a\ndata: b\n\n", [b"a\nb"]),
        (b"data:a\n\n", [b"a"]),
        (b"data:  a\n\n", [b" a"]),
        (b"event: x\ndata: a\nid: 7\nretry: 3\n\n", [b"a"]),
        (b": comment\n\n: more\ndata: a\n\n", [b"a"]),
        (b"\xef\xbb\xbfdata: a\n\n", [b"a"]),
        (b"data\n\n", [b""]),
        (b"\n\n\ndata: a\n\n\n\n", [b"a"]),
        (b"event: only\n\n", []),
        (b"data: a", [b"a"]),
        (b"data: a\n", [b"a"]),
        (b"", []),
    ],
)
def test_events(stream: bytes, events: list[bytes]) -> None:
    assert whole(stream) == events


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_any_cut_gives_the_same_events(newline: str) -> None:
    text = 'event: m|data: {"t":"añ€😀"}||data: one|data: two||: c||data: end||'
    stream = text.replace("|", newline).encode()
    expected = ['{"t":"añ€😀"}'.encode(), b"one\ntwo", b"end"]
    for cut in range(len(stream) + 1):
        parser = EventParser()
        assert parser.feed(stream[:cut]) + parser.feed(stream[cut:]) == expected, cut
    parser = EventParser()
    assert [e for byte in stream for e in parser.feed(bytes([byte]))] == expected


@given(st.lists(st.text(st.characters(exclude_characters="\r\n")), max_size=5), st.data())
def test_what_is_written_is_read(texts: list[str], data: st.DataObject) -> None:
    newline = data.draw(st.sampled_from(["\n", "\r\n", "\r"]))
    try:
        stream = "".join(f"data: {text}{newline}{newline}" for text in texts).encode()
    except UnicodeEncodeError:
        return  # lone surrogates have no bytes
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    parser = EventParser()
    found: list[bytes] = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        found += parser.feed(stream[start:end])
    assert [item.decode() for item in found] == texts


def test_an_event_without_end_is_stopped() -> None:
    parser = EventParser(limit=100)
    with pytest.raises(EventTooLong):
        for _ in range(20):
            parser.feed(b"data: 0123456789\n")
    with pytest.raises(EventTooLong):
        EventParser(limit=100).feed(b"x" * 101)
    with pytest.raises(EventTooLong):
        EventParser(limit=100).feed(b"data\n" * 101)
    parser = EventParser(limit=100)
    with pytest.raises(EventTooLong):
        for _ in range(101):
            parser.feed(b"x")


def test_a_long_line_in_small_pieces_is_put_together_once() -> None:
    parser = EventParser()
    began = time.process_time()
    assert parser.feed(b"data: ") == []
    for _ in range(120_000):
        assert parser.feed(b"x" * 100) == []
    assert parser.feed(b"\ndata: y") == []
    assert parser.feed(b"\r\r") == [b"x" * 12_000_000 + b"\ny"]
    assert time.process_time() - began < 15  # minutes when every piece copies all before it
