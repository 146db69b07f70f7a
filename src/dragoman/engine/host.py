"""The set of live sessions, and all they share: store, agents, models, hooks, offers.

What sessions are made of is loaded with the first one: a host answers before that.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from sys import intern
from typing import TYPE_CHECKING, Any, Literal
from uuid import uuid4

from . import events as ev
from . import hooks as hooked
from .arrivals import Arrivals
from .ask import Rule
from .content import Image, Prompt, Text, ToolCall, text_of
from .ending import DRAFTS
from .entries import body_of, read, stalled
from .events import ACTIVE, Event, Who
from .faults import (
    BadInput,
    Busy,
    Fault,
    InUse,
    TooMany,
    UnknownAgent,
    UnknownSession,
    WrongState,
    no_agent,
    stopping,
)
from .hooks import Hooks, Received
from .hub import Hub
from .ids import WallClock, token
from .info import SessionInfo, SessionQuery, Whereabouts, each_session
from .offers import Offers
from .opening import OpenSpec as OpenSpec
from .opening import check_effort, check_worktree, directory, launch_dir, whole_path
from .ports import Agents, Budget, Clock, Judgement, Models, Store
from .ports.checkpoints import Checkpoints
from .ports.commands import Command, Commands
from .rules import Rules
from .state import State
from .traits import together
from .visible import many
from .work import Losses

if TYPE_CHECKING:
    from .ledger import Ledger
    from .ports.worktrees import Worktrees
    from .session import Session
    from .work import Work

_PAGE = 4_096
Look = Callable[[Sequence[str]], Awaitable[Mapping[str, Whereabouts]]]


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
        self.rules = Rules(store, self.clock)
        self.offers = offers or Offers()
        self.max_sessions = max_sessions
        self.max_asks, self.max_inbox = 1_024, 256  # open questions, waiting work of a session
        self.on_trouble = trouble
        self.on_asked: list[Callable[[], None]] = []  # told that a question is open
        self.budget: Budget | None = None
        # Made when something is first changed.
        self.make_checkpoints: Callable[[], Checkpoints | None] = lambda: None
        self.worktrees: Worktrees | None = None  # where git can make some
        self._checkpoints: Checkpoints | None = None
        # Slash commands of a working directory; reads files, so it is called in a thread.
        self.commands: Callable[[str], Mapping[str, Command]] = lambda cwd: {}
        self.on_spent: list[Callable[[float], None]] = []  # told what every model call cost
        self.live: dict[str, Session] = {}
        self.hub = Hub(
            "", self.read_all, self.spawn, by_gseq=True, clock=self.clock, trouble=self.trouble
        )
        self.stopping = False
        self._tasks: set[asyncio.Task[Any]] = set()
        self._loading: dict[str, asyncio.Task[Session]] = {}  # being made or brought back
        self.arrivals = Arrivals()  # who waits for one that comes or leaves
        self._leaving: dict[str, asyncio.Task[None]] = {}  # being let go
        self._hubs: dict[str, Hub] = {}  # of sessions that were let go while somebody watched
        self._launch_dir = launch_dir()
        # Set by a fleet: how another node's session is used from here, and the name of this node.
        self.elsewhere: Callable[[str, InUse], Awaitable[Session]] | None = None
        self.losses = Losses()
        self.node = ""
        self.whereabouts: Look | None = None
        self.fleet: Callable[[], Mapping[str, Any]] | None = None
        self.shared = False  # clients have folders of their own, which are not ours

    @property
    def checkpoints(self) -> Checkpoints | None:
        """What keeps files before they are changed; None: nothing does."""
        if self._checkpoints is None:
            self._checkpoints = self.make_checkpoints()
        return self._checkpoints

    def trouble(self, what: str, error: BaseException, **data: Any) -> None:
        """Report what went wrong here and no client can be told."""
        self.on_trouble(what, error, **data)

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

    def spent(self, state: State, cost: float) -> None:
        for told in self.on_spent:
            told(cost)
        if cost and self.budget is not None:
            self.budget.spent(state.agent, cost)

    async def expanded(self, content: Prompt, cwd: str) -> Prompt:
        """A prompt in which a slash command is replaced by what it stands for."""
        first = content[0] if content else None
        if not isinstance(first, Text) or not first.text.startswith("/"):
            return content
        found = Commands.of(await asyncio.to_thread(self.commands, cwd)).match(first.text)
        if found is None or found[0].body is None:
            return content
        return (Text(found[0].filled(found[1])), *content[1:])

    # --- driving ---

    async def prompt(
        self,
        session_id: str,
        content: Prompt,
        by: Who | None = None,
        *,
        key: str = "",
        metadata: dict[str, Any] | None = None,
        when_busy: Literal["queue", "refuse"] = "queue",
        limit: int = 32,
        wait: float | None = None,
        keep: bool = False,
        turn_id: str = "",
    ) -> Work:
        """Give the session something to do. The work's `done` tells how it ended.

        With `keep` it may be acknowledged when this returns: it survives the process. The same
        `key` again returns without a second turn (`WrongState` with the first one's id in `data`),
        so a client may retry safely.
        """
        said = text_of(content)
        if said and not said.strip() and not any(isinstance(block, Image) for block in content):
            raise BadInput("The prompt is empty.", "Write what is to be done.")
        if self.stopping:
            raise stopping()
        if self.store.stalled:
            raise stalled(self.store)
        if said.startswith("/"):
            async with self.arrivals.turn(session_id):  # what comes behind it stays behind it
                session = await self._bring(session_id)
                content = await self.expanded(content, session.ledger.state.cwd)
                session = await self._bring(session_id)  # it may have been let go meanwhile
        else:
            session = await self.get(session_id)
        turn = session.inbox.taken(key) if key else ""
        if turn:
            raise WrongState(f"This prompt was taken before, as turn {turn}.", turn=turn)
        check_worktree(session.ledger.state.extra)
        if when_busy == "refuse" and session.inbox.busy:
            raise Busy(
                "A turn runs in this session already.",
                "Wait for it to end, or cancel it.",
                running=session_id,
            )
        from .work import Work

        work = Work("prompt", turn_id or f"trn_{token()}", content, by, key, metadata)
        session.inbox.put(work, limit=limit, wait=wait, keep=keep)
        data = Received(content=text_of(content), metadata=metadata or {})
        self.hooks.tell_of("message_received", data, session.ledger.state)
        if keep:
            await asyncio.shield(work.kept)
        return work

    async def remembered(self, session_id: str, call: ToolCall) -> Sequence[Rule]:
        """The rules that allow a call of an agent that runs elsewhere; none when one denies it."""
        live = self.live.get(session_id)
        state = live.state if live is not None else await self.rebuild(session_id)
        found = await self.rules.about(call, Judgement("ask"), state)
        return () if any(rule.deny for rule in found) else found

    # --- opening ---

    async def open(self, spec: OpenSpec, by: Who | None) -> Session:
        """Make a session."""
        if self.store.stalled:
            raise stalled(self.store)
        await self.arrivals.passed(spec.id)  # one of this name may be being deleted
        await self._make_room()
        if self.stopping:
            raise stopping()
        alias = spec.agent or self.agents.default()
        if not alias:
            raise no_agent(self.agents.names())
        profile = self.agents.profile(alias)
        self.agents.backend(profile)  # raises when it lacks something: no prompt should meet that
        cwd = whole_path(spec.cwd, self._launch_dir, relative=not self.shared)
        if spec.check_cwd:
            cwd = directory(cwd)
        check_effort(spec.reasoning)
        model = spec.model or profile.model
        _, model_info = self.models.resolve(model, alias)
        session_id = spec.id or str(uuid4())
        if self.holds(session_id):
            raise WrongState(f"Session {session_id} is already open.", status="live")
        opened = ev.Opened(
            agent=alias,
            cwd=cwd,
            model=intern(model_info.ref),  # one text for all sessions that use it
            mode=spec.mode or profile.mode,
            interactive=spec.interactive,
            title=spec.title,
            parent=spec.parent,
            by=by,
            extra=together(*spec.traits) or None,
        )
        bodies: list[ev.Kept] = [opened]
        if spec.reasoning:
            bodies.append(ev.ReasoningSet(spec.reasoning, by))
        session = await self._hold(session_id, self._make(session_id, opened, bodies))
        self.hooks.tell_of("session_start", hooked.Session(id=session_id), session.state)
        return session

    async def _make_room(self) -> None:
        while len(self.live) >= self.max_sessions and not self.stopping:
            if not await self.relieve():
                text = f"{many(self.max_sessions, 'session is', 'sessions are')} live already."
                raise TooMany(text, "Close one, then try again.")

    async def _make(self, session_id: str, opened: ev.Opened, bodies: list[ev.Kept]) -> Session:
        now = self.clock.now_ms()
        extra = opened.extra or {}
        blank = SessionInfo(
            session_id, opened.agent, opened.cwd, opened.model, opened.mode, "idle", now, now,
            extra=extra,
        )  # fmt: skip
        epoch = await self.store.create(blank, self.owner)
        session = self._admit(State(session_id), epoch, opened)
        try:
            await session.ledger.put(*bodies)
        except Fault:
            self.let_down(session.ledger)
            try:
                await self.store.delete(session_id)  # a row without a history is no session
            except Fault as problem:
                self.trouble("an empty session stays in the store", problem, session=session_id)
            raise
        return session

    async def _hold(self, session_id: str, work: Coroutine[Any, Any, Session]) -> Session:
        """Finish what makes or loads a session; others wait, and are told what went wrong."""
        task = self._loading[session_id] = asyncio.create_task(work)

        def over(task: asyncio.Task[Session]) -> None:
            del self._loading[session_id]
            if not task.cancelled():
                task.exception()  # heard, also when nobody waits any more

        task.add_done_callback(over)
        return await asyncio.shield(task)

    def _admit(self, state: State, epoch: int, opened: ev.Opened | None = None) -> Session:
        if opened is not None:  # the session needs its agent before its first event is folded
            state.agent, state.model, state.cwd = opened.agent, opened.model, opened.cwd
            state.extra = dict(opened.extra) if opened.extra else state.extra
        from .session import Session

        session = Session(self, state, epoch, self._hubs.pop(state.id, None))
        self.live[state.id] = session
        return session

    async def get(self, session_id: str) -> Session:
        """The live session, brought back from the store when need be; first come, first served."""
        session = self.live.get(session_id)
        waits = session_id in self._loading or session_id in self.arrivals.lines
        if session is not None and not waits and not session.ledger.closing:
            return session
        async with self.arrivals.turn(session_id):
            return await self._bring(session_id)

    async def _bring(self, session_id: str) -> Session:
        while True:
            loading = self._loading.get(session_id)
            if loading is not None:
                await asyncio.wait({loading})  # also when it is over: only then it is taken out
                loading.result()
                continue  # it may have been let go again before we came to it
            session = self.live.get(session_id)
            if session is not None and not session.ledger.closing:
                return session
            if self.stopping:
                raise stopping()
            leaving = self._leaving.get(session_id)
            if leaving is None:
                await self._hold(session_id, self._load(session_id))
            else:
                await asyncio.wait({leaving})

    async def _load(self, session_id: str) -> Session:
        await self._make_room()
        try:
            epoch = await self.store.take(session_id, self.owner, self.is_alive)
        except InUse as fault:
            if self.elsewhere is None:
                raise
            session = await self.elsewhere(session_id, fault)
            self.live[session_id] = session
            return session
        state = await self.rebuild(session_id)
        try:
            self.agents.profile(state.agent)
        except UnknownAgent:  # it was removed from the configuration since
            fallback = self.agents.default()
            if fallback is None:
                raise
            state.change_agent(fallback)
        session = self._admit(state, epoch)
        if self.hub.watches:  # what its former process wrote was not told here
            await self.catch_up()
        if state.status in ACTIVE or state.turn or state.queued:
            from .recovery import taken_over

            await taken_over(session)
        return session

    async def rebuild(self, session_id: str) -> State:
        """Fold what is stored."""
        state = State(session_id)
        while True:
            page = await self.store.entries(session_id, state.seq, _PAGE)
            for entry in page:
                state.apply(body_of(session_id, entry), entry.at)
            if len(page) < _PAGE:
                break
        if state.seq == 0:
            raise UnknownSession(session_id)
        return state

    async def recover(self) -> int:
        """Take up every session that was active when its process died; returns how many."""
        if self.node:  # nodes claim what is due, with the labels and folders that it needs
            return 0
        found = 0
        active = each_session(self.store.list, SessionQuery(status=tuple(ACTIVE), limit=1_000))
        for session_id in [info.id async for info in active]:
            if self.holds(session_id):
                continue
            self.hooks.recovering = True  # apps come back later
            try:
                owner = await self.store.owner(session_id)
                if owner and owner != self.owner and self.is_alive(owner):
                    continue
                info = await self.store.info(session_id)
                if info is None or info.status not in ACTIVE:
                    continue  # it ran here, and ended while others were looked at
                await self.get(session_id)
                found += 1
            except InUse:
                continue  # its process lives
            except Exception as problem:  # one that cannot be read must not keep the others
                self.trouble("a session could not be taken up", problem, session=session_id)
            finally:
                self.hooks.recovering = False
        return found

    def take_up(self, session_id: str) -> None:
        """Go on with a turn that waited for an answer across a restart."""
        session = self.live.get(session_id)
        if session is not None and not session.ledger.closing:
            session.inbox.resume()

    # --- reading ---

    async def read(self, session_id: str, after: int, limit: int) -> Sequence[Event]:
        page = await self.store.entries(session_id, after, limit)
        return [read(session_id, entry, self.trouble) for entry in page]

    async def read_all(self, after: int, limit: int) -> Sequence[Event]:
        page = await self.store.entries_since(after, limit)
        return [read(entry.session, entry, self.trouble) for entry in page]

    async def catch_up(self) -> int:
        """Tell those who watch all sessions what other processes wrote; returns how far it goes."""
        newest = await self.store.newest_gseq()
        for session in tuple(self.live.values()):
            await session.ledger.told()  # what is ours comes by itself
        if newest > self.hub.last:
            self.hub.catch_up(newest)
        return self.hub.last

    # --- letting go ---

    def is_live(self, ledger: Ledger) -> bool:
        session = self.live.get(ledger.id)
        return session is not None and session.ledger is ledger

    def holds(self, session_id: str) -> bool:
        """Whether a session is here, or on its way."""
        return session_id in self.live or session_id in self._loading

    def let_down(self, ledger: Ledger) -> None:
        """This object does not speak for its session any more."""
        if self.is_live(ledger):
            self.live.pop(ledger.id).inbox.let_down()
            if not ledger.part():  # they see on when somebody takes the session up again
                self._hubs[ledger.id] = ledger.hub

    def unwatched(self, ledger: Ledger) -> None:
        """Nobody watches any more a session that was let go."""
        if self._hubs.get(ledger.id) is ledger.hub and ledger.part():
            del self._hubs[ledger.id]

    async def relieve(self, origin: str = "") -> bool:
        """Let the longest idle spare session go (of one dialect, when named); False: there is none.

        Only a durable store keeps what is let go, so elsewhere nothing is.
        """
        if not self.store.durable:
            return False
        found = [
            session
            for session in self.live.values()
            if session.spare
            and session.id not in self._loading  # its first events are on their way to the store
            and (not origin or session.state.origin == origin)
        ]
        if not found:
            if going := set(self._leaving.values()):  # others make room already
                await asyncio.wait(going, return_when=asyncio.FIRST_COMPLETED)
            return bool(going)
        await self.close(min(found, key=lambda session: session.inbox.last_used).id, "idle")
        return True

    async def close(self, session_id: str, cause: str = "close") -> None:
        """Stop what runs and forget the session here; the store keeps it."""
        if not self.holds(session_id):
            raise UnknownSession(session_id)
        session = self.live.get(session_id) or await self.get(session_id)  # after those before
        if not session.own and cause == "idle":  # it is another node's, and goes on there
            await self._let_go(session)
            return
        leaving = self._leaving.get(session_id)
        if leaving is None:
            session.ledger.closing = True
            session.inbox.fail_waiting(Busy(f"Session {session_id} was closed."))
            if session.ledger.turn is not None or session.own and session.state.turn:
                session.inbox.cancel(cause)
            leaving = self._leaving[session_id] = asyncio.create_task(self._close(session))
            leaving.add_done_callback(lambda _: self._leaving.pop(session_id))
        await asyncio.shield(leaving)

    async def _close(self, session: Session) -> None:
        await session.inbox.idle()
        await self._let_go(session)
        self.hooks.tell_of("session_end", hooked.Session(id=session.id), session.state)

    async def _let_go(self, session: Session) -> None:
        await session.shut()
        self.let_down(session.ledger)
        if not session.own:
            return
        try:
            await self.store.give(session.id, session.ledger.epoch)
        except Fault as problem:  # it stays ours until this process ends
            if not self.stopping:  # which is now
                self.trouble("a session was not given back", problem, session=session.id)

    async def release(self, session_id: str) -> None:
        """Give a session to whoever takes it next: what waits in it waits on."""
        session = self.live.get(session_id)
        if session is None or not session.own:
            return
        state = session.state
        queued = any(not one.steers for one in state.queued.values())
        if queued and state.status not in ACTIVE:  # with whoever looks for such sessions
            await session.ledger.put(ev.StatusChanged(state.status, "starting", "moved"))
        if session.inbox.task is not None:
            session.park()
        await self._let_go(session)

    @property
    def unheld(self) -> tuple[str, ...]:
        """Sessions that were let go here while somebody watched."""
        return tuple(self._hubs)

    def adopt_hub(self, session_id: str) -> Hub | None:
        """The watchers of a session that was let go here, for whoever speaks for it now."""
        return self._hubs.pop(session_id, None)

    async def erase(self, session_id: str, by: Who | None) -> bool:
        """Close and delete a session with all that is kept about it, also when another node has it.

        Whoever watches hears of it last: when what ran has ended, and once it is true.
        """
        gone = False
        if self.elsewhere is not None:
            try:
                gone = await (await self.get(session_id)).erase(by)
            except UnknownSession:
                return False
        # Nobody takes it up meanwhile, nor makes another of its name.
        async with self.arrivals.turn(session_id):
            session = self.live.get(session_id)
            if gone and session is not None:
                self.let_down(session.ledger)
            elif session is not None:
                await self.close(session_id, "delete")
            gone = await self.store.delete(session_id) or gone
            await self.store.put(DRAFTS, session_id, None)
            event = Event(session_id, self.clock.now_ms(), ev.Deleted(by))
            for hub in (self._hubs.pop(session_id, None), self.hub if gone else None):
                if hub is not None:
                    hub.emit(event)
            try:
                await self.rules.forget(session_id)
                if self.checkpoints is not None:
                    await self.checkpoints.forget(session_id)
            except Fault as problem:  # the session is gone all the same
                self.trouble("what it had is still kept", problem, session=session_id)
        return gone

    async def sweep(self, idle_seconds: float, most: int | None = None) -> list[str]:
        """Let go of sessions that nobody watched or used for a while, and of the longest unused
        ones when there are more than `most` that nobody watches."""
        now = self.clock.monotonic()
        gone = []
        found = (session for session in self.live.values() if session.spare)
        spare = sorted(found, key=lambda session: session.inbox.last_used)
        beyond = 0 if most is None or not self.store.durable else max(len(spare) - most, 0)
        for place, session in enumerate(spare):
            if place >= beyond and now - session.inbox.last_used <= idle_seconds:
                break
            if self.live.get(session.id) is session and session.spare:
                await self.close(session.id, "idle")
                gone.append(session.id)
        return gone

    async def stop(self, grace: float = 5.0) -> None:
        """Cancel what runs, commit, let everything go."""
        self.stopping = True
        busy = []
        for session in tuple(self.live.values()):
            session.asks.stop_timers()
            session.inbox.leave_waiting()
            turn = session.ledger.turn
            if session.own and turn is not None and not session.asks.of(turn.id):
                session.inbox.cancel("shutdown", interrupt=True)
                if session.inbox.task is not None:
                    busy.append(session.inbox.task)
        if busy:
            await asyncio.wait(busy, timeout=grace)
        for session in tuple(self.live.values()):
            # Turns that wait for a human stay open in the store: the answer may come after a start.
            if session.own and session.inbox.task is not None:
                session.park()
        await asyncio.gather(*(self._let_go(session) for session in tuple(self.live.values())))
        for task in tuple(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=1.0)
