"""The tool `bash`: a shell command, watched while it runs and ended with all it started."""

import asyncio
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from dragoman.engine.content import Detail, Text
from dragoman.engine.faults import BadInput
from dragoman.engine.ports import Outcome, Terminals, ToolEnv
from dragoman.engine.ports.tools import Stopped
from dragoman.policy.shells import plain, shell
from dragoman.sandbox import brand
from dragoman.sandbox.launch import Confine, Launch, Unconfined
from dragoman.sandbox.room import pins

from . import orphans, told
from .args import decode
from .background import BackgroundCommand, Jobs
from .disk import BoundsOf
from .environ import environment, with_clients
from .output import MAX_BYTES, Capture, Outputs, Progress
from .running import CommandRun
from .undoing import GuardedEntries
from .work import insist

_USUAL = 120.0
_LONGEST = 600.0
_ALIASES = {"cmd": "command", "script": "command"}
_MENDED = "[undone: it changed who may open files of dragoman itself]"


class BashArgs(msgspec.Struct):
    command: str
    timeout: float | None = None
    background: bool = False


class Bash:
    """Runs a command with bash, or sh where there is none, in the working directory."""

    spec = told.BASH

    def __init__(
        self,
        bounds: BoundsOf,
        *,
        outputs: Outputs | None = None,
        confine: Confine | None = None,
        timeout: float | None = None,
        max_output: int = 0,
        allow_env: Sequence[str] = (),
        extra_env: Mapping[str, str] | None = None,
        jobs: Jobs | None = None,
    ) -> None:
        self._jobs = jobs or Jobs()
        self._bounds = bounds
        self._outputs = outputs or Outputs()
        self._confine = confine or Unconfined()
        # 0: whoever set this wants no limit at all.
        self._timeout = (_USUAL if timeout is None else timeout) or None
        self._longest = max(_LONGEST, self._timeout) if self._timeout else math.inf
        self._max_output = max_output or MAX_BYTES
        self._allow_env = tuple(allow_env)
        self._extra_env = dict(extra_env or {})

    def summary(self, args: dict[str, Any]) -> str:
        command = next((args[key] for key in ("command", *_ALIASES) if args.get(key)), "?")
        return f"$ {command}"

    async def run(self, args: dict[str, Any], env: ToolEnv) -> Outcome:
        asked = decode(BashArgs, args, _ALIASES)
        if not asked.command.strip():
            raise BadInput("command is required")
        if "\0" in asked.command:
            raise BadInput("command: it cannot contain a NUL character")
        try:
            asked.command.encode()
        except UnicodeEncodeError as error:
            raise BadInput("command: it has a character that UTF-8 cannot encode") from error
        limit = self._timeout if asked.timeout is None else asked.timeout
        if limit is not None and not 0 < limit <= self._longest:
            raise BadInput(
                f"timeout: it must be more than 0 and at most {self._longest:.0f} seconds",
                "What runs longer belongs into the background.",
            )
        if asked.background:
            return await self._beside(asked.command, env)
        if env.terminals is not None and self._may_lend(env.terminals):
            return await self._in_terminal(asked.command, limit, env, env.terminals)
        return await self._here(asked.command, limit, env)

    async def _in_terminal(
        self, command: str, limit: float | None, env: ToolEnv, terminals: Terminals
    ) -> Outcome:
        opened: list[str] = []
        began = time.monotonic()
        argv, variables, watch = self._lent(command, env)
        undone: list[str] = []
        try:
            code, output, truncated = await terminals.run(
                command,
                argv=argv,
                cwd=env.cwd,
                env=variables,
                timeout=limit,
                limit=self._max_output,
                opened=opened.append,
            )
        finally:
            undone = await self._undone(watch, os.urandom(12).hex())
        if truncated:
            output = f"... [truncated at {self._max_output} bytes]\n{output}"
        took = time.monotonic() - began
        late = code is None and limit is not None and took >= limit
        note = "\n".join([*([_timed_out(limit)] if late else []), *undone])
        terminal = opened[-1] if opened else None
        detail = Detail(exit_code=code, terminal_id=terminal, output=_place(command, output))
        shown = _report(command, output, note, -1 if code is None else code, "", took)
        return Outcome((Text(shown),), is_error=code != 0, detail=detail)

    def _may_lend(self, terminals: Terminals) -> bool:
        """Whether the walls can be put up where a client runs our commands.

        Else they run here. With listed domains the way out is a proxy of this process.
        """
        if self._is_plain():
            return True
        return terminals.near and not getattr(self._confine, "domains", ())

    def _is_plain(self) -> bool:
        """Whether a client runs a command as it is: without a sandbox, or in another host's."""
        return self._confine.name == "none" or brand.worn()

    def _lent(
        self, command: str, env: ToolEnv
    ) -> tuple[tuple[str, ...], dict[str, str], GuardedEntries | None]:
        """What a client's terminal is to run, so that a command has the walls and mark of ours."""
        scratch = {k: v for k, v in self._extra_env.items() if k == "TMPDIR"}
        if self._is_plain():
            return (), scratch, None  # it has caches of its own
        walls = self._bounds(env).for_command(command)
        agreed = [one.path for one in env.reach if one.write]
        watch = GuardedEntries(walls.roots, agreed) if walls.guards else None
        from dragoman.sandbox.program import Cell

        given = environment(self._allow_env, self._extra_env, with_clients(env.variables))
        given = plain(given) | {"PWD": env.cwd}
        network, unix = (bool(getattr(self._confine, name)) for name in ("network", "unix"))
        own = scratch.get("TMPDIR", "/tmp")
        cell = Cell(walls, own, self._confine.name, network, unix)
        argv, variables = cell.wrap((*shell(), command), env.cwd, given)
        return argv, variables, watch

    async def _beside(self, command: str, env: ToolEnv) -> Outcome:
        """Start a command that goes on by itself."""
        running, watch, mark = self._prepared(command, env, lambda said: None)

        async def run(job: BackgroundCommand) -> None:
            try:
                await running.run(None)
                job.code = running.code
            finally:
                job.notes += await self._undone(watch, mark)
                await insist(asyncio.to_thread(running.capture.close))

        job = self._jobs.start(env.session, command, running.capture, run)
        return Outcome((Text(f"$ {command}\n\n[runs in the background as {job.id}]"),))

    async def _undone(self, watch: GuardedEntries | None, mark: str) -> list[str]:
        """Take back what must not run later; nothing of the command runs any more."""
        if watch is None:
            return []
        aside = os.path.join(self._outputs.path, f"aside-{mark}")
        return await insist(asyncio.to_thread(watch.undo, aside))

    def _prepared(
        self, command: str, env: ToolEnv, tell: Callable[[str], None]
    ) -> tuple[CommandRun, GuardedEntries | None, str]:
        mark = orphans.mark(self._outputs.kept)
        variables = environment(self._allow_env, self._extra_env, with_clients(env.variables))
        variables = plain(variables) | {orphans.MARK: mark, "PWD": env.cwd}
        launch = Launch((*shell(), command), env.cwd, variables, leaves=True)
        walls = self._bounds(env).for_command(command)
        launch = self._confine.confine(launch, env, walls)
        agreed = [one.path for one in env.reach if one.write]
        agreed += [path for path in walls.locked if launch.locks and not pins(path)]
        watch = GuardedEntries(walls.roots, agreed) if walls.guards else None
        capture = Capture(self._outputs, self._max_output)
        running = CommandRun(launch, f"{orphans.MARK}={mark}", capture, Progress(tell))
        return running, watch, mark

    async def _here(self, command: str, limit: float | None, env: ToolEnv) -> Outcome:
        running, watch, mark = self._prepared(command, env, env.progress)
        capture = running.capture
        began = time.monotonic()
        undone: list[str] = []
        try:
            timed_out = await running.run(limit)
        except asyncio.CancelledError:
            took = time.monotonic() - began
            output = capture.text()
            shown = _report(command, output, "[aborted]", -1, "", took)
            place = None if capture.cut else _place(command, output)
            detail = Detail(exit_code=-1, output=place, raw=capture.raw)
            capture.discard()
            raise Stopped(Outcome((Text(shown),), is_error=True, detail=detail)) from None
        except BaseException:
            capture.discard()
            raise
        finally:
            undone = await self._undone(watch, mark)
        await insist(asyncio.to_thread(capture.finish))
        notes = [_timed_out(limit)] if timed_out else []
        notes += undone
        notes += [_MENDED] if running.mended else []
        if running.too_many:
            notes.append(f"[ended: it had more than {running.too_many} processes and threads]")
        elif running.leftovers and not timed_out:
            what = "process" if running.leftovers == 1 else "processes"
            notes.append(f"[ended {running.leftovers} background {what}]")
        code = -1 if timed_out else running.code
        took = time.monotonic() - began
        output = capture.text()
        shown = _report(command, output, "\n".join(notes), code, capture.note, took)
        place = None if capture.cut else _place(command, output)
        detail = Detail(exit_code=code, full_output=capture.path, output=place, raw=capture.raw)
        return Outcome((Text(shown),), is_error=code != 0, detail=detail)


def _timed_out(limit: float | None) -> str:
    return f"[timed out after {limit:g}s; the command and all it started were ended]"


def _report(command: str, output: str, note: str, code: int, file: str, took: float) -> str:
    """The text of the result: command, output, exit code, time."""
    if output and not output.endswith("\n"):
        output += "\n"
    parts = [_head(command), output, "\n" if output else ""]
    if note:
        parts.append(f"{note}\n")
    parts.append(f"[exit {code}]")
    if file:
        parts.append(f" ({file})")
    parts.append(f"  Took {_span(took)}")
    return "".join(parts)


def _head(command: str) -> str:
    return f"$ {command}\n\n"


def _place(command: str, output: str) -> tuple[int, int]:
    """Where in the text of the result the output is."""
    start = len(_head(command))
    return start, start + len(output)


def _span(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f}s"
    minutes, rest = divmod(int(seconds), 60)
    if minutes < 60:
        return f"{minutes}m{rest}s"
    return f"{minutes // 60}h{minutes % 60}m"
