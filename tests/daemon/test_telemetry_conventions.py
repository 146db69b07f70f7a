"""Telemetry in the words of the conventions, and without a word of what was said."""

import http.server
import json
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
from opentelemetry.semconv._incubating.metrics import gen_ai_metrics
from tests.cli.living import Living
from tests.daemon.test_telemetry import Collector, Kept
from tests.daemon.test_telemetry import collector as collector

from dragoman.client import connect
from dragoman.daemon.conventions import FINISHES, PROVIDERS, error_type, model_of
from dragoman.engine.content import Usage
from dragoman.engine.events import Stop, Who
from dragoman.engine.opening import OpenSpec
from dragoman.providers.presets import ALIASES, LONGTAIL, PRESETS
from dragoman.testing.host import EchoTool, memory_door
from dragoman.testing.script import Scripted, call, fail, say, think, turn

# In the registry of today, which moved to a repository of its own; the package is older.
NEWER = {
    "gen_ai.invoke_agent.duration": "a figure of the agents' chapter",
    "gen_ai.execute_tool.duration": "a figure of the tools' chapter",
}
NEWER_PROVIDERS = {"moonshot_ai"}


def _registered(module: Any) -> set[str]:
    return {value for value in vars(module).values() if isinstance(value, str)}


KNOWN = _registered(gen_ai_attributes) | _registered(gen_ai_metrics) | set(NEWER)


async def _run(kept: Kept, script: list[Any], prompt: str = "go") -> None:
    door = memory_door(Scripted(script), [EchoTool()])
    await kept.telemetry.attach(door)
    session = await door.open(OpenSpec(cwd="/", mode="full"))
    await door.prompt(session.id, prompt, Who("test"))
    await door.idle(session.id)


def _points(kept: Kept) -> dict[str, list[Any]]:
    data = kept.reader.get_metrics_data()
    assert data is not None
    scopes = json.loads(data.to_json())["resource_metrics"][0]["scope_metrics"]
    return {one["name"]: one["data"]["data_points"] for scope in scopes for one in scope["metrics"]}


def test_providers_have_their_well_known_names() -> None:
    known = {one.value for one in gen_ai_attributes.GenAiProviderNameValues} | NEWER_PROVIDERS
    assert set(PROVIDERS.values()) <= known
    assert set(PROVIDERS) <= {*PRESETS, *ALIASES, *LONGTAIL}
    for alias, name in ALIASES.items():
        assert PROVIDERS.get(alias, alias) == PROVIDERS.get(name, name)
    # Those that the conventions do not know keep our name.
    custom = {PROVIDERS.get(name, name) for name in (*PRESETS, *LONGTAIL)} - known
    assert custom == {
        "openrouter", "together", "fireworks", "ollama", "vllm", "llamacpp", "local", "demo",
        "scripted", "cerebras", "huggingface",
    }  # fmt: skip


def test_models_that_are_files_do_not_say_where_they_lie() -> None:
    assert model_of("local//home/jane/weights/tiny.gguf")["gen_ai.request.model"] == "tiny.gguf"
    for path in ("/home/jane/x.gguf", "~/w/x.gguf", "./w/x.gguf", "w/x.gguf", "C:\\w\\x.gguf"):
        assert model_of(f"mine/{path}")["gen_ai.request.model"] == "x.gguf"  # of the kind `local`
    assert model_of("openrouter/openai/gpt-5")["gen_ai.request.model"] == "openai/gpt-5"
    assert model_of("xai@work/grok-4")["gen_ai.provider.name"] == "x_ai"
    assert model_of("") == {}


def test_reasons_and_errors_are_words() -> None:
    assert set(FINISHES) == set(Stop.__args__)  # type: ignore[attr-defined]
    assert {"stop", "length", "content_filter", "tool_call", "error"} < set(FINISHES.values())
    assert error_type("rate_limit") == "rate_limit"
    assert error_type("no such key: sk-123") == error_type("") == "_OTHER"


async def test_a_call_says_what_it_used_and_when_its_first_word_came() -> None:
    kept = Kept()
    used = Usage(input=10, output=7, cache_read=100, cache_write=20, reasoning=3)
    await _run(kept, [turn(think("hm"), say("yes"), usage=used)])
    spans = {span.name.split()[0]: span for span in kept.spans.get_finished_spans()}
    about: Any = spans["chat"].attributes
    assert about["gen_ai.usage.input_tokens"] == 130
    assert about["gen_ai.usage.cache_read.input_tokens"] == 100
    assert about["gen_ai.usage.cache_creation.input_tokens"] == 20
    assert about["gen_ai.usage.reasoning.output_tokens"] == 3
    assert about["gen_ai.request.stream"] is True
    assert about["gen_ai.response.time_to_first_chunk"] >= 0
    assert about["gen_ai.response.finish_reasons"] == ("stop",)
    root: Any = spans["invoke_agent"].attributes
    assert spans["invoke_agent"].name == f"invoke_agent {root['gen_ai.agent.name']}"
    assert root["gen_ai.request.model"] == about["gen_ai.request.model"]
    assert root["gen_ai.provider.name"] == "scripted"
    points = _points(kept)
    (first,) = points["gen_ai.client.operation.time_to_first_chunk"]
    assert first["count"] == 1
    assert not kept.telemetry.held
    await kept.telemetry.close()


async def test_buckets_fit_what_is_counted() -> None:
    kept = Kept()
    await _run(kept, [call("echo", text="x"), "done"])
    points = _points(kept)
    (calls, tokens, turns, tools) = (
        points[name][0]["explicit_bounds"]
        for name in (
            "gen_ai.client.operation.duration",
            "gen_ai.client.token.usage",
            "gen_ai.invoke_agent.duration",
            "gen_ai.execute_tool.duration",
        )
    )
    assert (
        calls
        == tools
        == pytest.approx(
            [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92]
        )
    )
    assert tokens[:3] == [1, 4, 16] and tokens[-1] == 67_108_864
    assert turns[0] == pytest.approx(0.1) and turns[-1] == pytest.approx(409.6)
    (tool,) = points["gen_ai.execute_tool.duration"]
    assert tool["attributes"]["gen_ai.tool.type"] == "function"
    await kept.telemetry.close()


PLANTED = "xyzzy"


@pytest.mark.parametrize("script", [
    pytest.param([call("echo", text=f"{PLANTED} args"), f"{PLANTED} answer"], id="said"),
    pytest.param([fail("auth", f"your prompt {PLANTED} was refused")], id="failed"),
    pytest.param([turn(say(PLANTED), fail("server", PLANTED))], id="cut"),
    pytest.param([call(f"read /home/{PLANTED}", path=PLANTED), "done"], id="tool"),
    pytest.param([fail(f"{PLANTED} as a kind", PLANTED)], id="kind"),
])  # fmt: skip
async def test_nothing_that_was_said_leaves(script: list[Any]) -> None:
    kept = Kept()
    await _run(kept, script, f"{PLANTED} prompt")
    spans = kept.spans.get_finished_spans()
    assert spans
    said = json.dumps([json.loads(span.to_json()) for span in spans])
    assert PLANTED not in said and PLANTED not in json.dumps(_points(kept))
    names = {name for span in spans for name in span.attributes or {}}
    names |= set(_points(kept))
    assert {name for name in names if name.startswith("gen_ai.")} <= KNOWN
    await kept.telemetry.close()


async def test_an_error_has_its_sort_in_all_that_it_broke() -> None:
    kept = Kept()
    await _run(kept, [fail("auth", "no key")])
    spans = {span.name.split()[0]: span for span in kept.spans.get_finished_spans()}
    for name in ("chat", "invoke_agent"):
        assert (spans[name].attributes or {})["error.type"] == "auth"
        assert not spans[name].status.is_ok and spans[name].status.description is None
    for name in ("gen_ai.client.operation.duration", "gen_ai.invoke_agent.duration"):
        assert _points(kept)[name][0]["attributes"]["error.type"] == "auth"
    await kept.telemetry.close()


async def _daemon(tmp_path: Path, port: int, **env: str) -> None:
    living = Living(tmp_path)
    living.env["DRAGOMAN_telemetry__enabled"] = "true"
    living.env["DRAGOMAN_telemetry__endpoint"] = f"http://127.0.0.1:{port}"
    living.env.update(env)
    living.start()
    async with connect(living.socket) as host:
        session = await host.open(cwd=str(living.work), mode="full")
        async for _ in host.prompt(session.id, "run echo hello"):
            pass
    living.stop()


async def test_a_collector_gets_registered_names_and_the_given_service(
    collector: http.server.HTTPServer, tmp_path: Path
) -> None:
    more = {"OTEL_SERVICE_NAME": "mine", "OTEL_RESOURCE_ATTRIBUTES": "team=blue"}
    await _daemon(tmp_path, collector.server_port, **more)
    names, about = set(), {}
    for path, body in Collector.got:
        if path == "/v1/traces":
            for one in ExportTraceServiceRequest.FromString(body).resource_spans:
                about = {pair.key: pair.value.string_value for pair in one.resource.attributes}
                for scope in one.scope_spans:
                    names |= {pair.key for span in scope.spans for pair in span.attributes}
        else:
            for got in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                for each in got.scope_metrics:
                    names |= {metric.name for metric in each.metrics}
                    for metric in each.metrics:
                        for point in metric.histogram.data_points:
                            names |= {pair.key for pair in point.attributes}
    ours = {name for name in names if name.startswith("gen_ai.")}
    assert ours <= KNOWN and len(ours) > 15, ours - KNOWN
    assert about["service.name"] == "mine" and about["team"] == "blue"


@pytest.mark.parametrize(("env", "paths"), [
    ({"OTEL_TRACES_SAMPLER": "always_off"}, {"/v1/metrics"}),
    ({"OTEL_SDK_DISABLED": "true"}, set()),
    ({"OTEL_EXPORTER_OTLP_TIMEOUT": "soon"}, {"/v1/traces", "/v1/metrics"}),
    ({"OTEL_EXPORTER_OTLP_HEADERS": "x-team=blue"}, {"/v1/traces", "/v1/metrics"}),
])  # fmt: skip
async def test_variables_of_the_sdk_count_and_break_nothing(
    collector: http.server.HTTPServer, tmp_path: Path, env: dict[str, str], paths: set[str]
) -> None:
    await _daemon(tmp_path, collector.server_port, **env)
    assert {path for path, _ in Collector.got} == paths
