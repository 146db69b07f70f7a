"""What others may see of a session: everything, and change nothing."""

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import msgspec

from .content import Message, PlanEntry, ToolCall, Usage
from .events import Ask, Mode, Settled, Status, Who
from .info import SessionInfo
from .ports import Tool
from .state import State

if TYPE_CHECKING:
    from .ledger import Ledger
    from .session import Session


def _of(name: str) -> Any:
    """An attribute of the session's state, as it is when it is looked at."""
    return property(attrgetter(f"_holder.state.{name}"))


class Read(msgspec.Struct, frozen=True):
    """What was read of a session that is not in memory."""

    state: State

    def info(self) -> SessionInfo:
        return self.state.info()


class SessionView:
    """A session as it is at the moment of looking. `live`: it is in memory and can work."""

    __slots__ = ("_holder", "_session", "id")

    def __init__(self, holder: "Ledger | Read", session: "Session | None" = None) -> None:
        self.id = holder.state.id
        self._holder = holder
        self._session = session

    def info(self) -> SessionInfo:
        return self._holder.info()

    agent: str = _of("agent")
    cwd: str = _of("cwd")
    model: str = _of("model")
    mode: Mode = _of("mode")
    status: Status = _of("status")
    title: str = _of("title")
    query: str = _of("query")  # the first prompt
    error: str = _of("error")
    parent: str | None = _of("parent")
    origin: str = _of("origin")
    reasoning: str = _of("reasoning")
    created_at: int = _of("created_at")
    updated_at: int = _of("updated_at")
    began_at: int = _of("began_at")  # the last turn
    turn: str = _of("turn")  # the one that is open; empty: none
    turns: int = _of("turns")
    seq: int = _of("seq")
    usage: Usage = _of("usage")
    last_usage: Usage = _of("last_usage")
    cost: float = _of("cost")
    extra: Mapping[str, Any] = _of("extra")
    plan: tuple[PlanEntry, ...] = _of("plan")
    messages: Sequence[Message] = _of("messages")  # the history; it grows when the session goes on
    asks: Mapping[str, Ask] = _of("asks")  # open questions, by id
    answers: Mapping[str, Settled] = _of("answers")
    settled: Mapping[str, Settled] = _of("settled")  # the latest answers, by question
    # Calls without a result: their name, and whether they have begun.
    journal: Mapping[str, tuple[str, bool]] = _of("journal")
    keys: Mapping[str, str] = _of("keys")  # the turns of prompts that came with a key

    def running(self) -> list[ToolCall]:
        """Tool calls that have begun and have no result yet, in order."""
        state = self._holder.state
        return [call for call in state.unanswered() if state.journal[call.id][1]]

    @property
    def busy(self) -> bool:
        """Something runs, waits or is about to begin, here or with the process that has it."""
        if self._session is None:
            return bool(self.turn or self.waiting)
        return self._session.inbox.busy

    # --- what only a live one has ---

    @property
    def live(self) -> bool:
        return self._session is not None

    @property
    def works_on(self) -> str:
        """The turn that runs right now, until its end is stored (and not one that only waits to, or
        for an answer since a stop); empty: none.
        """
        turn = self._session.ledger.turn if self._session is not None else None
        return "" if turn is None else turn.id

    @property
    def begun_by(self) -> tuple[Who | None, ...]:
        """Whose prompts run or wait here, the running one first.

        None: of somebody who is not connected now, like a turn that waits since before a restart.
        """
        session = self._session
        if session is None:
            return ()
        turn = session.ledger.turn
        running: tuple[Who | None, ...] = (None,) if session.state.turn else ()
        if turn is not None:
            running = (turn.by,)
        return (*running, *(work.by for work in session.inbox.waiting))

    @property
    def waiting(self) -> int:
        """How many prompts wait for their turn."""
        if self._session is None:
            return sum(not one.steers for one in self._holder.state.queued.values())
        return len(self._session.inbox.waiting)

    @property
    def closing(self) -> bool:
        return self._session is not None and self._session.ledger.closing

    def can_stop(self, call_id: str) -> bool:
        """Whether this one call runs here, and can be stopped without the turn."""
        session = self._session
        if session is None or not session.own or session.ledger.turn is None:
            return False
        return call_id in session.ledger.turn.tools

    @property
    def vision(self) -> bool:
        """Whether its model takes images."""
        return self._session is not None and self._session.gear.vision

    def tool(self, name: str) -> Tool | None:
        gear = self._session.inbox.gear_made if self._session is not None else None
        return gear.toolbox.find(name) if gear is not None and gear.toolbox is not None else None
