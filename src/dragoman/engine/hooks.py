"""Points where an app may watch or change what passes.

Interceptors run one after the other in the order they subscribed, each seeing what the one before
made of the data. Observers are told and never waited for.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from time import monotonic
from typing import Any, Protocol, TypeVar

import msgspec

from .events import Outcome
from .points import INTERCEPTABLE
from .state import State
from .traits import Correspondent

REMEMBER_SECONDS = 60.0  # in which apps come back after a start
_MOST_REMEMBERED = 256


class HookContext(msgspec.Struct, frozen=True):
    """Where a hook fires."""

    agent: str = ""
    session: str = ""
    key: str = ""  # the app-level session key, when the session has one
    channel: str = ""
    account: str = ""
    turn: str = ""


def context_of(state: State, turn: str = "") -> HookContext:
    """Where a hook of this session fires."""
    whom = Correspondent.of(state.extra)
    return HookContext(
        agent=state.agent,
        session=state.id,
        key=whom.key or state.id,
        channel=whom.channel,
        account=whom.account,
        turn=turn,
    )


class Block(msgspec.Struct, frozen=True):
    """An interceptor's no."""

    reason: str = ""


class Payload(msgspec.Struct, frozen=True):
    """What a hook tells. `more` is what interceptors laid over it that has no field here."""

    more: dict[str, Any] = {}


class Outgoing(Payload, frozen=True, kw_only=True):
    """`message_sending`, `message_sent`: a text on its way out."""

    content: str
    channel: str = ""
    target: str = ""
    metadata: dict[str, Any] | None = None


class Received(Payload, frozen=True, kw_only=True):
    """`message_received`: a prompt."""

    content: str
    metadata: dict[str, Any] = {}


class Starting(Payload, frozen=True, kw_only=True):
    """`agent_starting`."""

    prompt: str


class Completed(Payload, frozen=True, kw_only=True):
    """`agent_completed`: how a turn ended."""

    outcome: Outcome
    text: str
    error: str


class Executing(Payload, frozen=True, kw_only=True):
    """`tool_executing`: a call that is to run."""

    call_id: str
    tool: str
    args: dict[str, Any]


class Executed(Payload, frozen=True, kw_only=True):
    """`tool_completed`: a call that was run."""

    call_id: str
    tool: str
    args: dict[str, Any]
    is_error: bool
    result: str


class Session(Payload, frozen=True, kw_only=True):
    """`session_start`, `session_end`."""

    id: str


class ModelAsked(Payload, frozen=True, kw_only=True):
    """`llm_input`: a model is about to be asked."""

    step: int
    model: str
    prompt: str  # what the user said last
    messages: int


class ModelAnswered(Payload, frozen=True, kw_only=True):
    """`llm_output`: what it said."""

    step: int
    model: str
    text: str
    stop: str
    input: int
    output: int
    cost: float


class Compaction(Payload, frozen=True, kw_only=True):
    """`before_compaction`, `after_compaction`; the second one has the summary."""

    automatic: bool
    messages: int
    summary: str = ""


class GatewayLife(Payload, frozen=True, kw_only=True):
    """`gateway_start`, `gateway_stop`: the host serves, or stops serving."""

    address: str = ""


P = TypeVar("P", bound=Payload)


class Subscriber(Protocol):
    """An app that subscribed. `name` says who it is in reasons and logs."""

    name: str

    def observe(self, hook: str, data: Payload, context: HookContext) -> None: ...

    async def intercept(self, hook: str, data: P, context: HookContext) -> P | Block | None:
        """Changed data, a block, or None for no opinion. Cancelled when the time is over.

        Raises ConnectionError, which says what happened, when there will be no answer.
        """
        ...


class Missed(msgspec.Struct, frozen=True):
    """What was told before anybody could listen."""

    at: float
    hook: str
    data: Payload
    context: HookContext


class Hooks:
    """Who listens at which hook."""

    __slots__ = (
        "_interceptors", "_observers", "_remembered", "after", "fail_closed", "on_trouble",
        "recovering", "timeout", "timeouts",
    )  # fmt: skip

    def __init__(
        self,
        timeout: float = 5.0,
        timeouts: Mapping[str, float] | None = None,
        fail_closed: frozenset[str] = frozenset(),
    ) -> None:
        self.timeout = timeout
        self.timeouts = dict(timeouts or {})
        self.fail_closed = fail_closed
        # What is done after a call and before its result is kept; what it says goes to the model.
        self.after: Callable[[Executed, HookContext], Awaitable[str]] | None = None
        self.on_trouble: Callable[[str, str, str], None] = lambda hook, who, what: None
        # The host takes up what a dead process left: nobody may listen yet, so it is remembered.
        self.recovering = False
        self._remembered: deque[Missed] = deque(maxlen=_MOST_REMEMBERED)
        self._interceptors: dict[str, list[Subscriber]] = {}
        self._observers: dict[str, list[Subscriber]] = {}

    def subscribe(self, hook: str, subscriber: Subscriber, *, intercepts: bool) -> None:
        self.unsubscribe(hook, subscriber)
        intercepts = intercepts and hook in INTERCEPTABLE
        group = self._interceptors if intercepts else self._observers
        group.setdefault(hook, []).append(subscriber)

    def unsubscribe(self, hook: str, subscriber: Subscriber) -> None:
        for group in (self._interceptors, self._observers):
            members = group.get(hook, [])
            if subscriber in members:
                members.remove(subscriber)
            if hook in group and not members:
                del group[hook]

    def forget(self, subscriber: Subscriber) -> None:
        for hook in {*self._interceptors, *self._observers}:
            self.unsubscribe(hook, subscriber)

    def intercepted(self, hook: str) -> bool:
        return hook in self._interceptors

    def tell(self, hook: str, data: Payload, context: HookContext) -> None:
        """Tell the observers; never waits."""
        for subscriber in tuple(self._observers.get(hook, ())):
            try:
                subscriber.observe(hook, data, context)
            except Exception as error:
                self.on_trouble(hook, subscriber.name, f"broke: {type(error).__name__}: {error}")

    def told(self, hook: str) -> bool:
        """Whether it is worth telling: somebody listens, or will be told later."""
        return hook in self._observers or self.recovering

    def tell_of(self, hook: str, data: Payload, state: State, turn: str = "") -> None:
        """Tell the observers of something in a session; never waits."""
        if hook in self._observers or self.recovering:
            context = context_of(state, turn)
            if self.recovering:
                self._remembered.append(Missed(monotonic(), hook, data, context))
            self.tell(hook, data, context)

    def recall(self, subscriber: Subscriber) -> None:
        """Tell one that has come after a start what the start itself ended."""
        late = monotonic() - REMEMBER_SECONDS
        for told in tuple(self._remembered):
            if told.at < late:
                self._remembered.popleft()
            elif subscriber in self._observers.get(told.hook, ()):
                subscriber.observe(told.hook, told.data, told.context)

    async def run(self, hook: str, data: P, context: HookContext) -> P | Block:
        """Pass data through the interceptors, then tell the observers what came out."""
        for subscriber in tuple(self._interceptors.get(hook, ())):
            try:
                patience = getattr(subscriber, "patience", self._patience)
                async with asyncio.timeout(patience(hook)):  # None: it minds the time itself
                    said = await subscriber.intercept(hook, data, context)
            except TimeoutError:
                said = self._trouble(hook, subscriber, "did not answer in time")
            except ConnectionError as gone:
                said = self._trouble(hook, subscriber, str(gone) or "left before it answered")
            except Exception as error:
                said = self._trouble(hook, subscriber, f"broke: {type(error).__name__}: {error}")
            if isinstance(said, Block):
                return Block(said.reason or f"blocked by {subscriber.name}")
            if said is not None:
                data = said
        self.tell(hook, data, context)
        return data

    def _patience(self, hook: str) -> float:
        return self.timeouts.get(hook, self.timeout)

    def _trouble(self, hook: str, subscriber: Subscriber, what: str) -> Block | None:
        self.on_trouble(hook, subscriber.name, what)
        if hook in self.fail_closed:
            return Block(f"{subscriber.name} {what}")
        return None
