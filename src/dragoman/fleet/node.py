"""One daemon as a node: it keeps its lease, takes what is due, and serves what others own.

Three loops: one renews the lease, one acts on hints (or looks by itself once a second), and what is
asked of our sessions is done beside, in order for each.
"""

import asyncio
from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING, Any

from dragoman.engine.events import Deleted, Event
from dragoman.engine.faults import Fault, InUse, StaleEpoch, StoreFailed, UnknownSession
from dragoman.engine.host import Host
from dragoman.engine.ids import token
from dragoman.engine.info import Whereabouts
from dragoman.engine.refusal import fault_of
from dragoman.observe.log import get_log
from dragoman.store.postgres.link import is_gone
from dragoman.store.postgres.writer import discard

from . import words
from .desk import CHANNEL, GUEST, LISTEN_ONLY, RENEW, Desk, told
from .doing import Moved, do
from .following import Following
from .mirror import Mirror
from .patience import SLICES, within
from .words import Command, Result

if TYPE_CHECKING:
    from asyncpg import Connection

    from dragoman.engine.session import Session

log = get_log("fleet")
POLL_SECONDS = 1.0
HINT_SECONDS = 0.01  # the hints of so long are one
CLAIM_MOST = 1000  # sessions taken at once
TAKE_AT_ONCE = 8
RETRY_SECONDS = 0.2
DOUBT_SECONDS = 2.0  # a busy machine may be silent for as long
FAILED_SECONDS = 30.0  # a session that cannot be taken up here is left to others for as long
KEEP_DONE_SECONDS = 86_400.0
KEEP_DONE = 4_096


class Node:
    """This process in its fleet."""

    def __init__(
        self,
        host: Host,
        desk: Desk,
        *,
        lease: float,
        version: str,
        life: str = "",
        has_ended: Callable[[str], bool] = lambda life: False,
        front: bool = False,
        degraded: str = "",
    ) -> None:
        self.host = host
        self.desk = desk
        self.lease = lease
        self.draining = False
        self.stalled = ""  # why this node does not do its part just now
        self.degraded = degraded  # why others hear of it later than they could
        self.front = front  # its role may only read, and ask others
        self._version = version
        self._life = life
        self._has_ended = has_ended
        self._held = monotonic()  # when the lease was last known to be ours
        self._others = 0
        self._hinted = asyncio.Event()
        self._hinting = False
        self._tasks: list[asyncio.Task[None]] = []
        self._doing: dict[str, list[tuple[str, Command]]] = {}  # by session, in order
        self._known: set[str] = set()  # commands that are being done
        self._done: dict[str, None] = {}  # that were: what was read before may still name them
        self._results: dict[str, asyncio.Future[Result | None]] = {}
        self._absent: dict[str, Whereabouts] = {}
        self._swept = 0.0
        self._rising: set[str] = set()  # claimed, and not taken up yet
        self._returning: set[str] = set()  # lost, watched here, and on their way back
        self._failed: dict[str, float] = {}  # that could not be taken up here, and until when
        self._astray = False  # sessions may be ours in the database and not here
        self._taking = asyncio.Semaphore(TAKE_AT_ONCE)
        self.following = Following(host, desk)
        self.await_turn, self.catch_up = self.following.await_turn, self.following.catch_up

    @property
    def name(self) -> str:
        return self.desk.store.node.name

    @property
    def guest(self) -> bool:
        """It takes what its user names, and nothing by itself."""
        return GUEST in self.desk.name

    # --- its life ---

    async def start(self) -> None:
        """Join the fleet. Raises InUse when the name is taken."""
        if not self.front:
            await self._join()
        self._held = monotonic()
        host, store = self.host, self.desk.store
        host.owner, host.node = self.desk.owner, self.name
        host.elsewhere, host.losses.await_turn = self._mirror, self.await_turn
        host.fleet = self.status
        store.taking = not self.front
        store.writer.on_commit = self._committed
        store.writer.wait = max(self.lease, 1.0)
        for work in (self._keep(), self._act()):
            self._tasks.append(asyncio.create_task(work))
        log.info("joined", node=self.desk.name, lease=self.lease, front=self.front)

    async def _join(self) -> None:
        """Be a node; its last life may have ended without a word, and its lease may still last."""
        seen = 0
        while True:
            rows = [row for row in await self.desk.nodes() if row.name == self.desk.name]
            ended = rows and self._has_ended(rows[0].facts.get("life", ""))
            former = rows[0].owner if ended else ""
            try:
                await self.desk.join(self.lease, self._version, self._facts(), former)
                return
            except InUse:
                if not rows or seen and rows[0].seen_ms != seen:  # it was heard of again
                    raise
            if not seen:
                log.info("waits for the lease of its name to lapse", node=self.desk.name)
            seen = rows[0].seen_ms
            await asyncio.sleep(min(RETRY_SECONDS, self.lease / 6))  # nothing tells of its end

    async def stop(self) -> None:
        """Leave the fleet, after the host has let its sessions go."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for future in self._results.values():
            future.cancel()
        if self.front:
            return
        try:
            await self.desk.leave()
            await self.desk.hint()
        except Fault as fault:
            log.warning("the lease was not released", problem=str(fault))

    def _facts(self) -> dict[str, Any]:
        running = [one for one in self.host.live.values() if one.own and one.inbox.busy]
        mirrors = sum(not one.own for one in self.host.live.values())
        return {
            "running": len(running),
            "live": len(self.host.live) - mirrors,
            "mirrors": mirrors,
            "stalled": self.stalled,
            "degraded": self.degraded,
            "lag": self.following.lag,
            "life": self._life,
        }

    def status(self) -> dict[str, Any]:
        """What it does, for people."""
        state = "draining" if self.draining else "front" if self.front else "ready"
        facts = {name: value for name, value in self._facts().items() if name != "life"}
        return {
            "node": self.name,
            "state": "stalled" if self.stalled else state,
            "lease": self.lease,
            "others": self._others,
            "labels": [*self.desk.store.node.labels],
            "shared_roots": [*self.desk.store.node.roots],
            **facts,
        }

    # --- the lease ---

    @property
    def _patience(self) -> float:
        """Seconds for one answer: a busy machine is slow, which is not to be cut off."""
        return max(self.lease / 3, DOUBT_SECONDS)

    async def _keep(self) -> None:
        async with asyncio.TaskGroup() as both:
            both.create_task(self._renew())
            both.create_task(self._mind_lapse())

    async def _mind_lapse(self) -> None:
        """See that the lease is over, also while an answer is still waited for."""
        while True:
            over = self._held + self.lease - monotonic()
            if over > 0:
                await asyncio.sleep(over)
                if monotonic() - self._held < self.lease:
                    continue
                # Who was not running himself asks once before he gives all up.
                late = monotonic() - self._held > 4 * self.lease / 3
                for _ in range(SLICES if late else 0):
                    await asyncio.sleep(self.lease / 3 / SLICES)
            if monotonic() - self._held > self.lease:
                self._stall(TimeoutError())
                self._give_up(self.stalled)
            await asyncio.sleep(self.lease / 6)

    async def _renew(self) -> None:
        while True:
            link = self.desk.store.link
            try:
                asking = link.connect(timeout=self.lease + 5)
                connection = await within(
                    self._patience, asking, unwanted=lambda it: it.terminate()
                )
            except Exception as error:
                self._cut_off(error)
                if is_gone(error):  # what is still open will not last
                    self.desk.store.writer.doubt(error)
            else:
                try:
                    await self._keep_over(connection)
                finally:
                    await discard(connection)
            await asyncio.sleep(min(RETRY_SECONDS, self.lease / 6))  # until the next try

    async def _keep_over(self, connection: "Connection[Any]") -> None:
        """Renew the lease and hear hints over this connection, as long as it lasts."""
        try:
            await within(self._patience, connection.add_listener(CHANNEL, self._heard))
            while True:
                began = monotonic()
                asked = (
                    connection.fetchrow(LISTEN_ONLY)
                    if self.front
                    else connection.fetchrow(
                        RENEW, self.desk.owner, self.lease, words.encode(self._facts())
                    )
                )
                await self._renewed(await within(self._patience, asked), began)
                await asyncio.sleep(self.lease / 3)
        except Exception as error:
            self._cut_off(error)

    async def _renewed(self, row: Any, began: float) -> None:
        if row is None:  # somebody has our name since the lease lapsed
            self._give_up("another node has our name")
            await self.desk.join(self.lease, self._version, self._facts())
        elif not row["held"]:  # it had lapsed: others may have taken what was ours
            await self.check_owned()
        if row is not None:
            self._others = row["others"]
            self.draining = row["draining"]
            self.desk.store.taking = not (self.draining or self.front)
        self._held = began
        if self.stalled:
            log.info("back in the fleet", node=self.name)
            self.stalled = ""
            self._astray = True  # what was asked for and not heard of may have been done
        self._hinted.set()

    def _stall(self, error: Exception) -> None:
        if not self.stalled:
            fault = self.desk.store.link.explain(error)
            self.stalled = fault.message
            log.error("cut off from the fleet", problem=fault.message)

    def _cut_off(self, error: Exception) -> None:
        self._stall(error)
        silent = monotonic() - self._held
        if silent > max(DOUBT_SECONDS, 2 * self.lease / 3):  # a way may swallow all without a word
            self.desk.store.writer.doubt(error)
        if silent > self.lease:
            self._give_up(self.stalled)

    def _give_up(self, why: str) -> None:
        """The lease is over: somebody else may have our sessions, so nothing of them runs on."""
        mine = [one for one in self.host.live.values() if one.own]
        for session in mine:
            try:
                session.ledger.lose()
            except Exception as error:  # the others are given up, and the lease is tried for on
                self.host.trouble("a session was not given up", error, session=session.id)
        if mine:
            log.error("gave sessions up", count=len(mine), problem=why)

    async def check_owned(self) -> None:
        """Let go of every session that is not ours any more."""
        mine = [one for one in self.host.live.values() if one.own]
        if not mine:
            return
        owned = await self.desk.owned([one.id for one in mine])
        for session in mine:
            if session.id not in owned and self.host.is_live(session.ledger):
                log.warning("lost a session", session=session.id)
                session.ledger.lose()

    # --- hints ---

    def _heard(self, *_: object) -> None:
        self._hinted.set()

    def _committed(self) -> None:
        """Something was stored: have the others look, soon and once."""
        if self._others and not self._hinting:
            self._hinting = True
            asyncio.get_running_loop().call_later(HINT_SECONDS, self._hint)

    def _hint(self) -> None:
        self._hinting = False
        self.host.spawn(self._say())

    async def _say(self) -> None:
        try:
            await self.desk.hint()
        except StoreFailed:
            return  # a hint that is lost costs a poll

    # --- what it does ---

    async def _act(self) -> None:
        while True:
            try:
                async with asyncio.timeout(min(POLL_SECONDS, self.lease / 3)):
                    await self._hinted.wait()
            except TimeoutError:
                pass  # time to look without a hint
            self._hinted.clear()
            try:
                await self.tick()
            except Fault as fault:
                self._cut_off(fault)
                await asyncio.sleep(RETRY_SECONDS)  # the database is gone
            except Exception as error:
                self.host.trouble("the fleet was not looked after", error)
                await asyncio.sleep(RETRY_SECONDS)

    async def tick(self) -> None:
        """Look once at everything that others may have written."""
        for step in (self._take_commands, self.following.look, self._take_results):
            try:
                await step()
            except Fault:
                raise
            except Exception as error:  # what follows is done all the same
                self.host.trouble("the fleet was not looked after", error)
        for session_id in () if self.host.stopping else self.host.unheld:  # lost, but watched
            if session_id not in self._returning:
                self._returning.add(session_id)
                self.host.spawn(self._bring_back(session_id))
        if monotonic() - self._swept < min(POLL_SECONDS, self.lease / 3):
            return
        self._swept = monotonic()
        await self._sweep()

    async def _sweep(self) -> None:
        await self._look_after_mirrors()
        if self.front:
            return
        await self._free_lost()
        if self._astray:
            await self._free_astray()
        await self._give_away()
        if not (self.draining or self.guest or self.host.stopping):
            await self._claim()
        await self.desk.tidy(KEEP_DONE_SECONDS)

    async def _claim(self) -> None:
        room = min(CLAIM_MOST, self.host.max_sessions - len(self.host.live))
        if room <= 0:
            return
        now = monotonic()
        self._failed = {id: until for id, until in self._failed.items() if until > now}
        try:
            found = await self.desk.claim(room, [*self._failed])
        except StoreFailed:
            self._astray = True  # it may have been done all the same
            raise
        for session_id in found:
            self._rising.add(session_id)
            self.host.spawn(self._take_up(session_id))

    async def _free_astray(self) -> None:
        """Release what is ours in the database and not here: no other node may take it."""
        self._astray = False
        for session_id, epoch in (await self.desk.all_owned()).items():
            if session_id not in self._rising and not self.host.holds(session_id):
                await self.desk.store.give(session_id, epoch)  # a newer one is not touched

    async def _free_lost(self) -> None:
        """Release what was given up here and nobody took: its turn would stand still."""
        lost = self.host.losses.epochs
        while lost:
            session_id, epoch = next(iter(lost.items()))
            await self.desk.store.give(session_id, epoch)  # a newer one is not touched
            if lost.get(session_id) == epoch:
                del lost[session_id]

    async def _look_after_mirrors(self) -> None:
        mirrors = {id: one for id, one in self.host.live.items() if not one.own}
        found = await self.desk.whereabouts([*mirrors]) if mirrors else {}
        self._absent = {id: where for id, where in found.items() if where.waiting}
        for id, session in mirrors.items():
            if id not in found and self.host.is_live(session.ledger):
                session.ledger.emit(Deleted(None))  # on another node
                self.host.let_down(session.ledger)

    async def _take_up(self, session_id: str) -> None:
        """Go on with a session that is ours since just now."""
        try:
            async with self._taking:
                session = self.host.live.get(session_id)
                if session is not None and not session.own:
                    await self.catch_up(session_id)
                    self.host.let_down(session.ledger)
                if (await self.host.get(session_id)).own:
                    log.info("took a session up", session=session_id)
        except InUse:
            return  # somebody was quicker
        except Exception as error:
            self._astray = True  # it is ours, and nobody does anything for it
            if not isinstance(error, StoreFailed):
                self._failed[session_id] = monotonic() + FAILED_SECONDS
            self.host.trouble("a session could not be taken up", error, session=session_id)
        finally:
            self._rising.discard(session_id)
        self._hinted.set()  # there may be commands for it

    async def _bring_back(self, session_id: str) -> None:
        try:
            await self.host.get(session_id)
        except UnknownSession:
            hub = self.host.adopt_hub(session_id)
            if hub is not None:
                hub.emit(Event(session_id, self.host.clock.now_ms(), Deleted(None)))
        except Fault as fault:  # those who watch wait on: it is tried again
            log.warning("a watched session is not here", session=session_id, problem=str(fault))
            await asyncio.sleep(RETRY_SECONDS)  # nothing tells when it is
        finally:
            self._returning.discard(session_id)

    async def _give_away(self) -> None:
        """Release what belongs elsewhere, at its next boundary; and what only waits for a human."""
        strangers = set(await self.desk.strangers())
        now = self.host.clock.now_ms()
        for session in tuple(self.host.live.values()):
            if not session.own or session.ledger.closing:
                continue
            waits = self._waits(session, now)
            rests = not session.inbox.busy
            if (self.draining or session.id in strangers) and (rests or waits is not None):
                await self._release(session)
            elif waits and not session.ledger.watches:
                await self._release(session)

    def _waits(self, session: "Session", now: int) -> bool | None:
        """Whether nothing of a session runs and a human is waited for since long; None: it runs."""
        state = session.state
        asks = session.asks.of(state.turn)
        if state.status != "waiting_input" or not asks:
            return None
        asking = {ask.call_id for ask in asks}
        if any(begun and call not in asking for call, (_, begun) in state.journal.items()):
            return None
        return now - max(ask.at for ask in asks) > 2000 * self.lease

    async def _release(self, session: "Session") -> None:
        for work in session.inbox.waiting:
            if work.stored:  # it runs where the session goes
                session.inbox.remove(work)
                self.await_turn(session.id, session.state.seq, work)
        watched = bool(session.ledger.watches)
        await self.host.release(session.id)
        log.info("released a session", session=session.id)
        if watched:
            await self.host.get(session.id)

    # --- commands of others ---

    async def _take_commands(self) -> None:
        for id, session_id, command in await self.desk.commands():
            if id in self._known or id in self._done:
                continue
            self._known.add(id)
            queue = self._doing.get(session_id)
            if queue is not None:
                queue.append((id, command))
                continue
            self._doing[session_id] = [(id, command)]
            self.host.spawn(self._do_all(session_id))

    async def _do_all(self, session_id: str) -> None:
        queue = self._doing[session_id]
        try:
            while queue:
                id, command = queue.pop(0)
                if isinstance(command, words.Prompt) and command.compacts:
                    self.host.spawn(self._do(session_id, id, command))  # long: others go on
                else:
                    await self._do(session_id, id, command)
        finally:
            del self._doing[session_id]
            self._known -= {id for id, _ in queue}

    async def _do(self, session_id: str, id: str, command: Command) -> None:
        try:
            try:
                result = await do(self.host, session_id, id, command)
            except (Moved, InUse, StaleEpoch, StoreFailed):
                return  # it stays open: for the next owner, or for when the database is back
            except Fault as fault:
                if fault.data.get("handled") == id:
                    return  # it has its answer
                result = told(fault)
            except Exception as error:  # whoever asked is told, and it is not tried for ever
                self.host.trouble("a command broke", error, session=session_id)
                result = told(Fault(f"Node {self.name} could not do this: {error!r}."))
            self._done[id] = None
            if len(self._done) > KEEP_DONE:
                del self._done[next(iter(self._done))]
            await self.desk.finish(id, result)
        finally:
            self._known.discard(id)

    # --- what our clients ask of others (`mirror.Way`) ---

    async def _mirror(self, session_id: str, fault: InUse) -> "Session":
        host = self.host
        state = await host.rebuild(session_id)
        where = (await self.desk.whereabouts([session_id])).get(session_id)
        if where is not None and where.waiting:
            self._absent[session_id] = where
        self.following.begin(session_id)
        return Mirror(host, state, host.adopt_hub(session_id), self)

    async def put_down(self, session: str, command: Command) -> str:
        """Write a command for a session's owner; returns its id."""
        id = f"cmd_{token()}"
        await self.desk.send(id, session, command)  # a row that is asked for too early is not there
        self._results[id] = asyncio.get_running_loop().create_future()
        return id

    async def outcome(self, session: str, id: str) -> Result:
        """What came of it. Raises the fault that its owner raised."""
        try:
            result = await self._results[id]
        finally:
            del self._results[id]
        if result is None:
            raise UnknownSession(session)
        if result.refusal is not None:
            raise fault_of(result.refusal)
        return result

    async def ask(self, session: str, command: Command) -> Result:
        absent = self.absence(session)
        if absent is not None:
            raise absent
        return await self.outcome(session, await self.put_down(session, command))

    async def _take_results(self) -> None:
        if not self._results:
            return
        for id, result in (await self.desk.results([*self._results])).items():
            future = self._results.get(id)
            if future is not None and not future.done():
                future.set_result(result)

    def absence(self, session: str) -> Fault | None:
        """Why a session cannot do anything: the one node that sees its folder is gone."""
        found = self._absent.get(session)
        if found is None:
            return None
        hint = "Start such a node, or have it take sessions again"
        if found.pinned:
            hint += f", or move the session: dragoman fleet move {session} NODE"
        text = f"Session {session} is {found.waiting}."
        return InUse(text, f"{hint}.", owner=found.node, session=session)
