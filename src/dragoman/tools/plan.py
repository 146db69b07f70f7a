"""The tools `plan`, the steps that clients show, and `propose_plan`, the end of plan mode."""

from typing import Any

import msgspec

from dragoman.engine.content import PlanEntry, Text
from dragoman.engine.faults import BadInput, Fault
from dragoman.engine.info import plan_file
from dragoman.engine.ports import Outcome, ToolEnv
from dragoman.engine.visible import many
from dragoman.holding import Holder

from . import told
from .args import decode
from .disk import BoundsOf, load
from .work import in_thread

_LARGEST = 256 * 1024
_SHOWN = 60_000  # characters of a plan that the question holds
_MARKS = {"pending": " ", "in_progress": ">", "completed": "x"}


class PlanArgs(msgspec.Struct):
    entries: list[PlanEntry]


class Plan:
    """Sets the whole plan; what was planned before is replaced."""

    spec = told.PLAN

    def summary(self, args: dict[str, Any]) -> str:
        entries = args.get("entries")
        return f"Plan with {many(len(entries) if isinstance(entries, list) else 0, 'step')}"

    async def run(self, args: dict[str, Any], env: ToolEnv) -> Outcome:
        given = dict(args)
        steps = given.get("entries", given.get("steps", given.get("plan")))
        if isinstance(steps, list):  # a step may be given as its text alone
            given["entries"] = [{"content": s} if isinstance(s, str) else s for s in steps]
        asked = decode(PlanArgs, given)
        if len(asked.entries) > told.MAX_STEPS:
            raise BadInput(f"entries: at most {told.MAX_STEPS} are allowed")
        if any(not entry.content.strip() for entry in asked.entries):
            raise BadInput("entries: content must not be empty")
        await env.plan(asked.entries)
        lines = [f"[{_MARKS[entry.status]}] {entry.content}" for entry in asked.entries]
        return Outcome((Text("\n".join(lines) or "The plan is empty."),))


class ProposePlan(Holder):
    """Shows the plan file to the human, who says whether it is carried out."""

    spec = told.PROPOSE_PLAN

    _bounds: BoundsOf

    def touches(self, args: dict[str, Any], env: ToolEnv) -> list[str]:
        return []

    def summary(self, args: dict[str, Any]) -> str:
        return "Ask whether to go on with the plan"

    async def run(self, args: dict[str, Any], env: ToolEnv) -> Outcome:
        path = plan_file(env.cwd, env.session)
        plan = await self._plan(env, path)
        if len(plan) > _SHOWN:
            left = len(plan) - _SHOWN
            plan = f"{plan[:_SHOWN]}\n[{many(left, 'more character')} in {path}]"
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
