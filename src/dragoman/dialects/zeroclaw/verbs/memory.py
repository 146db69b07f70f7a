"""`memory/*`: what agents remember. The host gives the memories as a fact of the door."""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.engine.facts import Remembering
from dragoman.engine.faults import BadInput, no_agent
from dragoman.engine.ports.rows import MemoryEntry

from ..faults import available
from ..shapes import Params
from ..spelling import rfc3339, verb

if TYPE_CHECKING:
    from ..hear import ZeroclawHearer

_SHOWN = 200  # bytes of an entry's content in a search


class Wanted(Params, frozen=True):
    """Params of all five; each method looks at its own."""

    agent: str | None = None
    category: str | None = None
    session_id: str | None = None
    query: str | None = None
    limit: int | None = None
    key: str | None = None
    content: str | None = None


def _memory(conn: "ZeroclawHearer", asked: Wanted) -> tuple[str, Remembering]:
    """The agent that is meant, and its memory."""
    given = available(conn.door.facts.memory, "Memory subsystem is")
    alias = asked.agent or conn.door.default_agent()
    if not alias:
        raise no_agent(conn.door.agents())
    conn.door.profile(alias)  # raises UnknownAgent
    return alias, given(alias)


def _needed(value: str | None, name: str) -> str:
    if not value:
        raise BadInput(f"missing field `{name}`")
    return value


def _entry(alias: str, entry: MemoryEntry, cut: int = 0) -> dict[str, Any]:
    content = entry.content
    if cut and len(content.encode()) > cut:
        content = content.encode()[:cut].decode(errors="ignore") + "…"
    return {
        "id": entry.key,
        "key": entry.key,
        "content": content,
        "category": entry.category,
        "timestamp": rfc3339(entry.updated),
        "session_id": entry.session or None,
        "score": None,
        "importance": None,
        "agent_alias": alias,
    }


def _memories(conn: "ZeroclawHearer", asked: Wanted) -> list[tuple[str, Remembering]]:
    """The memory of the agent that is meant; without one, those of all agents."""
    aliases = (asked.agent,) if asked.agent else conn.door.agents()
    return [_memory(conn, msgspec.structs.replace(asked, agent=alias)) for alias in aliases]


async def listed(conn: "ZeroclawHearer", asked: Wanted) -> Any:
    limit = asked.limit or 1_000
    found = []
    for alias, memory in _memories(conn, asked):
        rows = await asyncio.to_thread(memory.all, asked.category or "", limit)
        found += [(alias, row) for row in rows]
    found.sort(key=lambda pair: pair[1].updated, reverse=True)
    return _answer(found, asked.session_id, limit)


async def search(conn: "ZeroclawHearer", asked: Wanted) -> dict[str, Any]:
    query, limit = _needed(asked.query, "query"), asked.limit or 10
    ranked = []
    for alias, memory in _memories(conn, asked):
        rows = await asyncio.to_thread(memory.recall, query, limit)
        ranked += [(place, alias, row) for place, row in enumerate(rows)]
    ranked.sort(key=lambda one: one[0])  # each agent's best first
    return _answer([(alias, row) for _, alias, row in ranked], asked.session_id, limit, _SHOWN)


def _answer(
    found: Sequence[tuple[str, MemoryEntry]], session: str | None, limit: int, cut: int = 0
) -> dict[str, Any]:
    wanted = [(alias, e) for alias, e in found if session is None or e.session == session]
    entries = [_entry(alias, entry, cut) for alias, entry in wanted[:limit]]
    return {"entries": entries, "count": len(entries)}


async def get(conn: "ZeroclawHearer", asked: Wanted) -> Any:
    key = _needed(asked.key, "key")
    for alias, memory in _memories(conn, asked):
        found = await asyncio.to_thread(memory.get, key)
        if found is not None:
            return {"entry": _entry(alias, found)}
    return {"entry": None}


async def store(conn: "ZeroclawHearer", asked: Wanted) -> dict[str, Any]:
    _, memory = _memory(conn, asked)
    key, content = _needed(asked.key, "key"), _needed(asked.content, "content")
    category, session = asked.category or "note", asked.session_id or ""
    await asyncio.to_thread(memory.store, key, content, category, session)
    return {"key": key, "stored": True}


async def delete(conn: "ZeroclawHearer", asked: Wanted) -> dict[str, Any]:
    key = _needed(asked.key, "key")
    owners = [
        memory
        for _, memory in _memories(conn, asked)
        if await asyncio.to_thread(memory.get, key) is not None
    ]
    if len(owners) > 1:
        raise BadInput(f"Several agents remember something as {key!r}.", "Give `agent`.")
    gone = bool(owners) and await asyncio.to_thread(owners[0].forget, key)
    return {"key": key, "deleted": gone}


VERBS = {
    "memory/list": verb(listed, Wanted),
    "memory/search": verb(search, Wanted),
    "memory/get": verb(get, Wanted),
    "memory/store": verb(store, Wanted),
    "memory/delete": verb(delete, Wanted),
}
