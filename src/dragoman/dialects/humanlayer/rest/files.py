"""Files and folders, slash commands and agents: what a launcher offers to choose from."""

import asyncio
import os
import time
from collections.abc import Iterator

from dragoman.engine.door import Door
from dragoman.engine.faults import Fault

from ..launch import whole
from . import shapes
from .table import Asked, Operation, Refused

_MOST_SCANNED = 50_000
_MOST_SECONDS = 2.0
_MOST_FOUND = 1_000
_SKIPPED = frozenset({".git", "node_modules", ".venv", "__pycache__", ".hg", ".svn", "target"})


def is_folder(path: str) -> bool:
    return os.path.isdir(path)


def made_folder(path: str) -> str:
    """A folder that is there, made when it was not. Raises Refused, Wrong."""
    place = whole(path)
    try:
        os.makedirs(place, exist_ok=True)
    except OSError as problem:
        raise Refused(400, f"{place} cannot be made: {problem.strerror}") from None
    return place


async def validate(asked: Asked) -> shapes.DirectoryState:
    return _state(whole(asked.body.path))


def _state(place: str) -> shapes.DirectoryState:
    if os.path.isdir(place):
        return shapes.DirectoryState(True, True, False, place)
    if os.path.exists(place):
        return shapes.DirectoryState(True, False, False, place, "it is no directory")
    above = os.path.dirname(place)
    while not os.path.exists(above):
        above = os.path.dirname(above)
    free = os.path.isdir(above) and os.access(above, os.W_OK)
    return shapes.DirectoryState(False, False, free, place, "" if free else "it cannot be made")


async def create(asked: Asked) -> shapes.MadeDirectory:
    return shapes.MadeDirectory(True, made_folder(asked.body.path))


def matched(query: str, text: str) -> tuple[int, list[int]] | None:
    """How well the letters of a query, in their order, fit a text; None when they do not."""
    found: list[int] = []
    at, score = -1, 0
    lowered = text.lower()
    for letter in query.lower():
        before = at
        at = lowered.find(letter, before + 1)
        if at < 0:
            return None
        found.append(at)
        follows = at == before + 1
        begins = at == 0 or lowered[at - 1] in "/._- "
        score += 1 + (8 if follows and before >= 0 else 0) + (6 if begins else 0)
    base = lowered.rpartition("/")[2]
    if query.lower() in base:
        score += 40
    return score - len(text) // 8, found


def _walk(top: str, tidy: bool) -> Iterator[tuple[str, bool]]:
    waiting = [top]
    while waiting:
        folder = waiting.pop(0)
        try:
            with os.scandir(folder) as entries:
                found = sorted(entries, key=lambda one: one.name)
        except OSError:
            continue  # not ours to read
        for entry in found:
            if tidy and entry.name in _SKIPPED:
                continue
            inner = entry.is_dir(follow_symlinks=False)
            if inner:
                waiting.append(entry.path)
            yield entry.path, inner


def _search(asked: shapes.FuzzySearch) -> shapes.FuzzyAnswer:
    began = time.monotonic()
    hits: list[shapes.FoundFile] = []
    scanned = 0
    query = asked.query.replace(" ", "")
    for path in asked.paths:
        top = whole(path)
        for place, inner in _walk(top, asked.respectGitignore):
            scanned += 1
            if scanned > _MOST_SCANNED or time.monotonic() - began > _MOST_SECONDS:
                break
            if inner and asked.filesOnly:
                continue
            short = os.path.relpath(place, top)
            fit = matched(query, short)
            if fit is not None:
                hits.append(shapes.FoundFile(place, short, fit[0], fit[1], inner))
    hits.sort(key=lambda hit: (-hit.score, len(hit.displayPath), hit.displayPath))
    took = round((time.monotonic() - began) * 1000)
    limit = max(1, min(asked.limit, _MOST_FOUND))
    return shapes.FuzzyAnswer(hits[:limit], shapes.SearchFigures(scanned, len(hits), took))


async def fuzzy(asked: Asked) -> shapes.FuzzyAnswer:
    return await asyncio.to_thread(_search, asked.body)


async def commands(asked: Asked) -> list[shapes.SlashCommand]:
    cwd = whole(asked.query.working_dir) if asked.query.working_dir else os.getcwd()
    found = await asyncio.to_thread(asked.desk.door.commands, cwd)
    words = asked.query.query.lstrip("/")
    rows = [
        (fit[0], shapes.SlashCommand(f"/{name}", _source(one), getattr(one, "description", "")))
        for name, one in found.items()
        if (fit := matched(words, name)) is not None
    ]
    rows.sort(key=lambda row: (-row[0], row[1].name))
    return [row for _, row in rows]


def _source(command: object) -> str:
    return "local" if getattr(command, "project", False) else "global"


def _model(door: Door, agent: str) -> str:
    try:
        return door.profile(agent).model
    except Fault:
        return ""  # beginning a session with it says what is wrong


async def agents(asked: Asked) -> shapes.AgentsAnswer:
    door = asked.desk.door
    rows = [
        shapes.FoundAgent(name, f"@agent-{name}", "global", _model(door, name))
        for name in door.agents()
    ]
    return shapes.AgentsAnswer(rows)


OPERATIONS = (
    Operation("POST", ("/fuzzy-search/files", "/files/fuzzy-search"), "fuzzySearchFiles",
              "Files by a few letters", fuzzy, body=shapes.FuzzySearch,
              returns=shapes.FuzzyAnswer),
    Operation("POST", ("/validate-directory", "/directories/validate",
                       "/files/validate-directory"),
              "validateDirectory", "Whether a folder is there, or can be made", validate,
              body=shapes.OnePath, returns=shapes.DirectoryState),
    Operation("POST", ("/directories", "/create-directory", "/files/create-directory"),
              "createDirectory", "Make a folder", create, body=shapes.OnePath,
              returns=shapes.MadeDirectory),
    Operation("GET", ("/slash-commands", "/sessions/slash-commands"), "getSlashCommands",
              "Slash commands of a folder", commands, query=shapes.CommandsQuery,
              returns=list[shapes.SlashCommand], wraps="CommandsAnswer"),
    Operation("POST", ("/agents/discover",), "discoverAgents", "Agents that can be chosen", agents,
              body=shapes.Discover, returns=shapes.AgentsAnswer),
)  # fmt: skip
