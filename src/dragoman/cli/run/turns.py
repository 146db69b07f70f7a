"""Where `dragoman run` takes its turn: in a host of this process, or in the running daemon."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol
from uuid import uuid4

import msgspec

from dragoman.cli.dialogue import Decision
from dragoman.client.problems import NotRunning, no_text
from dragoman.engine import events as ev
from dragoman.engine.content import Image, Text
from dragoman.engine.events import Ask, Mode, Who
from dragoman.engine.faults import BadInput, Fault, UnknownSession
from dragoman.engine.host import OpenSpec
from dragoman.engine.hub import Shape
from dragoman.engine.info import SessionQuery
from dragoman.host.compose import Composed, compose

NAME = "dragoman run"
WHO = Who("terminal", "terminal", NAME, "terminal")
_PAGE = 1_000
_MOST = 10_000


class Wish(msgspec.Struct, frozen=True):
    """The turn that is wanted. `newest`: in the newest session of the directory."""

    content: tuple[Text | Image, ...]
    config_dir: str | None = None
    agent: str = ""
    cwd: str = ""
    model: str = ""
    mode: Mode | None = None
    session: str = ""
    newest: bool = False

    @property
    def old(self) -> bool:
        return bool(self.session) or self.newest

    @property
    def directory(self) -> str:
        return os.path.realpath(os.path.expanduser(self.cwd or os.getcwd()))

    def check(self) -> None:
        """Raise BadInput for wishes that exclude each other, or are no text."""
        try:
            "".join((self.agent, self.model, self.session, self.directory)).encode()
        except UnicodeEncodeError as problem:
            raise no_text(problem) from None
        if self.session and self.newest:
            raise BadInput("--session and --continue exclude each other.", "Give one of them.")
        if self.old and self.agent:
            raise BadInput("A session keeps its agent.", "Leave --agent out, or begin a session.")
        if self.session and self.cwd:
            raise BadInput("A session keeps its directory.", "Leave --cwd out.")


class Seat(Protocol):
    """One session, and what `run` does in it."""

    async def open(self, wish: Wish) -> None: ...

    async def turn(self, content: tuple[Text | Image, ...], shape: Shape) -> str:
        """Run a turn, told to the shape; returns its outcome."""
        ...

    async def answer(self, ask: Ask, decided: Decision) -> None: ...

    def cancel(self) -> None: ...

    async def close(self) -> None: ...


class Here:
    """A host of this process."""

    def __init__(self, composed: Composed) -> None:
        self._composed = composed
        self._door = composed.door
        self._session = ""

    async def open(self, wish: Wish) -> None:
        door = self._door
        if not wish.old:
            spec = OpenSpec(agent=wish.agent, cwd=wish.directory, model=wish.model, mode=wish.mode)
            self._session = (await door.open(spec, WHO)).id
            return
        if wish.newest:
            page = await door.list(SessionQuery(cwd=wish.directory, archived=False, limit=1))
            found = newest((info.id for info in page.sessions), wish)
        else:
            found = await whole(wish.session, door.info, self._ids)
        await door.load(found)
        if wish.model:
            await door.set_model(found, wish.model, WHO)
        if wish.mode:
            await door.set_mode(found, wish.mode, WHO)
        self._session = found

    async def _ids(self) -> list[str]:
        ids: list[str] = []
        query = SessionQuery(limit=_PAGE)
        while len(ids) < _MOST:
            page = await self._door.list(query)
            ids += [info.id for info in page.sessions]
            if not page.cursor:
                break
            query = msgspec.structs.replace(query, cursor=page.cursor)
        return ids

    async def turn(self, content: tuple[Text | Image, ...], shape: Shape) -> str:
        await self._door.watch(self._session, WHO, shape, lambda said: None)
        work = await self._door.prompt(self._session, content, WHO)
        return (await work.done).outcome

    async def answer(self, ask: Ask, decided: Decision) -> None:
        await self._door.answer(
            ask.id, decided.verdict, WHO, text=decided.text, scope=decided.scope,
            lasts=decided.lasts, digest=ask.digest,
        )  # fmt: skip

    def cancel(self) -> None:
        try:
            self._door.cancel(self._session)
        except Fault:
            return  # it ended by itself just now

    async def close(self) -> None:
        await self._composed.close()


class There:
    """The running daemon: everybody sees the session, and may approve."""

    def __init__(self, host: Any) -> None:  # a `client.HostClient` that is connected
        self._host = host
        self._session = ""
        self._key = uuid4().hex
        self._unwanted = False  # cancelled, perhaps before the host had our prompt
        self._task: asyncio.Task[None] | None = None

    async def open(self, wish: Wish) -> None:
        host = self._host
        if not wish.old:
            made = await host.open(
                agent=wish.agent, cwd=wish.directory, model=wish.model, mode=wish.mode
            )
            self._session = made.id
            return
        if wish.newest:
            rows = await host.list(cwd=wish.directory, limit=1)
            found = newest((info.id for info in rows), wish)
        else:
            found = await whole(wish.session, host.session, self._ids)
        if wish.model:
            await host.set_model(found, wish.model)
        if wish.mode:
            await host.set_mode(found, wish.mode)
        self._session = found

    async def _ids(self) -> list[str]:
        return [info.id for info in await self._host.list(limit=_MOST, archived=None)]

    async def turn(self, content: tuple[Text | Image, ...], shape: Shape) -> str:
        outcome = ""
        async for event in self._host.prompt(self._session, content, key=self._key):
            if isinstance(event.body, ev.TurnBegan) and self._unwanted:
                self.cancel()
            elif isinstance(event.body, ev.TurnEnded):
                outcome = event.body.outcome
            shape.speak((event,))
        if not outcome and self._unwanted:
            print("dragoman: the prompt was withdrawn.", file=sys.stderr)
        return outcome or ("cancelled" if self._unwanted else "failed")

    async def answer(self, ask: Ask, decided: Decision) -> None:
        await self._host.answer(
            ask.id, decided.verdict, text=decided.text, scope=decided.scope,
            lasts=decided.lasts, digest=ask.digest,
        )  # fmt: skip

    def cancel(self) -> None:
        self._unwanted = True
        self._task = asyncio.ensure_future(self._cancel())

    async def _cancel(self) -> None:
        try:
            await self._host.retract(self._session, self._key)
        except Fault:
            return  # it ended by itself just now, or the host has not got it yet

    async def close(self) -> None:
        await self._host.__aexit__(None, None, None)


def newest(ids: Iterable[str], wish: Wish) -> str:
    for one in ids:
        return one
    raise BadInput(f"There is no session in {wish.directory} yet.", "Leave --continue out.")


async def whole(
    given: str, look: Callable[[str], Awaitable[Any]], ids: Callable[[], Awaitable[Sequence[str]]]
) -> str:
    """The whole id for a beginning of one. Raises UnknownSession, BadInput when it is not clear."""
    try:
        await look(given)
        return given
    except UnknownSession:
        found = [one for one in await ids() if one.startswith(given)]
    if not found:
        raise UnknownSession(given)
    if len(found) > 1:
        names = ", ".join(found[:4])
        raise BadInput(f"{len(found)} sessions begin with {given}: {names}.", "Write more of it.")
    return found[0]


async def seat(wish: Wish) -> Seat:
    """The running daemon if it would do the same, else a host of this process."""
    try:
        joined = await _join(wish, os.environ)
    except NotRunning:
        joined = None
    if joined is not None:
        return There(joined)
    composed = await compose(config_dir=wish.config_dir)
    for notice in composed.notices:
        print(f"dragoman: {notice}", file=sys.stderr)
    return Here(composed)


async def _join(wish: Wish, env: Mapping[str, str]) -> Any | None:
    """A connection to the daemon of this configuration. Raises NotRunning.

    Settings in our environment do not reach a daemon, neither do keys: when they would choose
    another model for a new session, or the wished model's key is known here only, there is nothing
    to join. Raises BadInput where a session of the daemon cannot have the wished model.
    """
    path = _address(wish, env)
    if not path:
        return None
    from dragoman.client.host import connect

    host = await connect(path, name=NAME).__aenter__()
    try:
        if wish.model:
            lacks = await _lacks_key(host, wish, env)
            if lacks and wish.old:
                raise BadInput(
                    f"The running daemon has no key for {lacks}, only this shell has.",
                    f"Write api_key into [providers.{lacks}] of config.toml, or start the daemon "
                    "with the key; a new session can have the model at once.",
                )
            if not lacks:
                return host
        elif wish.old or await _same_model(host, wish, env):
            return host
    except BaseException:
        await host.__aexit__(None, None, None)
        raise
    await host.__aexit__(None, None, None)
    return None


def _address(wish: Wish, env: Mapping[str, str]) -> str:
    """Where a daemon that knows the same settings may listen; empty when there is none."""
    if any("__" in name and name.startswith(("DRAGOMAN_", "ZEROCLAW_")) for name in env):
        return ""
    from dragoman.client.address import socket_path

    path = socket_path(wish.config_dir)
    return path if os.path.exists(path) else ""


def _known(wish: Wish, env: Mapping[str, str]) -> tuple[Any, Any]:
    """The settings and the models of this environment."""
    from dragoman.host.compose import provider_configs
    from dragoman.providers.registry import ModelRegistry
    from dragoman.settings.load import load
    from dragoman.settings.places import places

    settings = load(places(env, wish.config_dir).config_file, env).settings
    return settings, ModelRegistry(provider_configs(settings, None), env=env)


async def _lacks_key(host: Any, wish: Wish, env: Mapping[str, str]) -> str:
    """The provider of the wished model if it has a key here but not there; empty otherwise."""
    _, models = _known(wish, env)
    try:
        provider = str(models.resolve(wish.model, wish.agent)[1].provider)
    except Fault:
        return ""  # the daemon says what is wrong
    finally:
        await models.close()
    lacking = (await host.call("dragoman/models"))["without_key"]
    return provider if provider in lacking else ""


async def _same_model(host: Any, wish: Wish, env: Mapping[str, str]) -> bool:
    from dragoman.settings import profiles

    rows = {row.alias: row.model for row in await host.agents()}
    if wish.agent and wish.agent not in rows:
        return True  # the daemon says what is wrong
    settings, models = _known(wish, env)
    try:
        for alias in (wish.agent,) if wish.agent else profiles.names(settings):
            ref = profiles.model_ref(settings, alias, lambda _: models.default_ref())
            if rows.get(alias) != ref and models.resolve(ref, alias)[1].ref != rows.get(alias):
                return False
    except Fault:
        return False  # told by the host of this process
    finally:
        await models.close()
    return True
