"""Driving a session: prompt (streamed or waited for), steer, cancel."""

import asyncio
from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from dragoman.engine.content import Image, Prompt, Text
from dragoman.engine.events import Event, TurnEnded
from dragoman.engine.faults import Fault
from dragoman.engine.work import Finished, Work

from .. import views
from ..http import Refusal, Stream, reply
from ..outlet import Feed, Outlet
from .table import LARGE, Call, Plain, Route


class PromptBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`text`, or `content` for text and pictures. The same `key` never runs twice."""

    text: str = ""
    content: tuple[Text | Image, ...] = ()
    key: Annotated[str, Meta(max_length=200)] = ""
    wait: bool = True  # False: answer 202 at once


class Steer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    text: Annotated[str, Meta(min_length=1)]


class Turn(msgspec.Struct, frozen=True):
    turn: str


class Result(msgspec.Struct, frozen=True):
    """How a turn ended."""

    turn: str
    outcome: str
    stop: str
    text: str = ""
    error: str = ""


def content_of(body: PromptBody) -> Prompt:
    content = body.content or ((Text(body.text),) if body.text.strip() else ())
    if not content:
        raise Refusal(400, "bad_input", "The prompt is empty.", "Give text or content.")
    return content


async def prompt(call: Call[PromptBody, None]) -> Any:
    body = call.body
    content = content_of(body)
    id = call.path["id"]
    if call.wants_events():
        return await stream_prompt(call, id, content, body.key)
    work = await call.door.prompt(id, content, call.who, key=body.key, keep=not body.wait)
    if not body.wait:
        call.gate.watch_work(work)
        return reply(Turn(work.turn), 202)
    return result_of(await asyncio.shield(work.done))


def _promise() -> asyncio.Future[None]:
    return asyncio.get_running_loop().create_future()


class TurnShape(views.EventShape):
    """Speaks like all and notices when the end of one turn was said."""

    turn: str = ""
    said: asyncio.Future[None] = msgspec.field(default_factory=_promise)

    def speak(self, events: Sequence[Event]) -> bytes | None:
        for one in events:
            if isinstance(one.body, TurnEnded) and one.body.turn == self.turn:
                self.end()
        return super().speak(events)

    def end(self) -> None:
        if not self.said.done():
            self.said.set_result(None)


async def stream_prompt(call: Call[Any, Any], id: str, content: Prompt, key: str) -> Stream:
    """Events of the session from now on; the last one is `done`. The turn outlives the client."""
    shape = TurnShape()
    feed = Feed()
    watch = await call.door.watch(
        id, call.who, shape, feed.deliver, lambda: feed.paused, draft=False
    )
    try:
        work = await call.door.prompt(id, content, call.who, key=key)
    except BaseException:
        watch.close()
        raise
    shape.turn = work.turn

    def begin(outlet: Outlet) -> None:
        feed.join(outlet, watch)
        outlet.on_close.append(shape.end)
        call.gate.keep_awake(outlet)
        call.gate.spawn(_finish(work, shape, outlet))

    return Stream(begin)


async def _finish(work: Work, shape: TurnShape, outlet: Outlet) -> None:
    try:
        finished = await asyncio.shield(work.done)
        last = views.sse("done", msgspec.json.encode(result_of(finished)))
        await shape.said  # a client that reads slowly still gets everything first
    except Fault as fault:
        error = {"code": fault.code, "message": fault.message, "hint": fault.hint}
        last = views.sse("failed", msgspec.json.encode({"error": error}))
    outlet.write(last)
    outlet.close()


def result_of(finished: Finished) -> Result:
    return Result(finished.turn, finished.outcome, finished.stop, finished.text, finished.error)


async def steer(call: Call[Steer, None]) -> Turn:
    turn = await call.door.steer(call.path["id"], (Text(call.body.text),), call.who)
    return Turn(turn)


async def cancel(call: Plain) -> Turn:
    await call.door.info(call.path["id"])
    if call.door.live(call.path["id"]) is None:
        raise Refusal(409, "nothing_running", "Nothing runs in this session.")
    turn = call.door.cancel(call.path["id"])
    await call.door.kept(call.path["id"])
    return Turn(turn)


async def interrupt(call: Plain) -> Turn:
    return Turn(await call.door.interrupt(call.path["id"], call.who))


ROUTES = [
    Route("POST", "/api/sessions/{id}/prompt", prompt,
          "Run a turn: events as they come, or its result when it is over", "driving",
          body=PromptBody, returns=Result, streams=True, limit=LARGE,
          may_fail=(202, 400, 404, 409, 429, 502)),
    Route("POST", "/api/sessions/{id}/steer", steer, "Say something into the running turn",
          "driving", body=Steer, returns=Turn, may_fail=(400, 404, 409)),
    Route("POST", "/api/sessions/{id}/cancel", cancel, "Stop the running turn", "driving",
          returns=Turn, may_fail=(404, 409)),
    Route("POST", "/api/sessions/{id}/interrupt", interrupt,
          "Stop the running turn and rest as interrupted", "driving", returns=Turn,
          may_fail=(404, 409)),
]  # fmt: skip
