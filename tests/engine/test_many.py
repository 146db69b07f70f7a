"""How many there are of something, in words."""

import re
from pathlib import Path

import pytest

import dragoman
from dragoman.engine.visible import many

SOURCE = Path(dragoman.__file__).parent
BY_HAND = re.compile(r"""=== 1 \? "" : "s"|== 1 else ["'][a-z]+s["']|["']s["'] if """)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((0, "line"), "0 lines"),
        ((1, "line"), "1 line"),
        ((1200, "line"), "1,200 lines"),
        ((2, "entry", "entries"), "2 entries"),
        ((1, "entry", "entries"), "1 entry"),
    ],
)
def test_one_and_many(words: tuple[int, str], said: str) -> None:
    assert many(*words) == said


def test_nobody_makes_a_plural_by_hand() -> None:
    """But for the dashboard's function; ours is in the engine."""
    found = []
    for folder in ("cli", "tui", "gateway"):
        for file in sorted((SOURCE / folder).rglob("*")):
            if file.suffix in (".py", ".js"):
                lines = file.read_text().splitlines()
                found += [(file.name, line.strip()) for line in lines if BY_HAND.search(line)]
    assert [name for name, _ in found] == ["dom.js"]
