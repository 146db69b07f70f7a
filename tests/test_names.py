"""A word has one meaning: a class name stands in two modules at most, unless it is listed here.

Not counted are names that a protocol or a service gives (the shapes of what is on its wire), and
names that begin with an underscore.
"""

import ast
from collections import defaultdict
from functools import cache
from pathlib import Path

SRC = Path(__file__).parent.parent / "src" / "dragoman"
MOST = 2
# Modules whose classes are the messages of a wire, named as that wire names them.
WIRES = ("/shapes.py", "dialects/dragoman/answers.py", "fleet/words.py")
LISTED = {
    "Configured": "the same in every dialect: what it needs of that table",
    "Desk": "the same in every dialect: what it keeps for the whole process",
    "Settings": "the same in every dialect: its table of the configuration",
}

# In three modules still, of parts that do not meet; the list may only become shorter.
THREE = (
    "Asked", "Call", "Command", "Part", "Request", "Rules", "Turn",
)  # fmt: skip


def class_names(text: str) -> list[str]:
    return [
        node.name
        for node in ast.parse(text).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]


def used_often(found: dict[str, list[str]]) -> dict[str, list[str]]:
    """Names that stand in more modules than they may."""
    return {name: places for name, places in found.items() if len(places) > MOST}


@cache
def names_of_the_tree() -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(SRC.rglob("*.py")):
        place = path.relative_to(SRC).as_posix()
        if not f"/{place}".endswith(WIRES):
            for name in class_names(path.read_text(encoding="utf-8")):
                found[name].append(place)
    return found


def test_a_class_name_has_one_meaning() -> None:
    often = used_often(names_of_the_tree())
    new = {
        name: places
        for name, places in often.items()
        if name not in LISTED and not (name in THREE and len(places) == 3)
    }
    assert not new, f"choose names that tell them apart: {new}"
    assert not {*LISTED, *THREE} - set(often), "taken apart meanwhile: take it out of the list"


def test_what_is_listed_belongs_to_dialects() -> None:
    for name in LISTED:
        places = names_of_the_tree()[name]
        others = [place for place in places if not place.startswith("dialects/")]
        assert len(others) <= 1, f"{name} means something else in {others}"


def test_a_name_in_three_modules_is_found() -> None:
    found = {"Seat": ["a.py", "b.py", "c.py"], "Door": ["a.py", "b.py"]}
    assert used_often(found) == {"Seat": ["a.py", "b.py", "c.py"]}
    assert class_names("class A: ...\nclass _B: ...\ndef c():\n    class D: ...\n") == ["A"]
