"""A live session: what it is (ledger), asks (asks), works with (gear) and does (inbox).

All changes go through the ledger: the fold takes them in, the store commits them, then they are
told to the watchers, in that order and in one line however many coroutines append at once.
"""

from collections.abc import Sequence

from .ask import Who
from .asks import Asks
from .gear import Gear
from .hub import Hub
from .inbox import Inbox
from .ledger import Home, Ledger
from .ports.checkpoints import Checkpoint, Restored
from .state import State


class Session:
    """Made by the host, driven through the door. It has one writer: its inbox."""

    __slots__ = ("asks", "id", "inbox", "ledger")

    own = True  # this process is its writer

    def __init__(self, home: Home, state: State, epoch: int, hub: Hub | None = None) -> None:
        self.id = state.id
        self.ledger = Ledger(home, state, epoch, hub)
        self.asks = Asks(self.ledger)
        self.inbox = Inbox(self.ledger, self.asks)

    @property
    def state(self) -> State:
        return self.ledger.state

    @property
    def gear(self) -> Gear:
        return self.inbox.gear

    def configure(self) -> None:
        """Take up what the configuration says now; before its first work it does so then."""
        if self.inbox.gear_made is not None:
            self.inbox.gear_made.configure()

    @property
    def spare(self) -> bool:
        """Nothing runs in it, nobody watches it, no question of it is open: it may be let go."""
        ledger = self.ledger
        return not (self.inbox.busy or ledger.closing or ledger.watches or ledger.state.asks)

    async def checkpoints(self) -> Sequence[Checkpoint]:
        """The turns that changed files, oldest first. Raises BadInput where none are kept."""
        from .undoing import checkpoints_of

        return await checkpoints_of(self.ledger.home).listed(self.state.info())

    async def undo(self, turn: str | None, by: Who | None, handled: str = "") -> Restored:
        """Put files back to before a turn; None: redo. Raises Busy, BadInput, Changed."""
        from .undoing import undone

        return await undone(self.ledger, self.inbox.busy, turn, by, handled)

    async def erase(self, by: Who | None) -> bool:
        """Nobody else has it: it may be removed here."""
        return False

    async def shut(self) -> None:
        """Free what the session holds; the session itself stays in the store."""
        self.ledger.closing = True
        self.asks.stop_timers()
        if self.inbox.gear_made is not None:
            await self.inbox.gear_made.put_away()

    def park(self) -> None:
        """Leave a turn that waits for a human as it is: nothing more is written here."""
        self.ledger.parked = True
        if self.ledger.turn is not None:
            self.ledger.turn.closed = True
        if self.inbox.task is not None:
            self.inbox.task.cancel()
