"""What a hosted agent may use of this machine through us: files and commands, inside the walls."""

import asyncio
from collections.abc import Callable
from typing import Any

from dragoman.engine.faults import BadInput
from dragoman.engine.info import SessionInfo
from dragoman.engine.ports import AgentProfile, TurnPort
from dragoman.holding import Holder
from dragoman.policy.paths import Boundary
from dragoman.sandbox.launch import Confine, Launch
from dragoman.tools import orphans
from dragoman.tools.disk import load, replace
from dragoman.tools.environ import environment, secret
from dragoman.tools.output import Capture, Outputs, Progress
from dragoman.tools.running import CommandRun
from dragoman.tools.work import in_thread

_LARGEST = 10 * 1024 * 1024
_INSIDE = bytes(range(0x80, 0xC0))  # no character begins with one of these

BoundsOf = Callable[[AgentProfile, SessionInfo], Boundary]


class Ground(Holder):
    """Implements what `agents.acp_taking.Ground` asks for."""

    _bounds: BoundsOf
    _confine: Callable[[AgentProfile], Confine]
    _outputs: str
    _extra_env: Callable[[AgentProfile], dict[str, str]]

    async def read(self, turn: TurnPort, path: str) -> str:
        bounds = self._bounds(turn.profile, turn.info)
        real = bounds.resolve(path)
        found = await in_thread(lambda halt: load(bounds, real, path, _LARGEST, halt))
        return found.data.decode("utf-8", "replace")

    async def write(self, turn: TurnPort, path: str, text: str) -> None:
        data = text.encode("utf-8", "surrogatepass")
        if len(data) > _LARGEST:
            raise BadInput(f"{path}: {len(data)} bytes are more than the limit of {_LARGEST}.")
        bounds = self._bounds(turn.profile, turn.info)
        real = bounds.resolve(path, write=True)
        guard = self._confine(turn.profile).guard(bounds, real)
        await in_thread(lambda halt: replace(bounds, real, path, data, halt), guard=guard)

    async def run(self, turn: TurnPort, params: dict[str, Any]) -> "AgentTerminal":
        bounds = self._bounds(turn.profile, turn.info)
        cwd = params.get("cwd")
        cwd = bounds.resolve(cwd) if isinstance(cwd, str) and cwd else turn.info.cwd
        command = str(params["command"])
        args = [str(one) for one in _listed(params, "args")]
        argv = (command, *args) if args else ("/bin/sh", "-c", command)
        variables = environment((), self._extra_env(turn.profile))
        for one in _listed(params, "env"):
            if isinstance(one, dict) and isinstance(one.get("name"), str):
                if not secret(one["name"]):
                    variables[one["name"]] = str(one.get("value", ""))
        outputs = Outputs(self._outputs)
        mark = orphans.mark(outputs.kept)
        variables |= {orphans.MARK: mark, "PWD": cwd}
        launch = Launch(argv, cwd, variables)
        launch = self._confine(turn.profile).confine(launch, None, bounds)  # type: ignore[arg-type]
        capture = Capture(outputs)
        running = CommandRun(launch, f"{orphans.MARK}={mark}", capture, Progress(lambda text: None))
        limit = params.get("outputByteLimit")
        return AgentTerminal(running, capture, limit if isinstance(limit, int) else 0)


def _listed(params: dict[str, Any], name: str) -> list[Any]:
    given = params.get(name)
    if given is not None and not isinstance(given, list):
        raise BadInput(f"terminal/create: {name} must be an array")
    return given or []


class AgentTerminal:
    """A command of a hosted agent (`agents.acp_taking.Terminal`)."""

    def __init__(self, command: CommandRun, capture: Capture, limit: int) -> None:
        self._command = command
        self._capture = capture
        self._limit = limit
        self._task = asyncio.ensure_future(command.run(None))

    def output(self) -> tuple[str, bool]:
        """What it has printed; the end of it when that is much."""
        text = self._capture.text()
        cut = self._capture.cut
        data = text.encode() if self._limit > 0 else b""
        if len(data) <= self._limit or not data:
            return text, cut
        return data[-self._limit :].lstrip(_INSIDE).decode("utf-8", "replace"), True

    def exit_status(self) -> dict[str, Any] | None:
        if not self._task.done():
            return None
        if self._task.cancelled():
            return {"exitCode": None, "signal": "SIGKILL"}
        problem = self._task.exception()
        code = self._command.code if problem is None else 127
        return {"exitCode": code, "signal": None}

    async def wait(self) -> dict[str, Any]:
        await asyncio.wait({self._task})
        status = self.exit_status()
        assert status is not None
        return status

    def kill(self) -> None:
        self._task.cancel()

    async def close(self) -> None:
        """End it and all it started; nothing of its output stays behind."""
        self._task.cancel()
        await asyncio.wait({self._task})
        await asyncio.to_thread(self._capture.discard)
