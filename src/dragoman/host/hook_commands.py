"""Hooks of the configuration: commands that run at the points where apps may listen.

A command runs as the agent's own commands do: in the working folder, by the same shell, inside of
the same sandbox. What it prints reaches the model; exit code 2 says no where an app may say no.

Values never become text of the command: `{path}` stands for a variable of the shell, so that a file
called `$(x)` is a name and nothing else.
"""

import asyncio
import os
import re
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from shlex import quote
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.engine.content import Text
from dragoman.engine.faults import Fault
from dragoman.engine.hooks import (
    Block,
    Executed,
    Executing,
    HookContext,
    P,
    Payload,
)
from dragoman.engine.host import Host
from dragoman.engine.keeping import NOTHING, Keeping
from dragoman.engine.points import INTERCEPTABLE
from dragoman.engine.ports.agents import PromptTurn
from dragoman.engine.ports.tools import LOOKING
from dragoman.engine.session import Session
from dragoman.holding import Holder
from dragoman.host.hook_programs import program_of
from dragoman.observe.log import get_log
from dragoman.settings.host import Hook
from dragoman.settings.model import Settings

if TYPE_CHECKING:
    from dragoman.host.roster import Roster

log = get_log("hooks")
_PLACE = re.compile(r"\{(path|tool|session|agent|turn|cwd)\}")
_LARGEST = 32 * 1024  # characters of what the model is told
_TOLD = 96 * 1024  # bytes of what a command is told: the system takes 128 KiB at most
_LONGEST_PATH = 4096
_MOST = 256  # things that wait to be told
_BLOCKS = 2  # the exit code that says no
_NOT_STARTED = (126, 127)
_NOT_FOUND = 127
_NEVER_RAN = 126  # from here on a shell says that a command could not run, or was ended


class Place:
    """Where a hook's command runs: as much of a tool's surroundings as `bash` looks at."""

    files = terminals = seen = None
    reach: Sequence[Any] = ()
    variables: Mapping[str, str] = {}
    vision = False

    def __init__(
        self, context: HookContext, cwd: str, roots: Sequence[str], mode: object, call_id: str
    ) -> None:
        self.session, self.turn, self.agent = context.session, context.turn, context.agent
        self.call_id, self.cwd, self.roots, self.mode = call_id, cwd, roots, mode

    def progress(self, text: str) -> None:
        return None


class HookCommands(Holder):
    """Runs the commands of `[[hooks]]` (`engine.hooks.Subscriber`)."""

    name = "hooks of the configuration"

    _settings: Callable[[], Settings]
    _host: Host
    _roster: "Roster"
    _private: str
    _by_point: dict[str, list[Hook]] = {}
    # What was printed, until the model is told: by session, and by call.
    _said: OrderedDict[tuple[str, str], list[str]] = msgspec.field(default_factory=OrderedDict)
    _running: dict[str, set[asyncio.Task[None]]] = {}

    def __post_init__(self) -> None:
        self.apply()

    def apply(self, old: Settings | None = None, new: Settings | None = None) -> None:
        """Listen at the points that the configuration names now."""
        hooks = self._host.hooks
        hooks.forget(self)
        self._by_point = {}
        for one in self._settings().hooks:
            self._by_point.setdefault(one.on, []).append(one)
        for point in self._by_point:
            if point != "tool_completed":  # the call waits for it: `after`
                hooks.subscribe(point, self, intercepts=point in INTERCEPTABLE)
        about_calls = self._by_point.keys() & {"tool_executing", "tool_completed"}
        hooks.after = self.after if about_calls else None

    def patience(self, hook: str) -> None:
        """How long an answer may take: each command has its own limit, and none is passed over."""

    # --- as a subscriber ---

    def observe(self, hook: str, data: Payload, context: HookContext) -> None:
        wanted = self._wanted(hook, data, context)
        if wanted:
            task = asyncio.ensure_future(self._beside(wanted, hook, data, context))
            mine = self._running.setdefault(context.session, set())
            mine.add(task)
            task.add_done_callback(lambda done: self._ended(context.session, done))

    def _ended(self, session: str, task: "asyncio.Task[None]") -> None:
        mine = self._running.get(session, set())
        mine.discard(task)
        if not mine:
            self._running.pop(session, None)

    async def _beside(
        self, wanted: Sequence[Hook], hook: str, data: Payload, context: HookContext
    ) -> None:
        try:
            for one in wanted:
                _, said = await self._run(one, hook, data, context)
                self._keep((context.session, ""), said)
        except Fault as fault:
            log.warning("hook", hook=hook, problem=str(fault), session=context.session)

    async def intercept(self, hook: str, data: P, context: HookContext) -> P | Block | None:
        call_id = data.call_id if isinstance(data, Executing) else ""
        for one in self._wanted(hook, data, context):
            try:
                code, said = await self._run(one, hook, data, context)
            except Exception as error:  # whatever it is: it did not say yes
                log.warning("hook", hook=hook, problem=str(error), session=context.session)
                code, said = _NEVER_RAN, f"[hook {hook}: {one.run}]\n{error}"
            if code == _BLOCKS:
                return Block(said or f"a hook says no: {one.run}")
            if one.fail_closed and not 0 <= code < _NEVER_RAN:
                return Block(_unanswered(one, code, said))
            self._keep((context.session, call_id), said)
        return None

    async def after(self, data: Executed, context: HookContext) -> str:
        """What the hooks about one call said, those that run after it included."""
        for one in self._wanted("tool_completed", data, context):
            try:
                _, said = await self._run(one, "tool_completed", data, context)
            except Fault as fault:
                said = f"[a hook could not run: {fault}]"
            self._keep((context.session, data.call_id), said)
        return "\n".join(self._said.pop((context.session, data.call_id), ()))

    async def told(self, turn: PromptTurn) -> Sequence[str]:
        """What hooks beside calls said: a part of the system prompt, told once."""
        session = turn.info.id
        running = self._running.get(session)
        if running:
            await asyncio.wait(tuple(running))  # each has its limit of time
        said = self._said.pop((session, ""), ())
        return (f"# What the user's hooks said\n\n{chr(10).join(said)}",) if said else ()

    # --- the commands ---

    def _wanted(self, hook: str, data: Payload, context: HookContext) -> list[Hook]:
        found = [
            one
            for one in self._by_point.get(hook, ())
            if (not one.agents or context.agent in one.agents)
            and (not one.tools or getattr(data, "tool", "") in one.tools)
            and ("{path}" not in one.run or _path_of(data))
        ]
        if found and isinstance(data, Executing | Executed) and not self._may_act(data, context):
            return []
        return found

    def _may_act(self, data: Executing | Executed, context: HookContext) -> bool:
        """Where calls that act are refused, commands about them do not run either."""
        session = self._host.live.get(context.session)
        if session is None or session.state.mode not in ("readonly", "plan"):
            return True
        return self._only_looks(data, session)

    @staticmethod
    def _only_looks(data: Executing | Executed, session: Session) -> bool:
        toolbox = session.gear.toolbox
        tool = toolbox.find(data.tool) if toolbox is not None else None
        return tool is not None and tool.spec.kind in LOOKING

    async def _run(
        self, one: Hook, hook: str, data: Payload, context: HookContext
    ) -> tuple[int, str]:
        place = self._place(data, context)
        told = {"hook": hook, **msgspec.structs.asdict(context), **msgspec.to_builtins(data)}
        variables = {
            "path": os.path.join(place.cwd, _path_of(data)) if _path_of(data) else "",
            "tool": str(getattr(data, "tool", "")),
            "session": context.session,
            "agent": context.agent,
            "turn": context.turn,
            "cwd": place.cwd,
            "json": _fitting(told),
        }
        command = _script(one.run, variables)
        alias = context.agent or self._roster.default() or self._roster.names()[0]
        bash = self._roster.bash(self._roster.profile(alias))
        async with self._kept(data, context):
            outcome = await bash.run({"command": command, "timeout": one.timeout_secs}, place)
        text = "".join(block.text for block in outcome.content if isinstance(block, Text))
        code = outcome.detail.exit_code if outcome.detail is not None else -1
        log.debug("hook", hook=hook, run=one.run, code=code, session=context.session)
        output = text.removeprefix(f"$ {command}\n\n").strip()
        printed = output.rpartition("[exit ")[0].strip()
        if not printed and code in (0, None):
            return 0, ""
        ended = f", exit {code}" if code else ""
        return code or 0, f"[hook {hook}: {one.run}{ended}]\n{printed[:_LARGEST]}".strip()

    def _kept(self, data: Payload, context: HookContext) -> AbstractAsyncContextManager[None]:
        """What the command of a turn changes is undone with that turn."""
        session = self._host.live.get(context.session)
        if session is None or not context.turn or session.ledger.home.checkpoints is None:
            return NOTHING
        if isinstance(data, Executing | Executed) and self._only_looks(data, session):
            return NOTHING  # it would take longer than the call
        return Keeping(session.ledger, context.turn, None)

    def _place(self, data: Payload, context: HookContext) -> Place:
        call_id = getattr(data, "call_id", "")
        session = self._host.live.get(context.session)
        if session is None:  # of the host itself, or of a session that is gone
            os.makedirs(self._private, mode=0o700, exist_ok=True)
            return Place(context, self._private, (), "supervised", call_id)
        state = session.state
        return Place(context, state.cwd, session.gear.roots, state.mode, call_id)

    def _keep(self, key: tuple[str, str], said: str) -> None:
        if said:
            self._said.setdefault(key, []).append(said)
            while len(self._said) > _MOST:
                self._said.popitem(last=False)


def _unanswered(one: Hook, code: int, said: str) -> str:
    """Why a call is blocked by a hook that said nothing, and whose it is to mend that."""
    why = f"a hook gave no answer, and without one nothing passes.\n{said}"
    if code not in _NOT_STARTED:
        return why
    program = program_of(one.run)
    what = program or "a program of it"
    how = "was not found" if code == _NOT_FOUND else "cannot be run"
    return (
        f"{why}\nThe hook did not run: {what} {how}. This is for the user to mend, not to work "
        f"around: install {what if program else 'it'}, or correct the hook `{one.run}` in the "
        "configuration; with `fail_closed = false` there, calls pass where it cannot run. "
        "`dragoman doctor` shows it."
    )


def _path_of(data: Payload) -> str:
    args = getattr(data, "args", None)
    if not isinstance(args, Mapping):
        return ""
    found = (args.get(name) for name in ("path", "file_path", "filePath", "filename", "file"))
    path = next((one for one in found if isinstance(one, str) and one), "")
    return "" if "\0" in path or len(os.fsencode(path)) > _LONGEST_PATH else path


def _fitting(told: dict[str, Any]) -> str:
    """What is told as JSON that is always whole; where it is too much, long texts are cut in the
    middle and `cut` says so: whoever guards something must not take a part for all of it."""
    made = msgspec.json.encode(told).decode("utf-8", "replace")
    longest = _TOLD // 8
    while len(quote(made).encode()) > _TOLD:
        made = msgspec.json.encode({**_cut(told, longest), "cut": True}).decode("utf-8", "replace")
        if longest < 64:  # many short ones
            made = msgspec.json.encode(
                {name: value for name, value in told.items() if isinstance(value, str)}
                | {"cut": True}
            ).decode("utf-8", "replace")
            break
        longest //= 4
    return made


def _cut(value: Any, longest: int) -> Any:
    """The same with no text longer than that."""
    if isinstance(value, str) and len(value) > longest:
        return f"{value[: longest // 2]}…{value[-longest // 2 :]}"
    if isinstance(value, dict):
        return {_cut(name, longest): _cut(one, longest) for name, one in value.items()}
    return [_cut(one, longest) for one in value] if isinstance(value, list) else value


def _script(run: str, variables: Mapping[str, str]) -> str:
    """The command, with variables in place of names in braces, and those variables before it."""
    lines = [f"HOOK_{name.upper()}={quote(value)}" for name, value in variables.items()]
    lines.append(f"export {' '.join(f'HOOK_{name.upper()}' for name in variables)}")
    return "\n".join([*lines, _PLACE.sub(lambda found: f'"$HOOK_{found[1].upper()}"', run)])
