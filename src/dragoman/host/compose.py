"""Puts a host together: settings, store, models, agents, engine. The only place that knows all."""

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from dragoman import __version__
from dragoman.engine.door import Door
from dragoman.engine.facts import Facts
from dragoman.engine.faults import Fault, ProviderFailed
from dragoman.engine.hooks import Hooks
from dragoman.engine.host import Host
from dragoman.engine.offers import Offer, Offers
from dragoman.engine.ports import ModelInfo, ModelPart, ModelRequest, PromptTurn, Store
from dragoman.engine.ports.checkpoints import Checkpoints
from dragoman.engine.traits import PutBack
from dragoman.holding import Holder
from dragoman.host.account import Account
from dragoman.host.cells import given_away, logs_of
from dragoman.host.config import LiveConfig
from dragoman.host.descendants import Descendants
from dragoman.host.learning import Learning
from dragoman.host.left_running import LeftRunning
from dragoman.host.owner import is_alive, this_process
from dragoman.host.recollection import Recollection
from dragoman.host.roster import Roster
from dragoman.host.servers import Servers
from dragoman.host.stores import file_of, files_of, open_store
from dragoman.observe.log import get_log
from dragoman.policy.budget import Budgets
from dragoman.providers.registry import ModelRegistry, ProviderConfig
from dragoman.settings import profiles
from dragoman.settings.load import BadSettings, Loaded, load
from dragoman.settings.model import Settings
from dragoman.settings.places import Places, log_file, places

if TYPE_CHECKING:
    from dragoman.engine.info import SessionInfo
    from dragoman.engine.letters import Letters
    from dragoman.engine.ports import AgentProfile, Toolbox
    from dragoman.fleet.node import Node
    from dragoman.host.changes import Changes
    from dragoman.host.tasks import Tasks

log = get_log("host")


class Composed(Holder):
    """A host that is ready to be served."""

    config: LiveConfig
    places: Places
    host: Host
    door: Door
    models: ModelRegistry
    roster: Roster
    notices: list[str]
    recollection: Recollection
    closers: list[Callable[[], None]]
    endings: tuple[Callable[[], Awaitable[None]], ...]
    node: "Node | None" = None

    @property
    def descendants(self) -> Descendants:
        return self.roster.descendants

    @property
    def settings(self) -> Settings:
        return self.config.settings

    async def close(self) -> None:
        """Stop the host if it still runs, then close what it stood on."""
        if not self.host.stopping:
            await self.host.stop(1.0)
        if self.node is not None:
            await self.node.stop()
        for ending in self.endings:
            await ending()
        for closer in self.closers:
            closer()
        await self.models.close()
        await self.host.store.close()


async def compose(
    *,
    config_dir: str | None = None,
    flags: Mapping[str, Any] | None = None,
    store: str = "file",
    providers: Mapping[str, ProviderConfig] | None = None,
    for_daemon: bool = False,
    repair: bool = True,
    loaded: Loaded | None = None,
) -> Composed:
    """A host from the configuration, environment and flags.

    `flags` are dotted keys of the configuration; `providers` add to those of the configuration.
    `store` is "file" or "memory"; without `repair`, a damaged file is left alone. `loaded` is the
    configuration where it was read already. Raises Fault.
    """
    where = places(os.environ, config_dir)
    loaded = loaded or load(where.config_file, flags=flags)
    config = LiveConfig(loaded, where, dict(flags or {}))
    notices = [*loaded.warnings, *given_away(loaded.settings)]
    if for_daemon or loaded.settings.log.file:
        _open_log(loaded.settings, where, notices)
        config.applied.append(lambda old, new: _reopen_log(old, new, where, notices))
    closers: list[Callable[[], None]] = []
    kept = await _open_store(loaded.settings, where, store, notices, repair)
    account = Account(where)
    models = ModelRegistry(account.over(provider_configs(loaded.settings, providers)))
    offers = Offers()
    offers.listeners.append(lambda offer, there: _offer_provider(models, offer, there))
    private = "" if kept.durable else _passing_folder(closers)
    roster = Roster(lambda: config.settings, models, offers, where, private)
    host = Host(
        kept,
        roster,
        models,
        owner=this_process(),
        is_alive=is_alive,
        hooks=_hooks(loaded.settings),
        offers=offers,
        max_sessions=loaded.settings.limits.max_sessions,
        trouble=_trouble,
    )
    host.max_asks = loaded.settings.limits.max_approvals
    host.max_inbox = loaded.settings.limits.max_inbox
    host.shared = for_daemon
    if kept.durable and not for_daemon:
        host.on_asked.append(_letters(host))
    if kept.durable:
        host.make_checkpoints = lambda: _keeper(config.settings, where, closers)
    host.worktrees = _Late()
    node = _node(host, kept, loaded.settings, notices, for_daemon=for_daemon)
    servers = Servers(
        host,
        lambda: config.settings,
        roster.cells,
        tokens=os.path.join(where.data_dir, "tokens"),
        trust=roster.descendants.trust_marked,
        brand=roster.descendants.brand_marked,
    )
    roster.parts.append(servers.part)
    roster.servers = servers.given
    learning = Learning(where.config_dir)
    roster.parts += (learning.tools, _children(host))
    changes = cache(_changes)
    roster.beginnings.append(lambda profile, info: changes().begin(profile, info))
    roster.book = left = LeftRunning(host)
    roster.extras += (partial(_named, host), learning.said)
    roster.extras += (lambda turn: changes().said(turn), _restored, left.said)
    host.commands = learning.commands
    budgets = Budgets(
        lambda alias: profiles.budget(config.settings, alias), kept, host.clock, host.owner
    )
    host.budget = budgets
    _offer_hosted(models, loaded.settings)
    facts = Facts(
        version=__version__,
        config_dir=where.config_dir,
        config_file=where.config_file,
        data_dir=where.data_dir,
        store_file=file_of(loaded.settings, where) if kept.durable and not kept.place else "",
        started_at=host.clock.now_ms(),
        began=host.clock.monotonic(),
        notices=lambda: _standing(notices, loaded.warnings, where, flags),
        mcp=servers.status,
        budget=budgets.used,
        without_key=models.without_key,
        logged_in=account.look,
        log_out=account.forget,
    )
    if loaded.settings.sandbox.backend not in ("auto", "none"):
        _sandbox(loaded.settings)  # asked for by name: refuse to begin without it
    facts.built_in = _BuiltIn()
    facts.sandbox = cache(lambda: _sandbox(loaded.settings))
    facts.writings = _writings(where.config_dir)
    facts.sections = _sections
    recollection = Recollection(lambda: config.settings, where, host)
    roster.parts.append(recollection.tools)
    roster.extras.append(recollection.recalled)
    host.hooks.subscribe("agent_completed", recollection, intercepts=False)
    if kept.durable:
        facts.memory = recollection.of
    _join_hooks(config, host, roster, private or where.data_dir)

    def use_providers() -> None:
        models.configure_all(account.over(provider_configs(config.settings, providers)))
        _offer_hosted(models, config.settings)
        roster.choose_anew()

    account.changed += (use_providers, lambda: _equip(host))
    config.beside.append(account.look)
    config.applied.append(lambda old, new: _apply(host, use_providers, old, new))
    closers.append(recollection.close)
    composed = Composed(
        config, where, host, Door(host, config, facts), models, roster, notices, recollection,
        closers, (servers.close, budgets.flush), node,
    )  # fmt: skip
    if node is not None:
        facts.fleet = node.desk.nodes
    config.applied.append(servers.apply)
    if node is not None and not for_daemon:
        try:
            await node.start()
        except BaseException:
            await composed.close()
            raise
    return composed


def _join_hooks(config: LiveConfig, host: Host, roster: Roster, private: str) -> None:
    """The commands of `[[hooks]]`; loaded when there are some."""
    made: list[Any] = []

    def apply(old: Settings | None, new: Settings) -> None:
        if not made and new.hooks:
            from dragoman.host.hook_commands import HookCommands

            folder = os.path.join(private, "hooks")
            made.append(HookCommands(lambda: config.settings, host, roster, folder))
            roster.extras.append(made[0].told)
        elif made:
            made[0].apply()

    apply(None, config.settings)
    config.applied.append(apply)


def _children(
    host: Host,
) -> "Callable[[AgentProfile, SessionInfo], Awaitable[Toolbox | None]]":
    """The tool `task`, loaded with the first session."""

    @cache
    def made() -> "Tasks":
        from dragoman.host.tasks import Tasks

        return Tasks(host)

    return lambda profile, info: made().part(profile, info)


def _letters(host: Host) -> Callable[[], None]:
    """Looks for answers that other processes leave, once a question is open."""

    @cache
    def made() -> "Letters":
        from dragoman.engine.letters import Letters

        return Letters(host)

    return lambda: made().look()


def _changes() -> "Changes":
    """What git says of the folder; loaded with the first session's tools."""
    from dragoman.host.changes import Changes

    return Changes()


async def _named(host: Host, turn: PromptTurn) -> tuple[str, ...]:
    """Names the branch of a worktree, before the model is told where it is."""
    if "worktree" in turn.info.extra:
        from dragoman.engine.worktrees import named

        await named(host, turn.info)
    return ()


async def _restored(turn: PromptTurn) -> tuple[str, ...]:
    """Tells the model that its changes were undone since it last looked."""
    given = PutBack.of(turn.info.extra)
    if not given.what or turn.info.turns - given.turn > 1:
        return ()
    files = ", ".join(given.files) or "none"
    return (f"Since your last turn the user has {given.what} changes of yours in: {files}",)


def _keeper(
    settings: Settings, where: Places, closers: list[Callable[[], None]]
) -> Checkpoints | None:
    given = settings.checkpoints
    if not given.enabled:
        return None
    from dragoman.checkpoints.keeper import Keeper
    from dragoman.checkpoints.looking import LookLimits

    own = (where.data_dir, *files_of(settings, where), *logs_of(settings, where))
    limits = LookLimits(given.max_files, given.max_file_bytes, own=own)
    path = os.path.join(where.data_dir, "checkpoints.db")
    keeper = Keeper(path, limits, given.max_bytes)
    closers.append(keeper.close)
    return keeper


def _node(
    host: Host, store: Store, settings: Settings, notices: list[str], *, for_daemon: bool
) -> "Node | None":
    """This process as a node of a fleet; it joins with `start`."""
    given = settings.fleet
    no_bus = ""
    if given.bus:
        no_bus = "fleet.bus is set, but this version has no bus: the database wakes nodes"
        notices.append(f"{no_bus}, and text reaches the clients of other nodes by the message.")
    if not given.database or not store.place:
        return None
    from dragoman.fleet.desk import GUEST, Desk, owner_name
    from dragoman.fleet.node import Node
    from dragoman.host.owner import has_ended, this_life
    from dragoman.host.stores import named
    from dragoman.store.postgres import PostgresStore

    assert isinstance(store, PostgresStore)
    store.node = named(given)
    name = store.node.name if for_daemon else f"{store.node.name}{GUEST}{os.getpid()}"
    desk = Desk(store, owner_name(name, os.urandom(6).hex()))
    host.owner = desk.owner
    host.whereabouts = desk.whereabouts
    return Node(
        host, desk, lease=given.lease, version=__version__, life=this_life(),
        has_ended=has_ended, front=store.front, degraded=no_bus,
    )  # fmt: skip


class _Late:
    """Worktrees, loaded when somebody wants one."""

    def __getattr__(self, name: str) -> Any:
        from dragoman.host.worktrees import GitWorktrees

        return getattr(GitWorktrees(), name)


def _writings(config_dir: str) -> Any:
    """Loaded when somebody first looks at them."""

    class Late:
        def __getattr__(self, name: str) -> Any:
            from .writings import Writings

            return getattr(Writings(config_dir), name)

    return Late()


def _sections() -> Sequence[tuple[str, str, bool]]:
    from dragoman.settings.entries import sections

    return sections()


def _sandbox(settings: Settings) -> str:
    """What holds on this machine. Raises BadInput when a sandbox is asked for and not there."""
    from dragoman.sandbox.choose import choose, describe

    wanted = settings.sandbox
    return describe(choose(wanted.backend, network=wanted.network, unix=wanted.trust_unix_sockets))


def _offer_hosted(models: ModelRegistry, settings: Settings) -> None:
    """A name for the models of hosted agents, which only those agents know."""
    found = [
        ModelInfo(profiles.HOSTED, alias, alias, vision=True)
        for alias, agent in settings.agents.items()
        if agent.backend != "builtin"
    ]
    if found:
        models.offer(profiles.HOSTED, Elsewhere(), found)
    else:
        models.withdraw(profiles.HOSTED)


class _BuiltIn(Mapping[str, frozenset[str]]):
    """Names that apps cannot take: they would be granted and never used. Looked up when asked."""

    def __getitem__(self, kind: str) -> frozenset[str]:
        if kind == "tool":
            from dragoman.tools.registry import NAMES

            return frozenset(NAMES)
        if kind == "provider":
            from dragoman.providers.presets import ALIASES, PRESETS

            return frozenset(PRESETS) | frozenset(ALIASES)
        raise KeyError(kind)

    def __iter__(self) -> Iterator[str]:
        return iter(("tool", "provider"))

    def __len__(self) -> int:
        return 2


class Elsewhere:
    """Stands for models that a hosted agent asks by itself (`ports.Provider`)."""

    name = profiles.HOSTED

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelPart]:
        raise ProviderFailed(
            f"{request.model.ref} is the model of a hosted agent.",
            "bad_request",
            hint="Use that agent, or choose another model.",
        )

    async def close(self) -> None:
        return None


def _standing(
    notices: Sequence[str], warned: Sequence[str], where: Places, flags: Mapping[str, Any] | None
) -> Sequence[str]:
    """What was told at the start, without what was mended in the configuration since."""
    if not warned:
        return notices
    try:
        now = load(where.config_file, flags=flags).warnings
    except BadSettings:  # half written: what was true at the start may still be
        return notices
    return [one for one in notices if one not in warned or one in now]


def _open_log(settings: Settings, where: Places, notices: list[str]) -> None:
    from dragoman.observe.log import configure

    path = log_file(settings.log.file, where)
    try:
        configure(
            settings.log.level,
            file=path,
            as_json=settings.log.json,
            limit=settings.log.max_bytes,
            parts=settings.log.levels,
        )
    except OSError as problem:
        notices.append(f"The log {path} cannot be written ({problem.strerror}); it is on stderr.")


def _reopen_log(old: Settings, new: Settings, where: Places, notices: list[str]) -> None:
    if old.log != new.log:
        _open_log(new, where, notices)


async def _open_store(
    settings: Settings, where: Places, wanted: str, notices: list[str], repair: bool
) -> Store:
    if wanted == "memory":
        from dragoman.store.memory import MemoryStore

        return MemoryStore()
    return await open_store(settings, where, notices, repair=repair)


def provider_configs(
    settings: Settings, more: Mapping[str, ProviderConfig] | None
) -> dict[str, ProviderConfig]:
    """The providers of the configuration, and further ones."""
    configs: dict[str, ProviderConfig] = {}
    if settings.providers or settings.models or settings.agents:

        def find(provider: str, model: str) -> Any:
            from dragoman.providers.catalogue import catalogue

            return catalogue().find(provider, model)

        for plan in profiles.providers(settings, find):
            given = plan.settings
            kind = given.kind or (plan.base if plan.base != plan.name else None)
            configs[plan.name] = ProviderConfig(
                kind=kind or None,  # type: ignore[arg-type]
                api_key=given.api_key,
                base_url=given.base_url,
                headers=given.headers,
                models=plan.models,
                connect_timeout=given.connect_timeout_secs,
                first_timeout=given.first_byte_timeout_secs,
                read_timeout=given.read_timeout_secs,
                silence_timeout=given.silence_timeout_secs,
                retries=given.retries,
            )
    configs.update(more or {})
    return configs


def _hooks(settings: Settings) -> Hooks:
    given = settings.hook_rules
    hooks = Hooks(
        given.hook_timeout_ms / 1000,
        {name: ms / 1000 for name, ms in given.hook_timeouts.items()},
        frozenset({"tool_executing"}) if given.tool_executing_fail_closed else frozenset(),
    )
    hooks.on_trouble = lambda hook, who, what: log.warning("hook", hook=hook, app=who, problem=what)
    return hooks


def _apply(
    host: Host,
    use_providers: Callable[[], None],
    old: Settings,
    new: Settings,
) -> None:
    """Use a changed configuration: at once where nothing runs on the old one."""
    fresh = _hooks(new)
    host.hooks.timeout, host.hooks.timeouts = fresh.timeout, fresh.timeouts
    host.hooks.fail_closed = fresh.fail_closed
    host.max_sessions = new.limits.max_sessions
    host.max_asks = new.limits.max_approvals
    host.max_inbox = new.limits.max_inbox
    if (old.providers, old.models, old.agents) != (new.providers, new.models, new.agents):
        use_providers()
    _equip(host)


def _equip(host: Host) -> None:
    """Give sessions what their agents have now."""
    for session in tuple(host.live.values()):
        try:
            session.configure()
        except Exception as problem:  # its agent is gone or broken now: it keeps what it has
            log.warning("kept the old agent", session=session.id, problem=str(problem))


def _passing_folder(closers: list[Callable[[], None]]) -> str:
    """Where tools may leave files while nothing of ours is to stay."""
    parent = os.environ.get("TMPDIR") or "/tmp"
    folder = os.path.join(parent, f"dragoman-{os.getpid()}-{os.urandom(4).hex()}")

    def remove() -> None:
        if os.path.isdir(folder):
            from shutil import rmtree

            rmtree(folder, ignore_errors=True)

    closers.append(remove)
    return folder


def _offer_provider(models: ModelRegistry, offer: Offer, there: bool) -> None:
    if offer.kind != "provider" or offer.provider is None:
        return
    if there:
        models.offer(offer.name, offer.provider, offer.config.get("models", ()))
    else:
        models.withdraw(offer.name)


def _trouble(what: str, error: BaseException, **data: Any) -> None:
    if isinstance(error, Fault):  # says what was wrong by itself
        log.error(what, problem=f"{type(error).__name__}: {error}", **data)
        return
    import traceback

    trace = "".join(traceback.format_exception(error)[-6:])
    log.error(what, problem=f"{type(error).__name__}: {error}", trace=trace, **data)
