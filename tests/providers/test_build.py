"""Providers put together, and answers read: `build`, `reading`, `local_child`."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dragoman.engine.faults import BadInput
from dragoman.engine.ports import ModelCallArgs, ModelCallEnded, ModelInfo, ModelText, ModelThought
from dragoman.engine.ports import models as port_models
from dragoman.providers import local_child
from dragoman.providers.anthropic import Anthropic
from dragoman.providers.build import _base_url, _format, _pace, build, slot
from dragoman.providers.demo import Demo
from dragoman.providers.openai_chat import OpenAIChat
from dragoman.providers.openai_responses import OpenAIResponses
from dragoman.providers.presets import PRESETS, Preset
from dragoman.providers.reading import PartReader, Reading, Silent
from dragoman.providers.registry import ProviderConfig

THINKS = ModelInfo("openai", "gpt-5", reasoning=True)
PLAIN = ModelInfo("openai", "gpt-4o")

# --- build ---


def test_build_one_provider_per_api_or_per_model_where_each_is_its_own() -> None:
    openai, own = PRESETS["openai"], ProviderConfig(base_url="http://box:8080/v1")
    assert slot("openai", THINKS, openai, ProviderConfig()) == "openai\nresponses"
    assert slot("openai", PLAIN, openai, ProviderConfig()) == "openai"
    assert slot("openai", THINKS, openai, own) == "openai"  # another server is sure of chat only
    assert slot("scripted", PLAIN, Preset("scripted"), own) == "scripted\ngpt-4o"


@pytest.mark.parametrize(
    ("model", "preset", "config", "made"),
    [
        (THINKS, PRESETS["openai"], ProviderConfig(), OpenAIResponses),
        (THINKS, PRESETS["openai"], ProviderConfig(base_url="https://api.openai.com"),
         OpenAIResponses),
        (PLAIN, PRESETS["openai"], ProviderConfig(), OpenAIChat),
        (PLAIN, Preset("openai-responses"), ProviderConfig(), OpenAIResponses),
        (PLAIN, PRESETS["anthropic"], ProviderConfig(), Anthropic),
    ],
)  # fmt: skip
def test_build_chooses_the_format(
    model: ModelInfo, preset: Preset, config: ProviderConfig, made: type
) -> None:
    assert type(_format(model, preset, config)) is made


@pytest.mark.parametrize(
    ("kind", "given", "env", "url"),
    [
        ("openai-chat", "http://box:1/", {}, "http://box:1/v1"),
        ("openai-chat", "http://box:1/v2beta", {}, "http://box:1/v2beta"),
        ("openai-chat", "http://box/v1beta/openai/", {}, "http://box/v1beta/openai"),
        ("openai-chat", "", {}, "https://api.openai.com/v1"),
        ("anthropic", "https://x/v1/", {}, "https://x"),
        ("google", "https://x/v1beta", {}, "https://x"),
        ("ollama", "", {"OLLAMA_HOST": "box:99"}, "http://box:99/v1"),
        ("ollama", "http://own/v1", {"OLLAMA_HOST": "box:99"}, "http://own/v1"),
    ],
)
def test_build_writes_addresses_as_the_format_wants_them(
    kind: Any, given: str, env: dict[str, str], url: str
) -> None:
    assert _base_url(Preset(kind), ProviderConfig(base_url=given), env) == url


@pytest.mark.parametrize("url", ["box:8080", "ftp://x", "http:// x", "//x"])
def test_build_refuses_what_is_no_address(url: str) -> None:
    with pytest.raises(BadInput, match="is no http address"):
        _base_url(Preset("openai-chat"), ProviderConfig(base_url=url), {})


def test_build_the_demo_keeps_its_pace() -> None:
    made = build("demo", PLAIN, PRESETS["demo"], ProviderConfig(), "", {}, None)
    assert isinstance(made, Demo)
    assert [_pace(text) for text in ("", "0.5", "9", "-1")] == [0.0, 0.5, 1.0, 0.0]
    with pytest.raises(BadInput, match="DRAGOMAN_DEMO_PACE"):
        _pace("fast")


# --- engine.ports.models ---


def test_ports_models_cost_counts_unknown_prices_as_nothing() -> None:
    from dragoman.engine.content import Usage

    model = port_models.ModelInfo("p", "m", price_input=2.0, price_cache_read=1.0)
    assert model.cost(Usage(1_000_000, 9, 500_000, 9)) == 2.5
    assert port_models.ModelInfo("p", "m").cost(Usage(9, 9, 9, 9)) == 0.0
    assert model.ref == "p/m"


# --- reading ---


class Parts(PartReader):
    """Reads one JSON list of parts per event."""

    def take(self, data: bytes) -> list[Any]:
        if data == b"broken":
            raise ValueError("cannot be read")
        kinds = {"t": ModelText, "h": ModelThought}
        return [
            kinds[kind](text) if kind in kinds else ModelCallArgs(kind, text)
            for kind, text in json.loads(data)
        ]

    def end(self) -> list[Any]:
        self.finished = True
        return [ModelCallEnded("c")]


def event(*parts: tuple[str, str]) -> bytes:
    return b"data: " + json.dumps(parts).encode() + b"\n\n"


def test_reading_makes_as_few_parts_as_can_be() -> None:
    reading = Reading(Parts("p"), 60)
    reading.feed(event(("t", "a"), ("t", "b")) + event(("t", "c"), ("h", "d")))
    reading.feed(event(("h", "e"), ("1", "{"), ("1", "}"), ("2", "{}")))
    assert reading.take() == [
        ModelText("abc"), ModelThought("de"), ModelCallArgs("1", "{}"), ModelCallArgs("2", "{}"),
    ]  # fmt: skip
    assert reading.take() == []


def test_reading_raises_what_was_wrong_after_what_was_said() -> None:
    reader = Parts("p")
    reading = Reading(reader, 60)
    reading.feed(event(("t", "said")) + b"data: broken\n\n" + event(("t", "never")))
    assert reading.broken and reading.take() == [ModelText("said")]
    reading.feed(event(("t", "late")))
    reading.end()
    with pytest.raises(ValueError, match="cannot be read"):
        reading.take()
    assert not reader.finished


def test_reading_gives_what_is_due_at_the_end() -> None:
    reader = Parts("p")
    reading = Reading(reader, 60)
    reading.feed(event(("t", "x"))[:-2])  # without the blank line that ends an event
    reading.end()
    assert reading.take() == [ModelText("x"), ModelCallEnded("c")] and reader.finished


def test_reading_a_stream_of_nothing_but_signs_of_life_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [100.0]
    monkeypatch.setattr("dragoman.providers.reading.time.monotonic", lambda: now[0])
    reading = Reading(Parts("p"), 5)
    now[0] += 4
    reading.feed(b": ping\n\n")
    assert reading.take() == []
    reading.feed(event(("t", "x")))
    now[0] += 4
    reading.feed(b": ping\n\n")
    assert reading.take() == [ModelText("x")]
    now[0] += 6
    reading.feed(b": ping\n\n")
    with pytest.raises(Silent, match="signs of life for 5 s"):
        reading.take()


# --- local_child ---

RUNTIME = """
class CommonParams:
    def __init__(self):
        self.model = self.cpuparams = self.cpuparams_batch = type("x", (), {})()
class Server:
    def __init__(self, params):
        print("noise of the runtime", flush=True)
        if params.model.path == "broken":
            raise RuntimeError("no such weights")
        self.listening_address = f"http://127.0.0.1:9/{params.api_keys[0]}"
"""


@pytest.mark.parametrize(
    ("path", "code", "report"),
    [("good", 0, {"address": "http://127.0.0.1:9/k", "error": ""}),
     ("broken", 1, {"address": "", "error": "no such weights"})],
)  # fmt: skip
def test_local_child_reports_once_and_ends_with_its_input(
    tmp_path: Path, path: str, code: int, report: dict[str, str]
) -> None:
    (tmp_path / "xllamacpp.py").write_text(RUNTIME)
    order = json.dumps({"path": path, "key": "k", "context": 1, "threads": 1}) + "\n"
    done = subprocess.run(
        [sys.executable, "-m", local_child.__name__], input=order, text=True, capture_output=True,
        env={"PYTHONPATH": str(tmp_path)}, timeout=60,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    assert json.loads(done.stdout) == report and "noise" in done.stderr
