"""The only API that dialects may call.

Everything a client can do to a session goes through here, whatever protocol it speaks. Methods that
only touch what is in memory are plain; those that may read or write the store are coroutines.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from . import events as ev
from .ask import AskReply
from .content import Message, Prompt
from .entries import Excerpt, is_compacted, whole
from .events import Ask, Event, Mode, Settled, Verdict, Who
from .facts import Facts
from .faults import (
    BadInput,
    Busy,
    InUse,
    NothingRunning,
    UnknownAsk,
    UnknownSession,
    stopping,
)
from .host import Host, OpenSpec
from .hub import S, Shape, T, Watch, readied
from .ids import token
from .info import Page, SessionInfo, SessionQuery, Whereabouts
from .opening import EFFORTS as EFFORTS
from .opening import check_effort, whole_path
from .pages import Pages
from .ports import AgentProfile, AskRow, ModelInfo, Shelf
from .ports.checkpoints import ChangedFile, Checkpoint, Restored
from .ports.commands import Command
from .ports.config import ConfigPort
from .seat import Outlet, Seat, Seats
from .traits import StartedBy, Trait
from .usable import usable
from .view import Read, SessionView
from .visitors import Visitors

if TYPE_CHECKING:
    from .work import Work

MODES: tuple[Mode, ...] = ("readonly", "plan", "supervised", "full")


def narrower(mode: Mode, above: Mode) -> Mode:
    """The mode of a child whose parent is in this one; who only plans lets others only look."""
    return "readonly" if above == "plan" else min(mode, above, key=MODES.index)


class StoreHealth(msgspec.Struct, frozen=True):
    """How the store is."""

    durable: bool
    problem: str
    commits: int
    stalled: str = ""
    place: str = ""


class Door:
    """What a dialect holds of the engine."""

    def __init__(
        self,
        host: Host,
        config: ConfigPort | None = None,
        facts: Facts | None = None,
    ) -> None:
        self.visitors = Visitors(host.clock)
        self._host = host
        self.config = config
        self.facts = facts or Facts()
        self.hooks = host.hooks
        self.offers = host.offers
        self._pages = Pages()
        # What the host does for anybody who asks; see there.
        self.spawn = host.spawn
        self.trouble = host.trouble
        self.prompt = host.prompt
        self.read = host.read
        self.read_all = host.read_all
        self.close = host.close
        self.relieve = host.relieve
        self.arrived = host.arrivals.passed  # the prompts that came before are in the inbox
        self.rules = host.rules.all  # answers that are remembered
        self.remove_rule = host.rules.remove
        self.remembered = host.remembered
        self.deletions = 0  # sessions deleted here: those who keep lists look at it

    @property
    def durable(self) -> bool:
        """Whether sessions survive this process."""
        return self._host.store.durable

    @property
    def stopping(self) -> bool:
        """Whether the host is going down."""
        return self._host.stopping

    @property
    def max_sessions(self) -> int:
        return self._host.max_sessions

    @property
    def health(self) -> StoreHealth:
        store = self._host.store
        return StoreHealth(store.durable, store.problem, store.commits, store.stalled, store.place)

    @property
    def shelf(self) -> Shelf:
        """Where small things are kept that belong to no session."""
        return self._host.store

    def now_ms(self) -> int:
        return self._host.clock.now_ms()

    def uptime_ms(self) -> int:
        """How long the process has run, whatever was done to the clock meanwhile."""
        began = self.facts.began
        return 0 if began is None else round((self._host.clock.monotonic() - began) * 1000)

    def running(self) -> bool:
        """Whether any session does something that only this process can go on with."""
        return any(
            session.own
            and session.inbox.busy
            and (
                session.state.status != "waiting_input"
                or any(not work.stored for work in session.inbox.waiting)
            )
            for session in self._host.live.values()
        )

    # --- agents and models ---

    def agents(self) -> Sequence[str]:
        return self._host.agents.names()

    def default_agent(self) -> str | None:
        return self._host.agents.default()

    def profile(self, alias: str) -> AgentProfile:
        return self._host.agents.profile(alias)

    def models(self, provider: str | None = None) -> Sequence[ModelInfo]:
        """The models of one provider or of all, those of the agents also where no list has them."""
        return usable(self._host.models, self._host.agents, provider)

    def model(self, ref: str, agent: str = "") -> ModelInfo:
        """The model as this agent has it. Raises UnknownModel, or BadInput without a key."""
        return self._host.models.resolve(ref, agent)[1]

    # --- sessions ---

    async def open(self, spec: OpenSpec, by: Who | None = None) -> SessionInfo:
        if spec.worktree:
            from .worktrees import placed

            spec = await placed(self._host, spec)
        return (await self._host.open(spec, by)).state.info()

    async def end_worktree(self, session_id: str, how: str, by: Who | None = None) -> str:
        """Merge a session's worktree into its repository, or drop it; says what was done."""
        from .worktrees import ended

        return await ended(self._host, session_id, how, by)

    async def fork(
        self,
        session_id: str,
        by: Who | None = None,
        spec: OpenSpec | None = None,
        *,
        keep: int | None = None,
    ) -> SessionInfo:
        """A new session that begins with what was said in another one, or its first messages."""
        from .copying import forked

        parent = await self.look(session_id)
        return await forked(self._host, parent, spec or OpenSpec(), by, keep)

    def live(self, session_id: str) -> SessionView | None:
        """The session if it is in memory; no reading."""
        session = self._host.live.get(session_id)
        return SessionView(session.ledger, session) if session is not None else None

    def lives(self) -> list[SessionView]:
        """All sessions that are in memory."""
        return [SessionView(one.ledger, one) for one in self._host.live.values()]

    def live_infos(self) -> list[SessionInfo]:
        return [session.state.info() for session in self._host.live.values()]

    def live_ids(self) -> tuple[str, ...]:
        return tuple(self._host.live)

    async def load(self, session_id: str) -> SessionInfo:
        """Bring a session back into memory. Raises UnknownSession, InUse."""
        return (await self._host.get(session_id)).state.info()

    async def info(self, session_id: str) -> SessionInfo:
        session = self._host.live.get(session_id)
        if session is not None:
            return session.ledger.info()
        info = await self._host.store.info(session_id)
        if info is None:
            raise UnknownSession(session_id)
        return info

    async def look(self, session_id: str) -> SessionView:
        """The session as it is, read from the store when it is not in memory."""
        return self.live(session_id) or SessionView(Read(await self._host.rebuild(session_id)))

    async def messages(self, session_id: str) -> Sequence[Message]:
        return tuple((await self.look(session_id)).messages)

    async def transcript(self, session_id: str) -> Sequence[Message]:
        """All messages that are kept, also those that a compaction took out of the context."""
        view = await self.look(session_id)
        if not is_compacted(view.messages):
            return tuple(view.messages)
        return await whole(self._host.store, session_id)

    async def find(self, trait: type[Trait], **fields: Any) -> SessionInfo | None:
        """The newest session whose trait has these values."""
        return await self._host.store.find(**{trait.NAME: fields})

    async def list(self, query: SessionQuery | None = None) -> Page:
        """Sessions, the newest first; `listed` knows the same page 240 times sooner (0073)."""
        query = query or SessionQuery()
        if query.cwd:
            query = msgspec.structs.replace(query, cwd=self.folder(query.cwd))
        version = self._host.store.version()
        page = await self._host.store.list(query)
        self._pages.put(query, version, page)
        return page

    def folder(self, cwd: str) -> str:
        """The whole path of a folder that a client names. Raises BadInput: it cannot be known."""
        host = self._host
        return whole_path(cwd, host._launch_dir, relative=not host.shared)

    async def search(self, text: str, limit: int = 100) -> Sequence[SessionInfo]:
        """Sessions in which all these words were said, the newest such place first."""
        return await self._host.store.search(text, limit)

    def listed(self, query: SessionQuery) -> Page | None:
        """The same page as `list` if it was read before and nothing was written since.

        Reading a hundred sessions takes 360 µs, this 1.5 (decision 0073).
        """
        return self._pages.get(query, self._host.store.version())

    async def whereabouts(self, session_ids: Sequence[str]) -> Mapping[str, Whereabouts]:
        """Where in a fleet these sessions are; empty: there is none."""
        look = self._host.whereabouts
        return await look(session_ids) if look is not None and session_ids else {}

    @property
    def fleet(self) -> Mapping[str, Any] | None:
        """What this node does in its fleet; None: it is in none."""
        return self._host.fleet() if self._host.fleet is not None else None

    async def newest(self) -> int:
        """The place (`gseq`) of the newest kept event of any session, of any process."""
        return await self._host.store.newest_gseq()

    async def touched(self, after: int, limit: int) -> Sequence[str]:
        """The sessions of up to `limit` kept events after a `gseq`, one id per event."""
        return [entry.session for entry in await self._host.store.entries_since(after, limit)]

    async def ancestry(self, session_id: str) -> Sequence[SessionInfo]:
        return await self._host.store.ancestry(session_id)

    async def history(
        self, session_id: str, after: int = 0, limit: int = 10_000
    ) -> Sequence[Event]:
        """Kept events after a sequence number, oldest first."""
        events = await self._host.read(session_id, after, limit)
        if not events and after == 0:
            raise UnknownSession(session_id)
        return events

    async def delete(self, session_id: str, by: Who | None = None) -> bool:
        """Remove a session and its history for good; False when there was none."""
        self.deletions += 1
        return await self._host.erase(session_id, by)

    # --- driving ---

    async def compact(self, session_id: str, by: Who | None = None, *, limit: int = 32) -> Work:
        session = await self._host.get(session_id)
        from .work import Work

        work = Work("compact", f"trn_{token()}", (), by)
        session.inbox.put(work, limit=limit, wait=None)
        return work

    async def steer(self, session_id: str, content: Prompt, by: Who | None = None) -> str:
        """Say something into the running turn; the model sees it at its next step."""
        await self.arrived(session_id)
        return await (await self._host.get(session_id)).inbox.steer(content, by)

    async def kept(self, session_id: str) -> None:
        """Wait until all that was done to a session is stored: it may be acknowledged then."""
        session = self._host.live.get(session_id)
        if session is not None:
            await session.inbox.kept()

    def cancel(self, session_id: str, cause: str = "client") -> str:
        """Stop the running turn at once; returns its id. Raises NothingRunning, UnknownSession."""
        session = self._host.live.get(session_id)
        if session is None:
            raise UnknownSession(session_id)
        return session.inbox.cancel(cause)

    def stop_call(self, session_id: str, call_id: str) -> None:
        """Stop one call; its turn goes on. Raises NothingRunning, UnknownSession."""
        session = self._host.live.get(session_id)
        if session is None:
            raise UnknownSession(session_id)
        turn = session.ledger.turn if session.own else None
        if turn is None or not turn.stop_call(call_id):
            raise NothingRunning(f"No such call runs here: {call_id}")

    async def interrupt(self, session_id: str, by: Who | None = None) -> str:
        """Like cancel, but the session rests as `interrupted` and tells so."""
        session = await self._host.get(session_id)
        if not session.own:
            turn_id = session.inbox.cancel("interrupt", interrupt=True)
            await session.inbox.kept()
            return turn_id
        state = session.state
        left = session.ledger.turn is None and state.turn  # since before a restart
        turn_id = session.inbox.cancel("interrupt", interrupt=True)
        if left:
            await session.ledger.told()
        elif state.status in ("running", "waiting_input", "starting"):
            await session.ledger.put(ev.StatusChanged(state.status, "interrupting"))
        return turn_id

    async def idle(self, session_id: str) -> None:
        """Wait until the session has nothing to do."""
        session = self._host.live.get(session_id)
        if session is not None:
            await session.inbox.idle()

    async def over(self, session_id: str) -> None:
        """Wait until what the session does now has ended, whatever waits behind it."""
        session = self._host.live.get(session_id)
        if session is not None:
            await session.inbox.over()

    async def clear(self, session_id: str, by: Who | None = None) -> None:
        session = await self._host.get(session_id)
        if session.inbox.busy:
            raise Busy("The agent is busy.", "Cancel the turn first.")
        await session.ledger.put(ev.Cleared(by))

    # --- checkpoints ---

    async def checkpoints(self, session_id: str) -> Sequence[Checkpoint]:
        """The turns that changed files, oldest first. Raises BadInput where none are kept."""
        if self._host.elsewhere is not None:
            return await (await self._host.get(session_id)).checkpoints()
        from .undoing import checkpoints_of

        return await checkpoints_of(self._host).listed(await self.info(session_id))

    async def changed(self, session_id: str, turn: str = "") -> Sequence[ChangedFile]:
        """The files as the session left them, or one turn, as diffs. Raises BadInput."""
        from .undoing import checkpoints_of

        return await checkpoints_of(self._host).changed(await self.info(session_id), turn)

    async def undo(self, session_id: str, turn: str = "", by: Who | None = None) -> Restored:
        """Put files back to before the last turn that changed some, or before this one.

        Raises Busy, BadInput, Changed.
        """
        return await (await self._host.get(session_id)).undo(turn, by)

    async def redo(self, session_id: str, by: Who | None = None) -> Restored:
        """Take the last undo back. Raises Busy, BadInput, Changed."""
        return await (await self._host.get(session_id)).undo(None, by)

    # --- changing ---

    async def set_model(self, session_id: str, ref: str, by: Who | None = None) -> str:
        """Use another model from the next model call on. Raises UnknownModel, BadInput."""
        session = await self._host.get(session_id)
        model = self.model(ref, session.state.agent)
        if model.ref != session.state.model:
            await session.ledger.put(ev.ModelSet(model.ref, by))
        return model.ref

    async def set_mode(self, session_id: str, mode: str, by: Who | None = None) -> None:
        if mode not in MODES:
            raise BadInput(f"Unknown mode: {mode}.", f"Use one of: {', '.join(MODES)}.")
        session = await self._host.get(session_id)
        if mode != session.state.mode:
            await session.ledger.put(ev.ModeSet(mode, by))
        for child in tuple(self._host.live.values()):  # none does more than who it works for
            above = StartedBy.of(child.state.extra).session
            if above == session_id and child.inbox.busy:
                allowed = narrower(child.state.mode, mode)
                if allowed != child.state.mode:
                    await child.ledger.put(ev.ModeSet(allowed, by))

    async def set_reasoning(self, session_id: str, effort: str, by: Who | None = None) -> None:
        check_effort(effort)
        session = await self._host.get(session_id)
        await session.ledger.put(ev.ReasoningSet(effort, by))

    async def rename(self, session_id: str, title: str, by: Who | None = None) -> None:
        await (await self._host.get(session_id)).ledger.put(ev.Renamed(title[:500], by))

    async def archive(self, session_id: str, archived: bool = True) -> None:
        await (await self._host.get(session_id)).ledger.put(ev.Archived(archived))

    async def keep(
        self, session_id: str, trait: type[Trait], by: Who | None = None, **fields: Any
    ) -> None:
        """Give fields of a session's trait other values. Raises BadInput."""
        session = await self._host.get(session_id)
        change = trait.of(session.state.extra).changed(fields)
        await session.ledger.put(ev.ExtraSet({trait.NAME: change}, by))
        session.configure()

    async def note(
        self, session_id: str, level: Literal["info", "warning", "error"], title: str,
        text: str = "", data: dict[str, Any] | None = None,
    ) -> None:  # fmt: skip
        await (await self._host.get(session_id)).ledger.put(ev.Noted(level, title, text, data))

    async def equip(self, session_id: str, servers: Sequence[dict[str, Any]]) -> None:
        """Give a session further MCP servers; they are not kept with it."""
        session = await self._host.get(session_id)
        session.gear.servers = servers
        await session.gear.equip(anew=True)

    def retract(self, session_id: str, key: str) -> str:
        """Take a prompt back, begun or not; returns its turn. Raises NothingRunning."""
        session = self._host.live.get(session_id)
        if session is None:
            raise NothingRunning("That prompt neither waits nor runs.")
        return session.inbox.retract(key)

    async def begun(self, session_id: str) -> None:
        """Wait until a prompt that came just before has begun."""
        await self.arrived(session_id)
        session = self._host.live.get(session_id)
        if session is not None and (work := session.inbox.next) is not None:
            await asyncio.wait({work.started})

    def commands(self, cwd: str) -> Mapping[str, Command]:
        """Slash commands of a folder. Reads files: call it in a thread."""
        return self._host.commands(self.folder(cwd))

    def on_spent(self, told: Callable[[float], None]) -> None:
        """Be told what every model call cost, beside whoever is told already."""
        self._host.on_spent.append(told)

    # --- watching ---

    def seats(self, outlet: Outlet) -> Seats:
        """Places for one client, one at each session it comes to."""
        return Seats(self._host, outlet)

    def seat(self, session_id: str, outlet: Outlet) -> Seat[Any]:
        """The place of a client that is at one session only."""
        return Seats(self._host, outlet).at(session_id)

    @property
    def told(self) -> int:
        """The place (`gseq`) of the newest event that watchers of all sessions were told."""
        return self._host.hub.last

    async def watch(
        self,
        session_id: str,
        who: Who,
        shape: Shape[T],
        deliver: Callable[[T], None],
        is_paused: Callable[[], bool] = lambda: False,
        *,
        since: int | None = None,
        exact: bool = False,
        draft: bool = True,
        begun: Callable[[int, int], None] | None = None,
    ) -> Watch:
        """Attach to a session. See `Hub.watch`; `shape_of` gives shapes that are shared."""
        session = await self._host.get(session_id)
        if since is not None and since > session.ledger.seen:  # known from a list, not told yet
            await session.ledger.told()
            session = await self._host.get(session_id)
        return session.ledger.hub.watch(
            who, shape, deliver, is_paused, since=since, exact=exact, draft=draft, begun=begun
        )

    async def shape_of(self, session_id: str, key: object, own: S) -> S:
        """The shape that all watchers of a session with this key share: the first one given."""
        return (await self._host.get(session_id)).ledger.hub.shape(key, own)

    def watch_all(
        self,
        who: Who,
        shape: Shape[T],
        deliver: Callable[[T], None],
        is_paused: Callable[[], bool] = lambda: False,
        *,
        since: int | None = None,
        only: str = "",
        ready: Callable[[Sequence[Event]], Awaitable[None]] | None = None,
        begun: Callable[[int, int], None] | None = None,
    ) -> Watch:
        """Watch every session of this host. `since` is a `gseq`. To be called after `reached`.

        Of what came before, `only` reads a single session's events, however many others there are;
        `ready` is awaited with what was read before it is told.
        """
        host = self._host
        found = Excerpt(host.store, host.read, only).read if only else host.hub.read
        read = found if ready is None else readied(found, ready)
        return host.hub.watch(who, shape, deliver, is_paused, since=since, read=read, begun=begun)

    async def reached(self) -> int:
        """The newest place in the store; all up to it was told here, whoever wrote it."""
        return await self._host.catch_up()

    def shared(self, key: object, own: S) -> S:
        """The shape that all watchers of all sessions with this key share."""
        return self._host.hub.shape(key, own)

    def present(self, session_id: str) -> tuple[Who, ...]:
        session = self._host.live.get(session_id)
        return session.ledger.present() if session is not None else ()

    # --- approvals ---

    async def asks(
        self, session_id: str | None = None, *, pending: bool = True
    ) -> Sequence[AskRow]:
        return await self._host.store.asks(session_id, pending=pending)

    async def ask(self, ask_id: str) -> AskRow:
        row = await self._host.store.ask(ask_id)
        if row is None:
            raise UnknownAsk.named(ask_id)
        return row

    async def put_ask(self, ask: Ask) -> None:
        """Show a question that a client asks (not one of our own tool calls)."""
        await (await self._host.get(ask.session)).asks.put(ask)

    async def answer(
        self,
        ask_id: str,
        verdict: Verdict,
        by: Who | None = None,
        *,
        comment: str = "",
        text: str = "",
        scope: str = "",
        lasts: str = "",
        digest: str = "",
    ) -> Settled:
        """Answer an approval or a question. See `Asks.answer`.

        Raises UnknownAsk, AlreadySettled, BadInput, Changed.
        """
        row = await self.ask(ask_id)
        if row.settled is not None:
            raise ev.already(row.settled)
        if self._host.stopping:  # what goes on now would be cut off in a moment
            raise stopping()
        if by is not None and self._host.node:
            by = msgspec.structs.replace(by, node=self._host.node)
        reply = AskReply(ask_id, verdict, by, comment, text, scope, lasts, digest)
        try:
            session = await self._host.get(row.ask.session)
        except InUse:
            from .letters import Letter, answered

            given = msgspec.structs.astuple(reply)
            return await answered(self._host, Letter(row.ask.session, self.now_ms(), *given))
        return await session.asks.answer(reply)
