"""The agents of the configuration, each put together from its parts (`ports.Agents`)."""

import os
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from dragoman.engine.faults import BadInput
from dragoman.engine.info import SessionInfo
from dragoman.engine.offers import Offers
from dragoman.engine.ports import Agent, AgentProfile, Policy, PromptTurn, Tool, Toolbox, ToolSpec
from dragoman.engine.traits import Given
from dragoman.holding import Holder
from dragoman.host.cells import Cells, scratch
from dragoman.host.descendants import Descendants
from dragoman.host.installed import own_code
from dragoman.settings import profiles
from dragoman.settings.model import Settings
from dragoman.settings.places import Places

if TYPE_CHECKING:
    from dragoman.agents.acp_process import AcpProcessAgent
    from dragoman.agents.builtin import BuiltinAgent
    from dragoman.policy.autonomy import AutonomyPolicy, Rules
    from dragoman.sandbox.launch import Confine
    from dragoman.settings.host import WebSearch as WebSearchSettings
    from dragoman.tools.background import JobBook

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
        private: str = "",
    ) -> None:
        """`private` is where tools may leave files of ours; empty: the data directory."""
        self._settings = settings
        self._models = models
        self._offers = offers
        self._places = places
        self._policies: dict[str, tuple[Rules, AutonomyPolicy]] = {}
        self._registries: dict[str, tuple[Policy, Any, Any]] = {}
        self._chosen: dict[str, str] = {}
        self._read: Settings | None = None  # the settings that these profiles come from
        self._profiles: dict[str, AgentProfile] = {}
        self._private = private or places.data_dir
        self._outputs = os.path.join(self._private, "outputs")
        self._builtin: BuiltinAgent | None = None
        self._hosted: AcpProcessAgent | None = None
        self.descendants = Descendants()
        self.cells = Cells(settings, places, self._private, self._bounds)
        # The MCP servers of a session, for a hosted agent to connect by itself.
        self.servers: Callable[[AgentProfile, SessionInfo], Sequence[Any]] = lambda p, i: ()
        self.parts: list[Callable[[AgentProfile, SessionInfo], Any]] = []  # further toolboxes
        # What is begun while a session's tools are made.
        self.beginnings: list[Callable[[AgentProfile, SessionInfo], None]] = []
        self.book: JobBook | None = None  # of background commands
        # Further parts of the system prompt.
        self.extras: list[Callable[[PromptTurn], Awaitable[Sequence[str]]]] = []

    def names(self) -> Sequence[str]:
        return profiles.names(self._settings())

    def default(self) -> str | None:
        return profiles.default_alias(self._settings())

    def profile(self, alias: str) -> AgentProfile:
        settings = self._settings()
        if settings is not self._read:  # changed, or the first time
            self._read, self._profiles = settings, {}
        made = self._profiles.get(alias)
        if made is None:
            made = profiles.profile(settings, alias, self.choose)
            self._profiles[alias] = made
        return made

    def choose(self, provider: str) -> str:
        """The model when none is configured; looked for once, since it may ask the network."""
        if provider not in self._chosen:
            if provider:
                self._chosen[provider] = self._first_of(provider)
            else:
                self._chosen[provider] = self._models.default_ref()
        return self._chosen[provider]

    def choose_anew(self) -> None:
        """Who can be asked has changed."""
        self._chosen.clear()
        self._profiles.clear()

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
        ref: str = models[0].ref
        return ref

    def backend(self, profile: AgentProfile) -> Agent:
        if profile.backend != "builtin":
            if not profile.command:
                raise BadInput(
                    f"agents.{profile.alias} has backend {profile.backend} but no command.",
                    f"Set agents.{profile.alias}.command to the agent's program.",
                )
            return self.hosted
        if self._builtin is None:
            from dragoman.agents.builtin import BuiltinAgent

            self._builtin = BuiltinAgent(self._models, self._extras)
        return self._builtin

    @property
    def hosted(self) -> "AcpProcessAgent":
        """The one that drives all agents with a process of their own."""
        if self._hosted is None:
            from dragoman.agents.acp_process import AcpProcessAgent
            from dragoman.host.agent_access import Ground

            self._hosted = AcpProcessAgent(
                Ground(self._bounds, self._confine, self._outputs, self._tool_env),
                lambda profile, info: self.servers(profile, info),
                wrap=self.cells.hosted,
                environment=self._hosted_env,
                began=self._hosted_began,
                ended=self.descendants.forget,
            )
        return self._hosted

    def _hosted_env(self, profile: AgentProfile) -> dict[str, str]:
        """What a hosted agent finds in its environment: no key that its entry does not name."""
        from dragoman.tools.environ import staying

        return staying(profiles.agent(self._settings(), profile.alias).pass_env, profile.env)

    def _hosted_began(self, pid: int, alias: str) -> None:
        """A hosted agent may talk to the daemon itself only when its owner said so."""
        if profiles.agent(self._settings(), alias).trust_with_daemon:
            self.descendants.trust(pid)
        else:
            self.descendants.brand(pid)

    def policy(self, profile: AgentProfile) -> "AutonomyPolicy":
        # Shell grammar and all: not before there is a session.
        from dragoman.agents.skills import user_folders
        from dragoman.policy.autonomy import AutonomyPolicy, Rules
        from dragoman.policy.profiles import PROFILES, strangers

        given = profiles.rules(self._settings(), profile.alias)
        chosen = PROFILES[given.profile]
        home = os.path.expanduser("~")
        rules = Rules(
            forbidden_paths=(*chosen.forbidden, *strangers(home), *given.forbidden_paths),
            sealed_paths=(*chosen.sealed, *own_code()),
            legible_paths=chosen.legible,
            writable_paths=chosen.writable,
            reads_outside=chosen.reads_outside,
            **{name: getattr(given, name) for name in _RULES},
        )
        protected = self.cells.protected
        known = self._policies.get(profile.alias)
        if known is not None and (known[0], known[1].protected) == (rules, protected):
            return known[1]
        places = self._places
        policy = AutonomyPolicy(
            rules,
            protected=protected,
            # What bash kept of long outputs, and the files beside a user's own skills.
            readable=(self._outputs, *user_folders(places.config_dir)),
        )
        self._policies[profile.alias] = (rules, policy)
        return policy

    async def toolbox(self, profile: AgentProfile, session: SessionInfo) -> Toolbox:
        if profile.backend != "builtin":
            from dragoman.agents.acp_process import HostedTools

            return HostedTools(self.hosted, session.id)
        for begin in self.beginnings:
            begin(profile, session)
        wanted = profile.tools
        if not profile.asks:
            from dragoman.tools.registry import NAMES

            wanted = tuple(
                name
                for name in (NAMES if wanted is None else wanted)
                if name not in ("ask_user", "escalate_to_human", "propose_plan")
            )
        elif wanted:  # plan mode ends with it
            wanted = (*wanted, "propose_plan")
        base = self._registry(profile).toolbox(wanted, session=session.id)
        layers: list[Toolbox] = [base]
        for part in self.parts:
            layer = await part(profile, session)
            if layer is not None:
                layers.append(layer)
        return Layers(layers, self._offers, profile.tools)

    def bash(self, profile: AgentProfile) -> Any:
        """The tool that runs an agent's commands, with the agent's own walls."""
        return self._registry(profile).find("bash")

    def _registry(self, profile: AgentProfile) -> Any:
        """The built-in tools of an agent, made anew when its policy or workings changed."""
        from dragoman.tools.registry import Registry

        policy = self.policy(profile)
        ways = profiles.workings(self._settings(), profile.alias)
        given = profiles.rules(self._settings(), profile.alias)
        wanted = (
            self._settings().sandbox, ways, given.network, given.domains, profile.context_files,
            self._settings().web_search, self._tool_env(profile),
        )  # fmt: skip
        known = self._registries.get(profile.alias)
        if known is not None and known[0] is policy and known[1] == wanted:
            return known[2]
        confine = partial(self._confine, profile)
        if self._settings().sandbox.backend != "auto" or given.domains:
            confine()  # it may not be there: that is told at once
        registry = Registry(
            lambda env: policy.boundary(env.mode, env.cwd, env.roots, env.reach),
            outputs=self._outputs,
            confine=confine,
            shell_timeout=ways.shell_timeout_secs,
            max_output=ways.max_output_bytes,
            allow_env=ways.allow_env,
            extra_env=wanted[-1],
            context_files=profile.context_files,
            search=_search(self._settings().web_search),
            book=self.book,
        )
        self._registries[profile.alias] = (policy, wanted, registry)
        return registry

    def _confine(self, profile: AgentProfile) -> "Confine":
        """The sandbox of an agent's tools. Raises BadInput when the one wanted is not there."""
        from dragoman.sandbox.choose import choose

        wanted = self._settings().sandbox
        given = profiles.rules(self._settings(), profile.alias)
        processes = profiles.workings(self._settings(), profile.alias).max_processes
        return choose(
            wanted.backend,
            network=wanted.network if given.network is None else given.network,
            domains=given.domains,
            unix=wanted.trust_unix_sockets,
            processes=processes,
        )

    def _tool_env(self, profile: AgentProfile) -> dict[str, str]:
        """A temporary folder per agent, which no other sees, and the caches of commands."""
        from dragoman.policy import caches

        own = {"TMPDIR": scratch(self._private, profile.alias)}
        return own | caches.variables(self.policy(profile).rules.forbidden_paths)

    def _bounds(self, profile: AgentProfile, info: SessionInfo) -> Any:
        policy = self.policy(profile)
        return policy.boundary(info.mode, info.cwd, Given.of(info.extra).roots)

    async def _extras(self, turn: PromptTurn) -> list[str]:
        return [text for extra in self.extras for text in await extra(turn)]


def _search(given: "WebSearchSettings") -> Tool | None:
    """The tool `web_search`, as the configuration wants it."""
    if not given.provider:
        return None
    from dragoman.tools.web_search import ServedSearch, WebSearch

    if given.provider == "model":
        return ServedSearch()
    key = given.api_key or os.environ.get("BRAVE_API_KEY", "")
    return WebSearch(given.provider, key, given.base_url)


class Layers(Holder):
    """Several toolboxes as one; the first that has a name wins. Apps' tools come and go."""

    _layers: Sequence[Toolbox]
    _offers: Offers
    _only: tuple[str, ...] | None
    _made: tuple[list[Sequence[ToolSpec]], list[ToolSpec]] | None = None

    def _offered(self) -> dict[str, Tool]:
        found = {}
        for offer in self._offers.all("tool"):
            if offer.tool is not None and (self._only is None or offer.name in self._only):
                found[offer.name] = offer.tool
        return found

    def specs(self) -> Sequence[ToolSpec]:
        parts = [layer.specs() for layer in self._layers]
        parts.append([tool.spec for tool in self._offered().values()])
        if self._made is None or self._made[0] != parts:
            known: dict[str, ToolSpec] = {}
            for part in parts:
                for spec in part:
                    known.setdefault(spec.name, spec)
            self._made = (parts, list(known.values()))
        return self._made[1]

    def find(self, name: str) -> Tool | None:
        for layer in self._layers:
            tool = layer.find(name)
            if tool is not None:
                return tool
        return self._offered().get(name)

    async def close(self) -> None:
        for layer in self._layers:
            await layer.close()
