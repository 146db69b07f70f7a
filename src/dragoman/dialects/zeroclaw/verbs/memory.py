"""`memory/*`: what agents remember. The host gives the memories as a fact of the door."""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dragoman.engine.faults import BadInput
from dragoman.wire.jsonrpc import INTERNAL_ERROR

from ..faults import Refusal
from ..shapes import Params
from ..times import rfc3339
from .table import verb

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


def _memory(conn: "ZeroclawHearer", asked: Wanted) -> tuple[str, Any]:
    """The agent that is meant, and its memory."""
    given = conn.door.facts.memory
    if given is None:
        raise Refusal(INTERNAL_ERROR, "Memory subsystem is not available")
    alias = asked.agent or conn.door.default_agent()
    if not alias:
        raise BadInput("Several agents are configured and none was named.", "Give `agent`.")
    conn.door.profile(alias)  # raises UnknownAgent
    return alias, given(alias)


def _needed(value: str | None, name: str) -> str:
    if not value:
        raise BadInput(f"missing field `{name}`")
    return value


def _entry(alias: str, entry: Any, cut: int = 0) -> dict[str, Any]:
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
        "agent_alias": alias,
    }


async def listed(conn: "ZeroclawHearer", asked: Wanted) -> Any:
    alias, memory = _memory(conn, asked)
    found = await asyncio.to_thread(memory.all, asked.category or "", asked.limit or 1_000)
    return _answer(alias, found, asked.session_id)


async def search(conn: "ZeroclawHearer", asked: Wanted) -> Any:
    alias, memory = _memory(conn, asked)
    query = _needed(asked.query, "query")
    found = await asyncio.to_thread(memory.recall, query, asked.limit or 10)
    return _answer(alias, found, asked.session_id, _SHOWN)


def _answer(alias: str, found: Sequence[Any], session: str | None, cut: int = 0) -> dict[str, Any]:
    entries = [_entry(alias, e, cut) for e in found if session is None or e.session == session]
    return {"entries": entries, "count": len(entries)}


async def get(conn: "ZeroclawHearer", asked: Wanted) -> Any:
    alias, memory = _memory(conn, asked)
    found = await asyncio.to_thread(memory.get, _needed(asked.key, "key"))
    return {"entry": _entry(alias, found) if found is not None else None}


async def store(conn: "ZeroclawHearer", asked: Wanted) -> Any:
    _, memory = _memory(conn, asked)
    key, content = _needed(asked.key, "key"), _needed(asked.content, "content")
    category, session = asked.category or "note", asked.session_id or ""
    await asyncio.to_thread(memory.store, key, content, category, session)
    return {"key": key, "stored": True}


async def delete(conn: "ZeroclawHearer", asked: Wanted) -> Any:
    _, memory = _memory(conn, asked)
    key = _needed(asked.key, "key")
    return {"key": key, "deleted": await asyncio.to_thread(memory.forget, key)}


VERBS = {
    "memory/list": verb(listed, Wanted),
    "memory/search": verb(search, Wanted),
    "memory/get": verb(get, Wanted),
    "memory/store": verb(store, Wanted),
    "memory/delete": verb(delete, Wanted),
}
