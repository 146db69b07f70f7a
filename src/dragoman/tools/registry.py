"""The tools of a session, put together by name."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from dragoman.engine.ports import Tool, ToolSpec
from dragoman.holding import Holder

from . import told
from .disk import BoundsOf
from .reads import Reads

if TYPE_CHECKING:
    from dragoman.sandbox.launch import Confine

    from .background import JobBook, Jobs
    from .nested import Nested

BUILT_IN = (
    told.ASK_USER, told.BASH, told.BASH_KILL, told.BASH_OUTPUT, told.EDIT, told.GLOB, told.GREP,
    told.LS, told.PLAN, told.PROPOSE_PLAN, told.READ, told.WEB_FETCH, told.WRITE,
)  # fmt: skip
NAMES = tuple(spec.name for spec in BUILT_IN)
ALIASES: Mapping[str, str] = {"shell": "bash"}
Closer = Callable[[], Awaitable[None]]


class Late(Holder, dict=True):
    """A built-in tool: what it is told as, and its code when it is called."""

    spec: ToolSpec
    _make: Callable[[str], Tool]

    @cached_property
    def tool(self) -> Tool:
        return self._make(self.spec.name)


class Box:
    """The tools of one session (`ports.Toolbox`)."""

    def __init__(self, tools: Iterable[Tool | Late], notes: Iterable[str] = ()) -> None:
        self._tools = {tool.spec.name: tool for tool in tools}
        self._specs: Sequence[ToolSpec] | None = None
        self._closers: list[Closer] = []
        self.notes = list(notes)  # what the session should be told

    def specs(self) -> Sequence[ToolSpec]:
        """What the model is told, sorted by name."""
        if self._specs is None:
            self._specs = [self._tools[name].spec for name in sorted(self._tools)]
        return self._specs

    def find(self, name: str) -> Tool | None:
        """The tool of this name, or the one it is another name of."""
        found = self._tools.get(name) or self._tools.get(ALIASES.get(name, ""))
        return found.tool if isinstance(found, Late) else found

    def add(self, tool: Tool) -> bool:
        """Add a tool; False (and a note) when the name is taken."""
        name = tool.spec.name
        if name in self._tools or ALIASES.get(name) in self._tools:
            self.notes.append(f"The tool {name} was left out: there is another of this name.")
            return False
        self._tools[name] = tool
        self._specs = None
        return True

    def remove(self, name: str) -> bool:
        """Take a tool away again."""
        self._specs = None
        return self._tools.pop(name, None) is not None

    def on_close(self, closer: Closer) -> None:
        """Have something closed with the box (an MCP connection)."""
        self._closers.append(closer)

    async def close(self) -> None:
        while self._closers:
            await self._closers.pop()()


class Registry(Holder, dict=True):
    """Builds the tools of sessions; one per agent profile.

    `bounds` gives the boundary of a call; `outputs` is a private directory of ours; `confine` gives
    the sandbox, once, when a tool needs it; `book` is where background commands are written down.
    """

    bounds: BoundsOf
    outputs: str | None = None
    confine: "Callable[[], Confine] | None" = None
    shell_timeout: float | None = None
    max_output: int = 0
    allow_env: Sequence[str] = ()
    extra_env: Mapping[str, str] | None = None
    context_files: bool = True
    search: Tool | None = None
    book: "JobBook | None" = None
    _reads: Reads = msgspec.field(default_factory=Reads)
    _built: dict[str, Tool | Late] = {}
    _named: dict[str, Tool | Late] = {}

    def __post_init__(self) -> None:
        self._built = {spec.name: Late(spec, self._make) for spec in BUILT_IN}
        if self.search is not None:
            self._built[self.search.spec.name] = self.search
        # Those that an agent has only when its list of tools names them.
        self._named = {**self._built, told.ESCALATE.name: Late(told.ESCALATE, self._make)}

    @cached_property
    def _confine(self) -> "Confine":
        from dragoman.sandbox.launch import Unconfined

        return Unconfined() if self.confine is None else self.confine()

    @cached_property
    def jobs(self) -> "Jobs":
        from .background import Jobs

        return Jobs(self.book)

    def _make(self, name: str) -> Tool:
        match name:
            case "ask_user" | "escalate_to_human":
                from .ask import AskUser, EscalateToHuman

                return AskUser() if name == "ask_user" else EscalateToHuman()
            case "bash":
                from .bash import Bash
                from .output import Outputs

                return Bash(
                    self.bounds,
                    outputs=Outputs(self.outputs),
                    confine=self._confine,
                    timeout=self.shell_timeout,
                    max_output=self.max_output,
                    allow_env=self.allow_env,
                    extra_env=self.extra_env,
                    jobs=self.jobs,
                )
            case "bash_kill" | "bash_output":
                from .background import BashKill, BashOutput

                return BashKill(self.jobs) if name == "bash_kill" else BashOutput(self.jobs)
            case "edit":
                from .edit import Edit

                return Edit(self.bounds, self._confine, self._reads)
            case "glob":
                from .glob import Glob

                return Glob(self.bounds)
            case "grep":
                from .grep import Grep

                return Grep(self.bounds)
            case "ls":
                from .ls import Ls

                return Ls(self.bounds)
            case "plan" | "propose_plan":
                from .plan import Plan, ProposePlan

                return Plan() if name == "plan" else ProposePlan(self.bounds)
            case "read":
                from .read import Read

                return Read(self.bounds, self._reads, self._nested)
            case "web_fetch":
                from .web import WebFetch

                return WebFetch()
            case "write":
                from .write import Write

                return Write(self.bounds, self._confine, self._reads, self._nested)
        raise LookupError(name)

    @cached_property
    def _nested(self) -> "Nested | None":
        from .nested import Nested

        return Nested() if self.context_files else None

    def find(self, name: str) -> Tool | None:
        """A built-in tool by itself."""
        found = self._built.get(name)
        return found.tool if isinstance(found, Late) else found

    async def _end_jobs(self, session: str) -> None:
        if "jobs" in self.__dict__:
            await self.jobs.end(session)

    def toolbox(
        self, names: Iterable[str] | None = None, extra: Iterable[Tool] = (), session: str = ""
    ) -> Box:
        """The built-in tools of these names (None: all) and all extra ones.

        Names that are unknown are left out, and noted.
        """
        extra = tuple(extra)
        if names is None:
            box = Box(self._built.values())
        else:
            wanted = list(dict.fromkeys(ALIASES.get(name, name) for name in names))
            if "bash" in wanted:  # they belong to it
                wanted = list(dict.fromkeys([*wanted, "bash_output", "bash_kill"]))
            others = {tool.spec.name for tool in extra}
            unknown = [n for n in wanted if n not in self._named and n not in others]
            notes = [f"Unknown tool in the list of tools: {name}." for name in unknown]
            box = Box([self._named[n] for n in wanted if n in self._named], notes)
        for tool in extra:
            box.add(tool)
        if session:
            box.on_close(lambda: self._end_jobs(session))
        return box
