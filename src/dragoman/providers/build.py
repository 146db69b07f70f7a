"""Puts a provider together from its preset and its configuration."""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from dragoman.engine.faults import BadInput
from dragoman.engine.ports import ModelInfo, Provider

from .presets import OPENAI, PRESETS, Preset, ollama_url
from .retry import RetryRules

if TYPE_CHECKING:
    from .registry import ProviderConfig
    from .remote import Format


def slot(name: str, model: ModelInfo, preset: Preset, config: "ProviderConfig") -> str:
    """Under which key a provider is kept: one per API, or per model where each is its own."""
    if preset.kind in ("scripted", "local", "longtail"):
        return f"{name}\n{model.id}"
    if _speaks_responses(model, preset, config):
        return f"{name}\nresponses"
    return name


def build(
    name: str,
    model: ModelInfo,
    preset: Preset,
    config: "ProviderConfig",
    key: str,
    env: Mapping[str, str],
    rules: RetryRules | None,
) -> Provider:
    """Make the provider for this model."""
    if preset.kind == "demo":
        from .demo import Demo

        return Demo(_pace(env.get("DRAGOMAN_DEMO_PACE", "")))
    if preset.kind == "scripted":
        from .scripted import load

        return load(model.id)
    if preset.kind == "local":
        from .local import Local

        return Local(model.id, name=name)
    if preset.kind == "longtail":
        from .longtail import LongTail

        return LongTail(name, model.id)
    from .remote import Remote, Timeouts

    return Remote(
        name,
        _format(model, preset, config),
        base_url=_base_url(preset, config, env),
        key=key,
        headers=config.headers,
        timeouts=Timeouts(
            config.connect_timeout,
            config.read_timeout,
            config.first_timeout,
            config.silence_timeout,
        ),
        rules=rules or RetryRules(retries=config.retries),
    )


def _format(model: ModelInfo, preset: Preset, config: "ProviderConfig") -> "Format":
    if preset.kind == "anthropic":
        from .anthropic import Anthropic

        return Anthropic()
    if preset.kind == "google":
        from .google import Google

        return Google()
    if _speaks_responses(model, preset, config):
        from .openai_responses import OpenAIResponses

        return OpenAIResponses()
    from .openai_chat import OpenAIChat

    return OpenAIChat(effort=preset.effort, returns_thoughts=preset.returns_thoughts)


def _speaks_responses(model: ModelInfo, preset: Preset, config: "ProviderConfig") -> bool:
    if preset.kind == "openai":
        # Only OpenAI itself is sure to have it; behind another URL Chat Completions is safe.
        official = not config.base_url or config.base_url.rstrip("/") in (OPENAI, OPENAI[:-3])
        return official and model.reasoning
    return preset.kind == "openai-responses"


def _base_url(preset: Preset, config: "ProviderConfig", env: Mapping[str, str]) -> str:
    url = config.base_url.strip() or preset.base_url
    if preset.kind == "ollama" and not config.base_url and env.get("OLLAMA_HOST"):
        url = ollama_url(env["OLLAMA_HOST"])
    if not url and preset.kind in ("openai-chat", "openai-responses"):
        url = PRESETS["openai"].base_url
    scheme, _, rest = url.partition("://")
    if scheme not in ("http", "https") or not rest[:1].strip("/ "):
        from dragoman.observe.redact import scrub

        raise BadInput(
            f'base_url "{scrub(url)}" is no http address', "Write it as http://host:port/v1."
        )
    url = url.rstrip("/")
    if preset.kind in ("anthropic", "google"):
        return url.removesuffix("/v1").removesuffix("/v1beta")
    return url if re.search(r"/v\d+\w*(/openai)?$", url) else f"{url}/v1"


def _pace(text: str) -> float:
    try:
        return min(1.0, max(0.0, float(text or 0)))
    except ValueError:
        raise BadInput(
            f'DRAGOMAN_DEMO_PACE is "{text}"', "Give seconds per word, such as 0.02."
        ) from None
