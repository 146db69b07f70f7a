"""The questions of one session: they are put to humans, and the first answer counts.

A question is a stored row: it outlives clients and restarts. `answer` may come from any client of
any dialect; the first one wins and everybody is told who it was.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from . import events as ev
from . import rules
from .ask import AskReply, Rule
from .content import ToolCall
from .events import Ask, Settled, Verdict, Who, already
from .faults import BadInput, Changed, StoreFailed, TooMany, UnknownAsk
from .ids import token
from .ledger import Ledger
from .ports import Answer, Tool
from .state import NONE, without

_FOR_TOOLS = ("allow", "allow_always", "deny", "deny_always", "edit", "cancelled", "expired")
_FOR_QUESTIONS = ("answer", "cancelled", "expired", "deny")
AGAIN_SECONDS = 5.0  # after the end of a question's time that could not be kept


class Asks:
    """The open questions of one session, and who waits for their answers."""

    __slots__ = ("_ledger", "_timers", "_waiting", "freeing")

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        # Replaced, never changed in place: few sessions have any.
        self._waiting: Mapping[str, asyncio.Future[Settled]] = NONE
        self._timers: Mapping[str, asyncio.TimerHandle] = NONE
        # The answer that takes up a turn left by a restart, while it is on its way to the store.
        self.freeing = ""

    def summary(self, tool: Tool, args: dict[str, Any]) -> str:
        """A call in a line, as its tool says it."""
        try:
            return tool.summary(args)
        except Exception as error:  # arguments the tool itself will refuse
            self._ledger.home.trouble("no summary", error, tool=tool.spec.name)
            return str(args)

    async def human(
        self,
        turn_id: str,
        call_id: str,
        question: str,
        choices: Sequence[str],
        patience: float,
        *,
        url: str = "",
        of_call: str = "",
    ) -> Answer:
        """Put a question to a human; returns the answer."""
        settled = None
        if call_id:  # it may have waited across a restart
            settled = self._ledger.state.answers.get(call_id)
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
                url=url,
                of_call=of_call,
            )
            settled = await self.ask(ask)
        if settled.verdict == "answer":
            return Answer(settled.text)
        why = settled.comment or "nobody answered the question"
        return Answer(why, answered=False)

    def _expiry(self, seconds: float) -> int | None:
        return self._ledger.home.clock.now_ms() + int(seconds * 1000) if seconds > 0 else None

    async def ask(self, ask: Ask) -> Settled:
        """Put a question; returns when somebody decided."""
        future: asyncio.Future[Settled] = asyncio.get_running_loop().create_future()
        self._waiting = {**self._waiting, ask.id: future}
        try:
            await self.put(ask)
            return await future
        except asyncio.CancelledError:
            if ask.id in self._ledger.state.asks and not self._ledger.parked:
                gone = Settled(ask.id, "cancelled", call_id=ask.call_id, tool=ask.tool)
                await self._ledger.put(gone)
            raise
        finally:
            self._waiting = without(self._waiting, ask.id)
            if self._timers:
                self._stop_timer(ask.id)

    async def put(self, ask: Ask) -> None:
        """Store a question and show it to everybody."""
        most = self._ledger.home.max_asks
        if len(self._ledger.state.asks) >= most:
            raise TooMany(
                f"{most} approvals are open in this session already.",
                "Answer some of them first, or raise limits.max_approvals.",
            )
        bodies: list[ev.Kept] = [ev.Asked(ask)]
        if self._ledger.state.status in ("running", "starting"):
            bodies.append(ev.StatusChanged(self._ledger.state.status, "waiting_input"))
        await self._ledger.put(*bodies)
        for told in self._ledger.home.on_asked:
            told()
        if ask.expires_at is not None:
            self._watch_expiry(ask)

    def taken_over(self, ask: Ask) -> None:
        """A question that another process left waits here from now on."""
        for told in self._ledger.home.on_asked:
            told()
        if ask.expires_at is not None:
            self._watch_expiry(ask)

    def _watch_expiry(self, ask: Ask) -> None:
        if ask.expires_at is not None and ask.id in self._ledger.state.asks:
            left = ask.expires_at - self._ledger.home.clock.now_ms()
            # Never longer than all of it: the clock may have been set back since it was asked.
            self._arrange_expiry(ask.id, max(0, min(left, ask.expires_at - ask.at)) / 1000)

    def _arrange_expiry(self, ask_id: str, delay: float) -> None:
        timer = asyncio.get_running_loop().call_later(delay, self._expire, ask_id)
        self._timers = {**self._timers, ask_id: timer}

    def _expire(self, ask_id: str) -> None:
        self._timers = without(self._timers, ask_id)
        if ask_id in self._ledger.state.asks:
            self._ledger.home.spawn(self._expired(ask_id))

    async def _expired(self, ask_id: str) -> None:
        try:
            await self.answer(AskReply(ask_id, "expired", None))
        except StoreFailed:  # a full disk, say: its call must not wait for ever
            if ask_id in self._ledger.state.asks and not self._ledger.lost:
                self._arrange_expiry(ask_id, AGAIN_SECONDS)
            raise

    def _stop_timer(self, ask_id: str) -> None:
        timer = self._timers.get(ask_id)
        if timer is not None:
            timer.cancel()
            self._timers = without(self._timers, ask_id)

    def stop_timers(self) -> None:
        for ask_id in tuple(self._timers):
            self._stop_timer(ask_id)

    async def answer(self, reply: AskReply, handled: str = "") -> Settled:
        """Settle a question. The first answer wins; a later one raises AlreadySettled.

        Raises Changed when another question was looked at.
        """
        ask_id, verdict, by, digest = reply.ask_id, reply.verdict, reply.by, reply.digest
        comment, scope, lasts = reply.comment, reply.scope, reply.lasts
        if verdict in ("allow_always", "deny_always"):
            await self._ledger.home.rules.room()
        state = self._ledger.state
        ask = state.asks.get(ask_id)
        stale = ""
        if ask is not None and ask.external and verdict in ("allow", "allow_always"):
            stale = await self._stale(ask)
            ask = state.asks.get(ask_id)
        if ask is None:
            await self._why_not(ask_id)
        allowed = _FOR_QUESTIONS if ask.kind == "question" else _FOR_TOOLS
        if verdict not in allowed:
            raise BadInput(
                f"'{verdict}' does not answer this {ask.kind}.",
                f"Use one of: {', '.join(allowed)}.",
            )
        if digest and digest != ask.digest:
            raise Changed(
                f"The answer is about {digest}, but {ask_id} asks about {ask.digest or 'nothing'}.",
                "Look at the question again, then answer with its digest.",
                digest=ask.digest,
            )
        if stale:  # whoever asked runs it by itself: it has to ask again
            verdict, comment, scope, lasts = "deny", stale, "", ""
        rule, words = None, ""
        if scope or lasts or verdict in ("allow_always", "deny_always"):
            verdict, rule, words = self._rule(ask, verdict, by, scope, lasts)
        settled = Settled(
            ask_id, verdict, by, comment, reply.text, ask.call_id, ask.tool, ask.digest,
            rule.id if rule else "", words,
        )  # fmt: skip
        bodies: list[ev.Kept] = [settled]
        if rule is not None:
            bodies.append(ev.Allowed(ask.tool, rule.deny, rule.id, words))
        frees = self._ledger.turn is None and self._frees(ask)
        if state.status == "waiting_input" and (len(state.asks) == 1 or frees):
            # A call that waited across a restart has no task: the turn is taken up again below.
            bodies.append(ev.StatusChanged("waiting_input", "running" if state.turn else "idle"))
        done = stored = self._ledger.put(*bodies, handled=handled)
        if frees:
            self.freeing = ask_id
        if rule is not None:
            done = self._ledger.home.spawn(self._remember(stored, rule))
        done.add_done_callback(lambda _: self._answered(settled, stored))
        try:
            await asyncio.shield(done)
        except asyncio.CancelledError:  # whoever answered has left: the answer counts all the same
            done.add_done_callback(self._ledger.unheard)
            raise
        return settled

    async def _stale(self, ask: Ask) -> str:
        """Why a question from outside cannot be agreed to any more; empty when it can."""
        from .foreign import looked

        preview = await looked(ask.args, ask.cwd)
        call = ToolCall(ask.call_id, ask.tool, ask.args)
        if not ask.digest or rules.digest_of(call, ask.cwd, preview.seen) == ask.digest:
            return ""
        return "Not agreed to: the file is not any more what was shown. Ask again."

    async def _remember(self, done: "asyncio.Future[None]", rule: Rule) -> None:
        """Keep a rule once its answer is stored, and before anything goes on because of it."""
        await done
        await self._ledger.home.rules.keep(rule)

    def _rule(
        self, ask: Ask, verdict: Verdict, by: Who | None, scope: str, lasts: str
    ) -> tuple[Verdict, Rule | None, str]:
        """The verdict, the rule that comes of it, and what is said of that."""
        if verdict not in ("allow_always", "deny_always"):
            if scope or lasts:
                raise BadInput(
                    f"'{verdict}' is not remembered, so it has no scope.",
                    "Use allow_always or deny_always, or leave the scope out.",
                )
            return verdict, None, ""
        if verdict == "deny_always":
            given = rules.refusing(ask, scope, lasts)
        elif (ask.firm or not ask.scopes) and not scope:
            why = f"{ask.tool} is in always_ask" if ask.firm else "it cannot be remembered"
            return "allow", None, f"only this time: {why}"
        else:
            given = rules.chosen(ask, scope, lasts)
        deny = verdict == "deny_always"
        rule = self._ledger.home.rules.made(ask, *given, self._ledger.state, deny=deny, by=by)
        return verdict, rule, rule.sentence

    def _answered(self, settled: Settled, stored: "asyncio.Future[None]") -> None:
        """Go on with what waited for this answer."""
        freed = self.freeing == settled.ask_id
        if freed:
            self.freeing = ""
        if not stored.done() or stored.cancelled() or stored.exception() is not None:
            return
        if self._timers:
            self._stop_timer(settled.ask_id)
        future = self._waiting.get(settled.ask_id)
        state = self._ledger.state
        if future is not None:
            if not future.done():
                future.set_result(settled)
        elif freed or self._is_left() and not self.of(state.turn):
            self._ledger.home.take_up(self._ledger.id)

    def _is_left(self) -> bool:
        """Whether a turn waits across a restart, and nothing runs it until it is answered."""
        return bool(self._ledger.state.turn) and self._ledger.turn is None

    def _frees(self, ask: Ask) -> bool:
        """Whether this is the last question that a turn left by a restart waits for."""
        return self._is_left() and self.of(self._ledger.state.turn) == [ask]

    async def _why_not(self, ask_id: str) -> NoReturn:
        before = self._ledger.state.settled.get(ask_id)
        if before is None:
            row = await self._ledger.home.store.ask(ask_id)
            if row is None or row.settled is None:
                raise UnknownAsk.named(ask_id)
            before = row.settled
        raise already(before)

    def of(self, turn_id: str) -> list[Ask]:
        """Open questions that a turn waits for."""
        asks = self._ledger.state.asks
        if not asks:
            return []
        return [
            ask for ask in asks.values() if turn_id and ask.turn == turn_id and not ask.external
        ]

    def withdraw(self, turn_id: str) -> list[ev.Kept]:
        """Questions of a turn that is over are not open any more."""
        return [
            Settled(ask.id, "cancelled", call_id=ask.call_id, tool=ask.tool)
            for ask in self.of(turn_id)
        ]
