"""Each module with logic has a test that imports it by name, or a reason why not.

The reasons are data: a pattern for modules, and where they are tested instead. The list may only
shrink: a pattern that covers nothing is an error too.
"""

from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from tests.modules import ROOT, has_logic, imported, untested

CONVERSATIONS = "heard and spoken as whole conversations"
COMMANDS = "run as real commands"

# pattern → (why no test imports it, the folder or file whose failure points to it)
ELSEWHERE: dict[str, tuple[str, str]] = {
LIST
}


def test_every_module_has_a_test_of_its_own_or_a_reason() -> None:
    bare = [name for name in untested() if not any(fnmatchcase(name, one) for one in ELSEWHERE)]
    assert bare == [], "write a test that imports them by name, in the folder of the same name"


def test_every_reason_is_needed_and_leads_to_tests() -> None:
    names = untested()
    assert [one for one in ELSEWHERE if not any(fnmatchcase(name, one) for name in names)] == []
    for _, where in ELSEWHERE.values():
        assert Path(ROOT, "tests", where).exists(), where


@pytest.mark.parametrize(
    ("text", "logic"),
    [
        ("X = [n for n in range(3) if n or 1]\nY = 1 if X else 2\n", False),
        ("class A:\n    x: int = 1\n", False),
        ("def f(x):\n    if x: return 1\n    for y in x: pass\n    return x or 2\n", True),
        ("class A:\n    async def f(self, x):\n        return [a or 1 for a in x] if x else 2\n", True),
        ("def f(x):\n    return x\n", False),
    ],
)
def test_logic_is_recognised(text: str, logic: bool) -> None:
    assert has_logic(text) is logic


def test_imports_are_found_wherever_they_stand() -> None:
    text = "import a.b\nfrom c import d\ndef f():\n    from e.f import g\n    from . import h\n"
    assert imported(text) == {"a.b", "c", "c.d", "e.f", "e.f.g"}
