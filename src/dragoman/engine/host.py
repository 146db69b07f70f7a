"""The set of live sessions, and all they share: store, agents, models, hooks, offers."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from time import monotonic, time_ns
from typing import Any
from uuid import uuid4

import msgspec

from . import events as ev
from .content import Prompt, Text
from .ending import UNKNOWN
from .events import ACTIVE, Event, Mode, Who
from .faults import BadInput, Busy, InUse, TooMany, UnknownAgent, UnknownSession, WrongState
from .hooks import Hooks
from .info import SessionInfo
from .offers import Offers
from .ports import Agents, Budget, Clock, Models, Store
from .ports.commands import Command, Commands
from .session import Session
from .state import State
from .watch import Hub
from .work import Work

_PAGE = 4_096


class WallClock:
    """The real time."""

    __slots__ = ()

    def now_ms(self) -> int:
        return time_ns() // 1_000_000

    def monotonic(self) -> float:
        return monotonic()


class OpenSpec(msgspec.Struct, frozen=True):
    """What a new session is to be. Everything has a default."""

    agent: str = ""  # "": the default agent
    cwd: str = ""  # "": where the host was started
    id: str = ""  # "": a new UUID
    model: str = ""
    mode: Mode | None = None
    title: str = ""
    interactive: bool = True  # False: ends with its first turn (humanlayer)
    reasoning: str = ""
    parent: str | None = None
    check_cwd: bool = True
    extra: dict[str, Any] = {}


class Host:
    """Owns sessions on behalf of one process."""

    def __init__(
        self,
        store: Store,
        agents: Agents,
        models: Models,
        *,
        owner: str = "",
        is_alive: Callable[[str], bool] = lambda owner: False,
        clock: Clock | None = None,
        hooks: Hooks | None = None,
        offers: Offers | None = None,
        max_sessions: int = 10_000,
        trouble: Callable[..., None] = lambda what, error, **data: None,
    ) -> None:
        self.store = store
        self.agents = agents
        self.models = models
        self.owner = owner or f"pid:{os.getpid()}"
        self.is_alive = is_alive
        self.clock: Clock = clock or WallClock()
        self.hooks = hooks or Hooks()
        self.offers = offers or Offers()
        self.max_sessions = max_sessions
        self.trouble = trouble
        self.budget: Budget | None = None
        # Slash commands of a working directory; reads files, so it is called in a thread.
        self.commands: Callable[[str], Mapping[str, Command]] = lambda cwd: {}
        self.spending: Callable[[Session, float], None] = lambda session, cost: None
        self.live: dict[str, Session] = {}
        self.hub = Hub("", self._read_all, self.spawn, by_gseq=True)
        self.stopping = False
        self._tasks: set[asyncio.Task[Any]] = set()
        self._loading: dict[str, asyncio.Task[Session]] = {}
        self._launch_dir = os.getcwd()

    def spawn(self, work: Awaitable[Any]) -> asyncio.Task[Any]:
        """Run something beside; failures are reported, never lost."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._spawned_done)
        return task

    def _spawned_done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.trouble("background work failed", error)

    def spent(self, session: Session, cost: float) -> None:
        self.spending(session, cost)
        if cost and self.budget is not None:
            self.budget.spent(session.state.agent, cost)

    async def expanded(self, content: Prompt, cwd: str) -> Prompt:
        """A prompt in which a slash command is replaced by what it stands for."""
        first = content[0] if content else None
        if not isinstance(first, Text) or not first.text.startswith("/"):
            return content
        found = Commands.of(await asyncio.to_thread(self.commands, cwd)).match(first.text)
        if found is None or found[0].body is None:
            return content
        return (Text(found[0].filled(found[1])), *content[1:])

    # --- opening ---

    async def open(self, spec: OpenSpec, by: Who | None) -> Session:
        """Make a session."""
        if self.stopping:
            raise Busy("The host is shutting down.", "Connect again when it is back.")
        if len(self.live) >= self.max_sessions:
            raise TooMany(
                f"{self.max_sessions} sessions are live already.", "Close one, then try again."
            )
        alias = spec.agent or self.agents.default()
        if not alias:
            names = ", ".join(self.agents.names())
            raise BadInput(
                "Several agents are configured and none was named.",
                f"Name one of: {names}; or set acp.default_agent.",
            )
        profile = self.agents.profile(alias)
        cwd = spec.cwd or self._launch_dir
        if spec.check_cwd:
            cwd = self._directory(cwd)
        model = spec.model or profile.model
        _, model_info = self.models.resolve(model)
        session_id = spec.id or str(uuid4())
        if session_id in self.live:
            raise WrongState(f"Session {session_id} is already open.", status="live")
        state = State(session_id)
        opened = ev.Opened(
            agent=alias,
            cwd=cwd,
            model=model_info.ref,
            mode=spec.mode or profile.mode,
            interactive=spec.interactive,
            title=spec.title,
            parent=spec.parent,
            by=by,
            extra=spec.extra or None,
        )
        now = self.clock.now_ms()
        blank = SessionInfo(
            session_id, alias, cwd, opened.model, opened.mode, "idle", now, now, extra=spec.extra
        )
        epoch = await self.store.create(blank, self.owner)
        session = self._admit(state, epoch, opened)
        bodies: list[ev.Kept] = [opened]
        if spec.reasoning:
            bodies.append(ev.ReasoningSet(spec.reasoning, by))
        await session.append(*bodies)
        self.hooks.tell("session_start", {"sessionId": session_id}, session._hook_context(""))
        return session

    def _admit(self, state: State, epoch: int, opened: ev.Opened | None = None) -> Session:
        if opened is not None:  # the session needs its agent before its first event is folded
            state.agent, state.model, state.cwd = opened.agent, opened.model, opened.cwd
            state.extra = dict(opened.extra or {})
        session = Session(self, state, epoch)
        session.vision = self.models.resolve(state.model)[1].vision
        self.live[state.id] = session
        return session

    def _directory(self, cwd: str) -> str:
        path = os.path.realpath(os.path.join(self._launch_dir, os.path.expanduser(cwd)))
        if not os.path.isdir(path):
            what = "is not a directory" if os.path.exists(path) else "does not exist"
            raise BadInput(
                f"cwd is not a usable directory: {cwd} {what}.", "Give an existing directory."
            )
        return path

    async def get(self, session_id: str) -> Session:
        """The live session, brought back from the store when need be."""
        session = self.live.get(session_id)
        if session is not None:
            return session
        if self.stopping:
            raise Busy("The host is shutting down.", "Connect again when it is back.")
        loading = self._loading.get(session_id)
        if loading is None:
            # Not spawned: whoever waits is told what went wrong, it is no trouble of the host's.
            loading = self._loading[session_id] = asyncio.create_task(self._load(session_id))
            loading.add_done_callback(lambda _: self._loading.pop(session_id, None))
        return await asyncio.shield(loading)

    async def _load(self, session_id: str) -> Session:
        if len(self.live) >= self.max_sessions:
            raise TooMany(f"{self.max_sessions} sessions are live already.", "Close one first.")
        epoch = await self.store.take(session_id, self.owner, self.is_alive)
        state = await self.rebuild(session_id)
        try:
            self.agents.profile(state.agent)
        except UnknownAgent:  # it was removed from the configuration since
            fallback = self.agents.default()
            if fallback is None:
                raise
            state.agent = fallback
        session = self._admit(state, epoch)
        if state.status in ACTIVE or state.turn:
            await self._recover(session)
        return session

    async def rebuild(self, session_id: str) -> State:
        """Fold what is stored."""
        state = State(session_id)
        while True:
            page = await self.store.entries(session_id, state.seq, _PAGE)
            for entry in page:
                state.apply(ev.decode_body(entry.body), entry.at)
            if len(page) < _PAGE:
                break
        if state.seq == 0:
            raise UnknownSession(session_id)
        return state

    async def _recover(self, session: Session) -> None:
        """A turn was under way when its process died: keep its open questions, close the rest."""
        state = session.state
        waiting = [a for a in state.asks.values() if a.turn == state.turn and not a.external]
        if state.turn and waiting:
            lost: list[ev.Kept] = [
                ev.CallEnded(state.turn, call.id, call.name, "unknown", (Text(UNKNOWN),), True)
                for call in state.unanswered()
                if state.journal[call.id][1]
            ]
            if state.status != "waiting_input":
                lost.append(ev.StatusChanged(state.status, "waiting_input", "restart"))
            if lost:
                await session.append(*lost)
            for ask in waiting:
                session.watch_expiry(ask)
            return
        words = session.closing_words("restart") if state.turn else []
        if state.status in ACTIVE:
            words.append(ev.StatusChanged(state.status, "interrupted", "restart"))
        if words:
            await session.append(*words)

    async def recover(self) -> int:
        """After a start: take up every session that was active when its process died."""
        from .info import SessionQuery

        found = 0
        page = await self.store.list(SessionQuery(status=tuple(ACTIVE), limit=1_000))
        for info in page.sessions:
            if info.id in self.live:
                continue
            try:
                await self.get(info.id)
                found += 1
            except InUse:
                continue  # its process lives
        return found

    def take_up(self, session: Session) -> Work:
        """Go on with a turn that waited for an answer across a restart."""
        work = Work("resume", session.state.turn)
        session.enqueue(work, limit=10_000, wait=None)
        return work

    # --- reading ---

    async def read(self, session_id: str, after: int, limit: int) -> Sequence[Event]:
        page = await self.store.entries(session_id, after, limit)
        return [Event(session_id, e.at, ev.decode_body(e.body), e.seq, e.gseq) for e in page]

    async def _read_all(self, after: int, limit: int) -> Sequence[Event]:
        page = await self.store.entries_since(after, limit)
        return [Event(e.session, e.at, ev.decode_body(e.body), e.seq, e.gseq) for e in page]

    # --- letting go ---

    def drop(self, session: Session) -> None:
        if self.live.get(session.id) is session:
            del self.live[session.id]

    async def close(self, session_id: str, cause: str = "close") -> None:
        """Stop what runs and forget the session here; the store keeps it."""
        session = self.live.get(session_id)
        if session is None:
            raise UnknownSession(session_id)
        session.closing = True
        session.fail_waiting(Busy(f"Session {session_id} was closed."))
        if session.turn is not None:
            session.cancel(cause)
        await session.idle()
        await session.shut()
        self.drop(session)
        await self.store.give(session_id, session.epoch)
        self.hooks.tell("session_end", {"sessionId": session_id}, session._hook_context(""))

    async def sweep(self, idle_seconds: float) -> list[str]:
        """Let go of sessions that nobody watched or used for a while."""
        now = self.clock.monotonic()
        gone = []
        for session in tuple(self.live.values()):
            unused = now - session.last_used > idle_seconds
            if unused and not session.busy and not session.hub.watches and not session.state.asks:
                await self.close(session.id, "idle")
                gone.append(session.id)
        return gone

    async def stop(self, grace: float = 5.0) -> None:
        """Cancel what runs, commit, let everything go."""
        self.stopping = True
        for session in tuple(self.live.values()):
            session.fail_waiting(Busy("The host is shutting down."))
            if session.turn is not None and session.state.status != "waiting_input":
                session.cancel("shutdown", interrupt=True)
        busy = [s._task for s in self.live.values() if s._task and not s.state.asks]
        if busy:
            await asyncio.wait(busy, timeout=grace)
        for session in tuple(self.live.values()):
            # Turns that wait for a human stay open in the store: the answer may come after a start.
            if session._task is not None:
                session.park()
            await session.shut()
            self.drop(session)
            await self.store.give(session.id, session.epoch)
        for task in tuple(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=1.0)
