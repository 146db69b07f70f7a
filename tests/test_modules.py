"""Each module with logic has a test that imports it by name, or a reason why not.

The reasons are data: a pattern for modules, and where they are tested instead. A folder that is
one machine (the engine, a dialect) has one reason; everywhere else each module is named, and the
list may only shrink. `python -m tests.modules` lists all that no test imports by name.
"""

from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from tests.modules import ROOT, has_logic, imported, untested

CONVERSATIONS = "heard and spoken as whole conversations"
COMMANDS = "run as real commands"

# pattern → (why no test imports it, the folder or file whose failure points to it)
ELSEWHERE: dict[str, tuple[str, str]] = {
    "dragoman.dialects.acp.*": (CONVERSATIONS, "dialects/acp"),
    "dragoman.dialects.humanlayer.*": (CONVERSATIONS, "dialects/humanlayer"),
    "dragoman.dialects.openclawos.*": (CONVERSATIONS, "dialects/openclawos"),
    "dragoman.dialects.zeroclaw.*": (CONVERSATIONS, "dialects/zeroclaw"),
    "dragoman.dialects.zot.*": (CONVERSATIONS, "dialects/zot"),
    "dragoman.dialects.dragoman.*": (CONVERSATIONS, "dialects/zeroclaw"),
    "dragoman.store.postgres.*": ("driven through the store's port", "store/test_postgres.py"),
    "dragoman.fleet.*": ("driven as whole nodes on a real database", "fleet"),
    "dragoman.gateway.routes.*": (
        "asked over real HTTP, each route and its schema",
        "gateway/test_rest.py",
    ),
    "dragoman.tui.*": ("typed and seen in a real terminal", "tui"),
    "dragoman.engine.*": ("part of every turn; seen through the door", "engine"),
    "dragoman.policy.*": ("judged through the policy's one entrance", "policy"),
    "dragoman.sandbox.*": ("tried from inside real tools", "sandbox"),
    "dragoman.host.*": ("put together and run as a daemon", "daemon"),
    "dragoman.daemon.*": (COMMANDS, "daemon"),
    "dragoman.stdio.*": (COMMANDS, "daemon"),
    "dragoman.agents.*": ("driven through real child processes and whole turns", "agents"),
    "dragoman.cli.*": (COMMANDS, "cli"),
    "dragoman.apps.app": ("used by real apps over the kernel socket", "apps"),
    "dragoman.apps.declare": ("used by real apps over the kernel socket", "apps"),
    "dragoman.apps.work": ("used by real apps over the kernel socket", "apps"),
    "dragoman.client.host": ("used as a whole against a running host", "client"),
    "dragoman.client.stream": ("used as a whole against a running host", "client"),
    "dragoman.client.wire": ("used as a whole against a running host", "client"),
    "dragoman.gateway.board": ("asked over real HTTP and WebSocket", "gateway"),
    "dragoman.gateway.callbacks": ("asked over real HTTP and WebSocket", "gateway"),
    "dragoman.gateway.gate": ("asked over real HTTP and WebSocket", "gateway"),
    "dragoman.gateway.metrics": ("asked over real HTTP and WebSocket", "gateway"),
    "dragoman.gateway.upgrade": ("asked over real HTTP and WebSocket", "gateway"),
    "dragoman.gateway.views": ("asked over real HTTP and WebSocket", "gateway"),
    "dragoman.http.client": ("asked of real servers", "http"),
    "dragoman.http.connect": ("asked of real servers", "http"),
    "dragoman.http.connection": ("asked of real servers", "http"),
    "dragoman.http.packed": ("asked of real servers", "http"),
    "dragoman.http.trust": ("asked of real servers", "http"),
    "dragoman.providers.build": ("streamed from servers and files", "providers"),
    "dragoman.providers.local_child": ("streamed from servers and files", "providers"),
    "dragoman.providers.reading": ("streamed from servers and files", "providers"),
    "dragoman.providers.scripted": ("streamed from servers and files", "providers"),
    "dragoman.store.changes": ("the same cases for every kind of store", "store"),
    "dragoman.store.group": ("the same cases for every kind of store", "store"),
    "dragoman.store.worker": ("the same cases for every kind of store", "store"),
    "dragoman.testing.ends": ("the tests themselves stand on it", "testing"),
    "dragoman.tools.ask": ("called as tools, in real folders", "tools"),
    "dragoman.tools.ls": ("called as tools, in real folders", "tools"),
    "dragoman.tools.memory": ("called as tools, in real folders", "tools"),
    "dragoman.tools.plan": ("called as tools, in real folders", "tools"),
    "dragoman.tools.read": ("called as tools, in real folders", "tools"),
    "dragoman.tools.running": ("called as tools, in real folders", "tools"),
    "dragoman.tools.scan": ("called as tools, in real folders", "tools"),
    "dragoman.tools.seen": ("called as tools, in real folders", "tools"),
    "dragoman.tools.work": ("called as tools, in real folders", "tools"),
    "dragoman.transports.terms": ("spoken over real sockets and pipes", "transports"),
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
        (
            "class A:\n    async def f(self, x):\n        return [a or 1 for a in x] if x else 2\n",
            True,
        ),
        ("def f(x):\n    return x\n", False),
    ],
)
def test_logic_is_recognised(text: str, logic: bool) -> None:
    assert has_logic(text) is logic


def test_imports_are_found_wherever_they_stand() -> None:
    text = "import a.b\nfrom c import d\ndef f():\n    from e.f import g\n    from . import h\n"
    assert imported(text) == {"a.b", "c", "c.d", "e.f", "e.f.g"}
