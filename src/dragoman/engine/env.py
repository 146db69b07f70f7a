"""What a tool sees of its session (`ports.ToolEnv`)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from . import events as ev
from .content import PlanEntry
from .faults import BadInput
from .ports import Answer, Files, Reach, Terminals

if TYPE_CHECKING:
    from .turn import Turn

_DRAFT_PROGRESS = 64 * 1024  # how much of a running tool's output a late watcher is shown


class Env:
    """What a tool sees of its session (`ports.ToolEnv`)."""

    __slots__ = ("_turn", "call_id", "reach", "vision")

    def __init__(self, turn: "Turn", call_id: str, reach: Sequence[Reach] = ()) -> None:
        self._turn = turn
        self.call_id = call_id
        self.reach = reach
        self.vision = turn.session.vision

    @property
    def session(self) -> str:
        return self._turn.session.id

    @property
    def turn(self) -> str:
        return self._turn.id

    @property
    def agent(self) -> str:
        return self._turn.session.state.agent

    @property
    def cwd(self) -> str:
        return self._turn.session.state.cwd

    @property
    def roots(self) -> Sequence[str]:
        return self._turn.session.roots

    @property
    def mode(self) -> ev.Mode:
        return self._turn.session.state.mode

    @property
    def files(self) -> Files | None:
        return self._turn.session.files

    @property
    def terminals(self) -> Terminals | None:
        return self._turn.session.terminals

    def progress(self, text: str) -> None:
        if not text:
            return
        draft = self._turn.draft.progress
        draft[self.call_id] = (draft.get(self.call_id, "") + text)[-_DRAFT_PROGRESS:]
        self._turn.emit(ev.Progress(self._turn.id, self.call_id, text))

    async def ask(self, question: str, choices: Sequence[str] = ()) -> Answer:
        if not question.strip():
            raise BadInput("The question is empty.", "Give the text to ask the human.")
        self._turn._open()
        return await self._turn.session.ask_human(self._turn, self.call_id, question, choices)

    async def plan(self, entries: Sequence[PlanEntry]) -> None:
        await self._turn.plan(entries)
