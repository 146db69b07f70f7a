"""RFC 6455 frames, case by case; section numbers are the RFC's."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.wire.frames import (
    Frames,
    Op,
    client_frame,
    close_payload,
    frame,
    masked,
    text_frame,
)

MASK = b"\x01\x02\x03\x04"


def sent(op: int, payload: bytes = b"", *, fin: bool = True) -> bytes:
    return frame(op, payload, fin=fin, mask=MASK)


def read(*chunks: bytes, limit: int = 1 << 20) -> tuple[list[tuple[int, bytes]], int | None]:
    frames = Frames(limit)
    events = [event for chunk in chunks for event in frames.feed(chunk)]
    return events, frames.failure.code if frames.failure else None


@given(st.binary(max_size=300), st.binary(min_size=4, max_size=4))
def test_masking_is_its_own_reverse_and_right(payload, mask):
    hidden = masked(payload, mask)
    assert hidden == bytes(byte ^ mask[n % 4] for n, byte in enumerate(payload))
    assert masked(hidden, mask) == payload


@pytest.mark.parametrize("size", [0, 1, 125, 126, 127, 65535, 65536, 70000])
def test_lengths_5_2(size):
    payload = b"a" * size
    assert read(sent(Op.TEXT, payload)) == ([(Op.TEXT, payload)], None)
    reader = Frames(1 << 20, from_client=False)
    assert reader.feed(text_frame(payload)) == [(Op.TEXT, payload)]
    assert text_frame(payload) == frame(Op.TEXT, payload)


def test_examples_of_section_5_7():
    assert frame(Op.TEXT, b"Hello") == bytes.fromhex("810548656c6c6f")
    assert Frames(100).feed(bytes.fromhex("818537fa213d7f9f4d5158")) == [(Op.TEXT, b"Hello")]
    server = Frames(100, from_client=False)
    assert server.feed(bytes.fromhex("010348656c80026c6f")) == [(Op.TEXT, b"Hello")]
    assert frame(Op.PING, b"Hello") == bytes.fromhex("890548656c6c6f")
    assert Frames(100).feed(bytes.fromhex("8a8537fa213d7f9f4d5158")) == [(Op.PONG, b"Hello")]


MIXED = (
    sent(Op.TEXT, "größe".encode())
    + sent(Op.TEXT, "ü".encode()[:1], fin=False)
    + sent(Op.PING, b"in between")
    + sent(0, b"\xbc and ", fin=False)
    + sent(0, b"more")
    + sent(Op.BINARY, b"b" * 200)
    + sent(Op.CLOSE, close_payload(1000, "done"))
)
EVENTS = [
    (Op.TEXT, "größe".encode()),
    (Op.PING, b"in between"),
    (Op.TEXT, "ü and more".encode()),
    (Op.BINARY, b"b" * 200),
    (Op.CLOSE, b"\x03\xe8done"),
]


@given(st.lists(st.integers(0, len(MIXED)), max_size=12))
def test_any_chunking_gives_the_same(places):
    edges = sorted({0, len(MIXED), *places})
    chunks = [MIXED[a:b] for a, b in zip(edges, edges[1:], strict=False)]
    events, _ = read(*chunks)
    assert events == EVENTS


def test_byte_by_byte():
    assert read(*[MIXED[n : n + 1] for n in range(len(MIXED))])[0] == EVENTS


def test_nothing_is_read_after_a_close_5_5_1():
    assert read(sent(Op.CLOSE) + sent(Op.TEXT, b"x"), sent(Op.TEXT, b"y"))[0] == [(Op.CLOSE, b"")]


VIOLATIONS = [
    ("reserved bit 1", b"\xc1\x80" + MASK, 1002),
    ("reserved bit 2", b"\xa1\x80" + MASK, 1002),
    ("reserved bit 3", b"\x91\x80" + MASK, 1002),
    ("reserved opcode 3", sent(3), 1002),
    ("reserved opcode 7", sent(7), 1002),
    ("reserved opcode 11", sent(11), 1002),
    ("not masked 5.1", frame(Op.TEXT, b"x"), 1002),
    ("long ping", sent(Op.PING, b"x" * 126), 1002),
    ("fragmented ping", sent(Op.PING, b"x", fin=False), 1002),
    ("fragmented close", sent(Op.CLOSE, fin=False), 1002),
    ("continuation of nothing", sent(0, b"x"), 1002),
    ("message in message", sent(1, b"x", fin=False) + sent(1, b"y"), 1002),
    ("16-bit length too small", b"\x81\xfe\x00\x05" + MASK + b"hello", 1002),
    ("64-bit length too small", b"\x81\xff" + (200).to_bytes(8, "big") + MASK, 1002),
    ("64-bit length with its top bit", b"\x81\xff\x80" + bytes(7) + MASK, 1002),
    ("text is not UTF-8", sent(Op.TEXT, b"\xce\xba\xff"), 1007),
    ("text ends inside a character", sent(Op.TEXT, b"\xce"), 1007),
    ("surrogate in text", sent(Op.TEXT, b"\xed\xa0\x80"), 1007),
    ("fragments are not UTF-8", sent(1, b"\xce", fin=False) + sent(0, b"x"), 1007),
    ("close code of one byte", sent(Op.CLOSE, b"\x03"), 1002),
    ("close reason not UTF-8", sent(Op.CLOSE, b"\x03\xe8\xff"), 1007),
    *(
        (f"close code {code}", sent(Op.CLOSE, code.to_bytes(2, "big")), 1002)
        for code in (0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65535)
    ),
]


@pytest.mark.parametrize(("name", "data", "code"), VIOLATIONS)
def test_violations(name, data, code):
    before = sent(Op.TEXT, b"before")
    events, failure = read(before + data)
    assert failure == code, name
    assert events[0] == (Op.TEXT, b"before") and len(events) == 1


@pytest.mark.parametrize("code", [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1011, 3000, 4999])
def test_close_codes_that_are_fine(code):
    body = close_payload(code, "why")
    assert read(sent(Op.CLOSE, body))[0] == [(Op.CLOSE, body)]


def test_limit_is_seen_in_the_head_before_the_body_arrives():
    head = b"\x81\xff" + (1 << 40).to_bytes(8, "big") + MASK
    assert read(head) == ([], 1009)
    assert read(sent(1, b"x" * 100), limit=100) == ([(1, b"x" * 100)], None)
    assert read(sent(1, b"x" * 101), limit=100) == ([], 1009)


def test_limit_counts_all_fragments():
    parts = sent(1, b"x" * 60, fin=False) + sent(0, b"x" * 60)
    assert read(parts, limit=100) == ([], 1009)
    assert read(parts, limit=120) == ([(1, b"x" * 120)], None)


def test_a_server_must_not_mask():
    frames = Frames(100, from_client=False)
    assert frames.feed(client_frame(Op.TEXT, b"x")) == []
    assert frames.failure.code == 1002


def test_close_payload_fits_a_control_frame_and_stays_utf8():
    body = close_payload(1011, "ü" * 200)
    assert len(body) <= 125
    body[2:].decode()
    assert close_payload(1005) == b""


@given(st.binary(max_size=60))
def test_no_bytes_raise(data):
    Frames(1000).feed(data)
    Frames(1000, from_client=False).feed(data)


@pytest.mark.parametrize("size", [0, 1, 3, 4, 5, 1023, 1024, 1025, 1027, 70_001])
def test_both_ways_to_take_a_mask_off_agree(size):
    payload, mask = random.Random(size).randbytes(size), b"\x01\x80\xff\x37"
    wanted = bytes(byte ^ mask[at % 4] for at, byte in enumerate(payload))
    assert masked(payload, mask) == wanted
    assert masked(wanted, mask) == payload
