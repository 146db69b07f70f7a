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
        nobody = "Nobody answered. Go on with what you know, or stop."
        return await _answered(env, asked.question, _choices(asked.choices), nobody)


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
        choices = _choices(asked.choices) or list(_WAYS)
        said = f"[{asked.urgency}] {asked.summary.strip()}"
        if asked.context.strip():
            said += f"\n\n{asked.context.strip()}"
        nobody = "Nobody answered. Do not go on with this matter."
        return await _answered(env, said, choices, nobody, "The human says: ")


def _choices(given: list[str]) -> list[str]:
    choices = [choice for choice in given if choice.strip()]
    if len(choices) > told.MAX_CHOICES:
        raise BadInput(f"choices: at most {told.MAX_CHOICES} are allowed")
    return choices


async def _answered(
    env: ToolEnv, question: str, choices: list[str], nobody: str, before: str = ""
) -> Outcome:
    """What the human says; `nobody`: what is said where none answered."""
    answer = await env.ask(question, choices)
    if not answer.answered:
        return Outcome((Text(answer.text or nobody),), is_error=True)
    return Outcome((Text(f"{before}{answer.text}"),))
