"""The tool `plan`: the list of steps that clients show."""

from typing import Any

import msgspec

from dragoman.engine.content import PlanEntry, Text
from dragoman.engine.faults import BadInput
from dragoman.engine.ports import Outcome, ToolEnv

from . import told
from .args import decode

_MARKS = {"pending": " ", "in_progress": ">", "completed": "x"}


class PlanArgs(msgspec.Struct):
    entries: list[PlanEntry]


class Plan:
    """Sets the whole plan; what was planned before is replaced."""

    spec = told.PLAN

    def summary(self, args: dict[str, Any]) -> str:
        entries = args.get("entries")
        return f"Plan with {len(entries) if isinstance(entries, list) else 0} steps"

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
