"""Names inside the configuration that lead nowhere are each told, with the key that has them."""

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

import dragoman
from dragoman.observe.areas import AREAS
from dragoman.settings.model import Settings
from dragoman.settings.refer import TOOLS, doubts, problems
from dragoman.tools.registry import ALIASES, NAMES


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
        ({"agents": {"a": {"mcp": ["trakcer"]}}, "mcp": {"tracker": {"url": "u"}}}, "agents.a.mcp",
         "[mcp.trakcer] (did you mean tracker?); there are: tracker."),
        ({"gateway": {"tls_cert": "c"}}, "gateway.tls_cert", "needed together"),
        ({"gateway": {"tls_key": "k"}}, "gateway.tls_key", "needed together"),
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


@pytest.mark.parametrize(
    ("sections", "key", "said"),
    [
        ({"log": {"levels": {"stroe": "debug"}}}, "log.levels.stroe", "(did you mean store?)"),
        ({"log": {"levels": {"x": "debug", "mcp": "off"}}}, "log.levels.x", "There are: apps, "),
        ({"mcp": {"m": {"command": "c", "url": "http://h"}}}, "mcp.m.url", "command is used"),
        ({"mcp": {"m": {"command": "c", "url": "http://h", "transport": "sse"}}}, "mcp.m.url",
         "url is used"),
        ({"mcp": {"m": {"url": "ftp://h"}}}, "mcp.m.url", "does not begin with http://"),
        ({"agents": {"a": {"always_ask": ["writ"]}}}, "agents.a.always_ask", "did you mean write?"),
        ({"risk_profiles": {"p": {"auto_approve": ["raed"]}}}, "risk_profiles.p.auto_approve",
         "names raed, which is no tool of ours (did you mean read?)"),
        ({"autonomy": {"always_ask": ["bsh"]}}, "autonomy.always_ask", "did you mean bash?"),
        ({"hooks": [{"on": "tool_executing", "run": "x", "tools": ["bsh", "mcp__a__b"]}]}, "hooks",
         "did you mean bash?"),
        ({"agents": {"coder": {}}, "hooks": [{"on": "llm_input", "run": "x", "agents": ["codr"]}]},
         "hooks", "hook number 1 is for an agent that there is not: codr (did you mean coder?)"),
    ],
)  # fmt: skip
def test_what_harms_nothing_else_is_told(sections: dict[str, Any], key: str, said: str) -> None:
    settings = msgspec.convert(sections, Settings)
    assert not list(problems(settings))
    ((path, sentence),) = doubts(settings)
    assert ".".join(path) == key and said in sentence


def test_every_part_that_has_a_log_may_be_named() -> None:
    """And no other: the list that people are shown is read from the code."""
    source = Path(dragoman.__file__).parent
    written = re.compile(r'get_log\("([^"]+)"\)')
    logs = {name for path in source.rglob("*.py") for name in written.findall(path.read_text())}
    assert logs == set(AREAS)
    levels = dict.fromkeys((*AREAS, "dialect", "dialect.of.a.package"), "debug")
    assert not list(doubts(msgspec.convert({"log": {"levels": levels}}, Settings)))


def test_names_of_tools_that_others_bring_are_not_doubted() -> None:
    """Those of hosted agents begin with a capital, those of apps are called as they like."""
    names = [*NAMES, *ALIASES, "Bash", "Read", "weather", "mcp__tracker__find", "search", "remind"]
    given = {"agents": {"a": {"always_ask": names}}}
    assert not list(doubts(msgspec.convert(given, Settings)))
    assert {*NAMES, *ALIASES} <= set(TOOLS)
