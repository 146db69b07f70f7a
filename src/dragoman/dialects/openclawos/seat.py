"""One registered app: its manifest, what it was granted, what it hears, what it has to answer."""

import asyncio
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, DecodeError, Raw, Struct
from msgspec.json import Decoder

from dragoman.engine.hooks import Block, HookContext, P, Payload
from dragoman.engine.points import INTERCEPTABLE
from dragoman.holding import Holder
from dragoman.observe.log import get_log

from . import hooks
from .manifest import Manifest
from .shapes import Heartbeat, Request

if TYPE_CHECKING:
    from .desk import Desk
    from .grants import Grant
    from .hear import OpenclawosHearer
    from .invoke import CapabilityUse

log = get_log("apps")
_BARE = (Raw(b"{}"), Raw(b""), Raw(b"null"))  # params of a plain heartbeat, the usual ones first
_read_status = Decoder(Heartbeat).decode
_MOST_UNANSWERED = 2  # interceptions in a row after which an app is passed over


class Verdict(Holder):
    """An interceptor's answer to come. Like a `CapabilityUse` it waits for its `hook.result`."""

    hook: str
    future: asyncio.Future[Any]

    def answer(self, result: Any) -> None:
        if not self.future.done():
            self.future.set_result(result)

    def gone(self) -> None:
        if not self.future.done():
            self.future.set_exception(ConnectionError("left before it answered"))


class Heard(Struct):
    """What became of one subscription: figures for `hook.info`."""

    intercepts: bool
    delivered: int = 0
    answered: int = 0


class Seat(Holder):
    """Implements `engine.hooks.Subscriber` for one app on one connection."""

    desk: "Desk"
    conn: "OpenclawosHearer"
    manifest: Manifest
    token: str
    since: int  # when it came
    name: str = ""
    beat_at: int = 0
    beat_now: int = 0
    heard_at: float = 0.0  # by a clock that nobody sets
    beat_line: bytes = b""  # answers heartbeats of that moment, but for their ids
    ready: bool = False
    leaving: bool = False
    gone: bool = False
    muted: bool = False  # it is told, and not waited for, until it answers again
    unanswered: int = 0  # interceptions in a row
    grants: "dict[str, Grant]" = {}
    hears: dict[str, Heard] = {}  # by the name that the app used
    pending: "dict[str, Verdict | CapabilityUse]" = {}
    status: Any = None

    def __post_init__(self) -> None:
        self.name = self.manifest.id
        self.beat_at = self.beat_now = self.since
        self.heard_at = self.desk.passed()

    # --- heartbeats ---

    def beat(self, request: Request) -> bytes | None:
        """The answer to one that is heard now; None when it takes the whole way."""
        token, params = request.token, request.params
        known = token == self.token if token is not None else not self.desk.settings.require_token
        if known and (params in _BARE or self._has_status(params)):
            self.beat_at, self.heard_at = self.beat_now, self.desk.passed()
            return self.beat_line % (self.desk.voice.number(), request.id)
        return None

    def _has_status(self, params: Raw) -> bool:
        """Take the status of a heartbeat; False when it is none and must be refused."""
        try:
            status = _read_status(params).status
        except (DecodeError, UnicodeDecodeError, RecursionError):
            return False
        if status is not None:
            self.status = status
        return True

    # --- events ---

    def send(self, name: str, payload: dict[str, Any]) -> None:
        desk = self.desk
        self.conn.link.send(desk.voice.event(desk.now(), name, payload))

    def push(self, name: str, data: Payload, context: HookContext) -> str:
        """Send a hook's event; returns its `eventId`."""
        event_id = self.desk.voice.new_id("evt")
        self.send(f"hook:{name}", hooks.payload(event_id, name, data, context, self.desk.now()))
        heard = self.hears.get(name)
        if heard is not None:
            heard.delivered += 1
        return event_id

    def observe(self, hook: str, data: Payload, context: HookContext) -> None:
        if not self.ready or self._delivers(hook, data):
            return
        for name in self._names(hook):
            self.push(name, data, context)

    def patience(self, hook: str) -> None:
        """No limit from outside: here it is told apart whether it was over, or who asked left."""

    async def intercept(self, hook: str, data: P, context: HookContext) -> P | Block | None:
        if not self.ready or self._delivers(hook, data):
            return None
        names = self._names(hook)
        asked = next((name for name in names if self.hears[name].intercepts), None)
        for name in names:
            if name != asked:
                self.push(name, data, context)
        if asked is None:
            return None
        event_id = self.push(asked, data, context)
        if self.muted:
            if hook in self.desk.door.hooks.fail_closed:
                raise ConnectionError("is passed over: it did not answer twice in a row")
            return None
        waiting = Verdict(asked, asyncio.get_running_loop().create_future())
        self.pending[event_id] = waiting
        limits = self.desk.door.hooks
        try:
            async with asyncio.timeout(limits.timeouts.get(hook, limits.timeout)):
                result = await waiting.future
        except TimeoutError:
            # A channel app that only sends never answers messages: once is enough to know.
            sends = hook == "message_sending" and self.owns_channel()
            self._missed(hook, context.session, _MOST_UNANSWERED if sends else 1)
            raise
        finally:
            self.pending.pop(event_id, None)
        if result is not UNSET:
            self.unanswered = 0
        if (heard := self.hears.get(asked)) is not None and result is not UNSET:
            heard.answered += 1
        said = hooks.verdict(result)
        return hooks.changed(data, said) if isinstance(said, dict) else said

    def _missed(self, hook: str, session: str, count: int) -> None:
        """An interception was not answered in time: after some, it is waited for no longer."""
        self.unanswered += count
        if self.unanswered >= _MOST_UNANSWERED and not self.muted:
            self.muted = True
            log.warning("passed over until it answers again", app=self.name, hook=hook)
            self.desk.passed_over(self.name, hook, session)

    def _delivers(self, hook: str, data: Payload) -> bool:
        """Whether this message comes to the app as its delivery, so not as a hook beside."""
        if hook != "message_sending":
            return False
        return self.desk.owner("channel", hooks.channel_of(data)) is self

    def _names(self, hook: str) -> list[str]:
        return [name for name in self.hears if hooks.hook_of(name) == hook]

    def owns_channel(self) -> bool:
        return any(grant.kind == "channel" for grant in self.grants.values())

    # --- subscriptions ---

    def subscribe(self, name: str) -> bool:
        """Hear a hook; False when the manifest does not declare it or there is no such hook."""
        hook = hooks.hook_of(name)
        if hook is None or not self.manifest.may_hear(name):
            return False
        delivery = name == "message_sending" and self.owns_channel()
        if not delivery and not self.desk.may(self.name, "hook", name):
            return False
        if name not in self.hears:
            intercepts = name in self.manifest.intercepts and hook in INTERCEPTABLE
            intercepts = intercepts and self.desk.may(self.name, "hook", name)
            known = self._names(hook)
            self.hears[name] = Heard(intercepts)
            if not known or intercepts:
                self.desk.door.hooks.subscribe(hook, self, intercepts=intercepts)
        return True

    def unsubscribe(self, name: str) -> None:
        if self.hears.pop(name, None) is None:
            return
        for event_id, waiting in tuple(self.pending.items()):
            if isinstance(waiting, Verdict) and waiting.hook == name:
                del self.pending[event_id]
                waiting.answer(UNSET)
        hook = hooks.hook_of(name)
        assert hook is not None
        left = self._names(hook)
        engine = self.desk.door.hooks
        if not left:
            engine.unsubscribe(hook, self)
        elif not any(self.hears[other].intercepts for other in left):
            engine.subscribe(hook, self, intercepts=False)

    def answer(self, event_id: str, result: Any) -> bool:
        """Take a `hook.result`; False when nothing waited for it."""
        waiting = self.pending.get(event_id)
        if waiting is None:
            if self.muted:  # it does answer after all
                self.muted, self.unanswered = False, 0
                log.info("asked again", app=self.name)
            return False
        if isinstance(waiting, Verdict):
            del self.pending[event_id]
        waiting.answer(result)
        return True

    # --- the end ---

    def leave(self) -> None:
        """Take back everything this app had; whoever waits for it is told at once."""
        if self.gone:
            return
        self.gone = True
        self.ready = False
        self.desk.door.hooks.forget(self)
        pending, self.pending = self.pending, {}
        for waiting in pending.values():
            waiting.gone()
        for grant in tuple(self.grants.values()):
            grant.withdraw()
        self.desk.forget(self)
