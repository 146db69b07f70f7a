"""Whose models can be used with a key, or without one."""

from collections.abc import Mapping

from dragoman.providers.presets import ALIASES, PRESETS, ollama_url


def known_providers() -> list[str]:
    """Those that `dragoman login` offers."""
    return [name for name, one in PRESETS.items() if one.env or name == "ollama"]


def plain_name(word: str) -> str:
    """The provider that a word means."""
    name = word.strip().lower()
    return ALIASES.get(name, name)


def ollama_answers(env: Mapping[str, str]) -> bool:
    from dragoman.providers.probe import ollama_model

    return bool(ollama_model(ollama_url(env.get("OLLAMA_HOST", ""))))
