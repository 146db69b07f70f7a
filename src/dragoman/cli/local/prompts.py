"""What a model is given at the beginning of a turn: the system prompt and the tools."""

import asyncio
import os
from typing import Any

import msgspec

from dragoman.agents.prompt import mode_part, system_prompt
from dragoman.engine.faults import no_agent
from dragoman.engine.info import SessionInfo
from dragoman.engine.opening import launch_dir
from dragoman.engine.ports import AgentProfile
from dragoman.host.compose import compose

_CHARACTERS = 4  # of one token, roughly


class Looked:
    """As much of a turn as the parts of a prompt look at."""

    def __init__(self, profile: AgentProfile, info: SessionInfo) -> None:
        self.profile = profile
        self.info = info
        self.messages = ()
        self.id = ""
        self.notes: list[str] = []

    async def note(self, level: str, title: str, text: str = "", **data: Any) -> None:
        self.notes.append(f"{title}: {text}")


def given(config_dir: str | None, alias: str | None, cwd: str = "") -> dict[str, Any]:
    """The agent's profile, its prompt in this folder, its tools, and their size."""
    return asyncio.run(_given(config_dir, alias, os.path.realpath(cwd or launch_dir())))


async def _given(config_dir: str | None, alias: str | None, cwd: str) -> dict[str, Any]:
    composed = await compose(config_dir=config_dir, store="memory")
    try:
        roster = composed.roster
        chosen = alias or roster.default()
        if not chosen:
            raise no_agent(roster.names())
        profile = roster.profile(chosen)
        info = SessionInfo("", chosen, cwd, profile.model, profile.mode, "idle", 0, 0)
        turn = Looked(profile, info)
        tools: list[Any] = []
        prompt = ""
        if profile.backend == "builtin":
            extras = [text for extra in roster.extras for text in await extra(turn)]
            prompt = system_prompt(profile, cwd, (*extras, *mode_part(info)))
            toolbox = await roster.toolbox(profile, info)
            tools = [msgspec.to_builtins(spec) for spec in toolbox.specs()]
            await toolbox.close()
        shown = [{name: tool[name] for name in ("name", "description", "schema")} for tool in tools]
        return {
            "agent": msgspec.to_builtins(profile),
            "prompt": prompt,
            "tools": shown,
            "prompt_tokens": len(prompt) // _CHARACTERS,
            "tool_tokens": len(msgspec.json.encode(shown)) // _CHARACTERS,
            "notes": turn.notes,
        }
    finally:
        await composed.close()
