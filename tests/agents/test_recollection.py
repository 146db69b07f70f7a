"""Memory in sessions: who has it, who has not, and that nothing passes between them."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from dragoman.engine.content import Text, text_of
from dragoman.engine.events import Who
from dragoman.engine.host import OpenSpec
from dragoman.engine.traits import Given, Trait
from dragoman.host.compose import Composed, compose
from dragoman.providers.registry import ProviderConfig
from dragoman.testing.script import Scripted, call

CONFIG = """
[agents.chatty]
model = "script/m"
mode = "full"
[agents.chatty.memory]
auto_recall = true
auto_save = true

[agents.other]
model = "script/m"
mode = "full"
[agents.other.memory]
auto_recall = true
auto_save = true

[agents.quiet]
model = "script/m"
mode = "full"
[agents.quiet.memory]
tools = true

[agents.coder]
model = "script/m"
mode = "full"
"""
TOOLS = {f"memory_{verb}" for verb in ("store", "recall", "forget", "export", "purge")}
ZEROCLAW, ACP = Who("zeroclaw", id="z"), Who("acp", id="a")
FACT = "The user's parrot is called Archimedes."


class Talk:
    def __init__(self, host: Composed, script: Scripted) -> None:
        self.host, self.script = host, script

    async def session(self, agent: str, who: Who = ZEROCLAW, *traits: Trait) -> str:
        spec = OpenSpec(agent=agent, cwd="/", traits=traits)
        return (await self.host.door.open(spec, who)).id

    async def say(self, session: str, text: str) -> Any:
        async with asyncio.timeout(60):
            work = await self.host.door.prompt(session, (Text(text),), ZEROCLAW)
            return await work.done

    @property
    def last(self) -> Any:
        return self.script.requests[-1]

    def entries(self, agent: str) -> list[Any]:
        return list(self.host.recollection.memories.of(agent).all())

    async def saved(self, agent: str, count: int = 1) -> list[Any]:
        """What was saved by itself; it is saved beside, so wait for it."""
        async with asyncio.timeout(60):
            while len(self.entries(agent)) < count:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        return self.entries(agent)


@pytest.fixture
async def talk(tmp_path: Path):
    script = Scripted([f"answer {n}" for n in range(50)])
    host = await hosted(tmp_path, script)
    yield Talk(host, script)
    await host.close()


async def hosted(tmp_path: Path, script: Scripted) -> Composed:
    (tmp_path / "config.toml").write_text(CONFIG)
    host = await compose(
        config_dir=str(tmp_path), providers={"script": ProviderConfig(kind="demo")}
    )
    host.models.offer("script", script)
    return host


async def test_a_chat_session_has_the_tools_and_uses_them(tmp_path: Path) -> None:
    script = Scripted([
        call("memory_store", key="parrot", content=FACT), "stored",
        call("memory_recall", query="parrot"), "there",
    ])  # fmt: skip
    host = await hosted(tmp_path, script)
    one = Talk(host, script)
    try:
        session = await one.session("quiet")
        await one.say(session, "remember it")
        assert {tool.name for tool in one.last.tools} >= TOOLS
        await one.say(session, "what was it?")
        results = [m for m in one.last.messages if m.role == "tool"]
        assert FACT in str(results[-1].content)
        assert [entry.key for entry in one.entries("quiet")] == ["parrot"]  # nothing by itself
    finally:
        await host.close()


@pytest.mark.parametrize("how", ["acp", "exclude_memory"])
async def test_sessions_without_memory(talk: Talk, how: str) -> None:
    """No tools, no recall, no saving; and what they say is never found later."""
    memory = talk.host.recollection.memories.of("chatty")
    memory.store("parrot", FACT)
    if how == "acp":
        session = await talk.session("chatty", ACP)
    else:
        session = await talk.session("chatty", ZEROCLAW, Given(memory=False))
    await talk.say(session, "What is my parrot called? My password is swordfish.")
    assert not TOOLS & {tool.name for tool in talk.last.tools}
    assert "Archimedes" not in talk.last.system
    # A chat of the same agent afterwards: its own saving shows that saving works at all.
    chat = await talk.session("chatty")
    await talk.say(chat, "Tell me about my parrot and my password.")
    assert "Archimedes" in talk.last.system and "swordfish" not in talk.last.system
    entries = await talk.saved("chatty", 2)
    assert len(entries) == 2 and not any("swordfish" in entry.content for entry in entries)


async def test_an_unknown_tool_is_all_that_an_acp_session_gets(tmp_path: Path) -> None:
    """A model that calls the tool anyway reaches nothing."""
    script = Scripted([call("memory_recall", query="parrot"), "no luck"])
    host = await hosted(tmp_path, script)
    one = Talk(host, script)
    try:
        host.recollection.memories.of("chatty").store("parrot", FACT)
        session = await one.session("chatty", ACP)
        await one.say(session, "go")
        result = [m for m in one.last.messages if m.role == "tool"][-1]
        assert "unknown tool" in str(result.content) and "Archimedes" not in str(result.content)
    finally:
        await host.close()


async def test_a_session_stays_without_memory_after_a_restart(tmp_path: Path) -> None:
    script = Scripted([f"answer {n}" for n in range(9)])
    host = await hosted(tmp_path, script)
    one = Talk(host, script)
    host.recollection.memories.of("chatty").store("parrot", FACT)
    session = await one.session("chatty", ACP)
    await one.say(session, "hello")
    await host.close()
    host = await hosted(tmp_path, script)
    one = Talk(host, script)
    try:
        # Taken up by a client of another protocol: it is still the coding session it was.
        await one.say(session, "What is my parrot called?")
        assert "Archimedes" not in one.last.system
        assert not TOOLS & {tool.name for tool in one.last.tools}
        assert [entry.key for entry in one.entries("chatty")] == ["parrot"]
    finally:
        await host.close()


async def test_what_is_remembered_is_put_before_the_turn(talk: Talk) -> None:
    talk.host.recollection.memories.of("chatty").store("parrot", FACT)
    session = await talk.session("chatty")
    await talk.say(session, "What is my parrot called?")
    assert FACT in talk.last.system
    said = [text_of(m.content) for m in talk.last.messages]
    assert said == ["What is my parrot called?"]  # the conversation itself is not touched
    await talk.say(session, "Something else entirely")
    assert FACT not in talk.last.system


async def test_conversations_are_saved_by_themselves(talk: Talk) -> None:
    session = await talk.session("chatty")
    await talk.say(session, "I moved to Lisbon.")
    (entry,) = await talk.saved("chatty")
    assert "Lisbon" in entry.content and "answer 0" in entry.content
    assert (entry.category, entry.session) == ("conversation", session)
    later = await talk.session("chatty")
    await talk.say(later, "Do you know about Lisbon?")
    assert "I moved to Lisbon." in talk.last.system


async def test_agents_are_apart(talk: Talk) -> None:
    for agent, city in (("chatty", "Lisbon"), ("other", "Porto")):
        session = await talk.session(agent)
        await talk.say(session, f"I moved to {city}.")
        await talk.saved(agent)
    session = await talk.session("other")
    await talk.say(session, "Lisbon? Porto?")
    assert "Porto" in talk.last.system and "Lisbon" not in talk.last.system


async def test_an_agent_that_is_not_set_so_does_neither(talk: Talk) -> None:
    talk.host.recollection.memories.of("quiet").store("parrot", FACT)
    session = await talk.session("quiet")
    await talk.say(session, "What is my parrot called?")
    assert "Archimedes" not in talk.last.system
    chat = await talk.session("chatty")
    await talk.say(chat, "hello")
    await talk.saved("chatty")
    assert [entry.key for entry in talk.entries("quiet")] == ["parrot"]


async def test_an_agent_that_is_not_set_so_has_no_memory_tools(talk: Talk) -> None:
    session = await talk.session("coder")
    await talk.say(session, "What is my parrot called?")
    assert not TOOLS & {tool.name for tool in talk.last.tools}
