"""Traces and figures: spans of a real turn, and what a real collector is sent."""

import asyncio
import http.server
import json
import os
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind
from tests.cli.living import Living
from tests.daemon.running import Daemon
from tests.engine.tape import Tape
from tests.host.test_tasks import begin
from tests.timed import promised

from dragoman.client import connect
from dragoman.daemon.exporting import in_this_process_alone, providers
from dragoman.daemon.telemetry import Telemetry
from dragoman.daemon.tracing import Tracing
from dragoman.engine import events
from dragoman.engine.content import Text
from dragoman.engine.events import Who
from dragoman.engine.opening import OpenSpec
from dragoman.observe.extras import adding
from dragoman.settings.host import Telemetry as Settings
from dragoman.store.memory import MemoryStore
from dragoman.testing.host import EchoTool, memory_door
from dragoman.testing.script import Scripted, call, fail


class Kept:
    def __init__(self) -> None:
        self.spans = InMemorySpanExporter()
        self.reader = InMemoryMetricReader()
        # Else every child of this process looked about in threads before it became its command.
        with in_this_process_alone():
            traces = TracerProvider()
            traces.add_span_processor(SimpleSpanProcessor(self.spans))
            self.telemetry = Telemetry(traces, MeterProvider([self.reader]))


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="counts /proc")
def test_a_child_on_its_way_to_a_command_has_no_thread_of_the_sdk() -> None:
    """With one, an ordinary user's command could have no sandbox, and was refused."""
    traces, figures = providers("http://127.0.0.1:9")

    def count() -> None:
        os.write(1, str(len(os.listdir("/proc/self/task"))).encode())

    done = subprocess.run(["true"], preexec_fn=count, stdout=subprocess.PIPE, timeout=60)
    assert done.stdout == b"1"
    register = os.register_at_fork
    assert register.__module__ == "posix"  # given back
    for one in (traces, figures):
        one.shutdown()


async def test_a_turn_is_one_trace_of_calls_tools_and_waits() -> None:
    kept = Kept()
    door = memory_door(Scripted([call("echo", text="hidden words"), "done"]), [EchoTool()])
    await kept.telemetry.attach(door)
    session = await door.open(OpenSpec(cwd="/", mode="full"))
    await door.prompt(session.id, "my secret words", Who("test"))
    await door.idle(session.id)
    finished = kept.spans.get_finished_spans()
    spans: dict[str, Any] = {span.name.split()[0]: span for span in reversed(finished)}
    root = spans["invoke_agent"]
    steps = {span.context.span_id: span.name for span in finished if span.name.startswith("step ")}
    assert sorted(steps.values()) == ["step 1", "step 2"]
    above = {span.name: steps.get(span.parent.span_id, "") for span in finished if span.parent}
    assert above["execute_tool echo"] == "step 1"
    for span in finished:
        if span.context.span_id in steps:
            assert span.parent.span_id == root.context.span_id
        elif span is not root:
            assert span.parent.span_id in steps
        assert span.start_time and span.end_time and span.end_time >= span.start_time
        assert (span.kind is SpanKind.CLIENT) is span.name.startswith("chat")
        assert span.attributes is not None
        assert span.attributes["gen_ai.conversation.id"] == session.id
        operation = None if span.name.startswith("step ") else span.name.split()[0]
        assert span.attributes.get("gen_ai.operation.name") == operation
    assert not kept.telemetry.held
    assert root.attributes["gen_ai.conversation.id"] == session.id
    assert spans["execute_tool"].attributes["gen_ai.tool.name"] == "echo"
    said = json.dumps([json.loads(span.to_json()) for span in spans.values()])
    assert "secret words" not in said and "hidden words" not in said
    data = json.loads(kept.reader.get_metrics_data().to_json())
    names = {one["name"] for one in data["resource_metrics"][0]["scope_metrics"][0]["metrics"]}
    assert {"gen_ai.client.token.usage", "gen_ai.client.operation.duration"} <= names
    await kept.telemetry.close()
    assert not kept.telemetry.held


async def test_what_a_turn_left_open_ends_with_it() -> None:
    """A call that never came to an end, a question that nobody answered: no span stays behind."""
    kept = Kept()
    door = memory_door(Scripted([call("echo", text="x"), "done"]), [EchoTool()])
    await kept.telemetry.attach(door)
    session = await door.open(OpenSpec(cwd="/", mode="supervised"))
    me = Who("test")
    tape = Tape()
    await door.watch(session.id, me, tape, lambda said: None)
    await door.prompt(session.id, "go", me)
    await tape.until(events.Asked)
    door.cancel(session.id, me)
    await door.idle(session.id)
    names = [span.name for span in kept.spans.get_finished_spans()]
    assert names[-1].startswith("invoke_agent") and "approval" in names and "step 1" in names
    assert not kept.telemetry.held


async def test_a_call_of_a_model_that_fails_has_its_kind_of_error() -> None:
    kept = Kept()
    door = memory_door(Scripted([fail("no")]))
    await kept.telemetry.attach(door)
    session = await door.open(OpenSpec(cwd="/", mode="full"))
    await door.prompt(session.id, "go", Who("test"))
    await door.idle(session.id)
    spans = {span.name.split()[0]: span for span in kept.spans.get_finished_spans()}
    assert (spans["invoke_agent"].attributes or {})["error.type"] == "no"
    assert not spans["chat"].status.is_ok
    assert not kept.telemetry.held


class Collector(http.server.BaseHTTPRequestHandler):
    got: list[tuple[str, bytes]] = []
    came = threading.Event()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            import gzip

            body = gzip.decompress(body)
        self.got.append((self.path, body))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def collector() -> Iterator[http.server.HTTPServer]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    Collector.got = []
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


async def test_a_daemon_sends_them_to_a_collector(
    collector: http.server.HTTPServer, tmp_path: Path
) -> None:
    living = Living(tmp_path)
    living.env["DRAGOMAN_telemetry__enabled"] = "true"
    living.env["DRAGOMAN_telemetry__endpoint"] = f"http://127.0.0.1:{collector.server_port}"
    living.start()
    async with connect(living.socket) as host:
        session = await host.open(cwd=str(living.work), mode="full")
        async for _ in host.prompt(session.id, "run echo hello"):
            pass
    living.stop()
    paths = {path for path, _ in Collector.got}
    assert paths == {"/v1/traces", "/v1/metrics"}
    spans = set()
    for path, body in Collector.got:
        if path == "/v1/traces":
            for one in ExportTraceServiceRequest.FromString(body).resource_spans:
                spans |= {span.name for scope in one.scope_spans for span in scope.spans}
        else:
            assert ExportMetricsServiceRequest.FromString(body).resource_metrics
    assert {"invoke_agent default", "execute_tool bash"} <= spans, spans
    assert b"echo hello" not in b"".join(body for _, body in Collector.got)


def _turn_ids() -> set[bytes]:
    """The traces that a collector got."""
    found = set()
    for path, body in Collector.got:
        if path == "/v1/traces":
            for one in ExportTraceServiceRequest.FromString(body).resource_spans:
                found |= {span.trace_id for scope in one.scope_spans for span in scope.spans}
    return found


async def test_a_running_daemon_follows_the_settings_of_telemetry(
    collector: http.server.HTTPServer, tmp_path: Path
) -> None:
    living = Living(tmp_path)
    living.start()
    async with connect(living.socket) as host:
        session = await host.open(cwd=str(living.work), mode="full")

        async def turn() -> None:
            async for _ in host.prompt(session.id, "run echo hello"):
                pass

        await turn()  # nobody asked for it
        address = f"http://127.0.0.1:{collector.server_port}"
        living.says("config", "set", "telemetry.endpoint", address)
        living.says("config", "set", "telemetry.enabled", "true")
        await _said(living, "telemetry begins")
        await turn()
        living.says("config", "set", "telemetry.contents", "true")
        await _said(living, "contents=True")
        await _said(living, "telemetry ended")
        assert len(_turn_ids()) == 1  # the end of the old one has sent it
        assert b"echo hello" not in b"".join(body for _, body in Collector.got)
        await turn()
        living.says("config", "set", "telemetry.enabled", "false")
        await _said(living, "telemetry ended", 2)
        sent = len(Collector.got)
        await turn()
    living.stop()
    assert len(_turn_ids()) == 2 and len(Collector.got) == sent
    assert b"echo hello" in b"".join(body for _, body in Collector.got)


async def test_a_package_that_is_missing_is_told_when_it_is_switched_on(tmp_path: Path) -> None:
    living = Living(tmp_path)
    (tmp_path / "opentelemetry.py").write_text("")  # in the place of the real one
    living.env["PYTHONPATH"] = str(tmp_path)
    living.start()
    living.says("config", "set", "telemetry.enabled", "true")
    await _said(living, "Telemetry needs a package that is not installed.")
    living.stop()


async def _said(living: Living, text: str, times: int = 1) -> None:
    log = living.config / "data" / "daemon.log"
    async with asyncio.timeout(60):
        while log.read_text().count(text) < times:  # noqa: ASYNC110 (another process writes it)
            await asyncio.sleep(0.05)


async def test_of_changes_that_come_at_once_the_last_one_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun, ended = [], []
    began, hold = asyncio.Event(), asyncio.Event()

    class Slow:
        def __init__(self, given: Settings) -> None:
            self.given = given

        @classmethod
        async def begin(cls, door: Any, given: Settings) -> "Slow":
            begun.append(given.endpoint)
            began.set()
            await hold.wait()
            return cls(given)

        async def close(self) -> None:
            ended.append(self.given.endpoint)

    monkeypatch.setattr("dragoman.daemon.telemetry.Telemetry", Slow)
    tracing = Tracing(memory_door(Scripted([])))
    given = [Settings(enabled=True, endpoint=name) for name in ("a", "b", "c", "d")]
    follows = [asyncio.ensure_future(tracing.follow(one)) for one in given]
    await began.wait()
    hold.set()
    await asyncio.gather(*follows)
    assert begun == ["a", "d"] or begun == ["d"]
    await tracing.follow(given[-1])  # nothing changed
    await tracing.follow(Settings(endpoint="d"))
    assert ended == begun
    await tracing.close()
    assert ended == begun


def test_without_its_package_the_daemon_starts_all_the_same_and_says_so(tmp_path: Path) -> None:
    living = Living(tmp_path)
    living.env["DRAGOMAN_telemetry__enabled"] = "true"
    (tmp_path / "opentelemetry.py").write_text("")  # in the place of the real one
    living.env["PYTHONPATH"] = str(tmp_path)
    living.start()
    said = living.run("doctor").stdout
    living.stop()
    assert "ERROR  telemetry      opentelemetry is not installed" in said
    assert f"→ Install it: {adding('telemetry')}" in said
    log = (living.config / "data" / "daemon.log").read_text()
    assert "Telemetry needs a package that is not installed." in log


WRONG = {
    "OTEL_METRIC_EXPORT_INTERVAL": "-1",
    "OTEL_PYTHON_EXPORTER_OTLP_HTTP_CREDENTIAL_PROVIDER": "nobody",
}


@pytest.mark.parametrize("name", WRONG)
def test_what_the_sdk_cannot_take_does_not_keep_the_daemon_from_starting(
    tmp_path: Path, name: str
) -> None:
    config = '[telemetry]\nenabled = true\nendpoint = "http://127.0.0.1:9"\n'
    with Daemon(tmp_path, config=config, env={name: WRONG[name]}).wait_ready() as daemon:
        assert daemon.stop() == 0
    assert b"Telemetry could not begin" in daemon.said and b"Traceback" not in daemon.said


def test_what_cannot_begin_leaves_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "-1")
    before = set(threading.enumerate())
    with pytest.raises(ValueError, match="interval"):
        providers("http://127.0.0.1:9")
    assert set(threading.enumerate()) == before


@promised(6)
async def test_a_collector_that_is_away_does_not_hold_up_the_end(
    tmp_path: Path, within: float
) -> None:
    living = Living(tmp_path)
    living.env["DRAGOMAN_telemetry__enabled"] = "true"
    living.env["DRAGOMAN_telemetry__endpoint"] = "http://127.0.0.1:9"
    living.start()
    async with connect(living.socket) as host:
        session = await host.open(cwd=str(living.work))
        async for _ in host.prompt(session.id, "what is dragoman"):
            pass
    begun = time.monotonic()
    living.stop()
    assert time.monotonic() - begun < within
    log = (living.config / "data" / "daemon.log").read_text()
    assert "the collector did not take what was left" in log
    assert "Connection refused" in log  # what the SDK said of it


def _figures(kept: Kept) -> dict[str, int]:
    data = kept.reader.get_metrics_data()
    if data is None:
        return {}
    scopes = json.loads(data.to_json())["resource_metrics"][0]["scope_metrics"]
    return {
        one["name"]: sum(point.get("count", 1) for point in one["data"]["data_points"])
        for scope in scopes
        for one in scope["metrics"]
    }


async def test_what_an_earlier_process_did_is_not_told_again(tmp_path: Path) -> None:
    """Neither as traces nor in figures, whichever of its sessions is opened."""
    store = MemoryStore()
    door = memory_door(Scripted(["one"]), store=store, mode="full")
    session = await door.open(OpenSpec(cwd=str(tmp_path)))
    await door.prompt(session.id, (Text("go"),), Who("test"))
    await door.idle(session.id)
    kept = Kept()
    later = memory_door(Scripted(["two"]), store=store, mode="full")
    await kept.telemetry.attach(later)
    await later.load(session.id)
    await later.prompt(session.id, (Text("on"),), Who("test"))
    await later.idle(session.id)
    names = [span.name for span in kept.spans.get_finished_spans()]
    assert sum(name.startswith("invoke_agent") for name in names) == 1 and len(names) == 3, names
    assert _figures(kept)["gen_ai.client.token.usage"] == 2
    await kept.telemetry.close()


async def test_a_turn_that_goes_on_elsewhere_stays_one_trace(tmp_path: Path) -> None:
    """The next process has the question that waits, and what follows, in the same trace."""
    store = MemoryStore()
    first, second = Kept(), Kept()
    door = memory_door(Scripted([call("echo", text="x")]), [EchoTool()], store=store)
    await first.telemetry.attach(door)
    session = await door.open(OpenSpec(cwd=str(tmp_path), mode="supervised"))
    tape = Tape()
    await door.watch(session.id, Who("test"), tape, lambda said: None)
    await door.prompt(session.id, (Text("go"),), Who("test"))
    await tape.until(events.Asked)
    await first.telemetry.close()
    await second.telemetry.attach(memory_door(Scripted([]), store=store))
    await second.telemetry.close()
    ended = first.spans.get_finished_spans()
    (root,) = [one for one in ended if one.name.startswith("invoke_agent")]
    rest = {one.name: one for one in second.spans.get_finished_spans()}
    assert set(rest) == {"invoke_agent", "approval"}
    resumed = rest["invoke_agent"]
    assert resumed.parent is not None and resumed.parent.span_id == root.context.span_id
    assert {one.context.trace_id for one in rest.values()} == {root.context.trace_id}
    assert resumed.attributes is not None and resumed.attributes["dragoman.resumed"] is True
    door.cancel(session.id, Who("test"))
    await door.idle(session.id)


async def test_a_sub_agent_is_below_the_call_that_started_it(tmp_path: Path) -> None:
    kept = Kept()
    door, parent = await begin(Scripted([call("task", prompt="look"), "found", "done"]), tmp_path)
    await kept.telemetry.attach(door)
    await (await door.prompt(parent, (Text("go"),), Who("test"))).done
    spans = kept.spans.get_finished_spans()
    (task,) = [one for one in spans if one.name == "execute_tool task"]
    below = [one for one in spans if one.parent and one.parent.span_id == task.context.span_id]
    assert [one.name for one in below] == ["invoke_agent default"]
    assert len({one.context.trace_id for one in spans}) == 1
    assert not kept.telemetry.held
    await kept.telemetry.close()


async def test_names_that_agents_make_up_are_not_told_apart() -> None:
    kept = Kept()
    assert kept.telemetry._tool("mcp__tracker.find") == "mcp__tracker.find"
    assert kept.telemetry._tool("Read /home/me/secret plans.txt") == "other"
    assert kept.telemetry._tool("/home/me/plans.txt") == "other"
    assert kept.telemetry._tool("read:home/me/plans.txt") == "other"
    for number in range(600):
        kept.telemetry._tool(f"tool_{number}")
    assert kept.telemetry._tool("one_more") == "other"
    await kept.telemetry.close()
