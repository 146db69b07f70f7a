"""The questions of one session: they are put to humans, and the first answer counts.

A question is a stored row: it outlives clients and restarts. `answer` may come from any client of
any dialect; the first one wins and everybody is told who it was.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from . import events as ev
from .content import ToolCall
from .events import Ask, Settled, Verdict, Who
from .faults import AlreadySettled, BadInput, TooMany, UnknownAsk
from .ids import token
from .ledger import Ledger
from .ports import Answer, Judgement, Tool
from .state import NONE, without

_OPEN_LIMIT = 64  # questions one session may have open
_FOR_TOOLS = ("allow", "allow_always", "deny", "deny_always", "edit", "cancelled", "expired")
_FOR_QUESTIONS = ("answer", "cancelled", "expired", "deny")


class Asks:
    """The open questions of one session, and who waits for their answers."""

    __slots__ = ("_ledger", "_timers", "_waiting")

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        # Replaced, never changed in place: few sessions have any.
        self._waiting: Mapping[str, asyncio.Future[Settled]] = NONE
        self._timers: Mapping[str, asyncio.TimerHandle] = NONE

    async def about(
        self,
        turn_id: str,
        call: ToolCall,
        tool: Tool,
        judgement: Judgement,
        patience: float,
    ) -> Settled:
        """Ask whether a tool call may run; returns when somebody decided (`patience`: seconds)."""
        args = call.args or {}
        ask = Ask(
            id=f"ask_{token()}",
            session=self._ledger.id,
            kind="tool",
            title=f"Approve {call.name}?",
            at=self._ledger.home.clock.now_ms(),
            turn=turn_id,
            call_id=call.id,
            tool=call.name,
            args=args,
            summary=self._summary(tool, args),
            risk=judgement.risk,
            reason=judgement.reason,
            expires_at=self._expiry(patience),
        )
        return await self._ask(ask)

    def _summary(self, tool: Tool, args: dict[str, Any]) -> str:
        try:
            return tool.summary(args)
        except Exception as error:  # arguments the tool itself will refuse
            self._ledger.home.trouble("no summary", error, tool=tool.spec.name)
            return str(args)[:2_000]

    async def human(
        self,
        turn_id: str,
        call_id: str,
        question: str,
        choices: Sequence[str],
        patience: float,
    ) -> Answer:
        """Put a question to a human; returns the answer."""
        settled = self.settled_for(call_id)
        if settled is None:
            ask = Ask(
                id=f"ask_{token()}",
                session=self._ledger.id,
                kind="question",
                title=question,
                at=self._ledger.home.clock.now_ms(),
                turn=turn_id,
                call_id=call_id,
                tool="ask_user",
                summary=question,
                choices=tuple(choices),
                expires_at=self._expiry(patience),
            )
            settled = await self._ask(ask)
        if settled.verdict == "answer":
            return Answer(settled.text)
        why = settled.comment or "nobody answered the question"
        return Answer(why, answered=False)

    def _expiry(self, seconds: float) -> int | None:
        return self._ledger.home.clock.now_ms() + int(seconds * 1000) if seconds > 0 else None

    async def _ask(self, ask: Ask) -> Settled:
        future: asyncio.Future[Settled] = asyncio.get_running_loop().create_future()
        self._waiting = {**self._waiting, ask.id: future}
        try:
            await self.put(ask)
            return await future
        except asyncio.CancelledError:
            if ask.id in self._ledger.state.asks and not self._ledger.parked:
                gone = Settled(ask.id, "cancelled", call_id=ask.call_id, tool=ask.tool)
                await self._ledger.append(gone)
            raise
        finally:
            self._waiting = without(self._waiting, ask.id)
            self._stop_timer(ask.id)

    async def put(self, ask: Ask) -> None:
        """Store a question and show it to everybody."""
        if len(self._ledger.state.asks) >= _OPEN_LIMIT:
            raise TooMany(
                f"{_OPEN_LIMIT} approvals are open in this session already.",
                "Answer some of them first.",
            )
        bodies: list[ev.Kept] = [ev.Asked(ask)]
        if self._ledger.state.status in ("running", "starting"):
            bodies.append(ev.StatusChanged(self._ledger.state.status, "waiting_input"))
        await self._ledger.append(*bodies)
        self.watch_expiry(ask)

    def watch_expiry(self, ask: Ask) -> None:
        if ask.expires_at is not None and ask.id in self._ledger.state.asks:
            delay = max(0.0, (ask.expires_at - self._ledger.home.clock.now_ms()) / 1000)
            loop = asyncio.get_running_loop()
            timer = loop.call_later(delay, self._expire, ask.id)
            self._timers = {**self._timers, ask.id: timer}

    def _expire(self, ask_id: str) -> None:
        self._timers = without(self._timers, ask_id)
        if ask_id in self._ledger.state.asks:
            self._ledger.home.spawn(self.answer(ask_id, "expired", None))

    def _stop_timer(self, ask_id: str) -> None:
        timer = self._timers.get(ask_id)
        if timer is not None:
            timer.cancel()
            self._timers = without(self._timers, ask_id)

    def stop_timers(self) -> None:
        for ask_id in tuple(self._timers):
            self._stop_timer(ask_id)

    async def answer(
        self,
        ask_id: str,
        verdict: Verdict,
        by: Who | None,
        *,
        comment: str = "",
        text: str = "",
    ) -> Settled:
        """Settle a question. The first answer wins; a later one raises AlreadySettled."""
        state = self._ledger.state
        ask = state.asks.get(ask_id)
        if ask is None:
            await self._why_not(ask_id)
        allowed = _FOR_QUESTIONS if ask.kind == "question" else _FOR_TOOLS
        if verdict not in allowed:
            raise BadInput(
                f"'{verdict}' does not answer this {ask.kind}.",
                f"Use one of: {', '.join(allowed)}.",
            )
        settled = Settled(ask_id, verdict, by, comment, text, ask.call_id, ask.tool)
        bodies: list[ev.Kept] = [settled]
        if verdict == "allow_always" or verdict == "deny_always":
            bodies.append(ev.Allowed(ask.tool, deny=verdict == "deny_always"))
        if state.status == "waiting_input" and len(state.asks) == 1:
            # A call that waited across a restart has no task: the turn is taken up again below.
            bodies.append(ev.StatusChanged("waiting_input", "running" if state.turn else "idle"))
        done = self._ledger.put(*bodies)
        try:
            await asyncio.shield(done)
        except asyncio.CancelledError:  # whoever answered has left: the answer counts all the same
            done.add_done_callback(lambda done: self._answered(settled, done))
            done.add_done_callback(self._ledger.unheard)
            raise
        self._answered(settled, done)
        return settled

    def _answered(self, settled: Settled, done: "asyncio.Future[None]") -> None:
        """Go on with what waited for this answer."""
        if done.cancelled() or done.exception() is not None:
            return
        self._stop_timer(settled.ask_id)
        future = self._waiting.get(settled.ask_id)
        state = self._ledger.state
        if future is not None:
            if not future.done():
                future.set_result(settled)
        elif state.turn and self._ledger.turn is None and not state.asks:
            self._ledger.home.take_up(self._ledger.id)

    async def _why_not(self, ask_id: str) -> NoReturn:
        before = self._ledger.state.settled.get(ask_id)
        if before is None:
            row = await self._ledger.home.store.ask(ask_id)
            if row is None or row.settled is None:
                raise UnknownAsk(f"approval not found: {ask_id}")
            before = row.settled
        raise already(before)

    def settled_for(self, call_id: str) -> Settled | None:
        """The answer already given about this call (it waited across a restart)."""
        return self._ledger.state.answers.get(call_id)

    def of(self, turn_id: str) -> list[Ask]:
        """Open questions that a turn waits for."""
        asks = self._ledger.state.asks.values()
        return [ask for ask in asks if turn_id and ask.turn == turn_id and not ask.external]

    def withdraw(self, turn_id: str) -> list[ev.Kept]:
        """Questions of a turn that is over are not open any more."""
        return [
            Settled(ask.id, "cancelled", call_id=ask.call_id, tool=ask.tool)
            for ask in self.of(turn_id)
        ]


def already(before: Settled) -> AlreadySettled:
    who: Any = before.by
    name = (who.name or who.peer or who.dialect) if who else "the host"
    dialect = who.dialect if who else "dragoman"
    return AlreadySettled(
        f"approval {before.ask_id} already decided with status: {before.verdict} "
        f"(by {name} over {dialect})",
        by=before.by,
        verdict=before.verdict,
    )
