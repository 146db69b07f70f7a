"""Traces and figures for OpenTelemetry, made from the events that every client could see.

One trace per turn: the turn, its steps, and below each step its model call, its tools and its waits
for a human. Names follow the conventions for generative models as far as they have one. Prompts,
answers and results never leave.
"""

import asyncio
import contextlib
import hashlib
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from opentelemetry.context import Context
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Span, TracerProvider
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.trace import (
    NonRecordingSpan,
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
from dragoman.engine.events import Event, Who
from dragoman.observe.log import capture, get_log
from dragoman.observe.redact import scrub

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
_TOOL = re.compile(r"[\w.:/@-]{1,80}")
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
        self._duration = meter.create_histogram(
            "gen_ai.client.operation.duration", "s", "How long a model call took"
        )
        self._tokens = meter.create_histogram(
            "gen_ai.client.token.usage", "{token}", "Tokens read and written by model calls"
        )
        self._tools = meter.create_histogram("dragoman.tool.duration", "s", "How long a tool ran")
        self._waits = meter.create_histogram(
            "dragoman.approval.wait", "s", "How long a question waited for its answer"
        )
        self._cost = meter.create_counter("dragoman.cost", "USD", "Spent on models")
        self._ids = _Ids()
        self._tracer.id_generator = self._ids  # type: ignore[attr-defined]
        self._tool_names: set[str] = set()
        self._parents: dict[str, str] = {}  # of sub-agents' sessions
        self._open: dict[tuple[str, str], tuple[Span, int]] = {}
        self._below: dict[tuple[str, str], dict[str, None]] = {}  # what is open below a turn
        self._watch: Watch | None = None

    @classmethod
    async def begin(cls, door: "Door", settings: "Settings") -> "Telemetry":
        """Send to the configured collector."""
        made = cls(*_providers(settings.endpoint), contents=settings.contents)
        capture()  # what the SDK says of a collector that is away
        await made.attach(door)
        return made

    async def attach(self, door: "Door") -> None:
        """Hear of every session from now on, and of questions that waited already."""
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
        if not await asyncio.to_thread(_ended, (self._traces.shutdown, self._figures.shutdown)):
            log.warning("the collector did not take what was left", seconds=_FAREWELL_SECONDS)

    def speak(self, told: Sequence[Event]) -> None:
        for event in told:
            take = _TAKES.get(type(event.body))
            if take is not None:
                take(self, event, event.body)
        return None

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
        self._add(session, at, turn, "invoke_agent", context, {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.conversation.id": session,
            "dragoman.turn": turn,
            **about,
        })  # fmt: skip
        self._ids.chosen = []
        return self._open.get((session, turn))

    def _step_began(self, event: Event, body: events.StepBegan) -> None:
        self._end(event, f"step {body.turn}", "", {})  # the one before
        shared = {"gen_ai.conversation.id": event.session, "dragoman.step": body.step}
        self._begin(event, f"step {body.turn}", f"step {body.step}", body.turn, shared)
        self._begin(event, f"chat {body.turn}", "chat", body.turn, {
            "gen_ai.operation.name": "chat", **shared,
        }, SpanKind.CLIENT)  # fmt: skip

    def _spoke(self, event: Event, body: events.Spoke) -> None:
        provider, _, model = body.model.partition("/")
        provider = provider.partition("@")[0]
        shared = {"gen_ai.request.model": model or body.model, "gen_ai.provider.name": provider}
        used = body.usage
        taken = used.input + used.cache_read + used.cache_write
        failed = {"error.type": str(body.stop)} if body.error else {}
        seconds = self._end(event, f"chat {body.turn}", body.error, {
            **shared,
            "gen_ai.usage.input_tokens": taken,
            "gen_ai.usage.output_tokens": used.output,
            "gen_ai.response.finish_reasons": (str(body.stop),),
            "dragoman.cost_usd": body.cost,
            **failed,
        }, name=f"chat {model or body.model}")  # fmt: skip
        if seconds is not None:
            self._duration.record(seconds, {"gen_ai.operation.name": "chat", **shared, **failed})
        shared["gen_ai.operation.name"] = "chat"
        self._tokens.record(taken, {"gen_ai.token.type": "input", **shared})
        self._tokens.record(used.output, {"gen_ai.token.type": "output", **shared})
        if body.cost > 0:
            self._cost.add(body.cost, shared)

    def _call_started(self, event: Event, body: events.CallStarted) -> None:
        name = self._tool(body.name)
        about: dict[str, Any] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": name,
            "gen_ai.tool.call.id": body.call_id,
        }
        if self._contents:
            for arg in ("command", "path", "url", "pattern"):
                if isinstance(value := (body.args or {}).get(arg), str):
                    about[f"dragoman.tool.{arg}"] = value[:1_000]
        key = f"call {body.call_id}"
        self._begin(event, key, f"execute_tool {name}", body.turn, about)

    def _call_ended(self, event: Event, body: events.CallEnded) -> None:
        problem = str(body.outcome) if body.is_error else ""
        about = {"dragoman.outcome": str(body.outcome)}
        if body.is_error:
            about["error.type"] = str(body.outcome)
        seconds = self._end(event, f"call {body.call_id}", problem, about)
        if seconds is not None:
            self._tools.record(seconds, {"gen_ai.tool.name": self._tool(body.name), **about})

    def _asked(self, event: Event, body: events.Asked) -> None:
        self._question(event.session, event.at, body.ask)

    def _question(self, session: str, at: int, ask: Ask) -> None:
        about = {"dragoman.approval": ask.id, "gen_ai.tool.name": self._tool(ask.tool)}
        self._below_turn(session, at, f"ask {ask.id}", "approval", ask.turn, about)

    def _settled(self, event: Event, body: events.Settled) -> None:
        about = {"dragoman.verdict": str(body.verdict)}
        if body.by is not None:
            about["dragoman.client"] = body.by.dialect
        seconds = self._end(event, f"ask {body.ask_id}", "", about)
        if seconds is not None:
            self._waits.record(seconds, about)

    def _turn_ended(self, event: Event, body: events.TurnEnded) -> None:
        problem = body.error if body.outcome == "failed" else ""
        for key in reversed(self._below.pop((event.session, body.turn), {})):
            self._end(event, key, problem if key.startswith("chat ") else "", {})
        about = {"dragoman.outcome": str(body.outcome)}
        if body.outcome == "failed":
            about["error.type"] = str(body.outcome)
        self._end(event, body.turn, problem, about)
        self._parents.pop(event.session, None)

    def _tool(self, name: str) -> str:
        """A tool's name as figures may have it: one of not too many, and no sentence."""
        if name not in self._tool_names:
            if len(self._tool_names) >= _MOST_TOOLS or not _TOOL.fullmatch(name):
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
        if isinstance(span, Span):  # not when sampled out
            self._open[(session, key)] = (span, at)
        return isinstance(span, Span)

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
            span.set_status(Status(StatusCode.ERROR, scrub(problem)[:200]))
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
    events.Spoke: Telemetry._spoke,
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


def _providers(endpoint: str) -> tuple[TracerProvider, MeterProvider]:
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    base = endpoint.rstrip("/")
    spans = OTLPSpanExporter(endpoint=f"{base}/v1/traces") if base else OTLPSpanExporter()
    figures = OTLPMetricExporter(endpoint=f"{base}/v1/metrics") if base else OTLPMetricExporter()
    resource = Resource.create({"service.name": "dragoman", "service.version": __version__})
    with _in_this_process_alone():
        traces = TracerProvider(resource=resource, shutdown_on_exit=False)
        traces.add_span_processor(BatchSpanProcessor(spans))
        readers = [PeriodicExportingMetricReader(figures)]
        return traces, MeterProvider(readers, resource=resource, shutdown_on_exit=False)


@contextlib.contextmanager
def _in_this_process_alone() -> Iterator[None]:
    """Let nothing that is made here ask to be begun anew in forked children.

    The SDK starts its threads again in each of them, and looks for its resources in others. Ours
    are about to become commands, and the kernel gives no user namespace, so no sandbox, to a
    process that has a second thread.
    """
    ask = getattr(os, "register_at_fork", None)
    if ask is None:  # nothing forks here
        yield
        return
    os.register_at_fork = lambda **_: None
    try:
        yield
    finally:
        os.register_at_fork = ask
