"""What others may see of a session: everything, and change nothing."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .content import Message, PlanEntry, ToolCall, Usage
from .events import Ask, Mode, Settled, Status, Who
from .info import SessionInfo
from .ports import Tool
from .state import State

if TYPE_CHECKING:
    from .session import Session


class SessionView:
    """A session as it is at the moment of looking. `live`: it is in memory and can work."""

    __slots__ = ("_session", "_state")

    def __init__(self, state: State, session: "Session | None" = None) -> None:
        self._state = state
        self._session = session

    @property
    def _now(self) -> State:
        return self._state if self._session is None else self._session.ledger.state

    def info(self) -> SessionInfo:
        return self._now.info()

    @property
    def id(self) -> str:
        return self._state.id

    @property
    def agent(self) -> str:
        return self._now.agent

    @property
    def cwd(self) -> str:
        return self._now.cwd

    @property
    def model(self) -> str:
        return self._now.model

    @property
    def mode(self) -> Mode:
        return self._now.mode

    @property
    def status(self) -> Status:
        return self._now.status

    @property
    def title(self) -> str:
        return self._now.title

    @property
    def query(self) -> str:
        """The first prompt."""
        return self._now.query

    @property
    def error(self) -> str:
        return self._now.error

    @property
    def parent(self) -> str | None:
        return self._now.parent

    @property
    def origin(self) -> str:
        return self._now.origin

    @property
    def reasoning(self) -> str:
        return self._now.reasoning

    @property
    def created_at(self) -> int:
        return self._now.created_at

    @property
    def updated_at(self) -> int:
        return self._now.updated_at

    @property
    def began_at(self) -> int:
        """When the last turn began."""
        return self._now.began_at

    @property
    def turn(self) -> str:
        """The turn that is open; empty: none."""
        return self._now.turn

    @property
    def turns(self) -> int:
        return self._now.turns

    @property
    def seq(self) -> int:
        return self._now.seq

    @property
    def usage(self) -> Usage:
        return self._now.usage

    @property
    def last_usage(self) -> Usage:
        return self._now.last_usage

    @property
    def cost(self) -> float:
        return self._now.cost

    @property
    def extra(self) -> Mapping[str, Any]:
        return self._now.extra

    @property
    def plan(self) -> tuple[PlanEntry, ...]:
        return self._now.plan

    @property
    def messages(self) -> Sequence[Message]:
        """The history; it grows when the session goes on."""
        return self._now.messages

    @property
    def asks(self) -> Mapping[str, Ask]:
        """Open questions, by id."""
        return self._now.asks

    @property
    def answers(self) -> Mapping[str, Settled]:
        return self._now.answers

    @property
    def settled(self) -> Mapping[str, Settled]:
        """The latest answers, by question."""
        return self._now.settled

    @property
    def journal(self) -> Mapping[str, tuple[str, bool]]:
        """Calls without a result: their name, and whether they have begun."""
        return self._now.journal

    @property
    def keys(self) -> Mapping[str, str]:
        """The turns of prompts that came with a key."""
        return self._now.keys

    def running(self) -> list[ToolCall]:
        """Tool calls that have begun and have no result yet, in order."""
        state = self._now
        return [call for call in state.unanswered() if state.journal[call.id][1]]

    # --- what only a live one has ---

    @property
    def live(self) -> bool:
        return self._session is not None

    @property
    def busy(self) -> bool:
        return self._session is not None and self._session.inbox.busy

    @property
    def works(self) -> bool:
        """Whether a turn runs right now (and not only waits to, or for an answer since a stop)."""
        return self._session is not None and self._session.ledger.turn is not None

    @property
    def begun_by(self) -> tuple[Who | None, ...]:
        """Whose prompts run or wait here, the running one first."""
        if self._session is None:
            return ()
        turn, waiting = self._session.ledger.turn, self._session.inbox.waiting
        running = () if turn is None else (turn.by,)
        return (*running, *(work.by for work in waiting))

    @property
    def waiting(self) -> int:
        """How many prompts wait for their turn."""
        return len(self._session.inbox.waiting) if self._session is not None else 0

    @property
    def closing(self) -> bool:
        return self._session is not None and self._session.ledger.closing

    @property
    def vision(self) -> bool:
        """Whether its model takes images."""
        return self._session is not None and self._session.gear.vision

    def tool(self, name: str) -> Tool | None:
        toolbox = self._session.gear.toolbox if self._session is not None else None
        return toolbox.find(name) if toolbox is not None else None
