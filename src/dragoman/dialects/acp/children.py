"""Children of a session: sessions of their own, which their parent announces.

A client that knows sub-agents (every one of version 2) is told of a child, of its state, and all
that happens in it, under the child's own id. It may stop a child, and nothing else. To other
clients a child is a tool call that takes its time; its questions are put as the parent's, since
somebody has to answer them.
"""

from collections.abc import Sequence
from typing import Any

from dragoman.engine import events as ev
from dragoman.engine.events import Event
from dragoman.engine.faults import UnknownSession
from dragoman.engine.traits import StartedBy

from .attach import Attachment
from .speak import Said, state_of, stop_of

Fields = dict[str, Any]


class Unseen:
    """Tells of a child's questions and its end alone (`engine.hub.Shape`)."""

    def speak(self, events: Sequence[Event]) -> list[Said] | None:
        return [Said((), event.body) for event in events if type(event.body) in _UNSEEN] or None


class Child(Attachment):
    """A child as its parent's client sees it."""

    __slots__ = ("_parent", "shown")

    def __init__(self, parent: Attachment, session_id: str) -> None:
        self._parent = parent
        self.shown = parent.connection.shows_children
        super().__init__(parent.connection, session_id)
        self.files = self.terminals = None  # it works in our own sandbox
        if not self.shown:
            self.asks_as = parent.id
            self.speaker = Unseen()

    @property
    def parent(self) -> str:
        return self._parent.id

    @property
    def shape_key(self) -> object:
        return (self.connection.shape_key, self.parent) if self.shown else Unseen

    def lend(self) -> None:
        """Nothing: what a client lends is its parent's."""

    def _reached(self, place: int) -> None:
        self.place = place  # who comes again comes to the parent

    # --- telling the parent ---

    def announce(self, title: str, role: str, *, running: bool) -> None:
        """Tell of the child, or once more of one that goes on."""
        about: Fields = {"title": title} if title else {}
        if role:
            about["description"] = f"Role: {role}"
        session = self.connection.door.live(self.id)
        if session is not None and session.cwd:
            about["cwd"] = session.cwd
        self._patch({**about, "capabilities": {"cancel": {}} if running else {}})

    def _patch(self, fields: Fields) -> None:
        if self.shown:
            update = {"sessionUpdate": "subagent_update", "sessionId": self.id, **fields}
            self._parent.send([self._parent.speaker.line(update)])

    def deliver(self, said: list[Said]) -> None:
        for one in said:
            body = one.body
            if self.shown:
                super().deliver([one])
            elif act := _UNSEEN.get(type(body)):
                act(self, body)
            if body is not None and not self.replaying:
                self._mirror(body)

    def _mirror(self, body: object) -> None:
        """What changes the child's state is told at the parent, too."""
        if isinstance(body, ev.TurnBegan):
            self._patch({"state": {"state": "running"}})
        elif isinstance(body, ev.Asked):
            self._patch({"state": {"state": "requires_action"}})
        elif isinstance(body, ev.Settled):
            session = self.connection.door.live(self.id)
            if session is not None and session.busy and not session.asks.keys() - {body.ask_id}:
                self._patch({"state": {"state": "running"}})
        elif isinstance(body, ev.TurnEnded):
            self._patch({"state": {"state": "idle", **stop_of(body)}, "capabilities": {}})
            self._parent.part_from(self)

    # --- coming in ---

    async def begin(self) -> None:
        """Follow a child from its first word on."""
        try:
            await self.follow(0)
        except UnknownSession:
            self._parent.part_from(self)  # it was deleted this very moment

    async def join(self) -> None:
        """Follow one that works already."""
        try:
            await self.follow(self.place or None)
        except UnknownSession:
            self._parent.part_from(self)
            return
        session = self.connection.door.live(self.id)
        for ask in tuple(session.asks.values()) if session is not None else ():
            self.questions.put(ask)

    async def past(self) -> None:
        """Tell what happened in it, as its parent's history is told."""
        if self.shown:
            past = self.tell_past(0) if self.connection.second else self.replay()
            self.place = await past


def born(attachment: Attachment, body: ev.Delegated) -> None:
    """A child begins to work for this session."""
    if attachment.replaying or attachment.entering:
        attachment.born[body.session] = body
        return
    child = attachment.children[body.session] = Child(attachment, body.session)
    child.announce(body.title, body.role, running=True)
    attachment.connection.door.spawn(child.begin())


async def replay_children(attachment: Attachment) -> None:
    """Announce the children of a replayed history and tell what happened in them."""
    for id, body in tuple(attachment.born.items()):
        child = Child(attachment, id)
        child.announce(body.title, body.role, running=False)
        try:
            await child.past()
        except UnknownSession:
            continue  # it was deleted; that it was there is still told
        finally:
            child.seat.leave()
        session = attachment.connection.door.live(id)
        if session is not None and session.busy:
            attachment.places[id] = child.place
        else:
            child._patch({"state": state_of(session)})
            attachment.born.pop(id, None)


def adopt(attachment: Attachment) -> None:
    """The client is in: from now on it is told of the children that work."""
    door, told = attachment.connection.door, attachment.born
    attachment.born = {}
    for view in door.lives():
        if view.parent != attachment.id or StartedBy.of(view.extra).session != attachment.id:
            continue
        if not view.busy or view.id in attachment.children:
            continue
        child = attachment.children[view.id] = Child(attachment, view.id)
        child.place = attachment.places.pop(view.id, 0)
        known = told.pop(view.id, None)
        child.announce(view.title, known.role if known else "", running=True)
        child._patch({"state": state_of(view)})
        attachment.connection.door.spawn(child.join())
    for id, body in told.items():  # over meanwhile
        Child(attachment, id).announce(body.title, body.role, running=False)


_UNSEEN: dict[type, Any] = {
    ev.Asked: Attachment._on_asked,
    ev.Settled: Attachment._on_settled,
    ev.TurnEnded: None,
}
