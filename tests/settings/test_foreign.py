"""A config.toml that was written for ZeroClaw."""

from pathlib import Path
from typing import Any

import pytest

from dragoman.settings import shape
from dragoman.settings.foreign import understood
from dragoman.settings.load import BadSettings, load

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
        "autonomy": {"level": "readonly", "always_ask": ["bash"]}, "risk_profiles": 5,
        "mcp": {"servers": {"command": "x"}}, "hooks": [{"on": "stop"}],
    }  # fmt: skip
    before = repr(raw)
    assert list(understood(raw)) == [] and repr(raw) == before


def test_keys_of_agents_and_profiles_are_read_or_named_with_ours(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(
        "[providers.models.openai.fast]\n"
        'model = "gpt-5"\nwire_api = "responses"\n'
        "[runtime_profiles.usual]\nagentic = true\nmax_tool_iterations = 7\n"
        "[agents.a]\n"
        'model_provider = "openai.fast"\nruntime_profile = "usual"\n'
        'channels = ["telegram.x"]\nacp_enable_mcp = false\n'
    )
    found = load(str(file), {})
    assert found.settings.runtime_profiles["usual"].max_steps == 7
    told = "\n".join(found.warnings)
    for words in (
        "config.toml:3: providers.models.openai.fast.wire_api is ZeroClaw's; ours: [providers",
        "config.toml:5: runtime_profiles.usual.agentic is ZeroClaw's; ours: nothing",
        "config.toml:6: runtime_profiles.usual.max_tool_iterations is read as max_steps",
        "config.toml:10: agents.a.channels is ZeroClaw's; ours: apps",
        "config.toml:11: agents.a.acp_enable_mcp is ZeroClaw's; ours: mcp of the agent",
    ):
        assert words in told, told
    assert "unknown key" not in told


def test_no_key_of_ours_is_taken_for_theirs() -> None:
    from dragoman.settings.foreign import _INSTEAD, _INSTEAD_IN

    for path in (*_INSTEAD, *((table, "x", key) for table, key in _INSTEAD_IN)):
        with pytest.raises(shape.UnknownKey):
            shape.key(path)


@pytest.mark.parametrize(
    ("text", "level"),
    [('level = "readonly"', "readonly"), ('level = "read_only"', "readonly"),
     ('level = "Full"', "full"), ("", "supervised")],
)  # fmt: skip
def test_the_level_of_all_agents_counts(tmp_path: Path, text: str, level: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(f"[autonomy]\n{text}\n")
    loaded = load(str(file), env={})
    assert loaded.settings.autonomy.level == level
    assert not [one for one in loaded.warnings if "ignored" in one]


def test_every_value_that_our_own_keys_can_have_stays_as_it_is(tmp_path: Path) -> None:
    """Written out as `config explain` lists them: none is another program's, none is lost."""
    from dragoman.settings.explain import explain

    file = tmp_path / "config.toml"
    file.write_text("")
    blank = load(str(file), env={})
    for one in explain(blank):
        raw: dict[str, Any] = {}
        here, path = raw, shape.split(one.key.replace("<name>", "x"))
        for part in path[:-1]:
            here = here.setdefault(part, {})
        for value in (one.default, "full", ["read"], 3, True, {"a": "b"}):
            here[path[-1]] = value
            before = repr(raw)
            if shape.problem(shape.key(path).kind, value) == "":
                assert (list(understood(raw)), repr(raw)) == ([], before), one.key


def test_rules_keep_their_meaning(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(
        '[risk_profiles.r]\nlevel = "supervised"\nalways_ask = ["shell", "mine"]\n'
        'auto_approve = ["file_read", "content_search"]\nblock_high_risk_commands = false\n'
        "max_cost_per_day_cents = 250\n[mcp]\nenabled = true\ndeferred_loading = false\n"
        "[hooks]\nenabled = true\n[identity]\nformat = 'x'\n[memory]\nauto_save = true\n"
    )
    loaded = load(str(file), env={})
    rules = loaded.settings.risk_profiles["r"]
    assert rules.always_ask == ("bash", "mine") and rules.auto_approve == ("read", "grep")
    assert rules.block_high_risk is False and rules.max_cost_per_day_usd == 2.5
    told = "\n".join(loaded.warnings)
    for words in (
        "mcp.enabled",
        "mcp.deferred_loading",
        "hooks is",
        "identity",
        "memory.auto_save",
    ):
        assert words in told
    assert told.count("ours: ") == 5 and "unknown key" not in told


def test_pairing_can_still_be_switched_off(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('[gateway]\nrequire_pairing = false\n[mcp.servers]\ncommand = "x"\n')
    loaded = load(str(file), env={})
    assert loaded.settings.gateway.require_pairing is False and not loaded.warnings
    assert loaded.settings.mcp["servers"].command == "x"
    file.write_text('[[mcp.servers]]\nname = "x"\n')
    assert "mcp.servers is ZeroClaw's" in load(str(file), env={}).warnings[0]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('mcp.files = "npx x"', "mcp.files must be a table"),
        ("mcp.files = false", "mcp.files must be a table (got false)"),
        ('mcp.files = ["npx"]', "mcp.files must be a table"),
        ('[hooks]\non = "stop"\nrun = "x"', "hooks must be a list of tables"),
        ('[hooks.mine]\nrun = "x"', "hooks must be a list of tables"),
        ('hooks = "x"', "hooks must be a list of tables"),
        ('providers.x = "y"', "providers.x must be a table"),
        ("risk_profiles.x = 1", "risk_profiles.x must be a table (got 1)"),
        ("runtime_profiles.x = 1", "runtime_profiles.x must be a table (got 1)"),
        ('agents.a = "x"', "agents.a must be a table"),
        ('default_model = "m"\nagents = "x"', "agents must be a table"),
        ('default_model = "m"\nagents = []', "agents must be a table"),
        ('default_model = "m"\nagents.default = "x"', "agents.default must be a table"),
        ('apps.x = "y"', "apps.x must be a table"),
        ("apps.y.a = 1\napps.x = 1", ":2: apps.x must be a table (got 1)"),
        ("dialects.x = 1", "dialects.x must be a table (got 1)"),
        ("channels = 1", "channels must be a table (got 1)"),
        ('gateway.webhooks.x = "y"', "gateway.webhooks.x must be a table"),
    ],
)
def test_what_is_no_table_where_one_has_to_be_is_named(
    tmp_path: Path, text: str, says: str
) -> None:
    file = tmp_path / "config.toml"
    file.write_text(f"{text}\n")
    with pytest.raises(BadSettings) as caught:
        load(str(file), env={})
    (problem,) = caught.value.problems
    assert says in problem, problem
