"""The sieve before a search: it may let too much through, and must never hold a match back."""

import random
import re

import pytest

from dragoman.tools.scan import Sieve, required


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("needle", "needle"),
        (r"def\s+(name)\b", "name"),
        (r"a(bc)d", "bc"),
        (r"a|b", ""),
        (r"(?i)needle", ""),
        (r"(?i:x)needle", "needle"),
        (r"(?!needle)x", "x"),
        (r"needle?", "needl"),
        ("\ufffd", ""),
        ("", ""),
    ],
)
def test_what_every_match_must_have(pattern: str, text: str) -> None:
    assert required(pattern, False) == text


def test_a_match_is_never_held_back() -> None:
    chance = random.Random(3)
    pieces = ["a", "b", "K", "\u212a", "é", " ", "^", "$", r"\b", r"\B", r"\s", r"\w+", ".", ".*",
              "[ab]", "[^a]", "[^a]*", "(a)", r"(b)\1", "(?:a|b)", "a?", "b+", "a++", "(?=a)",
              "(?<=b)", "(?!a)", r"\A", r"\Z", "a|", "x{2}", r"\D", r"\W", r"\ufffd"]  # fmt: skip
    texts = ["a", "b", "K", "k", "\u212a", "é", " ", "\n", "\r\n", "\r", "ab", "xx", "\n\n", "1"]
    tried = 0
    while tried < 3_000:
        pattern = "".join(chance.choices(pieces, k=chance.randint(1, 5)))
        try:
            ignore_case = chance.random() < 0.3
            expression = re.compile(pattern, re.IGNORECASE if ignore_case else 0)
        except re.error:
            continue
        tried += 1
        text = "".join(chance.choices(texts, k=chance.randint(0, 8)))
        data = text.encode() + (b"\xff" if chance.random() < 0.2 else b"")
        lines = data.decode("utf-8", "replace").split("\n")
        if any(expression.search(line.rstrip("\r")) for line in lines if line or len(lines) > 1):
            lines = lines[:-1] if lines[-1] == "" else lines
            if any(expression.search(line.rstrip("\r")) for line in lines):
                assert Sieve(pattern, ignore_case).passes(data), (pattern, data)
