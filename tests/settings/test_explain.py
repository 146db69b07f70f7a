"""Explaining, hiding and describing the configuration."""

from pathlib import Path

import jsonschema
import pytest

from dragoman.engine.faults import BadInput
from dragoman.settings.explain import explain, schema, value_of
from dragoman.settings.load import load
from dragoman.settings.redact import HIDDEN, plain, redact

TEXT = """\
[acp]
max_sessions = 3

[agents.a]
api_key = "very-secret"
env = { TOKEN = "t", PLAIN = "p" }
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "config.toml"
    path.write_text(TEXT)
    path.chmod(0o600)
    return str(path)


def test_a_key_says_what_it_is_and_where_it_comes_from(file: str) -> None:
    loaded = load(file, {"DRAGOMAN_acp__default_agent": "a"})
    (one,) = explain(loaded, "acp.max_sessions")
    assert (one.value, one.default, one.source) == (3, 10, f"file {file}:2")
    assert one.allowed == "a whole number, 1 or more"
    assert one.doc == "How many sessions may be open at once."
    assert one.env == "DRAGOMAN_acp__max_sessions"
    (agent,) = explain(loaded, "acp.default_agent")
    assert agent.source == "env DRAGOMAN_acp__default_agent"
    (codes,) = explain(loaded, "acp.error_codes")
    assert codes.source == "default"


def test_a_section_lists_its_keys_and_a_map_its_form(file: str) -> None:
    loaded = load(file, {})
    assert {one.key for one in explain(loaded, "acp")} == {
        "acp.default_agent",
        "acp.max_sessions",
        "acp.session_timeout_secs",
        "acp.error_codes",
        "acp.version_2",
    }
    assert "mcp.<name>.command" in {one.key for one in explain(loaded, "mcp")}
    assert "agents.a.model" in {one.key for one in explain(loaded)}


def test_secrets_are_hidden(file: str) -> None:
    loaded = load(file, {})
    (one,) = explain(loaded, "agents.a.api_key")
    assert one.value == HIDDEN
    assert redact(loaded.settings) == {
        "acp": {"max_sessions": 3},
        "agents": {"a": {"api_key": HIDDEN, "env": {"TOKEN": HIDDEN, "PLAIN": HIDDEN}}},
    }
    assert plain(loaded.settings)["agents"]["a"]["api_key"] == "very-secret"
    assert value_of(loaded, "agents.a.api_key") == "very-secret"


def test_free_tables_are_shown_to_any_depth_without_their_secrets(file: str) -> None:
    with open(file, "a") as more:
        more.write('[channels.irc]\nserver = "s"\nnested = { bot_token = "hush", rooms = [1] }\n')
    loaded = load(file, {})
    (one,) = explain(loaded, "channels.irc.nested.bot_token")
    assert (one.value, one.allowed) == (HIDDEN, "anything, or not set")
    assert value_of(loaded, "channels.irc.nested.rooms") == [1]
    (table,) = explain(loaded, "channels.irc")
    assert "hush" not in str(table.value) and table.value["server"] == "s"
    assert explain(loaded, "channels.irc.nothing")[0].value is None


@pytest.mark.parametrize("key", ["nothing", "acp.nothing", "a..b"])
def test_an_unknown_key_is_refused(file: str, key: str) -> None:
    with pytest.raises(BadInput):
        explain(load(file, {}), key)


def test_the_schema_is_valid_and_judges_as_we_do(file: str) -> None:
    made = schema()
    jsonschema.Draft202012Validator.check_schema(made)
    judge = jsonschema.Draft202012Validator(made)
    assert judge.is_valid(plain(load(file, {}).settings))
    assert not judge.is_valid({"acp": {"max_sessions": 0}})
    assert not judge.is_valid({"acp": {"error_codes": "other"}})
    described = made["$defs"]["Acp"]["properties"]["max_sessions"]
    assert described["description"] == "How many sessions may be open at once."
