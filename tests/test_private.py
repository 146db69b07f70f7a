"""Tests look at what others may use. How often they touch private members is counted: never more.

Not counted are members of the test's own objects (`self`, `cls`) and names that only look private:
those of named tuples, and functions of the standard library.
"""

import ast
from collections import Counter
from pathlib import Path

TESTS = Path(__file__).parent
MOST = 505  # lower it when it is less; test the public way instead of raising it
PUBLIC = {"_replace", "_asdict", "_fields", "_make", "_exit", "_getframe"}


def touches(text: str) -> int:
    """How often code reaches for a private member, or imports one of ours."""
    found = 0
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Attribute):
            found += _is_private(node.attr) and ast.unparse(node.value) not in ("self", "cls")
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("dragoman"):
            found += sum(_is_private(one.name) for one in node.names)
    return found


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in PUBLIC


def test_private_members_are_touched_no_more_than_before() -> None:
    found = Counter(
        {
            path.relative_to(TESTS).as_posix(): touches(path.read_text(encoding="utf-8"))
            for path in TESTS.rglob("*.py")
            if "node_modules" not in path.parts
        }
    )
    total = sum(found.values())
    assert total <= MOST, f"{total}, most of all in {found.most_common(8)}"


def test_a_touch_is_counted() -> None:
    code = "import os\nfrom dragoman.engine.host import _a, b\nx._y.z = self._q = p._replace()\n"
    assert touches(code + "os._exit(1)\nx.__dict__\n") == 2
