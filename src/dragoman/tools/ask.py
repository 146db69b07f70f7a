"""The tools `ask_user` and `escalate_to_human`: a question, or a matter, for the human."""

from typing import Any

import msgspec

from dragoman.engine.content import Text
from dragoman.engine.faults import BadInput
from dragoman.engine.ports import Outcome, ToolEnv, ToolSpec

from .args import brief, decode, schema, text

_MOST = 20
_URGENCIES = ("low", "medium", "high", "critical")
_WAYS = ("Go on", "Stop here")


class AskArgs(msgspec.Struct):
    question: str
    choices: list[str] = []


class AskUser:
    """Asks, and waits for the answer."""

    spec = ToolSpec(
        name="ask_user",
        description=(
            "Ask the human a question and wait for the answer. Give choices when there are a few "
            "clear ones. Use it only when you cannot go on without knowing."
        ),
        schema=schema(
            "question",
            question=text("The question, with all that is needed to answer it."),
            choices={
                "type": "array",
                "items": {"type": "string"},
                "maxItems": _MOST,
                "description": "Possible answers, when there are a few.",
            },
        ),
        kind="other",
        repeatable=True,
    )

    def touches(self, args: dict[str, Any], env: ToolEnv) -> list[str]:
        return []

    def summary(self, args: dict[str, Any]) -> str:
        return brief(args.get("question", "?"))

    async def run(self, args: dict[str, Any], env: ToolEnv) -> Outcome:
        asked = decode(AskArgs, args, {"options": "choices", "prompt": "question"})
        if not asked.question.strip():
            raise BadInput("question is required")
        choices = [choice for choice in asked.choices if choice.strip()]
        if len(choices) > _MOST:
            raise BadInput(f"choices: at most {_MOST} are allowed")
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

    spec = ToolSpec(
        name="escalate_to_human",
        description=(
            "Hand a matter to the human that you must not decide, and wait for what they say. Use "
            "it when something looks dangerous, wrong, or beyond what you were asked to do."
        ),
        schema=schema(
            "summary",
            summary=text("What the matter is, in a sentence or two."),
            context=text("What is known: what you did, saw and ruled out."),
            urgency={"type": "string", "enum": list(_URGENCIES)},
            choices={
                "type": "array",
                "items": {"type": "string"},
                "maxItems": _MOST,
                "description": "Ways to go on; without them: go on, or stop.",
            },
        ),
        kind="other",
        repeatable=True,
    )

    def touches(self, args: dict[str, Any], env: ToolEnv) -> list[str]:
        return []

    def summary(self, args: dict[str, Any]) -> str:
        return brief(args.get("summary", "?"))

    async def run(self, args: dict[str, Any], env: ToolEnv) -> Outcome:
        asked = decode(EscalateArgs, args, {"question": "summary", "options": "choices"})
        if not asked.summary.strip():
            raise BadInput("summary is required")
        if asked.urgency not in _URGENCIES:
            raise BadInput(f"urgency: use one of {', '.join(_URGENCIES)}")
        choices = [choice for choice in asked.choices if choice.strip()] or list(_WAYS)
        if len(choices) > _MOST:
            raise BadInput(f"choices: at most {_MOST} are allowed")
        said = f"[{asked.urgency}] {asked.summary.strip()}"
        if asked.context.strip():
            said += f"\n\n{asked.context.strip()}"
        answer = await env.ask(said, choices)
        if not answer.answered:
            told = answer.text or "Nobody answered. Do not go on with this matter."
            return Outcome((Text(told),), is_error=True)
        return Outcome((Text(f"The human says: {answer.text}"),))
