"""The tool `propose_plan`: the end of plan mode, a question whether to go on."""

from typing import Any

from dragoman.engine.content import Text
from dragoman.engine.faults import Fault
from dragoman.engine.info import plan_file
from dragoman.engine.ports import Outcome, ToolEnv

from . import told
from .bounds import BoundsOf
from .disk import load
from .work import in_thread

_LARGEST = 256 * 1024
_SHOWN = 60_000  # characters of a plan that the question holds


class ProposePlan:
    """Shows the plan file to the human, who says whether it is carried out."""

    spec = told.PROPOSE_PLAN

    def __init__(self, bounds: BoundsOf) -> None:
        self._bounds = bounds

    def touches(self, args: dict[str, Any], env: ToolEnv) -> list[str]:
        return []

    def summary(self, args: dict[str, Any]) -> str:
        return "Ask whether to go on with the plan"

    async def run(self, args: dict[str, Any], env: ToolEnv) -> Outcome:
        path = plan_file(env.cwd, env.session)
        plan = await self._plan(env, path)
        if len(plan) > _SHOWN:
            left = len(plan) - _SHOWN
            plan = f"{plan[:_SHOWN]}\n[{left} more characters in {path}]"
        about = f"The plan ({path}):\n\n{plan}" if plan else "It is in the answer above."
        answer = await env.leave_plan(f"Go on with this plan?\n\n{about}")
        if env.mode != "plan":
            return Outcome((Text(f"The user agrees. Carry the plan out now (mode {env.mode})."),))
        if not answer.answered:
            why = answer.text or "nobody answered"
            return Outcome((Text(f"Not agreed ({why}). Stay in plan mode, and stop here."),))
        said = f"The user does not agree yet: {answer.text}"
        return Outcome((Text(f"{said}\nStill in plan mode: improve the plan if that was asked."),))

    async def _plan(self, env: ToolEnv, path: str) -> str:
        bounds = self._bounds(env)
        try:
            real = bounds.resolve(path)
            found = await in_thread(lambda halt: load(bounds, real, path, _LARGEST, halt))
        except Fault:
            return ""  # none was written, or none that can be read
        return found.data.decode("utf-8", "replace").strip() if real == path else ""
