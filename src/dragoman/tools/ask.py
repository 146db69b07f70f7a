"""The tools `ask_user` and `escalate_to_human`: a question, or a matter, for the human."""

from typing import Any

import msgspec

from dragoman.engine.content import Text
from dragoman.engine.faults import BadInput
from dragoman.engine.ports import Outcome, ToolEnv

from . import told
from .args import brief, decode

_WAYS = ("Go on", "Stop here")


class AskArgs(msgspec.Struct):
    question: str
    choices: list[str] = []


class AskUser:
    """Asks, and waits for the answer."""

    spec = told.ASK_USER

    def touches(self, args: dict[str, Any], env: ToolEnv) -> list[str]:
        return []

    def summary(self, args: dict[str, Any]) -> str:
        return brief(args.get("question", "?"))

    async def run(self, args: dict[str, Any], env: ToolEnv) -> Outcome:
        asked = decode(AskArgs, args, {"options": "choices", "prompt": "question"})
        if not asked.question.strip():
            raise BadInput("question is required")
        choices = [choice for choice in asked.choices if choice.strip()]
        if len(choices) > told.MAX_CHOICES:
            raise BadInput(f"choices: at most {told.MAX_CHOICES} are allowed")
        answer = await env.ask(asked.question, choices)
        if not answer.answered:
            said = answer.text or "Nobody answered. Go on with what you know, or stop."
            return Outcome((Text(said),), is_error=True)
        return Outcome((Text(answer.text),))


class EscalateArgs(msgspec.Struct):
    summary: str
    context: str = ""
    urgency: str = "medium"
    choices: list[str] = []


class EscalateToHuman:
    """Hands a matter to the human, who says how to go on. Only for agents whose tools name it."""

    spec = told.ESCALATE

    def touches(self, args: dict[str, Any], env: ToolEnv) -> list[str]:
        return []

    def summary(self, args: dict[str, Any]) -> str:
        return brief(args.get("summary", "?"))

    async def run(self, args: dict[str, Any], env: ToolEnv) -> Outcome:
        asked = decode(EscalateArgs, args, {"question": "summary", "options": "choices"})
        if not asked.summary.strip():
            raise BadInput("summary is required")
        if asked.urgency not in told.URGENCIES:
            raise BadInput(f"urgency: use one of {', '.join(told.URGENCIES)}")
        choices = [choice for choice in asked.choices if choice.strip()] or list(_WAYS)
        if len(choices) > told.MAX_CHOICES:
            raise BadInput(f"choices: at most {told.MAX_CHOICES} are allowed")
        said = f"[{asked.urgency}] {asked.summary.strip()}"
        if asked.context.strip():
            said += f"\n\n{asked.context.strip()}"
        answer = await env.ask(said, choices)
        if not answer.answered:
            said = answer.text or "Nobody answered. Do not go on with this matter."
            return Outcome((Text(said),), is_error=True)
        return Outcome((Text(f"The human says: {answer.text}"),))
