"""The providers we know by name: where they are, how they speak, where their key is found."""

from typing import Literal, get_args

import msgspec

Kind = Literal[
    "anthropic",
    "openai",  # Responses for reasoning models at OpenAI itself, else Chat Completions
    "openai-chat",
    "openai-responses",
    "google",
    "ollama",
    "demo",
    "scripted",
    "local",
    "longtail",
]
EffortStyle = Literal["openai", "openrouter", "plain", "none"]  # of Chat Completions
KINDS: frozenset[str] = frozenset(get_args(Kind))
OPENAI = "https://api.openai.com/v1"


class Preset(msgspec.Struct, frozen=True):
    """`strict`: only models of the catalogue exist. `keyless`: works without a credential."""

    kind: Kind
    base_url: str = ""
    env: tuple[str, ...] = ()
    default_model: str = ""
    strict: bool = True
    keyless: bool = False
    effort: EffortStyle = "none"
    returns_thoughts: bool = False
    context_window: int = 128_000
    max_output: int = 8_192


def _compatible(base_url: str, env: str, default: str, **more: bool | str) -> Preset:
    return msgspec.convert(
        {"kind": "openai-chat", "base_url": base_url, "env": (env,), "default_model": default}
        | more,
        Preset,
    )


# The order is that in which keys of the environment are looked for.
PRESETS: dict[str, Preset] = {
    "anthropic": Preset(
        "anthropic", "https://api.anthropic.com", ("ANTHROPIC_API_KEY",), "claude-sonnet-4-5"
    ),
    "openai": Preset("openai", OPENAI, ("OPENAI_API_KEY",), "gpt-5", effort="openai"),
    "google": Preset(
        "google",
        "https://generativelanguage.googleapis.com",
        ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        "gemini-2.5-pro",
    ),
    "openrouter": _compatible(
        "https://openrouter.ai/api/v1",
        "OPENROUTER_API_KEY",
        "anthropic/claude-sonnet-4.5",
        strict=False,
        effort="openrouter",
    ),
    "groq": _compatible(
        "https://api.groq.com/openai/v1", "GROQ_API_KEY", "openai/gpt-oss-120b", strict=False
    ),
    "mistral": _compatible(
        "https://api.mistral.ai/v1", "MISTRAL_API_KEY", "mistral-large-latest", strict=False
    ),
    "deepseek": _compatible(
        "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY", "deepseek-chat", returns_thoughts=True
    ),
    "xai": _compatible("https://api.x.ai/v1", "XAI_API_KEY", "grok-code-fast-1"),
    "moonshot": _compatible(
        "https://api.moonshot.ai/v1", "MOONSHOT_API_KEY", "kimi-k2.6", returns_thoughts=True
    ),
    "kimi": _compatible(
        "https://api.kimi.com/coding/v1", "KIMI_API_KEY", "kimi-for-coding", returns_thoughts=True
    ),
    "together": _compatible(
        "https://api.together.xyz/v1", "TOGETHER_API_KEY", "openai/gpt-oss-120b", strict=False
    ),
    "fireworks": _compatible(
        "https://api.fireworks.ai/inference/v1",
        "FIREWORKS_API_KEY",
        "accounts/fireworks/models/glm-5p3",
        strict=False,
    ),
    "ollama": Preset(
        "ollama",
        "http://127.0.0.1:11434/v1",
        strict=False,
        keyless=True,
        effort="plain",
        context_window=32_768,
    ),
    "vllm": Preset(
        "openai-chat", "http://127.0.0.1:8000/v1", strict=False, keyless=True, effort="plain"
    ),
    "llamacpp": Preset("openai-chat", "http://127.0.0.1:8080/v1", strict=False, keyless=True),
    "local": Preset("local", strict=False, keyless=True, context_window=4_096, max_output=2_048),
    "demo": Preset("demo", default_model="demo", keyless=True),
    "scripted": Preset("scripted", strict=False, keyless=True),
}
ALIASES = {"gemini": "google", "claude": "anthropic", "grok": "xai", "moonshotai": "moonshot"}
CATALOGUES = {"kimi": "moonshot"}  # providers that share another one's list
LONGTAIL = ("azure", "bedrock", "cerebras", "cohere", "google-vertex", "huggingface", "vertex")


def ollama_url(host: str) -> str:
    """The base URL behind OLLAMA_HOST, which may be a host, host:port or URL."""
    host = host.strip().rstrip("/")
    scheme, found, rest = host.rpartition("://")
    scheme = scheme if found else "http"
    name, _, port = rest.partition(":") if not rest.startswith("[") else (rest, "", "")
    if name in ("", "0.0.0.0"):  # what a server binds to, not where it is reached
        name = "127.0.0.1"
    if rest.startswith("["):
        return f"{scheme}://{rest}/v1"
    return f"{scheme}://{name}:{port or '11434'}/v1"
