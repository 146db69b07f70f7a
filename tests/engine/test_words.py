"""The engine knows no protocol: neither its name nor its sentences stand in its code."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ENGINE = Path(__file__).parents[2] / "src" / "dragoman" / "engine"
MODULES = sorted(ENGINE.rglob("*.py"))
# Every protocol's name, its company's, and words that only its wire has.
NAMES = re.compile(
    r"zeroclaw|\bzot\b|\bpi\b|openclaw|humanlayer|\bacp\b|claude(?!\.md)|codelayer|json.?rpc|"
    r"session/(update|prompt|new|request)|createApproval|request_permission|run_id|"
    r"skip_permissions|auto_accept|chat_mode|turn_complete|channelId|sessionKey",
    re.IGNORECASE,
)
# Sentences that a protocol's clients look for: its dialect says them, not the engine.
SENTENCES = (
    "daemon restarted while session was active",
    "already decided with status",
    "No active turn for this session",
    "pending requests",
    "Session busy",
    "Timed out waiting for session",
    "active prompt turn",
    "approval not found",
    "Method not found",
    "session_not_found",
)


def words(text: str) -> Iterator[str]:
    """Everything that is written there, comments and names too."""
    for number, line in enumerate(text.splitlines(), 1):
        for found in NAMES.finditer(line):
            yield f"{number}: {found.group()}"
        for sentence in SENTENCES:
            if sentence in line:
                yield f"{number}: {sentence}"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ENGINE)))
def test_no_protocol_is_named(path: Path) -> None:
    assert list(words(path.read_text())) == []


def test_the_words_are_those_of_real_dialects() -> None:
    """A sentence that no dialect says any more would be looked for in vain."""
    dialects = ENGINE.parent / "dialects"
    said = "".join(path.read_text() for path in dialects.rglob("*.py"))
    missing = [sentence for sentence in SENTENCES if sentence not in said]
    assert not missing
    for folder in dialects.iterdir():
        if (folder / "__init__.py").exists() and folder.name != "dragoman":
            assert NAMES.search(folder.name), folder.name


def test_what_is_written_over_several_lines_is_seen_too() -> None:
    """Texts that are put together from parts: each function's own, joined."""
    wrong = []
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.JoinedStr | ast.Constant):
                parts = node.values if isinstance(node, ast.JoinedStr) else [node]
                texts = [p.value for p in parts if isinstance(p, ast.Constant)]
                text = "".join(t for t in texts if isinstance(t, str))
                wrong += [f"{path.name}:{node.lineno} {s}" for s in SENTENCES if s in text]
    assert wrong == []
