"""A config.toml that was written for ZeroClaw."""

from pathlib import Path

import pytest

from dragoman.settings.foreign import understood
from dragoman.settings.load import load

TEXT = """
schema_version = 3

[providers.models.anthropic.work]
model = "claude-sonnet-4-5"
api_key = "sk-theirs"
uri = "http://localhost:1"

[agents.coder]
enabled = true
model_provider = "anthropic.work"
risk_profile = "careful"

[risk_profiles.careful]
level = "read_only"
workspace_only = true

[wss]
enabled = true
port = 9781

[memory]
backend = "sqlite"
"""


def test_what_can_be_read_is_read_and_the_rest_is_named(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(TEXT)
    file.chmod(0o600)
    found = load(str(file), {})
    agent = found.settings.agents["coder"]
    assert (agent.provider, agent.model) == ("anthropic", "claude-sonnet-4-5")
    assert (agent.api_key, agent.base_url) == ("sk-theirs", "http://localhost:1")
    assert found.settings.risk_profiles["careful"].mode == "readonly"
    assert "models" not in found.settings.providers
    told = "\n".join(found.warnings)
    for words in (
        "config.toml:11: agents.coder.model_provider is read as provider, model, api_key, base_url",
        "schema_version", "[gateway] bind, tls_cert, tls_key", "[memory] enabled",
        "risk_profiles.careful.level is read as mode",
    ):  # fmt: skip
        assert words in told, told
    assert "sk-theirs" not in told and "did you mean" not in told


def test_the_keys_of_its_first_releases() -> None:
    raw = {"default_provider": "openai", "default_model": "gpt-5", "api_key": "k"}
    told = dict(understood(raw))
    assert raw == {"agents": {"default": {"provider": "openai", "model": "gpt-5", "api_key": "k"}}}
    assert told[("api_key",)] == "is read as agents.default.api_key"
    raw = {"default_model": "gpt-5", "agents": {"a": {"model": "x"}}}  # type: ignore[dict-item]
    assert "ignored" in dict(understood(raw))[("default_model",)]
    assert raw == {"agents": {"a": {"model": "x"}}}


def test_ours_stays_as_it_is() -> None:
    raw = {
        "agents": {"a": {"model": "p/m", "provider": "p"}, "b": 3},
        "providers": {"models": {"api_key": "k"}, "p": {"base_url": "x"}},
        "autonomy": {"mode": "full"}, "risk_profiles": 5,
    }  # fmt: skip
    before = repr(raw)
    assert list(understood(raw)) == [] and repr(raw) == before


def test_no_key_of_ours_is_taken_for_theirs() -> None:
    from dragoman.settings import shape
    from dragoman.settings.foreign import _INSTEAD

    for path in _INSTEAD:
        with pytest.raises(shape.UnknownKey):
            shape.key(path)


def test_pairing_can_still_be_switched_off(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('[gateway]\nrequire_pairing = false\n[mcp.servers]\ncommand = "x"\n')
    loaded = load(str(file), env={})
    assert loaded.settings.gateway.require_pairing is False and not loaded.warnings
    assert loaded.settings.mcp["servers"].command == "x"
    file.write_text('[[mcp.servers]]\nname = "x"\n')
    assert "mcp.servers is ZeroClaw's" in load(str(file), env={}).warnings[0]
