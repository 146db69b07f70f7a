"""The tools memory_store, memory_recall, memory_forget, memory_export and memory_purge."""

import asyncio
from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from dragoman.engine.content import Text, ToolKind
from dragoman.engine.faults import BadInput
from dragoman.engine.ports import Outcome, ToolEnv, ToolSpec
from dragoman.engine.visible import many

from .args import brief, decode, flag, schema, text, whole


class Remembers(Protocol):
    """An agent's memory; its methods block."""

    def store(self, key: str, content: str, category: str, session: str) -> Any: ...

    def recall(self, query: str, limit: int) -> Sequence[Any]: ...

    def forget(self, key: str) -> bool: ...

    def all(self, category: str, limit: int) -> Sequence[Any]: ...

    def purge(self, category: str) -> int: ...


class _Args(msgspec.Struct):
    key: str = ""
    content: str = ""
    category: str = ""
    query: str = ""
    limit: int = 5
    confirm: bool = False


class MemoryTool:
    """One of the five; they differ in what they call."""

    def __init__(
        self, memory: Remembers, verb: str, kind: ToolKind, description: str, shape: dict[str, Any]
    ) -> None:
        self.spec = ToolSpec(
            f"memory_{verb}", description, shape, kind, repeatable=verb in ("recall", "export")
        )
        self._memory = memory
        self._verb = verb

    def touches(self, args: dict[str, Any], env: ToolEnv) -> list[str]:
        return []  # no file of the workspace

    def summary(self, args: dict[str, Any]) -> str:
        about = args.get("key") or args.get("query") or args.get("category") or "everything"
        return f"{self._verb.capitalize()} in memory: {brief(about)}"

    async def run(self, args: dict[str, Any], env: ToolEnv) -> Outcome:
        asked = decode(_Args, args)
        said = await asyncio.to_thread(getattr(self, f"_{self._verb}"), asked, env.session)
        return Outcome((Text(said),))

    def _store(self, asked: _Args, session: str) -> str:
        self._memory.store(asked.key, asked.content, asked.category or "note", session)
        return f"Remembered as {asked.key}."

    def _recall(self, asked: _Args, session: str) -> str:
        if not asked.query.strip():
            raise BadInput("query is required")
        found = self._memory.recall(asked.query, asked.limit)
        return _shown(found) if found else "Nothing is remembered about that."

    def _forget(self, asked: _Args, session: str) -> str:
        if not asked.key:
            raise BadInput("key is required")
        gone = self._memory.forget(asked.key)
        return f"Forgot {asked.key}." if gone else f"Nothing is remembered as {asked.key}."

    def _export(self, asked: _Args, session: str) -> str:
        return msgspec.json.encode(self._memory.all(asked.category, 10_000)).decode()

    def _purge(self, asked: _Args, session: str) -> str:
        if not asked.confirm:
            raise BadInput("confirm must be true", "Purging cannot be undone.")
        return f"Forgot {many(self._memory.purge(asked.category), 'entry', 'entries')}."


def _shown(found: Sequence[Any]) -> str:
    return "\n\n".join(f"{entry.key} ({entry.category}):\n{entry.content}" for entry in found)


def memory_tools(memory: Remembers) -> list[MemoryTool]:
    """The five tools of one agent's memory."""
    key, category = text("A short name for it."), text("What sort of thing it is.")
    return [
        MemoryTool(
            memory,
            "store",
            "edit",
            "Remember something beyond this session. The same key again replaces it.",
            schema("key", "content", key=key, content=text("What to remember."), category=category),
        ),
        MemoryTool(
            memory,
            "recall",
            "read",
            "Look for what is remembered about some words.",
            schema("query", query=text("Words to look for."), limit=whole("How many at most.")),
        ),
        MemoryTool(
            memory, "forget", "delete", "Forget one thing.", schema("key", key=text("Its name."))
        ),
        MemoryTool(
            memory,
            "export",
            "read",
            "Everything that is remembered, as JSON.",
            schema(category=category),
        ),
        MemoryTool(
            memory,
            "purge",
            "delete",
            "Forget everything, or everything of one category.",
            schema("confirm", confirm=flag("Must be true."), category=category),
        ),
    ]
