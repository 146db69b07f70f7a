"""`dragoman rpc`: the zot protocol on standard input and output, one process, one session.

Only what a ping needs is imported before the first line is read; the host is put together when a
command needs it. When the command line or a configuration file chooses something that may be
missing (a provider without a key, a session), that is looked at first, and the process ends with
one line on standard error instead of answering.
"""

import os
import sys
from typing import TYPE_CHECKING, Any

from dragoman.dialects.zot import Desk, Settings
from dragoman.engine.traits import Given
from dragoman.stdio.zot_flags import Flags, WrongFlag, parse

if TYPE_CHECKING:
    from dragoman.engine.door import Door
    from dragoman.host.compose import Composed

TOKEN = "ZOTCORE_RPC_TOKEN"


def main(words: list[str]) -> int:
    """Run until the input ends; returns the exit code."""
    token = os.environ.pop(TOKEN, "")  # read once; tools never see it
    try:
        flags = parse(words)
    except WrongFlag as wrong:
        return _wrong(str(wrong))
    if flags.version:
        from dragoman import __version__

        print(f"zot {__version__} (dragoman)")
        return 0
    if flags.prints:
        return _print(flags)
    if flags.no_yolo:
        print("zot: --no-yolo has no effect here; use --supervised", file=sys.stderr)
    if flags.session and not flags.list_models:
        from dragoman.engine.faults import Fault
        from dragoman.stdio import zot_join

        try:
            sock = zot_join.find(flags, token)
        except Fault as fault:
            print(f"zot: {fault}", file=sys.stderr)
            return 1
        if sock is not None:
            return zot_join.join(sock, flags.session)
    from dragoman.transports.loop import run

    return run(_Rpc(flags, token).run())


def _print(flags: Flags) -> int:
    """`-p`: one turn, its answer on standard output; that is `dragoman run`."""
    from dragoman.transports.loop import run

    rpc = _Rpc(flags, "")
    if not flags.session and run(rpc.look()):  # a session has a model of its own
        return 1
    for name in flags.without_effect_in_print():
        print(f"zot: {name} has no effect with {flags.prints}", file=sys.stderr)
    words = [sys.executable, "-P", "-m", "dragoman", "run"]
    for flag, value in (
        ("--model", rpc.desk.settings.model or flags.model),
        ("--cwd", flags.cwd),
        ("--agent", flags.agent),
        ("--session", flags.session if flags.session != "new" else ""),
        ("--config-dir", flags.config_dir),
        ("--mode", flags.mode or ("" if flags.supervised else "full")),
    ):
        if value:
            words += [flag, value]
    if flags.prints == "--json":
        words.append("--json")
    for key, value in rpc.provider_flags().items():
        os.environ["DRAGOMAN_" + key.replace(".", "__").upper()] = value
    os.execv(sys.executable, [*words, "--", *flags.words])


def _wrong(reason: str) -> int:
    from dragoman.cli import help, table

    command = table.find("rpc")
    assert command is not None
    print(help.of(command), file=sys.stderr)
    print(f"zot: {reason}", file=sys.stderr)
    return 1


class _Rpc:
    """One process that serves one client."""

    def __init__(self, flags: Flags, token: str) -> None:
        self.flags = flags
        self.composed: Composed | None = None
        shown = flags.cwd or os.getcwd()
        settings = Settings(
            token=token,
            agent=flags.agent,
            cwd=os.path.realpath(os.path.expanduser(shown)),
            cwd_shown=shown,
            reasoning=flags.reasoning,
            sole=True,
            keeps=bool(flags.session),
        )
        self.desk = Desk(None, settings, provide=self._provide)

    async def run(self) -> int:
        if self._must_look() and not await self._is_ready():
            return await self._close(1)
        if self.flags.list_models:
            return await self._close(self._list_models())
        return await self._serve()

    async def look(self) -> int:
        """Only see whether what is needed is there, and which model that means."""
        return await self._close(0 if await self._is_ready() else 1)

    async def _is_ready(self) -> bool:
        from dragoman.engine.faults import Fault

        try:
            await self.desk.ready()
        except Fault as fault:
            print(f"zot: {fault}", file=sys.stderr)
            return False
        return True

    def _must_look(self) -> bool:
        """Whether what is needed may be missing: then nothing is answered before it is there."""
        flags = self.flags
        if flags.list_models or flags.chooses() or self._is_configured():
            return True
        return not flags.provider and not _has_key()

    def _is_configured(self) -> bool:
        from dragoman.settings.places import places

        where = places(os.environ, self.flags.config_dir or None)
        named = any(name.startswith("DRAGOMAN_") and "__" in name for name in os.environ)
        return named or os.path.exists(where.config_file)

    async def _serve(self) -> int:
        from dragoman.host.after_start import spare_memory
        from dragoman.transports import stdio
        from dragoman.transports.loop import Stopping

        stopping = Stopping(hang_up=True)
        line = await stdio.serve(self.desk.hearer)
        spare_memory()
        await stopping.until(line.gone)
        code = await self._close(1 if self.desk.failure else 0)
        if self.desk.failure:
            print(f"zot: {self.desk.failure}", file=sys.stderr)
        stopping.end()
        return code

    async def _close(self, code: int) -> int:
        if self.composed is not None:
            await self.composed.close()
        return code

    def _list_models(self) -> int:
        assert self.composed is not None
        print(f"{'provider':<14}{'id':<40}{'context':>10}{'max-out':>10}  reasoning")
        for model in self.composed.door.models():
            mark = "✓" if model.reasoning else ""
            row = f"{model.provider:<14}{model.id:<40}{model.context_window:>10}"
            print(f"{row}{model.max_output:>10}  {mark}")
        return 0

    # --- putting the host together ---

    async def _provide(self) -> "Door":
        """The engine with what the command line says. Raises Fault."""
        from dragoman.host.compose import compose

        flags = self.flags
        self.composed = composed = await compose(
            config_dir=flags.config_dir or None,
            flags=self.provider_flags(),
            store="file" if flags.session else "memory",
        )
        for notice in composed.notices:
            print(f"zot: {notice}", file=sys.stderr)
        door = composed.door
        changes: dict[str, Any] = {
            "model": self._model(composed),
            "mode": self._mode(composed),
            "given": self._given(composed),
        }
        self.desk.settings = settings = _replaced(self.desk.settings, **changes)
        if flags.session == "new":
            from dragoman.dialects.zot.seat import new_session

            opened = await door.open(new_session(settings))
            self.desk.settings = _replaced(settings, session=opened.id)
        elif flags.session:
            await door.load(flags.session)
            self.desk.settings = _replaced(settings, session=flags.session)
        return door

    def provider_flags(self) -> dict[str, Any]:
        flags = self.flags
        name = self._provider_name()
        found: dict[str, Any] = {}
        if name and flags.api_key:
            found[f"providers.{name}.api_key"] = flags.api_key
        if name and flags.base_url:
            found[f"providers.{name}.base_url"] = _rooted(name, flags.base_url)
        return found

    def _provider_name(self) -> str:
        """The provider that a key or an address on the command line is for."""
        flags = self.flags
        if flags.provider or not (flags.api_key or flags.base_url):
            return flags.provider
        head, slash, _ = flags.model.partition("/")
        return head if slash else "anthropic"

    def _model(self, composed: "Composed") -> str:
        """The model as "provider/model"; raises when it is unknown or has no credential."""
        from dragoman.engine.faults import UnknownModel
        from dragoman.providers.presets import PRESETS

        flags, door = self.flags, composed.door
        provider, model = self._provider_name(), flags.model
        if provider:
            from dragoman.providers.presets import ALIASES

            name = ALIASES.get(provider, provider)
            model = model.removeprefix(f"{provider}/").removeprefix(f"{name}/")
            ref = f"{name}/{model}" if model else composed.roster.choose(name)
        elif model:
            ref = model
        else:
            alias = flags.agent or door.default_agent()
            if alias is None:
                return ""
            ref = door.profile(alias).model
            if ref.partition("/")[0] == "demo" and not self._names_model(composed, alias):
                ref = "anthropic/" + PRESETS["anthropic"].default_model  # says what is missing
        try:
            return door.model(ref, flags.agent or door.default_agent() or "").ref
        except UnknownModel as fault:
            raise UnknownModel(fault.message) from None

    def _names_model(self, composed: "Composed", alias: str) -> bool:
        """Whether the configuration itself chooses the agent's model or provider."""
        sources = composed.config.loaded.sources
        agent = composed.settings.agents.get(alias)
        profile = agent.runtime_profile if agent is not None else ""
        wanted = {("agents", alias, name) for name in ("model", "provider")}
        wanted |= {("runtime_profiles", profile, name) for name in ("model", "provider")}
        return bool(wanted & set(sources))

    def _mode(self, composed: "Composed") -> str:
        """zot never asks, so neither do we, unless somebody wants it."""
        if self.flags.mode or self.flags.supervised:
            return self.flags.mode or "supervised"
        alias = self.flags.agent or composed.door.default_agent() or ""
        said = {("autonomy", "level"), ("agents", alias, "mode"), ("agents", alias, "autonomy")}
        agent = composed.settings.agents.get(alias)
        if agent is not None and agent.risk_profile:
            said.add(("risk_profiles", agent.risk_profile, "mode"))
        return "" if said & set(composed.config.loaded.sources) else "full"

    def _given(self, composed: "Composed") -> Given:
        flags, door = self.flags, composed.door
        more: tuple[str, ...] | None = None
        if flags.append_system_prompt:
            alias = flags.agent or door.default_agent()
            before = door.profile(alias).append_system_prompt if alias else ()
            more = (*before, *flags.append_system_prompt)
        tools = None if flags.tools is None else tuple(flags.tools)
        return Given(
            system_prompt=flags.system_prompt,
            append_system_prompt=more,
            tools=() if flags.no_tools else tools,
            max_steps=flags.max_steps or None,
            temperature=flags.temperature,
            context_files=False if flags.no_context_files else None,
            # Clients of zot know no questions: they would wait for ever.
            asks=None if flags.supervised else False,
        )


def _has_key() -> bool:
    """Whether the environment has a key of any provider."""
    from dragoman.providers.presets import PRESETS

    return any(os.environ.get(key) for preset in PRESETS.values() for key in preset.env)


def _replaced(settings: Settings, **changes: Any) -> Settings:
    import msgspec

    return msgspec.structs.replace(settings, **changes)


def _rooted(provider: str, url: str) -> str:
    """zot's addresses stop before `/v1`; those of OpenAI-compatible servers end with it here."""
    bare = url.rstrip("/")
    if provider in ("anthropic", "google") or "/" in bare.partition("://")[2]:
        return bare
    return f"{bare}/v1"
