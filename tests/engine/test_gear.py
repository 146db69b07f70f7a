"""What a session works with follows its traits and its configuration."""

import asyncio
from typing import Any

from dragoman.engine.host import OpenSpec
from dragoman.engine.traits import Given
from dragoman.testing.host import host_of, memory_door
from dragoman.testing.script import Scripted


async def opened(*traits: Given) -> tuple[Any, Any]:
    door = memory_door(Scripted([]))
    info = await door.open(OpenSpec(cwd="/", traits=traits))
    return door, host_of(door).live[info.id].gear


async def test_the_profile_is_the_agents_with_what_was_given_on_top() -> None:
    door, gear = await opened()
    assert gear.profile() is gear.profile()
    door, gear = await opened(Given(system_prompt="be brief", tools=(), roots=("/r",)))
    profile = gear.profile()
    assert (profile.system_prompt, profile.tools, gear.roots) == ("be brief", (), ("/r",))
    assert gear.profile() is profile  # made once
    session = gear._ledger.id
    await door.set_reasoning(session, "high")
    assert gear.profile().reasoning == "high"
    await door.keep(session, Given, system_prompt=None)
    assert gear.profile().system_prompt != "be brief"


async def test_tools_are_made_once_and_anew_when_asked() -> None:
    _, gear = await opened(Given(mcp=({"name": "kept"},)))
    agents, seen = gear._ledger.home.agents, []
    make = agents.toolbox

    async def toolbox(profile: Any, info: Any) -> Any:
        seen.append([one["name"] for one in Given.of(info.extra).mcp])
        return await make(profile, info)

    agents.toolbox = toolbox
    await asyncio.gather(gear.equip(), gear.equip())
    await gear.equip()
    gear.servers = ({"name": "lent"},)
    await gear.equip(anew=True)
    assert seen == [["kept"], ["kept", "lent"]]
    assert "lent" not in str(gear._ledger.state.extra)  # never kept: it may carry secrets


async def test_a_tool_that_does_not_close_is_told_of() -> None:
    _, gear = await opened()
    await gear.equip()
    told: list[str] = []
    gear._ledger.home.trouble = lambda what, error, **data: told.append(f"{what}: {error}")

    async def broken() -> None:
        raise ValueError("stuck")

    gear.toolbox.close = broken
    await gear.put_away()
    await gear.put_away()
    assert told == ["tools were not closed: stuck"] and gear.toolbox is None
