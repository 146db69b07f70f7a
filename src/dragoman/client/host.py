"""The asynchronous client of a running daemon."""

from collections.abc import AsyncIterator, Sequence
from typing import Any, Literal, Self, TypeVar
from uuid import uuid4

import msgspec

from dragoman.engine.ask import Rule
from dragoman.engine.content import Image, Text
from dragoman.engine.events import Event, Settled, TurnBegan, Verdict
from dragoman.engine.info import SessionInfo, begun_by_somebody

from . import answers
from .address import socket_path, whole
from .answers import Facts
from .problems import ConnectionGone
from .stream import Stream, event_of
from .wire import Wire

__all__ = ["Facts", "HostClient", "connect"]
T = TypeVar("T")
_PAGE = 1_000


def connect(
    path: str | None = None, *, config_dir: str | None = None, name: str = "python"
) -> "HostClient":
    """A client for `async with`. Without a path, the daemon of this user is meant.

    `name` is what other clients see. Entering raises NotRunning when nobody listens there.
    """
    return HostClient(path or socket_path(config_dir), name)


class HostClient:
    """What can be asked of a daemon. Methods raise the host's own Faults."""

    def __init__(self, path: str, name: str) -> None:
        self.path = path
        self.name = name
        self._wire = Wire(path, name, patient=False)

    async def __aenter__(self) -> Self:
        await self._wire.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._wire.close()

    async def call(self, method: str, params: dict[str, Any] | None = None) -> Any:
        """Any method of the host, with its plain result."""
        raw = await self._wire.send(method, params or {})
        return msgspec.json.decode(raw)

    async def notices(self) -> AsyncIterator[tuple[str, Any]]:
        """What the host tells after such a method (`dragoman/tap`), as (method, params).

        Take them as they come: when more than a few hundred wait, the oldest are forgotten.
        """
        while True:
            try:
                message = await self._wire.told()
            except ConnectionGone:
                return
            if message is not None:
                yield message.method, msgspec.json.decode(message.params)

    async def _ask(self, method: str, kind: type[T], /, **params: Any) -> T:
        raw = await self._wire.send(f"dragoman/{method}", _given(params))
        return msgspec.json.decode(raw, type=kind)

    # --- the host ---

    async def status(self) -> dict[str, Any]:
        return await self._ask("status", dict[str, Any])

    async def agents(self) -> list[answers.AgentRow]:
        return (await self._ask("agents", answers.Agents)).agents

    async def models(self, provider: str | None = None) -> list[answers.ModelRow]:
        return (await self._ask("models", answers.Models, provider=provider)).models

    async def key_variables(self) -> dict[str, list[str]]:
        """Providers that the host has no key for, each with the variables that may hold one."""
        return (await self._ask("models", answers.Models)).key_variables

    async def clients(self) -> list[answers.ClientRow]:
        """Who is connected, in every protocol."""
        return (await self._ask("clients", answers.Clients)).clients

    async def commands(self, cwd: str) -> list[answers.CommandRow]:
        """The slash commands of a folder that the host knows: Markdown files and skills."""
        return (await self._ask("commands", answers.Commands, cwd=whole(cwd))).commands

    # --- sessions ---

    async def board(self, limit: int = 100) -> answers.Board:
        """The newest sessions and all that wait for somebody, with who is attached."""
        return await self._ask("board", answers.Board, limit=limit)

    async def list(
        self,
        *,
        limit: int = 100,
        status: Sequence[str] = (),
        cwd: str | None = None,
        agent: str | None = None,
        text: str = "",
        archived: bool | None = False,
    ) -> Sequence[SessionInfo]:
        """Sessions, newest activity first. `archived` None: both kinds."""
        found: list[SessionInfo] = []
        cursor = ""
        while len(found) < limit:
            page = await self._ask(
                "sessions",
                answers.Sessions,
                limit=min(limit - len(found), _PAGE),
                status=tuple(status),
                cwd=whole(cwd) if cwd else cwd,
                agent=agent,
                text=text,
                archived=archived,
                cursor=cursor,
            )
            found += page.sessions
            cursor = page.cursor
            if not cursor:
                break
        return found

    async def newest(self, cwd: str) -> SessionInfo | None:
        """The newest conversation in a folder, not what schedules and sub-agents do there."""
        for limit in (20, 10_000):
            rows = await self.list(cwd=cwd, limit=limit)
            found = next(filter(begun_by_somebody, rows), None)
            if found is not None or len(rows) < limit:
                return found
        return None

    async def session(self, session_id: str) -> Facts:
        """A session with who is attached, what is asked, and its plan."""
        return await self._ask("session", Facts, session_id=session_id)

    async def open(
        self,
        *,
        agent: str = "",
        cwd: str = "",
        model: str = "",
        mode: str | None = None,
        title: str = "",
        reasoning: str = "",
        extra: dict[str, Any] | None = None,
        worktree: bool = False,
    ) -> SessionInfo:
        """A new session. A relative `cwd` is the caller's."""
        made = await self._ask(
            "open", answers.Session, agent=agent, cwd=whole(cwd), model=model, mode=mode,
            title=title, reasoning=reasoning, extra=extra, worktree=worktree,
        )  # fmt: skip
        return made.session

    async def history(
        self, session_id: str, after: int = 0, limit: int | None = None
    ) -> AsyncIterator[Event]:
        """Kept events after a sequence number, oldest first."""
        left = limit
        while left is None or left > 0:
            page = await self._ask(
                "history",
                answers.History,
                session_id=session_id,
                after=after,
                limit=_PAGE if left is None else min(left, _PAGE),
            )
            for told in page.events:
                yield told.plain()
            if not page.more:
                return
            after = page.events[-1].seq
            left = None if left is None else left - len(page.events)

    async def rename(self, session_id: str, title: str) -> SessionInfo:
        return await self._changed("rename", session_id, title=title)

    async def archive(self, session_id: str, archived: bool = True) -> SessionInfo:
        return await self._changed("archive", session_id, archived=archived)

    async def fork(self, session_id: str, **changes: Any) -> SessionInfo:
        """A new session with the history of another; `agent`, `cwd`, `model`, … may differ."""
        if "cwd" in changes:
            changes["cwd"] = whole(changes["cwd"])
        return await self._changed("fork", session_id, **changes)

    async def set_model(self, session_id: str, model: str) -> SessionInfo:
        return await self._changed("setModel", session_id, model=model)

    async def set_mode(self, session_id: str, mode: str) -> SessionInfo:
        return await self._changed("setMode", session_id, mode=mode)

    async def set_reasoning(self, session_id: str, effort: str) -> SessionInfo:
        return await self._changed("setReasoning", session_id, effort=effort)

    async def clear(self, session_id: str) -> SessionInfo:
        return await self._changed("clear", session_id)

    async def _changed(self, method: str, session_id: str, **params: Any) -> SessionInfo:
        answer = await self._ask(method, answers.Session, session_id=session_id, **params)
        return answer.session

    async def delete(self, session_id: str) -> bool:
        """Remove a session for good; False when there was none."""
        return (await self._ask("delete", answers.Deletion, session_id=session_id)).deleted

    # --- driving and watching ---

    async def prompt(
        self,
        session_id: str,
        prompt: str | Sequence[Text | Image],
        *,
        when_busy: Literal["queue", "refuse"] = "queue",
        key: str = "",
    ) -> AsyncIterator[Event]:
        """Run a turn: its events, from `TurnBegan` to `TurnEnded`. Raises Busy and others.

        Leaving the iteration early does not stop the turn; `cancel` does, and `retract` with the
        same `key`, also while it is queued. The same `key` again is refused, so a prompt can be
        repeated safely.
        """
        key = key or uuid4().hex
        params: dict[str, Any] = {"session_id": session_id, "when_busy": when_busy, "key": key}
        params |= {"text": prompt} if isinstance(prompt, str) else {"content": tuple(prompt)}
        wire = Wire(self.path, self.name)
        try:
            await wire.open()
            await wire.send("dragoman/watch", {"session_id": session_id, "draft": False})
            answer = wire.send("dragoman/prompt", params, mark=True)
            turn = ""
            while (message := await wire.told()) is not None:
                if message.method != "dragoman/event":
                    continue
                event = event_of(message)
                if isinstance(event.body, TurnBegan) and event.body.key == key:
                    turn = event.body.turn
                if turn and _turn(event) in ("", turn):
                    yield event
            await answer
        finally:
            await wire.close()

    async def submit(
        self, session_id: str, prompt: str | Sequence[Text | Image], *, key: str = ""
    ) -> str:
        """Queue a prompt and go on; returns the turn's id. Who watches sees the rest."""
        params: dict[str, Any] = {"session_id": session_id, "detach": True, "key": key}
        params |= {"text": prompt} if isinstance(prompt, str) else {"content": tuple(prompt)}
        return (await self._ask("prompt", answers.Turn, **params)).turn

    async def run(
        self, session_id: str, prompt: str, *, when_busy: Literal["queue", "refuse"] = "queue"
    ) -> answers.Finished:
        """Run a turn and wait for its end."""
        return await self._ask(
            "prompt", answers.Finished, session_id=session_id, text=prompt, when_busy=when_busy
        )

    async def steer(self, session_id: str, text: str) -> str:
        """Say something into the running turn; returns the turn's id."""
        return (await self._ask("steer", answers.Turn, session_id=session_id, text=text)).turn

    async def cancel(self, session_id: str) -> str:
        """Stop the running turn; returns its id. Raises NothingRunning."""
        return (await self._ask("cancel", answers.Turn, session_id=session_id)).turn

    async def retract(self, session_id: str, key: str) -> str:
        """Take back the prompt of this key, queued or running. Raises NothingRunning."""
        return (await self._ask("retract", answers.Turn, session_id=session_id, key=key)).turn

    async def compact(self, session_id: str) -> answers.Finished:
        """Summarise the history; waits for the end."""
        return await self._ask("compact", answers.Finished, session_id=session_id)

    async def checkpoints(self, session_id: str) -> Sequence[answers.Checkpoint]:
        """The turns that changed files, oldest first."""
        return (
            await self._ask("checkpoints", answers.Checkpoints, session_id=session_id)
        ).checkpoints

    async def undo(self, session_id: str, turn: str = "") -> answers.Restored:
        """Put files back to before a turn; empty: the last. Raises Busy, BadInput, Changed."""
        return await self._ask("undo", answers.Restored, session_id=session_id, turn=turn)

    async def redo(self, session_id: str) -> answers.Restored:
        """Take the last undo back. Raises Busy, BadInput, Changed."""
        return await self._ask("redo", answers.Restored, session_id=session_id)

    def attach(self, session_id: str, *, since: int | None = None) -> Stream:
        """All events of a session: those after `since` first, then what comes."""
        return Stream(
            Wire(self.path, self.name), _given({"session_id": session_id, "since": since})
        )

    def watch(self, *, since: int | None = None, passing: bool = True) -> Stream:
        """The events of all sessions; without `passing` the kept ones only. `since` is a `gseq`."""
        params = {"since": since, "passing": None if passing else False}
        return Stream(Wire(self.path, self.name), _given(params))

    # --- approvals ---

    async def approvals(
        self, session_id: str | None = None, *, pending: bool = True
    ) -> Sequence[answers.Approval]:
        found = await self._ask(
            "approvals", answers.Approvals, session_id=session_id, pending=pending
        )
        return found.approvals

    async def question(self, ask_id: str) -> answers.Question:
        """One question whole, as it is to be shown. Raises UnknownAsk."""
        return await self._ask("approval", answers.Question, id=ask_id)

    async def answer(
        self,
        ask_id: str,
        verdict: Verdict,
        *,
        comment: str = "",
        text: str = "",
        scope: str = "",
        lasts: str = "",
        digest: str = "",
    ) -> Settled:
        """Answer an approval or a question. Raises AlreadySettled, UnknownAsk, Changed.

        `scope` is one that the question offers and `lasts` session, project or agent, when an
        answer is for always; `digest` is that of the question which was seen.
        """
        answer = await self._ask(
            "answer", answers.Answered, id=ask_id, verdict=verdict, comment=comment, text=text,
            scope=scope, lasts=lasts, digest=digest,
        )  # fmt: skip
        return answer.settled

    async def rules(self) -> Sequence[Rule]:
        """Answers that are remembered, oldest first."""
        return (await self._ask("rules", answers.Rules)).rules

    async def remove_rule(self, rule_id: str) -> Rule:
        """Withdraw a remembered answer. Raises UnknownRule."""
        return (await self._ask("removeRule", answers.OneRule, id=rule_id)).rule


def _given(params: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in params.items() if value is not None}


def _turn(event: Event) -> str:
    """The turn that an event belongs to; empty when it belongs to the session."""
    body: Any = event.body
    ask = getattr(body, "ask", None)
    found = ask.turn if ask is not None else getattr(body, "turn", "")
    return str(found)
