"""Spellings of JSON that single protocols need."""

import json

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from dragoman.wire import codec

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


class Point(msgspec.Struct):
    y: str
    x: object = 0


@given(JSON)
def test_every_encoder_says_the_same(value):
    for encode in (codec.encode, codec.ascii_encode, codec.safe_encode, codec.sorted_encode):
        assert json.loads(encode(value)) == value


@given(st.text())
def test_ascii_is_ascii_and_safe_has_no_line_separators(text):
    assert codec.ascii_encode({text: [text]}).isascii()
    safe = codec.safe_encode({text: text}).decode()
    assert "\u2028" not in safe and "\u2029" not in safe


def test_ascii_uses_surrogate_pairs():
    assert codec.ascii_encode("é😀\x7f") == b'"\\u00e9\\ud83d\\ude00\x7f"'


def test_sorted_goes_all_the_way_down():
    value = {"b": [{"d": 1, "c": 2}], "a": Point(y="1", x={"z": 1, "k": 2})}
    assert codec.sorted_encode(value) == (b'{"a":{"x":{"k":2,"z":1},"y":"1"},"b":[{"c":2,"d":1}]}')


def test_lone_surrogates_are_replaced_wherever_they_are():
    raw = msgspec.Raw(b"[1]")
    value = {"\ud800": ["a\udfffb", ("\ud801",)], "p": Point(y="\ud800", x=raw)}
    for encode in (codec.encode, codec.ascii_encode, codec.safe_encode, codec.sorted_encode):
        assert json.loads(encode(value)) == {
            "\ufffd": ["a\ufffdb", ["\ufffd"]],
            "p": {"y": "\ufffd", "x": [1]},
        }


def test_is_utf8():
    assert codec.is_utf8(b"plain") and codec.is_utf8("é😀".encode())
    for broken in (b"\xff", b"a\xc3", b"\xed\xa0\x80", b"\xc0\xaf"):
        assert not codec.is_utf8(broken)


def test_mend_text_keeps_pairs_and_escaped_backslashes():
    line = rb'"\ud83d\ude00 \ud83d \ude00 \\ud800 \u00e9" ' + b"\xff"
    assert codec.mend_text(line) == (
        rb'"\ud83d\ude00 \ufffd \ufffd \\ud800 \u00e9" ' + "\ufffd".encode()
    )


def nested(levels: int, opening: bytes = b"[", closing: bytes = b"]") -> bytes:
    return opening * levels + closing * levels


def test_depth_is_exact():
    assert not codec.is_deep(nested(128))
    assert codec.is_deep(nested(129))
    mixed = b'{"a":[' * 65 + b"]}" * 65
    assert codec.is_deep(mixed) and not codec.is_deep(b'{"a":[' * 64 + b"]}" * 64)


def test_depth_ignores_brackets_in_strings_and_wide_values():
    assert not codec.is_deep(b'"' + b"[" * 500 + b'"')
    assert not codec.is_deep(rb'["\"' + b"[" * 500 + b'"]')
    assert not codec.is_deep(b"[" + b"[1]," * 5000 + b"[2]]")


@given(JSON, st.integers(0, 6))
def test_depth_agrees_with_the_plain_definition(value, depth):
    def levels(item):
        if isinstance(item, dict):
            return 1 + max(map(levels, item.values()), default=0)
        if isinstance(item, list):
            return 1 + max(map(levels, item), default=0)
        return 0

    assert codec.is_deep(codec.encode(value), depth) == (levels(value) > depth)
