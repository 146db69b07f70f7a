"""What agents remember, for the command line."""

import os
from collections.abc import Iterator
from contextlib import closing
from typing import Any

from msgspec.structs import asdict

from dragoman.agents.memory import Memories, Memory
from dragoman.client.problems import beginning
from dragoman.engine.faults import BadInput, UnknownAgent
from dragoman.engine.visible import many
from dragoman.settings import profiles
from dragoman.settings.load import BadSettings, load
from dragoman.settings.places import Places, places

_MORE = "Write more of it."


def _agents(where: Places, agent: str | None) -> list[str]:
    """The agents that have a memory; all of them when none is named.

    Where the configuration cannot be read, those whose files are there.
    """
    try:
        names = list(profiles.names(load(where.config_file).settings))
    except BadSettings:
        files = sorted(os.listdir(os.path.join(where.data_dir, "memory")))
        names = [name.removesuffix(".db") for name in files if name.endswith(".db")]
    if agent is None:
        return names
    if agent not in names:
        raise UnknownAgent(f"There is no agent {agent}.", f"Known: {', '.join(names)}.")
    return [agent]


def _memories(config_dir: str | None, agent: str | None) -> Iterator[tuple[str, Memory]]:
    """The memory of each agent. One that is not there yet is not made."""
    where = places(os.environ, config_dir)
    folder = os.path.join(where.data_dir, "memory")
    if os.path.isdir(folder):
        with closing(Memories(folder)) as memories:
            for name in _agents(where, agent):
                yield name, memories.of(name)


def entries(config_dir: str | None, agent: str | None) -> list[dict[str, Any]]:
    """Every entry, newest first within an agent."""
    return [
        {"agent": name, "id": entry.key, **asdict(entry)}
        for name, memory in _memories(config_dir, agent)
        for entry in memory.all()
    ]


def forget(config_dir: str | None, given: str, agent: str | None) -> tuple[str, list[str]]:
    """Remove an entry, named by its id or the beginning of it; returns the id and who had it.

    Raises BadInput when several begin so, or none does.
    """
    known = {row["key"] for row in entries(config_dir, agent)}
    found = [given] if given in known else beginning(known, given)
    if len(found) > 1:
        raise BadInput(f"{many(len(found), 'memory', 'memories')} begin with {given}.", _MORE)
    if not found:
        raise BadInput(f"Nothing is remembered as {given}.", "See: dragoman memory list")
    (key,) = found
    return key, [name for name, memory in _memories(config_dir, agent) if memory.forget(key)]
