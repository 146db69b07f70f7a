"""What agents remember, for the command line."""

import os
from typing import Any

from dragoman.agents.memory import Memories
from dragoman.engine.faults import UnknownAgent
from dragoman.settings import profiles
from dragoman.settings.load import load
from dragoman.settings.places import Places, places


def _agents(where: Places, agent: str | None) -> list[str]:
    """The agents that have a memory; all of them when none is named."""
    names = list(profiles.names(load(where.config_file).settings))
    if agent is None:
        return names
    if agent not in names:
        raise UnknownAgent(f"There is no agent {agent}.", f"Known: {', '.join(names)}.")
    return [agent]


def entries(config_dir: str | None, agent: str | None) -> list[dict[str, Any]]:
    """Every entry, newest first within an agent. A memory that is not there yet is not made."""
    where = places(os.environ, config_dir)
    folder = os.path.join(where.data_dir, "memory")
    if not os.path.isdir(folder):
        return []
    memories = Memories(folder)
    try:
        return [
            {"agent": name, **{field: getattr(entry, field) for field in entry.__struct_fields__}}
            for name in _agents(where, agent)
            for entry in memories.of(name).all()
        ]
    finally:
        memories.close()


def forget(config_dir: str | None, key: str, agent: str | None) -> list[str]:
    """Remove an entry; returns the agents that had it."""
    where = places(os.environ, config_dir)
    folder = os.path.join(where.data_dir, "memory")
    if not os.path.isdir(folder):
        return []
    memories = Memories(folder)
    try:
        return [name for name in _agents(where, agent) if memories.of(name).forget(key)]
    finally:
        memories.close()
