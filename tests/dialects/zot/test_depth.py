"""Lines that nest very deeply: flattened where nobody looks, refused where they are broken."""

import json

import pytest

from dragoman.dialects.zot.hear import DEEPEST, flattened


def test_what_is_not_deep_stays_as_it_is() -> None:
    line = b'{"type":"prompt","text":"[[[ {{{ \\" ]","a":[1,{"b":[]}]}'
    assert flattened(line) == line


def test_what_is_deep_becomes_null_and_the_rest_stays() -> None:
    deep = b"[" * 500 + b"]" * 500
    made = flattened(b'{"type":"ping","x":' + deep + b',"id":"a"}')
    assert made is not None
    found = json.loads(made)
    assert (found["type"], found["id"]) == ("ping", "a") and made.count(b"null") == 1
    two = flattened(b"[" + deep + b"," + deep + b"]")
    assert two is not None and two.count(b"null") == 2


@pytest.mark.parametrize(
    "line", [b"[" * (DEEPEST + 1) + b"]" * (DEEPEST + 1), b"[}", b"]", b"[[", b'{"a":[}']
)
def test_too_deep_or_unbalanced_is_none(line: bytes) -> None:
    assert flattened(line) is None


def test_brackets_in_texts_do_not_count() -> None:
    assert flattened(b'["]"]') == b'["]"]'
    assert flattened(b'["\\"]"]') == b'["\\"]"]'
