"""The part of a session that puts questions to humans and waits for the first answer.

A question is a stored row: it outlives clients and restarts. `answer` may come from any client of
any dialect; the first one wins and everybody is told who it was.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import events as ev
from .content import ToolCall
from .events import Ask, Settled, Verdict, Who
from .faults import AlreadySettled, BadInput, TooMany, UnknownAsk
from .ids import token
from .ledger import Ledger
from .ports import Answer, Judgement, Tool
from .state import NONE, without

if TYPE_CHECKING:
    from .session import Session
    from .turn import Turn

_OPEN_LIMIT = 64  # questions one session may have open
_FOR_TOOLS = ("allow", "allow_always", "deny", "deny_always", "edit", "cancelled", "expired")
_FOR_QUESTIONS = ("answer", "cancelled", "expired", "deny")


class Asking(Ledger):
    """Questions of one session. Mixed into `Session`."""

    __slots__ = ("_timers", "_waiting")

    def __init__(self) -> None:
        super().__init__()
        # Replaced, never changed in place: few sessions have any.
        self._waiting: Mapping[str, asyncio.Future[Settled]] = NONE
        self._timers: Mapping[str, asyncio.TimerHandle] = NONE

    async def ask_about(  # type: ignore[misc]
        self: "Session",
        turn: "Turn",
        call: ToolCall,
        tool: Tool,
        judgement: Judgement,
    ) -> Settled:
        """Ask whether a tool call may run; returns when somebody decided."""
        args = call.args or {}
        ask = Ask(
            id=f"ask_{token()}",
            session=self.id,
            kind="tool",
            title=f"Approve {call.name}?",
            at=self.host.clock.now_ms(),
            turn=turn.id,
            call_id=call.id,
            tool=call.name,
            args=args,
            summary=self._summary(tool, args),
            risk=judgement.risk,
            reason=judgement.reason,
            expires_at=self._expiry(turn.profile.approval_timeout),
        )
        return await self._ask(ask)

    def _summary(self: "Session", tool: Tool, args: dict[str, Any]) -> str:  # type: ignore[misc]
        try:
            return tool.summary(args)
        except Exception as error:  # arguments the tool itself will refuse
            self.host.trouble("no summary", error, tool=tool.spec.name)
            return str(args)[:2_000]

    async def ask_human(  # type: ignore[misc]
        self: "Session",
        turn: "Turn",
        call_id: str,
        question: str,
        choices: Sequence[str],
    ) -> Answer:
        """Put a question to a human; returns the answer."""
        settled = self.settled_for(call_id)
        if settled is None:
            ask = Ask(
                id=f"ask_{token()}",
                session=self.id,
                kind="question",
                title=question,
                at=self.host.clock.now_ms(),
                turn=turn.id,
                call_id=call_id,
                tool="ask_user",
                summary=question,
                choices=tuple(choices),
                expires_at=self._expiry(turn.profile.approval_timeout),
            )
            settled = await self._ask(ask)
        if settled.verdict == "answer":
            return Answer(settled.text)
        why = settled.comment or "nobody answered the question"
        return Answer(why, answered=False)

    def _expiry(self: "Session", seconds: float) -> int | None:  # type: ignore[misc]
        return self.host.clock.now_ms() + int(seconds * 1000) if seconds > 0 else None

    async def _ask(self: "Session", ask: Ask) -> Settled:  # type: ignore[misc]
        future: asyncio.Future[Settled] = asyncio.get_running_loop().create_future()
        self._waiting = {**self._waiting, ask.id: future}
        try:
            await self.put_ask(ask)
            return await future
        except asyncio.CancelledError:
            if ask.id in self.state.asks and not self.parked:
                await self.append(Settled(ask.id, "cancelled", call_id=ask.call_id, tool=ask.tool))
            raise
        finally:
            self._waiting = without(self._waiting, ask.id)
            self._stop_timer(ask.id)

    async def put_ask(self: "Session", ask: Ask) -> None:  # type: ignore[misc]
        """Store a question and show it to everybody."""
        if len(self.state.asks) >= _OPEN_LIMIT:
            raise TooMany(
                f"{_OPEN_LIMIT} approvals are open in this session already.",
                "Answer some of them first.",
            )
        bodies: list[ev.Kept] = [ev.Asked(ask)]
        if self.state.status in ("running", "starting"):
            bodies.append(ev.StatusChanged(self.state.status, "waiting_input"))
        await self.append(*bodies)
        self.watch_expiry(ask)

    def watch_expiry(self: "Session", ask: Ask) -> None:  # type: ignore[misc]
        if ask.expires_at is not None and ask.id in self.state.asks:
            delay = max(0.0, (ask.expires_at - self.host.clock.now_ms()) / 1000)
            loop = asyncio.get_running_loop()
            timer = loop.call_later(delay, self._expire, ask.id)
            self._timers = {**self._timers, ask.id: timer}

    def _expire(self: "Session", ask_id: str) -> None:  # type: ignore[misc]
        self._timers = without(self._timers, ask_id)
        if ask_id in self.state.asks:
            self.host.spawn(self.answer(ask_id, "expired", None))

    def _stop_timer(self, ask_id: str) -> None:
        timer = self._timers.get(ask_id)
        if timer is not None:
            timer.cancel()
            self._timers = without(self._timers, ask_id)

    def stop_timers(self) -> None:
        for ask_id in tuple(self._timers):
            self._stop_timer(ask_id)

    async def answer(  # type: ignore[misc]
        self: "Session",
        ask_id: str,
        verdict: Verdict,
        by: Who | None,
        *,
        comment: str = "",
        text: str = "",
    ) -> Settled:
        """Settle a question. The first answer wins; a later one raises AlreadySettled."""
        state = self.state
        ask = state.asks.get(ask_id)
        if ask is None:
            await self._why_not(ask_id)
        assert ask is not None
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
        done = self.put(*bodies)
        try:
            await asyncio.shield(done)
        except asyncio.CancelledError:  # whoever answered has left: the answer counts all the same
            done.add_done_callback(lambda done: self._answered(settled, done))
            done.add_done_callback(self.unheard)
            raise
        self._answered(settled, done)
        return settled

    def _answered(  # type: ignore[misc]
        self: "Session", settled: Settled, done: "asyncio.Future[None]"
    ) -> None:
        """Go on with what waited for this answer."""
        if done.cancelled() or done.exception() is not None:
            return
        self._stop_timer(settled.ask_id)
        future = self._waiting.get(settled.ask_id)
        state = self.state
        if future is not None:
            if not future.done():
                future.set_result(settled)
        elif state.turn and self.turn is None and not state.asks and not self.closing:
            self.host.take_up(self)

    async def _why_not(self: "Session", ask_id: str) -> None:  # type: ignore[misc]
        before = self.state.settled.get(ask_id)
        if before is None:
            row = await self.host.store.ask(ask_id)
            if row is None or row.settled is None:
                raise UnknownAsk(f"approval not found: {ask_id}")
            before = row.settled
        raise already(before)

    def settled_for(self: "Session", call_id: str) -> Settled | None:  # type: ignore[misc]
        """The answer already given about this call (it waited across a restart)."""
        return self.state.answers.get(call_id)

    def asks_of(self: "Session", turn_id: str) -> list[Ask]:  # type: ignore[misc]
        """Open questions that a turn waits for."""
        asks = self.state.asks.values()
        return [ask for ask in asks if turn_id and ask.turn == turn_id and not ask.external]

    def withdraw(self: "Session", turn_id: str) -> list[ev.Kept]:  # type: ignore[misc]
        """Questions of a turn that is over are not open any more."""
        return [
            Settled(ask.id, "cancelled", call_id=ask.call_id, tool=ask.tool)
            for ask in self.asks_of(turn_id)
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
