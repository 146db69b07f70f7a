"""Tools, what they see of a session, and the policy that judges their calls."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol, runtime_checkable

import msgspec

from ..ask import Access, Change, Seen
from ..content import Detail, Image, PlanEntry, Text, ToolCall
from ..events import Mode
from .models import ToolSpec

LOOKING = frozenset({"read", "search", "think"})  # kinds of tools that change nothing


class Outcome(msgspec.Struct, frozen=True):
    """What a tool gives back to the model."""

    content: tuple[Text | Image, ...]
    is_error: bool = False
    detail: Detail | None = None


class Files(Protocol):
    """Where text files live: our own disk, or an editor's buffers."""

    async def read_text(self, path: str) -> str: ...

    async def write_text(self, path: str, text: str) -> None: ...


class Terminals(Protocol):
    """Where commands run when a client offers its own terminals."""

    @property
    def near(self) -> bool:
        """Whether what runs there runs on this machine."""
        ...

    async def run(
        self,
        command: str,
        *,
        argv: Sequence[str] = (),
        cwd: str,
        env: dict[str, str],
        timeout: float | None,
        limit: int,
        opened: Callable[[str], None],
    ) -> tuple[int | None, str, bool]:
        """Run to the end; `opened` gets the terminal's id. Returns exit code, output, truncated.

        `argv`: the program that runs the command; without it a shell does.
        """
        ...


class Answer(msgspec.Struct, frozen=True, gc=False):
    """A human's reply to a question. Empty `text` with `answered` False: nobody could answer."""

    text: str
    answered: bool = True


class Stopped(asyncio.CancelledError):
    """A cancelled tool's last word: what it had to show until then."""

    def __init__(self, outcome: "Outcome") -> None:
        super().__init__()
        self.outcome = outcome


class ToolEnv(Protocol):
    """What a tool may see and do while it runs. One per call; made by the session."""

    @property
    def session(self) -> str: ...

    @property
    def turn(self) -> str: ...

    @property
    def call_id(self) -> str: ...

    @property
    def agent(self) -> str: ...

    @property
    def cwd(self) -> str: ...

    @property
    def roots(self) -> Sequence[str]:
        """Further directories inside the boundary."""
        ...

    @property
    def reach(self) -> "Sequence[Reach]":
        """What this one call may touch outside of the boundary, because it was agreed to."""
        ...

    @property
    def mode(self) -> Mode: ...

    @property
    def files(self) -> "Files | None":
        """The client's file system when it offers one."""
        ...

    @property
    def terminals(self) -> "Terminals | None": ...

    @property
    def variables(self) -> Mapping[str, str]:
        """The environment of the client that opened the session, unfiltered; empty: not told."""
        ...

    @property
    def seen(self) -> "Sequence[Seen] | None":
        """The files as a human saw them before allowing the call; None: nobody had to.

        A tool that changes files raises Changed, and changes nothing, when one of them is another
        by now (`Previewing`).
        """
        ...

    @property
    def vision(self) -> bool:
        """The model can see images."""
        ...

    def progress(self, text: str) -> None: ...

    async def ask(self, question: str, choices: Sequence[str] = ()) -> Answer: ...

    async def inquire(self, question: str, choices: Sequence[str] = (), *, url: str = "") -> Answer:
        """One of several questions that a call leads to; `url` is where the human is to go."""
        ...

    async def plan(self, entries: Sequence[PlanEntry]) -> None: ...

    async def delegated(self, session: str, title: str, role: str) -> None:
        """Tell that this call gives work to a child session."""
        ...

    async def leave_plan(self, question: str) -> Answer:
        """Ask whether to go on with a plan; a yes has the session leave plan mode."""
        ...


class Tool(Protocol):
    spec: ToolSpec

    async def run(self, args: dict[str, Any], env: ToolEnv) -> Outcome:
        """Do it. Cancelling the task must stop everything the tool started.

        Raises BadInput for bad arguments and Refused for what policy forbids; both become an
        error result for the model.
        """
        ...

    def summary(self, args: dict[str, Any]) -> str:
        """One line for a human who must decide about this call."""
        ...


class Preview(msgspec.Struct, frozen=True):
    """What a call would change, against the files as they are now."""

    changes: tuple[Change, ...] = ()
    seen: tuple[Seen, ...] = ()


@runtime_checkable
class Previewing(Protocol):
    """A tool that can tell what it would change."""

    async def preview(self, args: dict[str, Any], env: ToolEnv) -> Preview:
        """Change nothing. Raises what `run` would raise."""
        ...


class Toolbox(Protocol):
    """The tools of one session: built in, MCP, offered by apps."""

    def specs(self) -> Sequence[ToolSpec]: ...

    def find(self, name: str) -> Tool | None: ...

    async def close(self) -> None: ...


class Reach(msgspec.Struct, frozen=True, gc=False):
    """A place outside of the session's boundary that a call needs."""

    path: str  # canonical
    write: bool = False
    folder: str = ""  # the folder that a lasting answer would be about


class Judgement(msgspec.Struct, frozen=True, gc=False):
    """What policy says of a call. `reason` is shown to the model (deny) or the human (ask).

    `reach` is what the call may touch outside of the boundary once it is allowed. `commands` are
    the words of every program that a shell command runs; empty when they are not all known, and
    then no rule about first words can be made of it.
    """

    verdict: Literal["allow", "ask", "deny"]
    reason: str = ""
    risk: Literal["low", "medium", "high"] = "low"
    reach: tuple[Reach, ...] = ()
    commands: tuple[tuple[str, ...], ...] = ()
    # What a tool that reads or changes files touches inside of the boundary, canonical.
    files: tuple[str, ...] = ()
    access: Access = "write"
    firm: bool = False  # to be asked every time, whatever was remembered (always_ask)


class Policy(Protocol):
    """The rules of one agent: autonomy, lists, paths, commands."""

    def judge(
        self,
        call: ToolCall,
        spec: ToolSpec,
        *,
        mode: Mode,
        cwd: str,
        roots: Sequence[str],
        plan: str = "",
    ) -> Judgement:
        """`plan` is the file that may be written in plan mode."""
        ...
