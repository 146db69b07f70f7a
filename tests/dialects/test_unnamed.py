"""What serves every dialect names none: all it knows of one comes from its descriptor."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman.dialects.descriptor import OURS

SRC = Path(__file__).parent.parent.parent / "src" / "dragoman"
FOLDERS = ("gateway", "daemon", "host", "wire", "transports", "engine")
NAME = re.compile(rf"(?i:(?<![a-z])(?:{'|'.join(OURS)}|openclaw)(?![a-z]))|\bAcp[A-Z]")
# Agents that run as programs are driven over one of these protocols, as their client.
DRIVEN = re.compile(r"agents\.acp_\w+|\bAcpProcessAgent\b")


def named(text: str) -> Iterator[str]:
    for number, line in enumerate(text.splitlines(), 1):
        if NAME.search(DRIVEN.sub("", line)):
            yield f"{number}: {line.strip()}"


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_dialect_is_named(folder: str) -> None:
    found = {
        path.relative_to(SRC).as_posix(): lines
        for path in sorted((SRC / folder).rglob("*.py"))
        if (lines := list(named(path.read_text(encoding="utf-8"))))
    }
    assert not found, "say it in the descriptor instead"


@pytest.mark.parametrize(
    "line",
    [
        'if dialect == "acp":',
        "settings.humanlayer.http_port",
        "def zot_line(): ...",
        "# ZeroClaw's terminals",
        'env["OPENCLAWOS_APP_ID"] = id',
        "class AcpHearer:",
        "from dragoman.agents.acp_process import zot",
    ],
)
def test_a_name_is_found(line: str) -> None:
    assert list(named(line))


@pytest.mark.parametrize(
    "line",
    [
        "from dragoman.agents.acp_process import AcpProcessAgent",
        "capacity, zotero, macphisto",
    ],
)
def test_other_words_are_let_be(line: str) -> None:
    assert not list(named(line))
