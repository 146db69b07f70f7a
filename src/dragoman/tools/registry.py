"""The tools of a session, put together by name."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

from dragoman.engine.ports import Tool, ToolSpec
from dragoman.sandbox.launch import Confine

from .ask import AskUser, EscalateToHuman
from .background import BashKill, BashOutput, Jobs
from .bash import Bash
from .bounds import BoundsOf
from .edit import Edit
from .glob import Glob
from .grep import Grep
from .ls import Ls
from .nested import Nested
from .output import Outputs
from .plan import Plan
from .propose import ProposePlan
from .read import Read
from .reads import Reads
from .web import WebFetch
from .write import Write

NAMES = tuple(
    "ask_user bash bash_kill bash_output edit glob grep ls plan propose_plan read web_fetch "
    "write".split()
)
ALIASES: Mapping[str, str] = {"shell": "bash"}
Closer = Callable[[], Awaitable[None]]


class Box:
    """The tools of one session (`ports.Toolbox`)."""

    def __init__(
        self,
        tools: Iterable[Tool],
        aliases: Mapping[str, str] = ALIASES,
        notes: Iterable[str] = (),
    ) -> None:
        self._tools = {tool.spec.name: tool for tool in tools}
        self._aliases = dict(aliases)
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
        return self._tools.get(name) or self._tools.get(self._aliases.get(name, ""))

    def add(self, tool: Tool) -> bool:
        """Add a tool; False (and a note) when the name is taken."""
        name = tool.spec.name
        if self.find(name) is not None:
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


class Registry:
    """Builds the tools of sessions; one per agent profile."""

    def __init__(
        self,
        bounds: BoundsOf,
        *,
        outputs: str | None = None,
        confine: Confine | None = None,
        shell_timeout: float | None = None,
        max_output: int = 0,
        allow_env: Sequence[str] = (),
        extra_env: Mapping[str, str] | None = None,
        aliases: Mapping[str, str] = ALIASES,
        context_files: bool = True,
        search: Tool | None = None,
    ) -> None:
        """`bounds` gives the boundary of a call; `outputs` is a private directory of ours."""
        self.aliases = dict(aliases)
        self.jobs = Jobs()
        reads = Reads()
        built: Sequence[Tool] = (
            Read(bounds, reads, Nested() if context_files else None),
            Write(bounds, confine, reads),
            Edit(bounds, confine, reads),
            Ls(bounds),
            Glob(bounds),
            Grep(bounds),
            Bash(
                bounds,
                outputs=Outputs(outputs),
                confine=confine,
                timeout=shell_timeout,
                max_output=max_output,
                allow_env=allow_env,
                extra_env=extra_env,
                jobs=self.jobs,
            ),
            BashOutput(self.jobs),
            BashKill(self.jobs),
            AskUser(),
            Plan(),
            ProposePlan(bounds),
            WebFetch(),
            *((search,) if search is not None else ()),
        )
        self._built = {tool.spec.name: tool for tool in built}
        # Those that an agent has only when its list of tools names them.
        self._named = {**self._built, "escalate_to_human": EscalateToHuman()}

    def find(self, name: str) -> Tool | None:
        """A built-in tool by itself."""
        return self._built.get(name)

    def toolbox(
        self, names: Iterable[str] | None = None, extra: Iterable[Tool] = (), session: str = ""
    ) -> Box:
        """The built-in tools of these names (None: all) and all extra ones.

        Names that are unknown are left out, and noted.
        """
        extra = tuple(extra)
        if names is None:
            box = Box(self._built.values(), self.aliases)
        else:
            wanted = list(dict.fromkeys(self.aliases.get(name, name) for name in names))
            if "bash" in wanted:  # they belong to it
                wanted = list(dict.fromkeys([*wanted, "bash_output", "bash_kill"]))
            others = {tool.spec.name for tool in extra}
            unknown = [n for n in wanted if n not in self._named and n not in others]
            notes = [f"Unknown tool in the list of tools: {name}." for name in unknown]
            box = Box([self._named[n] for n in wanted if n in self._named], self.aliases, notes)
        for tool in extra:
            box.add(tool)
        if session:
            box.on_close(lambda: self.jobs.end(session))
        return box
