"""Several editors in one session: what one of them ends, ends for all."""

import asyncio
from typing import Any

import pytest

from dragoman.engine.content import Text
from dragoman.engine.door import Door
from dragoman.engine.events import Who
from dragoman.engine.traits import Given
from dragoman.testing.host import host_of, memory_door
from dragoman.testing.script import Scripted, hang, turn

from .oracle import check_strictly
from .talking import JOIN, Talker, desk_of


class Strict(Talker):
    check = staticmethod(check_strictly)


def at(session: str, text: str = "hi") -> dict[str, Any]:
    return {"sessionId": session, "prompt": [{"type": "text", "text": text}]}


async def two(door: Door) -> tuple[Strict, Strict, str]:
    """Two clients of version 2 in one session; a turn of the first runs."""
    desk = desk_of(door)
    one, other = Strict(desk), Strict(desk)
    await one.greet2()
    await other.greet2()
    session = await one.new2()
    await other.call("session/resume", {"sessionId": session, "cwd": "/tmp"})
    await one.call("session/prompt", at(session))
    while "agent_message_chunk" not in other.kinds():
        await other.next()
    return one, other, session


def states(client: Talker) -> list[tuple[str, str]]:
    found = [u for u in client.updates() if u["sessionUpdate"] == "state_update"]
    return [(u["state"], u.get("stopReason", "")) for u in found]


async def stop(client: Talker, how: str, session: str) -> None:
    if how == "session/cancel":
        client.tell(how, {"sessionId": session})
    else:
        assert await client.call(how, {"sessionId": session}) == {}


HOW = ("session/cancel", "session/close", "session/archive", "session/delete")


@pytest.mark.parametrize("how", HOW)
async def test_what_another_client_holds_is_taken_back(how: str) -> None:
    door = memory_door(Scripted([turn("a", hang()), "never"]))
    one, other, session = await two(door)
    held = other.ask("session/prompt", at(session, "later"))
    await other.silence()
    await stop(one, how, session)
    assert (await other.reply(held))["error"]["code"] == -32800
    while states(other)[-1] != ("idle", "cancelled"):
        await other.next()
    assert states(other)[-2:] == [("running", ""), ("idle", "cancelled")]
    await host_of(door).stop(0)


@pytest.mark.parametrize("how", HOW[1:])
async def test_who_is_not_in_a_session_ends_it_as_well(how: str) -> None:
    door = memory_door(Scripted([turn("a", hang()), "never"]))
    one, other, session = await two(door)
    third = Strict(one.desk)
    await third.greet2()
    if how == "session/close":
        assert await third.call(how, {"sessionId": session}) == {}
        assert states(one)[-1] == ("running", "")  # what is not open there is closed already
        return
    held = other.ask("session/prompt", at(session, "later"))
    await other.silence()
    await stop(third, how, session)
    assert (await other.reply(held))["error"]["code"] == -32800
    for client in (one, other):
        while states(client)[-1:] != [("idle", "cancelled")]:
            await client.next()
    await host_of(door).stop(0)


async def test_a_session_that_others_delete_is_idle_at_last() -> None:
    door = memory_door(Scripted([turn("a", hang())]))
    one, other, session = await two(door)
    await door.delete(session, Who("zeroclaw", "memory", "", "z"))
    for client in (one, other):
        while states(client)[-1] != ("idle", "cancelled"):
            await client.next()
        assert (await client.refused("session/prompt", at(session)))["code"] == -32002
    await host_of(door).stop(0)


async def test_closing_does_not_wait_for_what_another_protocol_queued() -> None:
    script = Scripted([turn("a", hang()), turn("b", hang())])
    door = memory_door(script)
    one, other, session = await two(door)
    link = next(iter(one.desk.active[session])).connection.link
    seat: Any = door.seat(session, link)
    who = Who("zot", "memory", "", "z")
    work = await seat.prompt((Text("queued"),), who, key="k", when_busy="queue", limit=9)
    async with asyncio.timeout(60):
        assert await one.call("session/close", {"sessionId": session}) == {}
        assert await work.started == work.turn  # its client was told that it is kept
    assert not work.done.done()
    await host_of(door).stop(0)


async def test_a_switch_that_one_turns_is_told_to_those_who_show_it() -> None:
    door = memory_door(Scripted([]))
    desk = desk_of(door)
    one, other, old, plain = (Strict(desk) for _ in range(4))
    await one.greet2()
    session = await one.new2()
    await other.greet2()
    await old.greet("editor", session={"configOptions": {"boolean": {}}})
    await plain.greet("plain")
    for client in (other, old, plain):
        where = {"sessionId": session, "cwd": "/tmp", "_meta": JOIN}
        await client.call("session/resume", where)
    switch = {"configId": "auto_accept_edits", "type": "boolean", "value": True}
    await one.call("session/set_config_option", {"sessionId": session, **switch})
    for client in (other, old):
        listed = (await client.update("config_option_update"))["configOptions"]
        assert [row["currentValue"] for row in listed if row["type"] == "boolean"] == [True]
    await plain.silence()
    await door.keep(session, Given, None, roots=["/tmp"])
    await other.silence()  # nothing that they show
    await host_of(door).stop(0)
