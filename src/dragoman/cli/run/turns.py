"""Where `dragoman run` takes its turn: in a host of this process, or in the running daemon."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import msgspec

from dragoman.cli.dialogue import Decision
from dragoman.client.problems import NotRunning, beginning, no_text, the_only
from dragoman.engine import events as ev
from dragoman.engine.content import Image, Text
from dragoman.engine.events import Ask, Mode, Who
from dragoman.engine.faults import BadInput, Fault, UnknownSession
from dragoman.engine.host import OpenSpec
from dragoman.engine.hub import Shape
from dragoman.engine.info import SessionInfo, SessionQuery, begun_by_somebody
from dragoman.host.compose import Composed, compose

if TYPE_CHECKING:
    from dragoman.client.host import HostClient

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
    worktree: bool = False

    @property
    def title(self) -> str:
        """What a branch is named after: how the prompt begins."""
        said = next((part.text for part in self.content if isinstance(part, Text)), "")
        return said.strip().partition("\n")[0][:60] if self.worktree else ""

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
        if self.old and self.worktree:
            raise BadInput(
                "A worktree is made for a new session.",
                "Leave --worktree out: a session that has one goes on in it.",
            )
        if self.session and self.cwd:
            raise BadInput("A session keeps its directory.", "Leave --cwd out.")


class Here:
    """A host of this process."""

    def __init__(self, composed: Composed) -> None:
        self._composed = composed
        self._door = composed.door
        self._session = ""

    @property
    def session(self) -> str:
        return self._session

    async def open(self, wish: Wish) -> None:
        door = self._door
        if not wish.old:
            spec = OpenSpec(
                agent=wish.agent, cwd=wish.directory, model=wish.model, mode=wish.mode,
                title=wish.title, worktree=wish.worktree,
            )  # fmt: skip
            self._session = (await door.open(spec, WHO)).id
            return
        if wish.newest:
            query = SessionQuery(cwd=wish.directory, archived=False, limit=_PAGE)
            found = newest(filter(begun_by_somebody, (await door.list(query)).sessions), wish)
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

    async def turn(self, content: tuple[Text | Image, ...], shape: Shape[None]) -> str:
        """Run a turn, told to the shape; returns its outcome."""
        await self._door.watch(self._session, WHO, shape, lambda said: None)
        work = await self._door.prompt(self._session, content, WHO)
        return (await work.done).outcome

    async def extra(self) -> dict[str, Any]:
        """What traits keep with the session."""
        return (await self._door.info(self._session)).extra

    async def answer(self, ask: Ask, decided: Decision) -> None:
        await self._door.answer(
            ask.id, decided.verdict, WHO, text=decided.text, scope=decided.scope,
            lasts=decided.lasts, digest=ask.digest, comment=decided.comment,
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

    def __init__(self, host: "HostClient") -> None:
        self._host = host
        self._session = ""
        self._key = uuid4().hex
        self._unwanted = False  # cancelled, perhaps before the host had our prompt
        self._task: asyncio.Task[None] | None = None

    @property
    def session(self) -> str:
        return self._session

    async def open(self, wish: Wish) -> None:
        host = self._host
        if not wish.old:
            made = await host.open(
                agent=wish.agent, cwd=wish.directory, model=wish.model, mode=wish.mode,
                title=wish.title, worktree=wish.worktree,
            )  # fmt: skip
            self._session = made.id
            return
        if wish.newest:
            own = await host.newest(wish.directory)
            found = newest([own] if own is not None else [], wish)
        else:
            found = await whole(wish.session, host.session, self._ids)
        if wish.model:
            await host.set_model(found, wish.model)
        if wish.mode:
            await host.set_mode(found, wish.mode)
        self._session = found

    async def _ids(self) -> list[str]:
        return [info.id for info in await self._host.list(limit=_MOST, archived=None)]

    async def turn(self, content: tuple[Text | Image, ...], shape: Shape[None]) -> str:
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

    async def extra(self) -> dict[str, Any]:
        """What traits keep with the session."""
        return (await self._host.session(self._session)).session.extra

    async def answer(self, ask: Ask, decided: Decision) -> None:
        await self._host.answer(
            ask.id, decided.verdict, text=decided.text, scope=decided.scope,
            lasts=decided.lasts, digest=ask.digest, comment=decided.comment,
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


RunSession = Here | There  # one session, and what `run` does in it


def newest(found: Iterable[SessionInfo], wish: Wish) -> str:
    for info in found:
        return info.id
    raise BadInput(f"There is no session in {wish.directory} yet.", "Leave --continue out.")


async def whole(
    given: str,
    look: Callable[[str], Awaitable[object]],
    ids: Callable[[], Awaitable[Sequence[str]]],
) -> str:
    """The whole id for a beginning of one. Raises UnknownSession, BadInput when it is not clear."""
    try:
        await look(given)
        return given
    except UnknownSession:
        found = beginning(await ids(), given)
    return the_only(found, given)


async def seat(wish: Wish) -> RunSession:
    """The running daemon if it would do the same, else a host of this process."""
    try:
        joined, why = await _join(wish, os.environ)
    except NotRunning:
        joined, why = None, ""
    if joined is not None:
        await _warn_of_loss(joined)
        return There(joined)
    if why:
        text = f"this runs in a process of its own, not in the running daemon: {why}"
        print(f"dragoman: {text}", file=sys.stderr)
    composed = await compose(config_dir=wish.config_dir)
    for notice in composed.notices:
        print(f"dragoman: {notice}", file=sys.stderr)
    return Here(composed)


async def _warn_of_loss(host: "HostClient") -> None:
    """Say that the daemon keeps no sessions, before somebody counts on this one."""
    store = (await host.status())["store"]
    if not store["durable"]:
        why = f": {store['problem']}" if store["problem"] else ""
        text = f"the running daemon has its sessions in memory only; they end with it{why}"
        print(f"dragoman: {text}", file=sys.stderr)


async def _join(wish: Wish, env: Mapping[str, str]) -> "tuple[HostClient | None, str]":
    """A connection to the daemon of this configuration, or why it is none. Raises NotRunning.

    Settings in our environment do not reach a daemon, neither do keys: when they would choose
    another model for a new session, or its model's key is known here only, there is nothing to
    join. Raises BadInput where a session of the daemon cannot have the wished model.
    """
    from dragoman.client.address import socket_path
    from dragoman.client.host import connect

    host = await connect(socket_path(wish.config_dir), name=NAME).__aenter__()
    try:
        why = await _apart(host, wish, env)
    except BaseException:
        await host.__aexit__(None, None, None)
        raise
    if not why:
        return host, ""
    await host.__aexit__(None, None, None)
    return None, why


async def _apart(host: "HostClient", wish: Wish, env: Mapping[str, str]) -> str:
    """Why a turn is not the daemon's; empty when it is. Only the agent in question counts.

    What cannot be worked out here is the daemon's to tell.
    """
    given = [n for n in env if "__" in n and n.startswith(("DRAGOMAN_", "ZEROCLAW_"))]
    if given:
        return f"it does not have the settings of this environment ({', '.join(sorted(given))})"
    if wish.old and not wish.model:
        return ""
    from dragoman.host.account import Account
    from dragoman.host.compose import provider_configs
    from dragoman.providers.registry import ModelRegistry
    from dragoman.settings import profiles
    from dragoman.settings.load import load
    from dragoman.settings.places import places

    where = places(env, wish.config_dir)
    try:
        settings = load(where.config_file, env).settings
    except Fault:
        return ""  # the daemon goes on with what it had
    models = ModelRegistry(Account(where).over(provider_configs(settings, None)), env=env)
    there = ""  # the model that the daemon would use, if it is not the wished one
    alias = wish.agent or profiles.default_alias(settings) or ""
    try:
        ref = wish.model
        if not ref:
            row = {one.alias: one for one in await host.agents()}.get(alias)
            if row is None or row.backend not in ("builtin", ""):  # unknown, or hosted
                return ""
            ref = profiles.model_ref(settings, alias, lambda _: models.default_ref())
            there = row.model
        found = models.resolve(ref, alias)[1]
    except Fault:
        return ""
    finally:
        await models.close()
    if there and there not in (ref, found.ref):
        return f"the keys of this shell choose {found.ref}, the daemon has {there}"
    if found.provider not in (await host.call("dragoman/models"))["without_key"]:
        return ""
    if wish.old:
        raise BadInput(
            f"The running daemon has no key for {found.provider}, only this shell has.",
            f"Keep it for both with: dragoman login {found.provider} (or start the daemon with the "
            "key); a new session can have the model at once.",
        )
    return f"only this shell has a key for {found.provider}"
