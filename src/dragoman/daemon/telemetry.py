"""Traces and figures for OpenTelemetry, made from the events that every client could see.

One trace per turn: the turn, its steps, and below each step its model call, its tools and its waits
for a human. Names follow the conventions for generative models as far as they have one. Prompts,
answers and results never leave, and what tools got and errors say only when that is asked for.
"""

import asyncio
import hashlib
import json
import re
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from opentelemetry.context import Context
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.trace import (
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)

from dragoman import __version__
from dragoman.engine import events
from dragoman.engine.ask import Ask
from dragoman.engine.content import Usage
from dragoman.engine.events import Event, Who
from dragoman.engine.faults import Fault
from dragoman.observe.log import capture, get_log
from dragoman.observe.redact import scrub

from .conventions import (
    CALL_SECONDS,
    FINISHES,
    TOKENS,
    TURN_SECONDS,
    WAIT_SECONDS,
    error_type,
    model_of,
)
from .exporting import providers

if TYPE_CHECKING:
    from dragoman.engine.door import Door
    from dragoman.engine.hub import Watch
    from dragoman.settings.host import Telemetry as Settings

_MOST = 10_000  # spans that are open at once; more are not traced
_NANO = 1_000_000  # nanoseconds of a millisecond
_FAREWELL_SECONDS = 2.0  # a collector that is away does not hold up the end any longer
_WHO = Who("telemetry")
_TASK = "task"  # who a sub-agent's turn is of
_MOST_TOOLS = 500  # names of tools that figures tell apart
_TOOL = re.compile(r"\w[\w.:@-]*(?:/[\w.:@-]+)?")  # no path
_MOST_NAME = 80
_ID = re.compile(r"[\w.:|-]{1,128}")
_SHOWN = ("command", "path", "url", "pattern")  # arguments that leave when contents may
log = get_log("telemetry")


class Telemetry:
    """`engine.hub.Shape` that says nothing and turns events into spans."""

    def __init__(
        self, traces: TracerProvider, figures: MeterProvider, *, contents: bool = False
    ) -> None:
        self._traces = traces
        self._figures = figures
        self._contents = contents
        self._tracer = traces.get_tracer("dragoman", __version__)
        meter = figures.get_meter("dragoman", __version__)
        make = meter.create_histogram
        self._duration = make(
            "gen_ai.client.operation.duration", "s", "How long a model call took",
            explicit_bucket_boundaries_advisory=CALL_SECONDS,
        )  # fmt: skip
        self._first = make(
            "gen_ai.client.operation.time_to_first_chunk", "s",
            "How long a model call took to its first word",
            explicit_bucket_boundaries_advisory=CALL_SECONDS,
        )  # fmt: skip
        self._tokens = make(
            "gen_ai.client.token.usage", "{token}", "Tokens read and written by model calls",
            explicit_bucket_boundaries_advisory=TOKENS,
        )  # fmt: skip
        self._turns = make(
            "gen_ai.invoke_agent.duration", "s", "How long a turn took",
            explicit_bucket_boundaries_advisory=TURN_SECONDS,
        )  # fmt: skip
        self._tools = make(
            "gen_ai.execute_tool.duration", "s", "How long a tool ran",
            explicit_bucket_boundaries_advisory=CALL_SECONDS,
        )  # fmt: skip
        self._waits = make(
            "dragoman.approval.wait", "s", "How long a question waited for its answer",
            explicit_bucket_boundaries_advisory=WAIT_SECONDS,
        )  # fmt: skip
        self._cost = meter.create_counter("dragoman.cost", "{USD}", "Spent on models")
        self._ids = _Ids()
        self._tracer.id_generator = self._ids  # type: ignore[attr-defined]
        self._tool_names: set[str] = set()
        self._parents: dict[str, str] = {}  # of sub-agents' sessions
        self._open: dict[tuple[str, str], tuple[Span, int]] = {}
        self._below: dict[tuple[str, str], dict[str, None]] = {}  # what is open below a turn
        self._unheard: dict[tuple[str, str], int] = {}  # when calls began that said nothing yet
        self._heard: dict[tuple[str, str], float] = {}  # seconds to their first word
        self._watch: Watch | None = None
        self._door: Door | None = None

    @property
    def held(self) -> int:
        """How much is kept of turns, calls and sessions that have not ended."""
        calls = len(self._unheard) + len(self._heard)
        return len(self._open) + len(self._below) + len(self._parents) + calls

    @classmethod
    async def begin(cls, door: "Door", settings: "Settings") -> "Telemetry":
        """Send to the configured collector."""
        made = cls(*providers(settings.endpoint), contents=settings.contents)
        capture()  # what the SDK says of a collector that is away
        try:
            await made.attach(door)
        except BaseException:
            await made.close()
            raise
        return made

    async def attach(self, door: "Door") -> None:
        """Hear of every session from now on, and of questions that waited already."""
        self._door = door
        await door.reached()  # else all that was ever said would be told and counted again
        self._watch = door.watch_all(_WHO, self, lambda said: None)
        for row in await door.asks():
            ask = row.ask
            self._question(ask.session, ask.at, ask)

    async def close(self) -> None:
        """Send what is left, as far as the collector takes it soon."""
        if self._watch is not None:
            self._watch.close()
        for span, _ in self._open.values():
            span.end()
        self._open.clear()
        self._below.clear()
        self._unheard.clear()
        self._heard.clear()
        if not await asyncio.to_thread(_ended, (self._traces.shutdown, self._figures.shutdown)):
            log.warning("the collector did not take what was left", seconds=_FAREWELL_SECONDS)

    def speak(self, told: Sequence[Event]) -> None:
        for event in told:
            take = _TAKES.get(type(event.body))
            if take is not None:
                take(self, event, event.body)
        return None

    def _about(self, session: str) -> tuple[dict[str, str], dict[str, str]]:
        """A session's agent, and its model, as attributes; empty when it is not in memory."""
        live = self._door.live(session) if self._door is not None else None
        if live is None:
            return {}, {}
        return {"gen_ai.agent.name": live.agent}, model_of(live.model)

    # What each event means. A span is known by its session and what it is about.

    def _opened(self, event: Event, body: events.Opened) -> None:
        if body.parent and body.by is not None and body.by.dialect == _TASK:
            if len(self._parents) < _MOST:
                self._parents[event.session] = body.parent

    def _turn_began(self, event: Event, body: events.TurnBegan) -> None:
        about = {"dragoman.client": body.by.dialect if body.by else ""}
        above = None
        if body.by is not None and body.by.dialect == _TASK:  # a sub-agent: below its call
            parent = self._parents.get(event.session, "")
            above = self._open.get((parent, f"call {body.by.id}"))
        self._turn(event.session, event.at, body.turn, about, above[0] if above else None)

    def _turn(
        self, session: str, at: int, turn: str, about: dict[str, Any], above: Span | None = None
    ) -> tuple[Span, int] | None:
        """Begin the span of a turn, or of the rest of one that an earlier process began.

        Both are of one trace, because its id is made of the turn's.
        """
        trace, root = _ids_of(session, turn)
        context = set_span_in_context(above) if above else None
        if "dragoman.resumed" in about:
            before = SpanContext(trace, root, is_remote=True, trace_flags=TraceFlags(1))
            context = set_span_in_context(NonRecordingSpan(before))
        elif above is None:
            self._ids.chosen = [trace, root]
        agent, model = self._about(session)
        name = f"invoke_agent {agent['gen_ai.agent.name']}" if agent else "invoke_agent"
        self._add(session, at, turn, name, context, {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.conversation.id": session,
            "dragoman.turn": turn,
            **agent,
            **model,
            **about,
        })  # fmt: skip
        self._ids.chosen = []
        return self._open.get((session, turn))

    def _step_began(self, event: Event, body: events.StepBegan) -> None:
        self._end(event, f"step {body.turn}", "", {})  # the one before
        shared = {"gen_ai.conversation.id": event.session, "dragoman.step": body.step}
        self._begin(event, f"step {body.turn}", f"step {body.step}", body.turn, shared)
        agent, model = self._about(event.session)
        name = f"chat {model.get('gen_ai.request.model', '')}".strip()
        self._begin(event, f"chat {body.turn}", name, body.turn, {
            "gen_ai.operation.name": "chat", **agent, **model, **shared,
        }, SpanKind.CLIENT)  # fmt: skip
        key = (event.session, body.turn)
        self._heard.pop(key, None)
        if (event.session, f"chat {body.turn}") in self._open:
            self._unheard[key] = event.at

    def _chunk(self, event: Event, body: events.TextDelta | events.CallDrafted) -> None:
        """The first word of a call; every piece of a stream comes by, so this costs nothing."""
        if self._unheard:
            began = self._unheard.pop((event.session, body.turn), None)
            if began is not None:
                self._heard[event.session, body.turn] = max(0, event.at - began) / 1_000

    def _spoke(self, event: Event, body: events.Spoke) -> None:
        shared = model_of(body.model)
        failed = {"error.type": error_type(body.fault or str(body.stop))} if body.error else {}
        first = self._heard.pop((event.session, body.turn), None)
        self._unheard.pop((event.session, body.turn), None)
        used = body.usage
        about: dict[str, Any] = {
            "gen_ai.response.finish_reasons": (FINISHES[body.stop],),
            "dragoman.cost_usd": body.cost,
        }
        if used.context:  # hosted agents do not say
            about |= {
                "gen_ai.usage.input_tokens": used.input + used.cache_read + used.cache_write,
                "gen_ai.usage.output_tokens": used.output,
                "gen_ai.usage.cache_read.input_tokens": used.cache_read,
                "gen_ai.usage.cache_creation.input_tokens": used.cache_write,
            }
        if used.reasoning:
            about["gen_ai.usage.reasoning.output_tokens"] = used.reasoning
        if first is not None:
            about |= {"gen_ai.request.stream": True, "gen_ai.response.time_to_first_chunk": first}
        name = f"chat {shared.get('gen_ai.request.model', '')}".strip()
        key = f"chat {body.turn}"
        seconds = self._end(event, key, body.error, {**about, **shared, **failed}, name=name)
        shared["gen_ai.operation.name"] = "chat"
        if seconds is not None:
            self._duration.record(seconds, {**shared, **failed})
        if first is not None:
            self._first.record(first, shared)
        self._used(used, body.cost, shared)

    def _compacted(self, event: Event, body: events.Compacted) -> None:
        """A summary is a model's, too: no span, but it is counted."""
        _, model = self._about(event.session)
        self._used(body.usage, body.cost, {"gen_ai.operation.name": "chat", **model})

    def _used(self, used: Usage, cost: float, shared: dict[str, str]) -> None:
        if used.context:
            taken = used.input + used.cache_read + used.cache_write
            self._tokens.record(taken, {"gen_ai.token.type": "input", **shared})
            self._tokens.record(used.output, {"gen_ai.token.type": "output", **shared})
        if cost > 0:
            self._cost.add(cost, shared)

    def _call_started(self, event: Event, body: events.CallStarted) -> None:
        name = self._tool(body.name)
        about: dict[str, Any] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.conversation.id": event.session,
            "gen_ai.tool.name": name,
            "gen_ai.tool.type": self._tool_type(event.session),
        }
        if _ID.fullmatch(body.call_id):
            about["gen_ai.tool.call.id"] = body.call_id
        if self._contents:
            given = ((arg, (body.args or {}).get(arg)) for arg in _SHOWN)
            shown = {
                arg: scrub(value[:4_000])[:1_000] for arg, value in given if isinstance(value, str)
            }
            if shown:
                about["gen_ai.tool.call.arguments"] = json.dumps(shown)
        key = f"call {body.call_id}"
        self._begin(event, key, f"execute_tool {name}", body.turn, about)

    def _call_ended(self, event: Event, body: events.CallEnded) -> None:
        problem = str(body.outcome) if body.is_error else ""
        about = {"dragoman.outcome": str(body.outcome)}
        if body.is_error:
            about["error.type"] = str(body.outcome)
        seconds = self._end(event, f"call {body.call_id}", problem, about)
        if seconds is not None:
            about["gen_ai.tool.name"] = self._tool(body.name)
            about["gen_ai.tool.type"] = self._tool_type(event.session)
            self._tools.record(seconds, {**about, **self._about(event.session)[0]})

    def _tool_type(self, session: str) -> str:
        """Ours are functions; what a hosted agent runs itself is its extension."""
        live = self._door.live(session) if self._door is not None else None
        if live is None or self._door is None:
            return "function"
        try:
            hosted = self._door.profile(live.agent).backend != "builtin"
        except Fault:  # it was taken out of the configuration
            return "function"
        return "extension" if hosted else "function"

    def _asked(self, event: Event, body: events.Asked) -> None:
        self._question(event.session, event.at, body.ask)

    def _question(self, session: str, at: int, ask: Ask) -> None:
        about = {
            "gen_ai.conversation.id": session,
            "gen_ai.tool.name": self._tool(ask.tool),
            "dragoman.approval": ask.id,
        }
        self._below_turn(session, at, f"ask {ask.id}", "approval", ask.turn, about)

    def _settled(self, event: Event, body: events.Settled) -> None:
        about = {"dragoman.verdict": str(body.verdict)}
        if body.by is not None:
            about["dragoman.client"] = body.by.dialect
        seconds = self._end(event, f"ask {body.ask_id}", "", about)
        if seconds is not None:
            self._waits.record(seconds, about)

    def _turn_ended(self, event: Event, body: events.TurnEnded) -> None:
        problem, failed = "", {}
        if body.outcome == "failed":
            problem = body.error or "failed"
            failed = {"error.type": error_type(body.fault)}
        agent, model = self._about(event.session)
        for key in reversed(self._below.pop((event.session, body.turn), {})):
            if not key.startswith("chat "):
                self._end(event, key, "", {})
                continue
            seconds = self._end(event, key, problem, failed)  # it never said a word
            if seconds is not None:
                self._duration.record(seconds, {"gen_ai.operation.name": "chat", **model, **failed})
        self._unheard.pop((event.session, body.turn), None)
        self._heard.pop((event.session, body.turn), None)
        about = {"dragoman.outcome": str(body.outcome), **failed}
        seconds = self._end(event, body.turn, problem, about)
        if seconds is not None:
            self._turns.record(seconds, {**agent, **about})
        self._parents.pop(event.session, None)

    def _tool(self, name: str) -> str:
        """A tool's name as figures may have it: one of not too many, and no sentence."""
        if name not in self._tool_names:
            full = len(self._tool_names) >= _MOST_TOOLS
            if full or len(name) > _MOST_NAME or not _TOOL.fullmatch(name):
                return "other" if name else ""
            self._tool_names.add(name)
        return name

    def _begin(
        self, event: Event, key: str, name: str, turn: str, about: dict[str, Any],
        kind: SpanKind = SpanKind.INTERNAL,
    ) -> None:  # fmt: skip
        self._below_turn(event.session, event.at, key, name, turn, about, kind)

    def _below_turn(
        self, session: str, at: int, key: str, name: str, turn: str, about: dict[str, Any],
        kind: SpanKind = SpanKind.INTERNAL,
    ) -> None:  # fmt: skip
        """Begin a span below a turn's newest step, or below the turn."""
        above = self._open.get((session, f"step {turn}")) or self._open.get((session, turn))
        if above is None and turn:  # it began before we listened
            above = self._turn(session, at, turn, {"dragoman.resumed": True})
        context = set_span_in_context(above[0]) if above else None
        if self._add(session, at, key, name, context, about, kind) and above:
            self._below.setdefault((session, turn), {})[key] = None

    def _add(
        self, session: str, at: int, key: str, name: str, context: Context | None,
        about: dict[str, Any], kind: SpanKind = SpanKind.INTERNAL,
    ) -> bool:  # fmt: skip
        if len(self._open) >= _MOST or (session, key) in self._open:
            return False
        span = self._tracer.start_span(name, context, kind, about, start_time=at * _NANO)
        self._open[(session, key)] = (span, at)  # also one that is sampled out: figures have it
        return True

    def _end(
        self, event: Event, key: str, problem: str, about: dict[str, Any], name: str = ""
    ) -> float | None:
        found = self._open.pop((event.session, key), None)
        if found is None:
            return None  # it began before we listened
        span, began = found
        span.set_attributes(about)
        if name:
            span.update_name(name)
        if problem:
            # What an error says may quote anything that was said.
            said = scrub(problem)[:200] if self._contents else None
            span.set_status(Status(StatusCode.ERROR, said))
        ended = max(event.at, began)  # the clock may have been set back
        span.end(end_time=ended * _NANO)
        return (ended - began) / 1_000


class _Ids(RandomIdGenerator):
    """Random ids, but for a turn's own."""

    def __init__(self) -> None:
        self.chosen: list[int] = []  # trace and span

    def generate_trace_id(self) -> int:
        return self.chosen[0] if self.chosen else super().generate_trace_id()

    def generate_span_id(self) -> int:
        return self.chosen[1] if self.chosen else super().generate_span_id()


def _ids_of(session: str, turn: str) -> tuple[int, int]:
    """The ids of a turn's trace and of its root: whoever goes on with it makes the same."""
    made = hashlib.sha256(f"{session}\n{turn}".encode()).digest()
    return int.from_bytes(made[:16], "big"), int.from_bytes(made[16:24], "big")


_TAKES: dict[type, Any] = {
    events.Opened: Telemetry._opened,
    events.TurnBegan: Telemetry._turn_began,
    events.StepBegan: Telemetry._step_began,
    events.TextDelta: Telemetry._chunk,
    events.ThoughtDelta: Telemetry._chunk,
    events.CallDrafted: Telemetry._chunk,
    events.Spoke: Telemetry._spoke,
    events.Compacted: Telemetry._compacted,
    events.CallStarted: Telemetry._call_started,
    events.CallEnded: Telemetry._call_ended,
    events.Asked: Telemetry._asked,
    events.Settled: Telemetry._settled,
    events.TurnEnded: Telemetry._turn_ended,
}


def _ended(ends: Sequence[Callable[[], None]]) -> bool:
    """Whether all of them came to an end in time; the SDK would try for half a minute each."""
    threads = [threading.Thread(target=end, daemon=True) for end in ends]
    for thread in threads:
        thread.start()
    until = time.monotonic() + _FAREWELL_SECONDS
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    return not any(thread.is_alive() for thread in threads)
