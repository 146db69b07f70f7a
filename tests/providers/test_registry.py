import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator

import pytest
from tests.providers.fake_http import FakeApi, Reply, chat_delta, sse
from tests.providers.parts import read, request
from tests.timed import promised

from dragoman.engine.content import Usage
from dragoman.engine.faults import BadInput, UnknownModel
from dragoman.engine.ports import ModelInfo, ModelPart, ModelRequest, Models, ModelStop, Provider
from dragoman.providers.anthropic import Anthropic
from dragoman.providers.catalogue import catalogue
from dragoman.providers.google import Google
from dragoman.providers.openai_chat import OpenAIChat
from dragoman.providers.openai_responses import OpenAIResponses
from dragoman.providers.presets import PRESETS, ollama_url
from dragoman.providers.registry import ModelRegistry, ProviderConfig
from dragoman.providers.remote import Remote
from dragoman.testing.script import Scripted

KEYS = {key: "k" for preset in PRESETS.values() for key in preset.env}


def remote(registry: ModelRegistry, ref: str) -> Remote:
    provider, _ = registry.resolve(ref)
    assert isinstance(provider, Remote)
    return provider


def test_it_is_the_port() -> None:
    models: Models = ModelRegistry(env={})
    assert models.resolve("demo/demo")[1].ref == "demo/demo"
    assert models.resolve("demo")[1].ref == "demo/demo"


@pytest.mark.parametrize(
    ("ref", "format", "url"),
    [
        ("anthropic/claude-sonnet-4-5", Anthropic, "https://api.anthropic.com"),
        ("openai/gpt-5", OpenAIResponses, "https://api.openai.com/v1"),
        ("openai/gpt-4o", OpenAIChat, "https://api.openai.com/v1"),
        ("google/gemini-2.5-pro", Google, "https://generativelanguage.googleapis.com"),
        ("gemini/gemini-2.5-pro", Google, "https://generativelanguage.googleapis.com"),
        ("openrouter/some/new-model", OpenAIChat, "https://openrouter.ai/api/v1"),
        ("groq/openai/gpt-oss-120b", OpenAIChat, "https://api.groq.com/openai/v1"),
        ("mistral/mistral-large-latest", OpenAIChat, "https://api.mistral.ai/v1"),
        ("deepseek/deepseek-chat", OpenAIChat, "https://api.deepseek.com/v1"),
        ("kimi/kimi-for-coding", OpenAIChat, "https://api.kimi.com/coding/v1"),
        ("ollama/llama3.2", OpenAIChat, "http://127.0.0.1:11434/v1"),
        ("vllm/anything/at-all", OpenAIChat, "http://127.0.0.1:8000/v1"),
        ("llamacpp/x", OpenAIChat, "http://127.0.0.1:8080/v1"),
    ],
)
def test_refs(ref: str, format: type, url: str) -> None:
    provider = remote(ModelRegistry(env=KEYS), ref)
    assert isinstance(provider.format, format) and provider.base_url == url


@pytest.mark.parametrize("name", [name for name, preset in PRESETS.items() if preset.env])
def test_default_models_exist(name: str) -> None:
    registry = ModelRegistry(env=KEYS)
    default = PRESETS[name].default_model
    _, model = registry.resolve(f"{name}/{default}")
    assert model.ref == f"{name}/{default}" and model.context_window >= 32_000
    source = "moonshot" if name == "kimi" else name
    assert catalogue().find(source, default) is not None


def test_a_bare_id_is_looked_up() -> None:
    registry = ModelRegistry(env=KEYS)
    assert registry.resolve("gpt-5")[1].ref == "openai/gpt-5"
    assert registry.resolve("claude-sonnet-4-5")[1].ref == "anthropic/claude-sonnet-4-5"
    routed = ModelRegistry(env={"OPENROUTER_API_KEY": "k"}).resolve("x-ai/grok-4-fast")[1]
    assert routed.ref == "openrouter/x-ai/grok-4-fast"


def test_a_dated_id_keeps_its_name_and_gets_the_prices() -> None:
    _, model = ModelRegistry(env=KEYS).resolve("anthropic/claude-sonnet-4-5-20250929")
    assert model.id == "claude-sonnet-4-5-20250929" and model.price_output == 15


@pytest.mark.parametrize(
    ("name", "variable"), [("anthropic", "ANTHROPIC_API_KEY"), ("google", "GEMINI_API_KEY")]
)
def test_a_missing_key_says_what_to_do(name: str, variable: str) -> None:
    model = PRESETS[name].default_model
    with pytest.raises(BadInput) as raised:
        ModelRegistry(env={}).resolve(f"{name}/{model}")
    text = str(raised.value)
    assert text.startswith(f"no credential for {name}; set {variable}") and "--api-key" in text
    assert "\n" not in text


def test_keys_from_settings_win_over_the_environment() -> None:
    configs = {"anthropic": ProviderConfig(api_key="mine")}
    provider = remote(ModelRegistry(configs, env=KEYS), "anthropic/claude-sonnet-4-5")
    assert provider._headers["x-api-key"] == "mine"


def test_the_second_variable_counts_too() -> None:
    provider = remote(ModelRegistry(env={"GOOGLE_API_KEY": "g"}), "google/gemini-2.5-pro")
    assert provider._headers["x-goog-api-key"] == "g"


@pytest.mark.parametrize(
    ("ref", "text", "near"),
    [
        (
            "anthropic/claude-sonet-4-5",
            'unknown model "claude-sonet-4-5" (provider="anthropic")',
            "claude-sonnet-4-5",
        ),
        ("openai/nope", 'unknown model "nope" (provider="openai")', "Nearest"),
        ("antropic/claude", 'unknown model "claude" (provider="antropic")', "anthropic"),
        ("gpt-55", 'unknown model "gpt-55" (provider="")', "openai/gpt-5"),
        ("demo/other", 'unknown model "other" (provider="demo")', "demo"),
        ("", 'unknown model "" (provider="")', "provider/model"),
        ("openai/", 'unknown model "" (provider="openai")', "Nearest"),
    ],
)
def test_an_unknown_model_names_the_nearest(ref: str, text: str, near: str) -> None:
    with pytest.raises(UnknownModel) as raised:
        ModelRegistry(env=KEYS).resolve(ref)
    assert raised.value.message == text and near in raised.value.hint


def test_a_provider_without_a_list_needs_a_model() -> None:
    with pytest.raises(BadInput, match="ollama needs a model"):
        ModelRegistry(env={}).resolve("ollama/")


def test_ollama_models_have_modest_windows() -> None:
    _, model = ModelRegistry(env={}).resolve("ollama/qwen3:8b")
    assert (model.id, model.context_window, model.max_output) == ("qwen3:8b", 32_768, 8_192)
    assert model.cost(Usage(100, 100)) == 0


def test_a_base_url_takes_any_model_and_needs_no_key() -> None:
    configs = {"openai": ProviderConfig(base_url="http://127.0.0.1:9/api")}
    provider = remote(ModelRegistry(configs, env={}), "openai/whatever")
    assert provider.base_url == "http://127.0.0.1:9/api/v1"
    assert isinstance(provider.format, OpenAIChat)
    assert isinstance(remote(ModelRegistry(configs, env={}), "openai/gpt-5").format, OpenAIChat)


@pytest.mark.parametrize(
    ("kind", "given", "used"),
    [
        ("openai-chat", "http://h:1", "http://h:1/v1"),
        ("openai-chat", "http://h:1/", "http://h:1/v1"),
        ("openai-chat", "http://h:1/v1", "http://h:1/v1"),
        ("openai-chat", "http://h:1/v1/", "http://h:1/v1"),
        ("openai-chat", "https://h/api/paas/v4", "https://h/api/paas/v4"),
        ("openai-responses", "https://h", "https://h/v1"),
        ("anthropic", "http://h:1/v1", "http://h:1"),
        ("anthropic", "http://h:1", "http://h:1"),
        ("google", "http://h:1/v1beta/", "http://h:1"),
    ],
)
def test_base_urls(kind: str, given: str, used: str) -> None:
    configs = {"mine": ProviderConfig(kind=kind, base_url=given)}  # type: ignore[arg-type]
    assert remote(ModelRegistry(configs, env={}), "mine/m").base_url == used


def test_a_bad_base_url_is_refused() -> None:
    configs = {"mine": ProviderConfig(base_url="localhost:1234")}
    with pytest.raises(BadInput, match="no http address"):
        ModelRegistry(configs, env={}).resolve("mine/m")


def test_own_names_and_models() -> None:
    own = ModelInfo("", "big", context_window=5000, price_input=1.0)
    configs = {"work": ProviderConfig(base_url="http://h/v1", models=(own,))}
    registry = ModelRegistry(configs, env={})
    assert registry.resolve("work/big")[1] == ModelInfo(
        "work", "big", context_window=5000, price_input=1.0
    )
    assert registry.resolve("big")[1].ref == "work/big"
    assert registry.resolve("work/other")[1].context_window == 128_000
    assert [model.id for model in registry.list("work")] == ["big"]


def test_a_second_account_of_a_known_kind() -> None:
    configs = {"claude2": ProviderConfig(kind="anthropic", api_key="two")}
    registry = ModelRegistry(configs, env=KEYS)
    provider, model = registry.resolve("claude2/claude-sonnet-4-5")
    assert model.provider == "claude2" and model.price_input == 3
    assert provider is not registry.resolve("anthropic/claude-sonnet-4-5")[0]


@pytest.mark.parametrize(
    ("kind", "ref", "url"),
    [
        ("groq", "groq@me/openai/gpt-oss-120b", "https://api.groq.com/openai/v1"),
        ("anthropic", "anthropic@me/claude-sonnet-4-5", "https://api.anthropic.com"),
        ("work", "work@me/any", "http://h:1/v1"),
    ],
)
def test_an_agents_own_variant(kind: str, ref: str, url: str) -> None:
    name = ref.partition("/")[0]
    base = "http://h:1" if kind == "work" else ""
    configs = {
        "work": ProviderConfig(kind="openai-chat", base_url="http://h:1"),
        name: ProviderConfig(kind=kind, api_key="mine", base_url=base),  # type: ignore[arg-type]
    }
    registry = ModelRegistry(configs, env={})
    provider, model = registry.resolve(ref)
    assert isinstance(provider, Remote) and provider.base_url == url and model.provider == kind
    plain = ref.replace("@me", "")
    assert model.ref == plain and registry.resolve(plain, "me")[0] is provider
    assert kind in registry.names()
    assert not [name for name in (*registry.names(), *registry.without_key()) if "@" in name]
    assert not [one for one in registry.list() if "@" in one.provider]
    assert {one.provider for one in registry.list(kind)} <= {kind}
    if kind != "work":
        assert model.price_input is not None


def test_a_variant_is_its_agents_alone() -> None:
    configs = {
        "anthropic@me": ProviderConfig(kind="anthropic", api_key="mine"),
        "mine@me": ProviderConfig(base_url="http://h:1"),
    }
    registry = ModelRegistry(configs, env={})
    assert registry.resolve("mine/any", "me")[1].ref == "mine/any"
    for ref, agent in (("anthropic/claude-sonnet-4-5", ""), ("anthropic/claude-sonnet-4-5", "you")):
        with pytest.raises(BadInput, match="no credential for anthropic;"):
            registry.resolve(ref, agent)
    with pytest.raises(UnknownModel) as told:
        registry.resolve("mine/any", "you")
    assert "@" not in f"{told.value}"


def test_a_variant_is_named_plainly_in_errors() -> None:
    configs = {"anthropic@me": ProviderConfig(kind="anthropic", api_key="k")}
    with pytest.raises(UnknownModel, match=r'unknown model "nope" \(provider="anthropic"\)'):
        ModelRegistry(configs, env={}).resolve("anthropic@me/nope")


def test_settings_under_an_alias_count() -> None:
    configs = {"gemini": ProviderConfig(api_key="mine")}
    provider = remote(ModelRegistry(configs, env={}), "gemini/gemini-2.5-pro")
    assert isinstance(provider.format, Google) and provider._headers["x-goog-api-key"] == "mine"


def test_providers_are_made_once() -> None:
    registry = ModelRegistry(env=KEYS)
    one = registry.resolve("anthropic/claude-sonnet-4-5")[0]
    assert registry.resolve("anthropic/claude-opus-4-5")[0] is one
    registry.configure("anthropic", ProviderConfig(api_key="new"))
    assert registry.resolve("anthropic/claude-sonnet-4-5")[0] is not one


def test_lists() -> None:
    registry = ModelRegistry(env={"ANTHROPIC_API_KEY": "k"})
    listed = registry.list("anthropic")
    assert listed[0].id == "claude-sonnet-4-5"
    assert {model.provider for model in listed} == {"anthropic"}
    assert {model.provider for model in registry.list()} == {"anthropic", "demo"}
    assert registry.list("ollama") == ()
    with pytest.raises(UnknownModel):
        registry.list("nobody")


class Echo:
    name = "echo"

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelPart]:
        yield ModelStop("end_turn")

    async def close(self) -> None:
        return None


def test_offers_come_and_go() -> None:
    registry = ModelRegistry(env={})
    provider: Provider = Echo()
    registry.offer("app", provider)
    assert registry.resolve("app/any/thing")[1].ref == "app/any/thing"
    assert "app" in registry.names() and registry.has_credential("app")
    registry.offer("app", provider, [ModelInfo("x", "one")])
    assert registry.resolve("app/one")[0] is provider
    with pytest.raises(UnknownModel):
        registry.resolve("app/two")
    assert registry.withdraw("app") and not registry.withdraw("app")
    with pytest.raises(UnknownModel):
        registry.resolve("app/one")
    with pytest.raises(BadInput):
        registry.offer("a/b", provider)


def test_an_offered_script_brings_its_model() -> None:
    registry = ModelRegistry(env={})
    script = Scripted(["x"], model=ModelInfo("scripted", "s", context_window=777))
    registry.offer("scripted", script)
    assert registry.resolve("scripted/test") == (
        script,
        ModelInfo("scripted", "test", context_window=777),
    )


@pytest.mark.parametrize(
    ("env", "ref"),
    [
        ({"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}, "anthropic/claude-sonnet-4-5"),
        ({"OPENAI_API_KEY": "k"}, "openai/gpt-5"),
        ({"GOOGLE_API_KEY": "k"}, "google/gemini-2.5-pro"),
        ({"ANTHROPIC_API_KEY": "", "GROQ_API_KEY": "k"}, "groq/openai/gpt-oss-120b"),
    ],
)
def test_the_default_is_that_of_the_first_key(env: dict[str, str], ref: str) -> None:
    assert ModelRegistry(env={}).default_ref(env) == ref
    assert ModelRegistry(env=env).default_ref() == ref


async def test_the_default_without_a_key_is_a_local_ollama() -> None:
    tags = {"models": [{"name": "qwen3:8b", "size": 1}, {"name": "old"}]}

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        body = json.dumps(tags).encode()
        writer.write(b"HTTP/1.0 200 OK\r\ncontent-type: application/json\r\n\r\n" + body)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    registry = ModelRegistry(env={"OLLAMA_HOST": f"127.0.0.1:{port}"})
    assert await asyncio.to_thread(registry.default_ref) == "ollama/qwen3:8b"
    assert remote(registry, "ollama/x").base_url == f"http://127.0.0.1:{port}/v1"
    tags["models"] = []
    assert await asyncio.to_thread(registry.default_ref) == "demo/demo"
    server.close()
    await server.wait_closed()
    assert await asyncio.to_thread(registry.default_ref) == "demo/demo"


@promised(0.5)
async def test_a_silent_ollama_does_not_hold_us_up(within: float) -> None:
    loop = asyncio.get_running_loop()

    async def never(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(never, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    registry = ModelRegistry(env={"OLLAMA_HOST": f"127.0.0.1:{port}"})
    began = loop.time()
    assert await asyncio.to_thread(registry.default_ref) == "demo/demo"
    assert loop.time() - began < within
    server.close()


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("", "http://127.0.0.1:11434/v1"),
        ("0.0.0.0", "http://127.0.0.1:11434/v1"),
        ("box", "http://box:11434/v1"),
        ("box:99", "http://box:99/v1"),
        ("https://box:99/", "https://box:99/v1"),
        (":99", "http://127.0.0.1:99/v1"),
        ("[::1]:99", "http://[::1]:99/v1"),
    ],
)
def test_ollama_hosts(host: str, url: str) -> None:
    assert ollama_url(host) == url


async def test_a_whole_answer_through_the_registry() -> None:
    stream = sse(chat_delta(content="hi"), chat_delta("stop"), "[DONE]")
    async with FakeApi(Reply([stream])) as api:
        registry = ModelRegistry({"mine": ProviderConfig(base_url=api.url)}, env={})
        provider, model = registry.resolve("mine/m")
        assert (await read(provider.stream(request(model)))).text == "hi"
        await registry.close()
    assert api.asked[0].path == "/v1/chat/completions"
    assert "authorization" not in api.asked[0].headers


def test_the_long_tail_names_its_extra() -> None:
    with pytest.raises(BadInput, match=r"dragoman\[providers\]|package|credential"):
        ModelRegistry(env={}).resolve("bedrock/anthropic.claude")


def test_nothing_heavy_is_imported_before_a_request() -> None:
    code = (
        "import sys; from dragoman.providers.registry import ModelRegistry;"
        "ModelRegistry(env={'ANTHROPIC_API_KEY':'k'}).resolve('claude-sonnet-4-5');"
        "ModelRegistry(env={}).resolve('demo/demo');"
        "heavy = {'httpx', 'httpcore', 'anyio', 'pydantic', 'pydantic_ai', 'xllamacpp', 'sqlite3'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


# --- catalogue --------------------------------------------------------------------------------


def test_the_catalogue_is_dated_and_complete() -> None:
    found = catalogue()
    assert len(found.date) == 10 and found.date >= "2026-01-01"
    assert set(found.providers()) >= {"anthropic", "openai", "google", "openrouter", "deepseek"}
    for provider in found.providers():
        for model in found.list(provider):
            assert 0 < model.max_output <= model.context_window, model.ref
            assert (model.price_input or 0) >= 0 and model.context_window >= 16_000


@pytest.mark.parametrize(
    ("ref", "usage", "cost"),
    [
        ("anthropic/claude-sonnet-4-5", Usage(100, 10, 20, 30), 0.0005685),
        ("openai/gpt-5", Usage(100, 10, 20, 0), 0.0002275),
        ("demo/demo", Usage(1000, 1000), 0.0),
        ("ollama/x", Usage(1000, 1000), 0.0),
    ],
)
def test_costs(ref: str, usage: Usage, cost: float) -> None:
    _, model = ModelRegistry(env=KEYS).resolve(ref)
    assert model.cost(usage) == pytest.approx(cost)


@pytest.mark.parametrize(
    ("ref", "prices"),
    [
        ("anthropic/claude-sonnet-4-5", (3, 15, 0.3, 3.75)),
        ("anthropic/claude-opus-4-5", (5, 25, 0.5, 6.25)),
        ("openai/gpt-5", (1.25, 10, 0.125, 0)),
    ],
)
def test_prices(ref: str, prices: tuple[float, ...]) -> None:
    _, m = ModelRegistry(env=KEYS).resolve(ref)
    assert (m.price_input, m.price_output, m.price_cache_read, m.price_cache_write) == prices
    assert m.reasoning and m.vision
