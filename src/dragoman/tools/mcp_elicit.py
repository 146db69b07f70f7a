"""What an MCP server asks the human in the middle of a call (elicitation), put as our questions.

A form is asked field by field, so that every client can show it; an address is shown to be opened.
"""

import asyncio
import sys
from collections.abc import Mapping
from typing import Any

from dragoman.engine.ports import ToolEnv

OPENED, DECLINE = "Opened", "Decline"
_SKIP = "(leave empty)"
_LARGEST = sys.float_info.max
_MOST_FIELDS = 12
_SCHEMES = ("https://", "http://")


class Declined(Exception):
    """The human will not answer."""


class Asking:
    """The calls of one server that run now; questions go to the human of the newest."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._running: list[tuple[ToolEnv, asyncio.Timeout, float]] = []

    def begin(self, env: ToolEnv, deadline: asyncio.Timeout, seconds: float) -> None:
        self._running.append((env, deadline, seconds))

    def end(self, env: ToolEnv) -> None:
        self._running = [one for one in self._running if one[0] is not env]

    async def elicit(self, context: Any, params: Any) -> Any:
        """The library's callback. A call has no time limit while its human is asked."""
        from mcp.types import ElicitResult

        if not self._running:
            return ElicitResult(action="cancel")
        env, deadline, seconds = self._running[-1]
        deadline.reschedule(None)
        try:
            if params.mode == "url":
                action, content = await self._open(env, params), None
            else:
                action, content = "accept", await self._fill(env, params)
        except Declined as no:
            return ElicitResult(action="decline" if no.args else "cancel")
        finally:
            if not deadline.expired():
                deadline.reschedule(asyncio.get_running_loop().time() + seconds)
        return ElicitResult(action=action, content=content)

    async def _open(self, env: ToolEnv, params: Any) -> Any:
        url = str(params.url)
        if not url.startswith(_SCHEMES):
            raise Declined("not an address of the web")
        question = f"{self._name} asks you to open a page: {params.message}\n{url}"
        answer = await env.inquire(question, (OPENED, DECLINE), url=url)
        if not answer.answered:
            raise Declined
        return "accept" if answer.text == OPENED else "decline"

    async def _fill(self, env: ToolEnv, params: Any) -> dict[str, Any]:
        schema = dict(params.requested_schema)
        fields = schema.get("properties") or {}
        needed = set(schema.get("required") or ())
        if len(fields) > _MOST_FIELDS:
            raise Declined("too many fields")
        found: dict[str, Any] = {}
        for name, field in fields.items():
            asked = f"{self._name} asks: {params.message}"
            value = await _ask(env, asked, name, field, name in needed)
            if value is not None:
                found[name] = value
        return found


async def _ask(env: ToolEnv, asked: str, name: str, field: Mapping[str, Any], needed: bool) -> Any:
    """One field, until it has a value of its type. Raises Declined."""
    words = [str(field.get("title") or name)]
    if field.get("description"):
        words.append(f"({field['description']})")
    choices = _choices(field)
    offered = list(choices)
    if wanted := _wanted(field):
        words.append(f"({wanted})")
    if not needed:
        offered = [*offered, _SKIP] if offered else offered
        words.append("(may be left empty)")
    question = f"{asked}\n{' '.join(words)}"
    for _ in range(3):
        answer = await env.inquire(question, offered)
        if not answer.answered:
            raise Declined
        text = answer.text.strip()
        if text in choices:
            return choices[text]
        if not needed and text in ("", _SKIP):
            return None
        value = _read(field, text) if not choices else None
        if value is not None:
            return value
        question = f"{asked}\n{' '.join(words)}: {text!r} does not fit."
    raise Declined("no answer that fits")


def _choices(field: Mapping[str, Any]) -> dict[str, Any]:
    """What can be chosen, by its name."""
    if field.get("type") == "boolean":
        return {"Yes": True, "No": False}
    listed = field.get("oneOf") or field.get("anyOf")
    if isinstance(listed, list):
        return {str(one.get("title") or one["const"]): one["const"] for one in listed
                if isinstance(one, Mapping) and "const" in one}  # fmt: skip
    values = field.get("enum") or ()
    names = field.get("enumNames") or values
    return {str(name): value for name, value in zip(names, values, strict=False)}


def _wanted(field: Mapping[str, Any]) -> str:
    """What an answer that is no choice must look like, in words."""
    kind = field.get("type")
    if kind == "array":
        known = ", ".join(_choices(field.get("items") or {}))
        return f"some of {known}, with commas between them"
    if kind not in ("integer", "number"):
        return ""
    bounds = (("minimum", "at least"), ("maximum", "at most"))
    limits = [f"{word} {field[key]}" for key, word in bounds if key in field]
    return ", ".join(["a whole number" if kind == "integer" else "a number", *limits])


def _read(field: Mapping[str, Any], text: str) -> Any:
    """The text as a value of the field's type; None when it is none."""
    kind = field.get("type")
    if kind in ("integer", "number"):
        try:
            number = int(text) if kind == "integer" else float(text)
        except ValueError:
            return None
        least, most = field.get("minimum", -_LARGEST), field.get("maximum", _LARGEST)
        return number if least <= number <= most else None  # JSON knows no infinity
    if kind == "array":
        given = [one.strip() for one in text.split(",") if one.strip()]
        known = _choices(field.get("items") or {})
        return [known[one] for one in given] if all(one in known for one in given) else None
    least, most = field.get("minLength") or 0, field.get("maxLength")
    fits = len(text) >= least and (most is None or len(text) <= most)
    return text if text and fits else None
