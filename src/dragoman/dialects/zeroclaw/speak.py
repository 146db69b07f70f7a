"""Events as `session/update` notifications, encoded once for all connections of a spelling."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from dragoman.engine import events as ev
from dragoman.engine import shown
from dragoman.engine.content import Image, Text, ToolCall, text_of
from dragoman.engine.door import Door
from dragoman.engine.events import Ask, Event
from dragoman.engine.faults import Fault
from dragoman.engine.hub import Personal
from dragoman.engine.visible import visible
from dragoman.wire.codec import encode
from dragoman.wire.jsonrpc import notification
from dragoman.wire.link import Blob

from .spelling import camel

if TYPE_CHECKING:
    from .elicit import Questions

FOR_EVER = 86_400  # told as the time-out of a question that waits as long as it takes
_CAUSES = {
    "client": "client_rpc", "close": "session_removed", "delete": "session_removed",
    "kill": "admin_kill",
}  # fmt: skip
_REMEMBERED = 1_024
NAMES = {"write": "file_write", "edit": "file_edit"}  # tools that its clients draw as changes
# Neither kind of client knows these.
_UNSAID = frozenset({
    ev.StepBegan, ev.StreamOpened, ev.StatusChanged, ev.Presence, ev.CallDrafted, ev.CallArgs,
    ev.CallReady, ev.Progress, ev.Retrying, ev.Compacting,
})  # fmt: skip


class Told(Personal[Blob]):
    """Updates of which some repeat what one of the clients said itself: not for that one."""

    __slots__ = ("_authors", "_blobs", "_said")

    def __init__(self, said: "list[bytes | Callable[[], bytes]]", authors: dict[int, str]) -> None:
        self._said = said
        self._authors = authors  # of which of them
        self._blobs: dict[str, Blob | None] = {}

    def for_client(self, who_id: str) -> Blob | None:
        author = who_id if who_id in self._authors.values() else ""
        if author not in self._blobs:
            own = {at for at, name in self._authors.items() if author and name == author}
            lines = [self._line(at) for at in range(len(self._said)) if at not in own]
            self._blobs[author] = Blob(lines) if lines else None
        return self._blobs[author]

    def _line(self, at: int) -> bytes:
        line = self._said[at]
        if not isinstance(line, bytes):  # most often nobody else is there to read it
            line = self._said[at] = line()
        return line


class Updates:
    """A session's events in one spelling.

    A snake_case client (the terminal client of this family) also gets the kinds of update that
    only it knows: `context_usage`, `plan`, `history_trimmed`, `turn_complete`. `questions` takes
    questions to the human away from the stream, for a client that is asked by a request.
    """

    knows = "own"

    def __init__(
        self,
        door: Door,
        session_id: str,
        in_camel: bool,
        questions: "Questions | None" = None,
        *,
        terminal: bool = False,
    ) -> None:
        self._door = door
        self._id = session_id
        self._camel = in_camel
        self._questions = questions
        # ZeroClaw's own shows no question without choices, and passes over what it does not know.
        self._for_terminal = terminal
        self._prompted = _DRAWN if terminal else _TOLD
        # Calls that were told. Never taken out again: the same events may be spoken a second time
        # for a client that fell behind.
        self._started: OrderedDict[str, None] = OrderedDict()
        self._windows: dict[str, int] = {}
        self._messages = self._size()
        self._text = self._prefix("agent_message_chunk")
        self._thought = self._prefix("agent_thought_chunk")

    def _prefix(self, kind: str) -> bytes:
        made = self._update(kind, text="")
        assert made.endswith(b'""}}')
        return made[:-4]

    def _update(self, kind: str, **members: Any) -> bytes:
        named = {"session_id": self._id, "type": kind, **members}
        if self._camel:
            named = {camel(name): value for name, value in named.items()}
        return notification("session/update", named)

    def speak(self, events: Sequence[Event]) -> Blob | Told | None:
        said: list[Any] = []
        authors: dict[int, str] = {}
        changed = False
        for event in events:
            body = event.body
            if type(body) is ev.TextDelta:
                said.append(self._text + encode(body.text) + b"}}")
            elif type(body) is ev.ThoughtDelta:
                said.append(self._thought + encode(body.text) + b"}}")
            elif type(body) not in _UNSAID:
                changed = True
                if isinstance(body, ev.TurnBegan | ev.Steered) and body.by is not None:
                    for prompted in self._prompted:
                        authors[len(said)] = body.by.id
                        said.append(partial(prompted, self, body))
                else:
                    self._other(body, said)
        if changed and not self._camel:
            self._messages = self._size()
        if authors:
            return Told(said, authors)
        return Blob(said) if said else None

    def _asked_for(self, body: ev.TurnBegan | ev.Steered) -> bytes:
        return self._update("user_message_chunk", text=text_of(body.content))

    def _drawn(self, body: ev.TurnBegan | ev.Steered) -> bytes:
        """The same for the terminal, which draws only what agents say or think."""
        text = f"[another client asks] {visible(text_of(body.content))}\n\n"
        return self._update("agent_thought_chunk", text=text)

    def _other(self, body: ev.Body, said: list[bytes]) -> None:
        match body:
            case ev.Asked(ask=ask):
                said += self.asked(ask)
            case ev.Settled(ask_id=ask_id):
                if self._questions is not None:
                    self._questions.settled(ask_id)
            case ev.CallStarted(call_id=call_id, name=name, args=args):
                said.append(self.called(call_id, name, args))
            case ev.CallEnded():
                self._ended(body, said)
            case ev.Lagged(dropped=dropped):
                said.append(self._update("lagged", dropped=dropped))
            case ev.TurnBegan() | ev.Steered():
                said += [prompted(self, body) for prompted in self._prompted]
            case _ if self._camel:
                return  # what follows only the terminal client knows
            case ev.Spoke(usage=usage, model=model) if usage.context:
                tokens = usage.input + usage.cache_read + usage.cache_write
                window = self._window(model)
                most = {"max_context_tokens": window} if window else {}
                said.append(self._update("context_usage", input_tokens=tokens, **most))
            case ev.Planned(entries=entries):
                said.append(self.planned(entries))
            case ev.Compacted(kept=kept):
                said.append(self._trimmed(kept, "the history was compacted"))
            case ev.Cleared():
                said.append(self._trimmed(0, "the history was cleared"))
            case ev.TurnEnded(outcome=outcome, text=text, error=error, cause=cause):
                said.append(self.completed(outcome, text, error, cause))

    # --- single updates, also for clients that join in the middle ---

    def called(self, call_id: str, name: str, args: dict[str, Any] | None) -> bytes:
        self._started[call_id] = None
        while len(self._started) > _REMEMBERED:
            self._started.popitem(last=False)
        name, args = spelled(name, args or {})
        return self._update("tool_call", tool_call_id=call_id, name=name, raw_input=args)

    def _ended(self, body: ev.CallEnded, said: list[bytes]) -> None:
        if body.call_id not in self._started:  # it was refused: the call comes with its result
            said.append(self.called(body.call_id, body.name, self._args(body.call_id)))
        text = "".join(
            f"[image {block.mime_type}]" if isinstance(block, Image) else block.text
            for block in body.content
            if isinstance(block, Text | Image)
        )
        name = NAMES.get(body.name, body.name)
        members = {"tool_call_id": body.call_id, "name": name, "raw_output": text}
        said.append(self._update("tool_result", **members))

    def asked(self, ask: Ask) -> list[bytes]:
        more: dict[str, Any] = {}
        if ask.kind == "question":
            if self._questions is not None and (ask.choices or not self._for_terminal):
                self._questions.ask(ask)
                return []
            if self._for_terminal:
                return [self._update("agent_thought_chunk", text=_elsewhere(ask))]
            more = {"question": visible(ask.title), "choices": ask.choices}
        else:
            # What a client needs to answer for always, and to say what it answers.
            if ask.digest:
                more["digest"] = ask.digest
            if ask.scopes:
                more["scopes"] = [
                    {"id": scope.id, "name": words, "lasts": scope.lasts}
                    for words, scope in shown.offers(ask)
                ]
        limit = (ask.expires_at - ask.at) // 1000 if ask.expires_at is not None else FOR_EVER
        return [
            self._update(
                "approval_request",
                request_id=ask.id,
                tool_name=NAMES.get(ask.tool, ask.tool) or ask.title,
                arguments_summary=summary(ask),
                timeout_secs=limit,
                **more,
            )
        ]

    def planned(self, entries: Sequence[Any]) -> bytes:
        return self._update("plan", entries=entries)

    def completed(self, outcome: str, text: str, error: str, cause: str) -> bytes:
        """`turn_complete`, the last update of a turn."""
        if outcome == "completed":
            return self._update("turn_complete", outcome="completed", content=text)
        if outcome == "failed":
            content = f"turn failed: Agent turn failed: {error}"
            return self._update("turn_complete", outcome="failed", content=content)
        content = f"turn cancelled via {_CAUSES.get(cause, cause)} in RPC_SESSION {self._id}"
        return self._update("turn_complete", outcome="cancelled", content=content)

    def never_ran(self, why: str) -> bytes:
        """`turn_complete` of a prompt that did not become a turn."""
        return self._update("turn_complete", outcome="failed", content=why)

    def _trimmed(self, kept: int, reason: str) -> bytes:
        dropped = max(self._messages - kept, 0)
        live = self._door.live(self._id)
        turns = 0
        if live is not None and kept:
            turns = sum(1 for message in live.messages if message.role == "user")
        return self._update(
            "history_trimmed", dropped_messages=dropped, kept_turns=turns, reason=reason
        )

    # --- what the events do not say ---

    def _size(self) -> int:
        live = self._door.live(self._id)
        return len(live.messages) if live is not None else 0

    def _args(self, call_id: str) -> dict[str, Any] | None:
        live = self._door.live(self._id)
        for message in reversed(live.messages if live is not None else ()):
            for block in message.content:
                if isinstance(block, ToolCall) and block.id == call_id:
                    return block.args
        return None

    def _window(self, model: str) -> int:
        if model not in self._windows:
            try:
                live = self._door.live(self._id)
                agent = live.agent if live is not None else ""
                self._windows = {model: self._door.model(model, agent).context_window}
            except Fault:  # its provider was taken out of the configuration meanwhile
                self._windows = {model: 0}
        return self._windows[model]


# How a prompt is told to those who did not write it.
_TOLD = (Updates._asked_for,)
_DRAWN = (Updates._asked_for, Updates._drawn)


def spelled(name: str, args: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """A call as this protocol names it, with the members by which its clients draw a change."""
    edits = args.get("edits") if name == "edit" else None
    if isinstance(edits, list) and all(isinstance(one, dict) for one in edits):
        for theirs, ours in (("old_string", "oldText"), ("new_string", "newText")):
            texts = [one.get(ours) for one in edits]
            args = {**args, theirs: "\n".join(text for text in texts if isinstance(text, str))}
    return NAMES.get(name, name), args


def _elsewhere(ask: Ask) -> str:
    """Said to a client that cannot show a question: the turn waits, and who can go on with it."""
    title = visible(ask.title)
    return f"\n[a question waits ({ask.id}): {title} | to answer it: dragoman approvals --watch]\n"


def summary(ask: Ask) -> str:
    """All that is asked, in text that hides nothing: every argument whole, and every change."""
    if ask.kind == "question":
        return visible(ask.summary)
    said = []
    for kind, label, text in shown.parts(ask):
        if kind == "diff":
            said.append(f"{label}\n{text}\n")
        elif kind != "note":
            said.append(f"{label}: {text}" if label else text)
    return ", ".join(said)
