"""Joins agents to their long-term memory: tools, recall before a turn, saving after it.

Sessions of dialects for coding, and those opened with `memory` off, have none of it: they neither
read what an agent remembers nor add to it.
"""

import asyncio
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from dragoman.dialects.descriptor import REGISTRY
from dragoman.engine.content import text_of
from dragoman.engine.facts import Remembering
from dragoman.engine.hooks import Block, Completed, HookContext, P, Payload
from dragoman.engine.host import Host
from dragoman.engine.info import SessionInfo
from dragoman.engine.ports import AgentProfile, PromptTurn, Toolbox
from dragoman.engine.traits import Given
from dragoman.observe.log import get_log
from dragoman.settings import profiles
from dragoman.settings.model import Settings
from dragoman.settings.places import Places

if TYPE_CHECKING:
    from dragoman.agents.memory import Memories

log = get_log("memory")


class Recollection:
    """The memories of this host's agents, as sessions use them."""

    name = "memory"

    def __init__(self, settings: Callable[[], Settings], where: Places, host: Host) -> None:
        self._settings = settings
        self._folder = os.path.join(where.data_dir, "memory")
        self._host = host
        self._made: Memories | None = None

    @property
    def memories(self) -> "Memories":
        if self._made is None:
            from dragoman.agents.memory import Memories

            given = self._settings().memory
            self._made = Memories(
                self._folder, limit=given.max_entries, longest=given.max_entry_bytes
            )
        return self._made

    def of(self, agent: str) -> Remembering:
        """One agent's memory, for clients that look after it. Raises StoreFailed."""
        return self.memories.of(agent)

    def applies(self, info: SessionInfo) -> bool:
        """Whether a session has to do with memory at all."""
        origin = REGISTRY.find(info.origin)
        excluded = origin is not None and not origin.remembers
        excluded = excluded or Given.of(info.extra).memory is False
        return self._settings().memory.enabled and not excluded

    async def tools(self, profile: AgentProfile, info: SessionInfo) -> Toolbox | None:
        wanted = profile.tools
        own = profiles.agent(self._settings(), profile.alias).memory
        named = wanted is not None and any(name.startswith("memory_") for name in wanted)
        if not (own.tools or own.auto_recall or own.auto_save or named):
            return None  # the agent is not set so
        if not self.applies(info) or not self._host.store.durable:
            return None
        from dragoman.tools.memory import memory_tools
        from dragoman.tools.registry import Box

        memory = await asyncio.to_thread(self.memories.of, profile.alias)
        return Box(
            [tool for tool in memory_tools(memory) if wanted is None or tool.spec.name in wanted]
        )

    async def recalled(self, turn: PromptTurn) -> Sequence[str]:
        """What is remembered about the prompt, as a part of the system prompt."""
        info: SessionInfo = turn.info
        own = profiles.agent(self._settings(), info.agent).memory
        if not own.auto_recall or not self.applies(info):
            return ()
        prompt = next((m for m in reversed(turn.messages) if m.role == "user"), None)
        if prompt is None:
            return ()
        memory = self.memories.of(info.agent)
        limit = self._settings().memory.recall_entries
        found = await asyncio.to_thread(memory.recall, text_of(prompt.content), limit)
        if not found:
            return ()
        lines = "\n".join(f"- {entry.key}: {entry.content}" for entry in found)
        return (f"# What you remember about this\n\n{lines}",)

    # --- saving (a hook subscriber of our own) ---

    def observe(self, hook: str, data: Payload, context: HookContext) -> None:
        session = self._host.live.get(context.session)
        if session is None or not isinstance(data, Completed):
            return
        if data.outcome != "completed" or not data.text:
            return
        info = session.state.info()
        own = profiles.agent(self._settings(), info.agent).memory
        if own.auto_save and self.applies(info):
            asked = next((m for m in reversed(session.state.messages) if m.role == "user"), None)
            said = f"user: {text_of(asked.content) if asked else ''}\nagent: {data.text}"
            self._host.spawn(self._save(info, context.turn, said))

    async def intercept(self, hook: str, data: P, context: HookContext) -> P | Block | None:
        return None

    async def _save(self, info: SessionInfo, turn: str, said: str) -> None:
        longest = self._settings().memory.max_entry_bytes
        cut = said.encode()[:longest].decode(errors="ignore")
        memory = self.memories.of(info.agent)
        await asyncio.to_thread(memory.store, turn, cut, "conversation", info.id)
        log.debug("saved a conversation", agent=info.agent, session=info.id)

    def close(self) -> None:
        if self._made is not None:
            self._made.close()
