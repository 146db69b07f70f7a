"""What the engine, the policy and the providers need, worked out from the configuration.

A rule is looked for in the agent, then its risk profile, then `[autonomy]`; a way of working in the
agent, then its runtime profile, then the engine's defaults.
"""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from dragoman.engine.faults import UnknownAgent
from dragoman.engine.ports import AgentProfile, ModelInfo

from .agents import Agent, Autonomy, Risk, RuntimeProfile
from .host import Provider
from .model import Settings

DEFAULT = "default"  # the agent that exists when none is configured
HOSTED = "hosted"  # the provider that stands for the models of hosted agents
_OF_THE_ENGINE = "reasoning temperature max_steps auto_compact context_files tools".split()


class ResolvedPolicy(msgspec.Struct, frozen=True):
    """One agent's policy, all defaults resolved."""

    mode: str
    profile: str
    workspace_only: bool
    network: bool | None  # None: as the host's own section says
    domains: tuple[str, ...]
    allowed_roots: tuple[str, ...]
    forbidden_paths: tuple[str, ...]  # beside the built-in ones
    auto_approve: tuple[str, ...]
    always_ask: tuple[str, ...]
    allowed_commands: tuple[str, ...]
    forbidden_commands: tuple[str, ...]
    block_high_risk: bool
    approval_timeout_secs: float


class Budget(msgspec.Struct, frozen=True):
    """What one agent may spend and do; 0: no limit."""

    cost_per_hour: float = 0.0
    cost_per_day: float = 0.0
    actions_per_hour: int = 0
    actions_per_day: int = 0


class Workings(msgspec.Struct, frozen=True):
    """How one agent's tools run."""

    shell_timeout_secs: float = 120.0  # 0: no limit
    allow_env: tuple[str, ...] = ()
    max_processes: int = 0  # 0: the sandbox's own bound
    max_output_bytes: int = 0  # 0: the tool's own bound
    mcp: tuple[str, ...] | None = None  # None: all servers


class ProviderPlan(msgspec.Struct, frozen=True):
    """A provider to set up: one of `[providers]`, or another one with an agent's own key."""

    name: str
    base: str  # the provider it is a variant of; its own name for those of `[providers]`
    settings: Provider
    models: tuple[ModelInfo, ...] = ()


def names(settings: Settings) -> tuple[str, ...]:
    """The aliases of all agents."""
    return tuple(settings.agents) or (DEFAULT,)


def default_alias(settings: Settings) -> str | None:
    """The agent for a session that names none; None when there are several and no choice."""
    known = names(settings)
    if len(known) == 1:
        return known[0]
    return settings.acp.default_agent or None


def agent(settings: Settings, alias: str) -> Agent:
    """One agent's own section. Raises UnknownAgent."""
    found = settings.agents.get(alias)
    if found is not None:
        return found
    known = names(settings)
    if alias in known:
        return Agent()
    raise UnknownAgent(
        f"Unknown agent: {alias!r}.", f"Configured: {', '.join(known)}.", agent=alias
    )


def rules(settings: Settings, alias: str) -> ResolvedPolicy:
    """The policy of one agent. Raises UnknownAgent."""
    own, profile, general = places = _places(settings, alias)
    mode = own.mode or own.autonomy or profile.mode or general.level
    names = [name for name in ResolvedPolicy.__struct_fields__ if name != "mode"]
    found = {name: _first(*(getattr(place, name) for place in places)) for name in names}
    return ResolvedPolicy(mode=mode, **found)


def _places(settings: Settings, alias: str) -> tuple[Agent, Risk, Autonomy]:
    """Where a rule of an agent is looked for, in this order. Raises UnknownAgent."""
    own = agent(settings, alias)
    return own, settings.risk_profiles.get(own.risk_profile, Risk()), settings.autonomy


def budget(settings: Settings, alias: str) -> Budget:
    """The limits of one agent. Raises UnknownAgent."""
    global _budgets
    if _budgets[0] is not settings:  # they are replaced, never changed
        _budgets = (settings, {})
    found = _budgets[1].get(alias)
    if found is None:  # asked before every model call and action
        found = _budgets[1][alias] = _budget(settings, alias)
    return found


_budgets: tuple[Settings | None, dict[str, Budget]] = (None, {})


def _budget(settings: Settings, alias: str) -> Budget:
    places = _places(settings, alias)

    def limit(name: str) -> Any:
        return _first(*(getattr(place, name) for place in places)) or 0

    return Budget(
        float(limit("max_cost_per_hour_usd")),
        float(limit("max_cost_per_day_usd")),
        limit("max_actions_per_hour"),
        limit("max_actions_per_day"),
    )


def workings(settings: Settings, alias: str) -> Workings:
    """How one agent's tools run. Raises UnknownAgent."""
    return Workings(**_way(settings, agent(settings, alias), Workings.__struct_fields__))


def profile(
    settings: Settings, alias: str, choose: Callable[[str], str] | None = None
) -> AgentProfile:
    """One agent as the engine needs it.

    `choose` gives the model's reference when none is configured; it gets the provider's name or
    an empty text. Raises UnknownAgent.
    """
    own = agent(settings, alias)
    risk = rules(settings, alias)
    extra = own.append_system_prompt
    memory = settings.memory.enabled and (own.memory.auto_recall or own.memory.auto_save)
    return AgentProfile(
        alias=alias,
        model=model_ref(settings, alias, choose),
        mode=risk.mode,  # type: ignore[arg-type]  # checked by the settings' own type
        system_prompt=own.system_prompt,
        append_system_prompt=(extra,) if isinstance(extra, str) else extra,
        approval_timeout=risk.approval_timeout_secs,
        backend=own.backend,
        command=command_line(own),
        env=dict(own.env),
        memory=memory,
        **_way(settings, own, _OF_THE_ENGINE),
    )


def _way(settings: Settings, own: Agent, names: Sequence[str]) -> dict[str, Any]:
    """What is set of a way of working: by the agent itself, else by its runtime profile."""
    shared = settings.runtime_profiles.get(own.runtime_profile, RuntimeProfile())
    pairs = ((name, _first(getattr(own, name), getattr(shared, name))) for name in names)
    return {name: value for name, value in pairs if value is not None}


def model_ref(settings: Settings, alias: str, choose: Callable[[str], str] | None = None) -> str:
    """The model of an agent as "provider/model"."""
    own = agent(settings, alias)
    if own.backend == "acp":  # the model is that agent's own affair
        return f"{HOSTED}/{alias}"
    provider, model = own.provider, own.model
    if provider and model.startswith(f"{provider}/"):
        model = model[len(provider) + 1 :]
    if not model and provider in settings.providers:
        model = settings.providers[provider].model
    if not provider and "/" in model:
        provider, _, model = model.partition("/")
    if not model:
        chosen = choose(provider) if choose else f"{provider or 'demo'}/demo"
        provider, _, model = chosen.partition("/")
    if not provider:
        return model
    return f"{provider}/{model}"


def providers(
    settings: Settings,
    find: Callable[[str, str], ModelInfo | None] | None = None,
    choose: Callable[[str], str] | None = None,
) -> list[ProviderPlan]:
    """The providers to set up; `find(provider, id)` looks a model up in the catalogue."""
    plans = {
        name: ProviderPlan(name, name, one, _models(settings, name, find))
        for name, one in settings.providers.items()
    }
    for ref in settings.models:
        name = ref.partition("/")[0]
        if name not in plans:
            plans[name] = ProviderPlan(name, name, Provider(), _models(settings, name, find))
    for alias, own in settings.agents.items():
        if not (own.api_key or own.base_url):
            continue
        base = model_ref(settings, alias, choose).partition("/")[0]
        name = f"{base}@{alias}"  # its own, so that no other agent uses it
        general = plans[base].settings if base in plans else Provider()
        mine = msgspec.structs.replace(
            general,
            api_key=own.api_key or general.api_key,
            base_url=own.base_url or general.base_url,
        )
        plans[name] = ProviderPlan(name, base, mine, _models(settings, base, find))
    return list(plans.values())


def _models(
    settings: Settings, provider: str, find: Callable[[str, str], ModelInfo | None] | None
) -> tuple[ModelInfo, ...]:
    made = []
    for ref, model in settings.models.items():
        name, _, model_id = ref.partition("/")
        if name != provider or not model_id:
            continue
        known = find(name, model_id) if find else None
        given = msgspec.structs.asdict(model)
        changes = {name: value for name, value in given.items() if value is not None}
        base = known or ModelInfo(name, model_id)
        made.append(msgspec.structs.replace(base, **changes))
    return tuple(made)


def command_line(own: Agent) -> tuple[str, ...]:
    """The program of a hosted agent and its arguments."""
    if not own.command:
        return ()
    if own.args or " " not in own.command:
        return (own.command, *own.args)
    import os
    import shlex

    # One text with spaces is a command line, unless it is a file of that very name.
    return (own.command,) if os.path.exists(own.command) else tuple(shlex.split(own.command))


def _first(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)
