"""Another model in the middle of a turn: the call that runs keeps its own, the next has the new."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import msgspec
import pytest
from tests.dialects.acp.talking import JOIN
from tests.dialects.acp.talking import Talker as AcpTalker
from tests.dialects.acp.talking import desk_of as acp_desk
from tests.dialects.zeroclaw.talking import Talker as ZeroclawTalker
from tests.gateway.making import serving

from dragoman.dialects.zeroclaw import Desk as ZeroclawDesk
from dragoman.dialects.zeroclaw import Settings as ZeroclawSettings
from dragoman.dialects.zot import Desk as ZotDesk
from dragoman.dialects.zot import Settings as ZotSettings
from dragoman.engine import events as ev
from dragoman.engine.content import Text, Usage, text_of
from dragoman.engine.door import Door
from dragoman.engine.events import Who
from dragoman.engine.faults import UnknownModel
from dragoman.engine.host import OpenSpec
from dragoman.testing.host import MODEL, EchoTool, host_of, memory_door
from dragoman.testing.script import Scripted, call, hang, say, turn
from dragoman.transports.memory import Client

OTHER = msgspec.structs.replace(
    MODEL,
    id="other",
    price_input=MODEL.price_input * 10,  # type: ignore[operator]
    price_output=MODEL.price_output * 10,  # type: ignore[operator]
)
USED = Usage(input=1_000, output=100)
ME = Who("test", id="t")
Change = Callable[[Door, str, str, AsyncExitStack], Awaitable[None]]


async def acp(door: Door, session: str, ref: str, stack: AsyncExitStack) -> None:
    talker = AcpTalker(acp_desk(door), "acp")
    await talker.call("session/resume", {"sessionId": session, "_meta": JOIN})
    given = {"sessionId": session, "configId": "model", "value": ref}
    options = (await talker.call("session/set_config_option", given))["configOptions"]
    assert next(one["currentValue"] for one in options if one["id"] == "model") == ref


async def zeroclaw(door: Door, session: str, ref: str, stack: AsyncExitStack) -> None:
    talker = ZeroclawTalker(ZeroclawDesk(door, ZeroclawSettings()))
    given = {"sessionId": session, "overrides": {"model": ref.partition("/")[2]}}
    told = await talker.ask("session/configure", given)
    assert told["overrides"] == given["overrides"]


async def native(door: Door, session: str, ref: str, stack: AsyncExitStack) -> None:
    talker = ZeroclawTalker(ZeroclawDesk(door, ZeroclawSettings()))
    told = await talker.ask("dragoman/setModel", {"session_id": session, "model": ref})
    assert told["session"]["model"] == ref


async def rest(door: Door, session: str, ref: str, stack: AsyncExitStack) -> None:
    served = await stack.enter_async_context(serving(door=door))  # it takes its host along at last
    client = await stack.enter_async_context(served.client())
    told = await client.patch(f"/api/sessions/{session}", json={"model": ref})
    assert told.status_code == 200 and told.json()["model"] == ref


async def engine(door: Door, session: str, ref: str, stack: AsyncExitStack) -> None:
    assert await door.set_model(session, ref, ME) == ref


def living(*script: Any) -> tuple[Door, Scripted, EchoTool]:
    scripted, tool = Scripted([*script]), EchoTool()
    door = memory_door(scripted, [tool], mode="full")
    host_of(door).models.more[OTHER.ref] = OTHER  # type: ignore[attr-defined]
    return door, scripted, tool


def models(script: Scripted) -> list[str]:
    return [request.model.ref for request in script.requests]


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as made:
        yield made


@pytest.mark.parametrize("change", [engine, acp, zeroclaw, native, rest], ids=lambda c: c.__name__)
async def test_the_running_call_keeps_its_model_and_the_next_has_the_new(
    change: Change, stack: AsyncExitStack
) -> None:
    door, script, tool = living(
        turn(say("one "), hang(), say("two"), call("echo", text="x"), usage=USED),
        turn(say("three"), usage=USED),
        turn(say("four"), usage=USED),
    )
    info = await door.open(OpenSpec(cwd="/"), ME)
    work = await door.prompt(info.id, (Text("go"),), ME)
    await asyncio.wait_for(script.hanging.wait(), 60)
    await change(door, info.id, OTHER.ref, stack)
    assert (await door.info(info.id)).model == OTHER.ref  # told at once
    assert models(script) == [MODEL.ref] and not work.done.done() and not script.aborted
    script.release()
    done = await asyncio.wait_for(work.done, 60)
    assert (done.outcome, done.text) == ("completed", "three") and tool.ran == [{"text": "x"}]
    assert models(script) == [MODEL.ref, OTHER.ref]
    spoke = [e.body for e in await door.history(info.id) if isinstance(e.body, ev.Spoke)]
    assert [text_of(one.content) for one in spoke] == ["one two", "three"]
    assert [one.cost for one in spoke] == pytest.approx([MODEL.cost(USED), OTHER.cost(USED)])
    again = await door.prompt(info.id, (Text("more"),), ME)  # and it stays
    await asyncio.wait_for(again.done, 60)
    assert models(script)[2:] == [OTHER.ref]


@pytest.mark.parametrize("change", [engine, acp, zeroclaw, native], ids=lambda c: c.__name__)
async def test_a_model_that_is_not_there_leaves_the_running_turn_alone(
    change: Change, stack: AsyncExitStack
) -> None:
    door, script, _ = living(turn(hang(), call("echo", text="x")), "done")
    info = await door.open(OpenSpec(cwd="/"), ME)
    work = await door.prompt(info.id, (Text("go"),), ME)
    await asyncio.wait_for(script.hanging.wait(), 60)
    with pytest.raises((UnknownModel, AssertionError), match="scripted/never|never"):
        await change(door, info.id, "scripted/never", stack)
    script.release()
    assert (await asyncio.wait_for(work.done, 60)).text == "done"
    assert models(script) == [MODEL.ref, MODEL.ref]


async def test_zot_refuses_while_it_is_busy_and_nothing_changes() -> None:
    door, script, _ = living(turn(hang(), call("echo", text="x")), "done", "next")
    client = Client(ZotDesk(door, ZotSettings(cwd="/", keeps=False)).hearer)

    async def answer(id: str) -> Any:
        while True:
            frame = json.loads(await client.receive(60))
            if frame.get("id") == id:
                return frame

    client.send(b'{"id":"1","type":"prompt","message":"go"}')
    await asyncio.wait_for(script.hanging.wait(), 60)
    client.send(b'{"id":"2","type":"set_model","model":"other"}')
    refused = await answer("2")
    assert not refused["success"] and "busy" in refused["error"]
    (info,) = door.live_infos()
    assert info.model == MODEL.ref
    script.release()
    await door.idle(info.id)
    client.send(b'{"id":"3","type":"set_model","model":"other"}')
    assert (await answer("3"))["data"] == {"model": "other"}
    client.send(b'{"id":"4","type":"prompt","message":"go"}')
    await answer("4")
    await door.idle(info.id)
    assert models(script) == [MODEL.ref, MODEL.ref, OTHER.ref]
    client.drop()


async def test_a_change_between_two_model_calls_holds_for_the_second() -> None:
    """Set while a tool runs: no call is under way at all."""

    class Slow(EchoTool):
        began, go = asyncio.Event(), asyncio.Event()

        async def run(self, args: Any, env: Any) -> Any:
            self.began.set()
            await self.go.wait()
            return await super().run(args, env)

    script, tool = Scripted([call("echo", text="x"), "done"]), Slow()
    door = memory_door(script, [tool], mode="full")
    host_of(door).models.more[OTHER.ref] = OTHER  # type: ignore[attr-defined]
    info = await door.open(OpenSpec(cwd="/"), ME)
    work = await door.prompt(info.id, (Text("go"),), ME)
    await asyncio.wait_for(tool.began.wait(), 60)
    await door.set_model(info.id, OTHER.ref, ME)
    tool.go.set()
    await asyncio.wait_for(work.done, 60)
    assert models(script) == [MODEL.ref, OTHER.ref]
