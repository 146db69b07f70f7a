"""What an agent brings into a session: its personality, its skills, its slash commands.

What reads them is loaded with the first session, not at start.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from time import monotonic

from dragoman.engine.info import SessionInfo
from dragoman.engine.ports import AgentProfile, PromptTurn, Toolbox
from dragoman.engine.ports.commands import Command

_MOMENT = 0.2  # seconds for which a look at the files is good: a busy host has many turns in it
_SKILL = "skill"  # the tool's name
_Found = tuple[list[str], str, Sequence[str]]  # the agent's own files, its skills, what is wrong
_REMEMBERED = 1_000  # sessions that were told what is wrong with their skills


class Learning:
    """Joins the files that people write for agents to sessions, read anew for each turn."""

    def __init__(self, config_dir: str) -> None:
        self._config_dir = config_dir
        self._since = 0.0
        self._looks: dict[tuple[str, str], asyncio.Future[_Found]] = {}
        self._told: OrderedDict[tuple[str, str], None] = OrderedDict()

    async def said(self, turn: PromptTurn) -> Sequence[str]:
        """Parts of the system prompt."""
        info: SessionInfo = turn.info
        own, listed, notes = await self._looked(info.agent, info.cwd)
        for note in notes:
            if self._is_news(info.id, note):
                await turn.note("warning", "A skill is not as it should be", note)
        wanted = turn.profile.tools
        if not listed or wanted is not None and _SKILL not in wanted:
            return own
        return [*own, listed]

    async def _looked(self, alias: str, cwd: str) -> _Found:
        """What the files say; turns that begin within a moment share one look at them."""
        key, now = (alias, cwd), monotonic()
        if now - self._since > _MOMENT:
            self._since = now
            self._looks = {}
        look = self._looks.get(key)
        if look is None:
            look = self._looks[key] = asyncio.ensure_future(
                asyncio.to_thread(self._read, alias, cwd)
            )
        return look.result() if look.done() else await asyncio.shield(look)

    def _read(self, alias: str, cwd: str) -> _Found:
        from dragoman.agents.prompt import personality
        from dragoman.agents.skills import find_skills, listing

        skills = find_skills(cwd, self._config_dir)
        listed = listing(tuple(skills.found.values()))
        return personality(self._config_dir, alias), listed, skills.notes

    def _is_news(self, session: str, note: str) -> bool:
        key = (session, note)
        if key in self._told:
            return False
        self._told[key] = None
        while len(self._told) > _REMEMBERED:
            self._told.popitem(last=False)
        return True

    async def tools(self, profile: AgentProfile, info: SessionInfo) -> Toolbox | None:
        """The tool `skill`, where there are any."""
        from dragoman.agents.skills import SkillTool, find_skills

        if profile.tools is not None and _SKILL not in profile.tools:
            return None
        found = await asyncio.to_thread(find_skills, info.cwd, self._config_dir)
        from dragoman.tools.registry import Box

        return Box([SkillTool(self._config_dir)]) if found.found else None

    def commands(self, cwd: str) -> Mapping[str, Command]:
        """Slash commands of a working directory; reads files."""
        from dragoman.agents.commands import find_commands

        return find_commands(cwd, self._config_dir)
