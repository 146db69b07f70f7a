"""Agents and models."""

import msgspec

from dragoman.engine.faults import Fault

from .table import Call, Plain, Route


class AgentView(msgspec.Struct, frozen=True):
    alias: str
    model: str
    mode: str
    backend: str
    default: bool = False
    reasoning: str = ""
    tools: tuple[str, ...] | None = None
    problem: str = ""  # why it cannot be used as it is configured


class ModelView(msgspec.Struct, frozen=True):
    ref: str
    name: str
    context_window: int
    max_output: int
    reasoning: bool
    vision: bool
    price_input: float | None = None
    price_output: float | None = None


class ModelQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    provider: str = ""


async def agents(call: Plain) -> list[AgentView]:
    default = call.door.default_agent()
    found = []
    for alias in call.door.agents():
        try:
            profile = call.door.profile(alias)
        except Fault as fault:  # the others can be used all the same
            found.append(AgentView(alias, "", "", "", alias == default, problem=str(fault)))
            continue
        found.append(
            AgentView(
                alias,
                profile.model,
                profile.mode,
                profile.backend,
                alias == default,
                profile.reasoning,
                profile.tools,
            )
        )
    return found


async def models(call: Call[None, ModelQuery]) -> list[ModelView]:
    return [
        ModelView(
            one.ref,
            one.name or one.id,
            one.context_window,
            one.max_output,
            one.reasoning,
            one.vision,
            one.price_input,
            one.price_output,
        )
        for one in call.door.models(call.query.provider or None)
    ]


ROUTES = [
    Route("GET", "/api/agents", agents, "Agents of the configuration", "agents",
          returns=list[AgentView]),
    Route("GET", "/api/models", models, "Models that can be used", "agents", query=ModelQuery,
          returns=list[ModelView], may_fail=(404,)),
]  # fmt: skip
