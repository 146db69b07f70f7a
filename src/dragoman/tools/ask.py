"""The tool `ask_user`: a question to the human."""

from typing import Any

import msgspec

from dragoman.engine.content import Text
from dragoman.engine.faults import BadInput
from dragoman.engine.ports import Outcome, ToolEnv, ToolSpec

from .args import brief, decode, schema, text

_MOST = 20


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
