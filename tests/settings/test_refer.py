"""Names inside the configuration that lead nowhere are each told, with the key that has them."""

from typing import Any

import msgspec
import pytest

from dragoman.settings.model import Settings
from dragoman.settings.refer import problems


def told(**sections: Any) -> dict[str, str]:
    found = problems(msgspec.convert(sections, Settings))
    return {".".join(path): sentence for path, sentence in found}


@pytest.mark.parametrize(
    ("sections", "key", "said"),
    [
        ({"agents": {"a": {"risk_profile": "x"}}}, "agents.a.risk_profile", "[risk_profiles.x]"),
        ({"agents": {"a": {"runtime_profile": "x"}}}, "agents.a.runtime_profile",
         "[runtime_profiles.x]"),
        ({"agents": {"a": {"backend": "acp"}}}, "agents.a.backend", "needs a command"),
        ({"agents": {"a": {"mcp": ["x"]}}}, "agents.a.mcp", "[mcp.x]"),
        ({"runtime_profiles": {"p": {"mcp": ["x"]}}}, "runtime_profiles.p.mcp", "[mcp.x]"),
        ({"acp": {"default_agent": "x"}}, "acp.default_agent", "there are: default"),
        ({"acp": {"default_agent": "x"}, "agents": {"a": {}, "b": {}}}, "acp.default_agent",
         "there are: a, b"),
        ({"mcp": {"m": {}}}, "mcp.m", "needs a command or a url"),
        ({"gateway": {"tls_cert": "c"}}, "gateway", "needed together"),
        ({"gateway": {"tls_key": "k"}}, "gateway", "needed together"),
    ],
)  # fmt: skip
def test_what_leads_nowhere(sections: dict[str, Any], key: str, said: str) -> None:
    found = told(**sections)
    assert list(found) == [key] and said in found[key]


@pytest.mark.parametrize(
    "sections",
    [
        {},
        {"agents": {"a": {"risk_profile": "x", "mcp": ["m"]}}, "risk_profiles": {"x": {}},
         "mcp": {"m": {"command": "true"}}},
        {"acp": {"default_agent": "default"}},
        {"acp": {"default_agent": "a"}, "agents": {"a": {}}},
        {"mcp": {"m": {"enabled": False}}},
        {"gateway": {"tls_cert": "c", "tls_key": "k"}},
    ],
)  # fmt: skip
def test_what_leads_somewhere(sections: dict[str, Any]) -> None:
    assert told(**sections) == {}


def test_all_are_told_not_only_the_first() -> None:
    found = told(agents={"a": {"risk_profile": "x", "mcp": ["y"]}, "b": {"backend": "acp"}})
    assert sorted(found) == ["agents.a.mcp", "agents.a.risk_profile", "agents.b.backend"]
