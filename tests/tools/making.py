"""What the tests of tools share: an environment that records what a tool does."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from dragoman.engine.content import PlanEntry, Text
from dragoman.engine.ports import Answer, Outcome, Reach, Tool
from dragoman.tools.registry import Box


class Env:
    """What a session gives to a tool."""

    session = "s"
    turn = "t"
    call_id = "c"
    agent = "a"
    mode = "supervised"
    roots: Sequence[str] = ()
    reach: Sequence[Reach] = ()
    files: Any = None
    terminals: Any = None
    variables: Any = {}
    vision = True
    seen: Any = None

    def __init__(self, cwd: str) -> None:
        self.cwd = cwd
        self.said: list[str] = []
        self.questions: list[tuple[str, list[str]]] = []
        self.planned: list[PlanEntry] = []
        self.answer = Answer("blue")
        self.told: Callable[[str], None] = lambda text: None

    def progress(self, text: str) -> None:
        self.said.append(text)
        self.told(text)

    async def ask(self, question: str, choices: Sequence[str] = ()) -> Answer:
        self.questions.append((question, list(choices)))
        return self.answer

    async def plan(self, entries: Sequence[PlanEntry]) -> None:
        self.planned = list(entries)


class Editor:
    """A client's own file system (`ports.Files`)."""

    def __init__(self, **files: str) -> None:
        self.files = files

    def _name(self, path: str) -> str:
        return os.path.basename(path).partition(".")[0]

    async def read_text(self, path: str) -> str:
        return self.files[self._name(path)]

    async def write_text(self, path: str, text: str) -> None:
        self.files[self._name(path)] = text


def said(outcome: Outcome) -> str:
    """The text of a result."""
    assert len(outcome.content) == 1 and isinstance(outcome.content[0], Text)
    return outcome.content[0].text


def temporary(directory: Path) -> list[str]:
    """Temporary files that a write left behind."""
    return [name for name in os.listdir(directory) if name.endswith(".tmp")]


def tool(box: Box, name: str) -> Tool:
    found = box.find(name)
    assert found is not None
    return found
