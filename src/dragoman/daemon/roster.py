"""The agents of the configuration, each put together from its parts (`ports.Agents`)."""

import os
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from dragoman.agents.builtin import BuiltinAgent
from dragoman.engine.faults import BadInput
from dragoman.engine.info import SessionInfo
from dragoman.engine.offers import Offers
from dragoman.engine.ports import Agent, AgentProfile, Policy, Tool, Toolbox, ToolSpec
from dragoman.policy.autonomy import AutonomyPolicy, Rules
from dragoman.policy.paths import FORBIDDEN
from dragoman.settings import profiles
from dragoman.settings.model import Settings

from .endpoints import Places

_RULES = ("auto_approve", "always_ask", "allowed_commands", "forbidden_commands", "allowed_roots",
          "workspace_only", "block_high_risk")  # fmt: skip


class Roster:
    """Knows every agent; follows the configuration when it changes."""

    def __init__(
        self,
        settings: Callable[[], Settings],
        models: Any,
        offers: Offers,
        places: Places,
    ) -> None:
        self._settings = settings
        self._models = models
        self._offers = offers
        self._places = places
        self._policies: dict[str, tuple[Rules, AutonomyPolicy]] = {}
        self._registries: dict[str, tuple[Policy, Any, Any]] = {}
        self._chosen: dict[str, str] = {}
        self._builtin = BuiltinAgent(models, self._extras)
        self.overrides: dict[str, Any] = {}  # from flags of the command line, for every agent
        self.parts: list[Callable[[AgentProfile, SessionInfo], Any]] = []  # further toolboxes
        self.extras: list[Callable[[Any], Any]] = []  # further parts of the system prompt

    def names(self) -> Sequence[str]:
        return profiles.names(self._settings())

    def default(self) -> str | None:
        return profiles.default_alias(self._settings())

    def profile(self, alias: str) -> AgentProfile:
        made = profiles.profile(self._settings(), alias, self.choose)
        return msgspec.structs.replace(made, **self.overrides) if self.overrides else made

    def choose(self, provider: str) -> str:
        """The model when none is configured; looked for once, since it may ask the network."""
        if provider not in self._chosen:
            if provider:
                self._chosen[provider] = self._first_of(provider)
            else:
                self._chosen[provider] = self._models.default_ref()
        return self._chosen[provider]

    def _first_of(self, provider: str) -> str:
        from dragoman.providers.presets import ALIASES, PRESETS

        name = ALIASES.get(provider, provider)
        preset = PRESETS.get(name)
        if preset is not None and preset.default_model:
            return f"{name}/{preset.default_model}"
        models = self._models.list(name)
        if not models:
            raise BadInput(
                f"{provider} requires a model.", "Name one: --model, or `model` of the agent."
            )
        return models[0].ref

    def backend(self, profile: AgentProfile) -> Agent:
        if profile.backend == "acp":
            if not profile.command:
                raise BadInput(
                    f"agents.{profile.alias} has backend acp but no command.",
                    f"Set agents.{profile.alias}.command to the agent's program.",
                )
            from dragoman.agents.acp_process import AcpProcessAgent

            return AcpProcessAgent.of(profile)
        return self._builtin

    def policy(self, profile: AgentProfile) -> Policy:
        given = profiles.rules(self._settings(), profile.alias)
        rules = Rules(
            forbidden_paths=(*FORBIDDEN, *given.forbidden_paths),
            **{name: getattr(given, name) for name in _RULES},
        )
        known = self._policies.get(profile.alias)
        if known is not None and known[0] == rules:
            return known[1]
        places = self._places
        outputs = os.path.join(places.data_dir, "outputs")  # what bash kept of long outputs
        policy = AutonomyPolicy(
            rules, protected=(places.config_file, places.data_dir), readable=(outputs,)
        )
        self._policies[profile.alias] = (rules, policy)
        return policy

    async def toolbox(self, profile: AgentProfile, session: SessionInfo) -> Toolbox:
        base = self._registry(profile).toolbox(profile.tools)
        layers: list[Toolbox] = [base]
        for part in self.parts:
            layer = await part(profile, session)
            if layer is not None:
                layers.append(layer)
        return Layers(layers, self._offers, profile.tools)

    def _registry(self, profile: AgentProfile) -> Any:
        """The built-in tools of an agent, made anew when its policy or sandbox changed."""
        from dragoman.sandbox.choose import choose
        from dragoman.tools.registry import Registry

        policy = self.policy(profile)
        assert isinstance(policy, AutonomyPolicy)
        wanted = self._settings().sandbox
        known = self._registries.get(profile.alias)
        if known is not None and known[0] is policy and known[1] == wanted:
            return known[2]
        scratch = os.path.join(self._places.data_dir, "tmp")
        os.makedirs(scratch, mode=0o700, exist_ok=True)
        registry = Registry(
            lambda env: policy.boundary(env.mode, env.cwd, env.roots),
            outputs=os.path.join(self._places.data_dir, "outputs"),
            confine=choose(wanted.backend, network=wanted.network),
            extra_env={"TMPDIR": scratch},
        )
        self._registries[profile.alias] = (policy, wanted, registry)
        return registry

    async def _extras(self, turn: Any) -> list[str]:
        return [text for extra in self.extras for text in await extra(turn)]


class Layers:
    """Several toolboxes as one; the first that has a name wins. Apps' tools come and go."""

    def __init__(
        self, layers: Sequence[Toolbox], offers: Offers, only: tuple[str, ...] | None
    ) -> None:
        self._layers = layers
        self._offers = offers
        self._only = only

    def _offered(self) -> dict[str, Tool]:
        found = {}
        for offer in self._offers.all("tool"):
            if offer.tool is not None and (self._only is None or offer.name in self._only):
                found[offer.name] = offer.tool
        return found

    def specs(self) -> Sequence[ToolSpec]:
        known: dict[str, ToolSpec] = {}
        for layer in self._layers:
            for spec in layer.specs():
                known.setdefault(spec.name, spec)
        for name, tool in self._offered().items():
            known.setdefault(name, tool.spec)
        return list(known.values())

    def find(self, name: str) -> Tool | None:
        for layer in self._layers:
            tool = layer.find(name)
            if tool is not None:
                return tool
        return self._offered().get(name)

    async def close(self) -> None:
        for layer in self._layers:
            await layer.close()
