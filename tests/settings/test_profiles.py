"""Agents, rules and providers worked out from the configuration."""

from typing import Any

import msgspec
import pytest

from dragoman.engine.faults import UnknownAgent
from dragoman.engine.ports import AgentProfile, ModelInfo
from dragoman.settings import profiles
from dragoman.settings.model import Settings


def settings(**raw: Any) -> Settings:
    return msgspec.convert(raw, Settings)


def test_with_nothing_configured_there_is_one_agent() -> None:
    empty = settings()
    assert profiles.names(empty) == ("default",)
    assert profiles.default_alias(empty) == "default"
    assert profiles.profile(empty, "default") == AgentProfile(alias="default")
    chosen = profiles.profile(empty, "default", lambda provider: "ollama/x")
    assert chosen.model == "ollama/x"


def test_an_unknown_agent_names_those_there_are() -> None:
    with pytest.raises(UnknownAgent, match=r"Unknown agent: 'x'. Configured: a, b."):
        profiles.profile(settings(agents={"a": {}, "b": {}}), "x")
    with pytest.raises(UnknownAgent):
        profiles.profile(settings(agents={"a": {}}), "default")


@pytest.mark.parametrize(
    ("agents", "default", "expected"),
    [
        ({"a": {}}, "", "a"),
        ({"a": {}, "b": {}}, "", None),
        ({"a": {}, "b": {}}, "b", "b"),
        ({"a": {}, "default": {}}, "", "default"),
        ({"a": {}, "default": {}}, "a", "a"),
    ],
)
def test_the_default_agent(agents: dict[str, Any], default: str, expected: str | None) -> None:
    made = settings(agents=agents, acp={"default_agent": default})
    assert profiles.default_alias(made) == expected


@pytest.mark.parametrize(
    ("agent", "ref"),
    [
        ({"model": "anthropic/claude"}, "anthropic/claude"),
        ({"provider": "anthropic", "model": "claude"}, "anthropic/claude"),
        ({"provider": "anthropic", "model": "anthropic/claude"}, "anthropic/claude"),
        ({"provider": "openrouter", "model": "anthropic/claude"}, "openrouter/anthropic/claude"),
        ({"model": "claude"}, "claude"),
        ({"provider": "mine"}, "mine/own-model"),
        ({"provider": "openai"}, "openai/chosen"),
        ({}, "/chosen"),
        ({"provider": "openai", "model": "gpt", "api_key": "k"}, "openai/gpt"),
        ({"model": "openai/gpt", "base_url": "http://localhost:1"}, "openai/gpt"),
    ],
)
def test_the_reference_of_a_model(agent: dict[str, Any], ref: str) -> None:
    made = settings(agents={"a": agent}, providers={"mine": {"model": "own-model"}})
    found = profiles.model_ref(made, "a", lambda provider: f"{provider}/chosen")
    assert found == (ref if ref != "/chosen" else "chosen")


def test_rules_come_from_agent_then_profile_then_autonomy() -> None:
    made = settings(
        autonomy={"level": "readonly", "always_ask": ["bash"], "workspace_only": False},
        risk_profiles={
            "careful": {"mode": "supervised", "auto_approve": ["read"], "always_ask": []}
        },
        agents={
            "plain": {},
            "shared": {"risk_profile": "careful"},
            "own": {
                "risk_profile": "careful",
                "mode": "full",
                "auto_approve": [],
                "approval_timeout_secs": 9,
            },
            "alias": {"autonomy": "full"},
        },
    )
    plain = profiles.rules(made, "plain")
    assert (plain.mode, plain.always_ask, plain.workspace_only) == ("readonly", ("bash",), False)
    shared = profiles.rules(made, "shared")
    assert (shared.mode, shared.always_ask, shared.auto_approve) == ("supervised", (), ("read",))
    own = profiles.rules(made, "own")
    assert (own.mode, own.auto_approve, own.approval_timeout_secs) == ("full", (), 9)
    assert profiles.rules(made, "alias").mode == "full"


def test_the_way_of_working_comes_from_agent_then_profile() -> None:
    made = settings(
        runtime_profiles={"quick": {"max_steps": 5, "reasoning": "low", "tools": ["read"]}},
        agents={
            "a": {
                "runtime_profile": "quick",
                "reasoning": "high",
                "append_system_prompt": "be brief",
                "memory": {"auto_recall": True},
                "context_files": False,
            }
        },
    )
    found = profiles.profile(made, "a")
    assert (found.max_steps, found.reasoning, found.tools) == (5, "high", ("read",))
    assert found.append_system_prompt == ("be brief",)
    assert found.memory and not found.context_files
    assert found.auto_compact == AgentProfile(alias="x").auto_compact


@pytest.mark.parametrize(
    ("agent", "command"),
    [
        ({"command": "npx other --acp"}, ("npx", "other", "--acp")),
        ({"command": "/opt/my agent", "args": ["--acp"]}, ("/opt/my agent", "--acp")),
        ({"command": "agent"}, ("agent",)),
        ({"command": "~/agent"}, ("/home/me/agent",)),
        ({"command": "~/agent --acp"}, ("/home/me/agent", "--acp")),
        ({"command": "~/my agent", "args": ["~/x"]}, ("/home/me/my agent", "~/x")),
        ({"command": "it's an agent"}, ("it's an agent",)),
    ],
)
def test_the_command_of_another_agent(
    agent: dict[str, Any], command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    made = settings(agents={"a": {"backend": "acp", **agent}})
    assert profiles.profile(made, "a").command == command


def test_providers_with_models_and_agents_with_their_own_key() -> None:
    made = settings(
        providers={"mine": {"kind": "openai-chat", "base_url": "http://localhost:1", "retries": 2}},
        models={
            "mine/small": {"context_window": 10},
            "openai/gpt": {"price_input": 1.0},
        },
        agents={
            "a": {"model": "mine/small", "api_key": "secret"},
            "b": {"model": "mine/small"},
        },
    )
    known = ModelInfo("openai", "gpt", vision=True)
    plans = {
        plan.name: plan
        for plan in profiles.providers(
            made, lambda name, model: known if (name, model) == ("openai", "gpt") else None
        )
    }
    assert set(plans) == {"mine", "openai", "mine@a"}
    assert plans["mine"].models == (ModelInfo("mine", "small", context_window=10),)
    assert plans["openai"].models[0].vision and plans["openai"].models[0].price_input == 1.0
    assert plans["mine@a"].base == "mine"
    assert plans["mine@a"].settings.api_key == "secret"
    assert plans["mine@a"].settings.base_url == "http://localhost:1"
    assert plans["mine"].settings.api_key == ""
