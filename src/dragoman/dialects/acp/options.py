"""Modes and configuration options of a session, always both and always in step."""

from typing import Any

from dragoman.engine.door import MODES, Door
from dragoman.engine.faults import BadInput, Fault
from dragoman.engine.info import SessionInfo
from dragoman.engine.traits import Waiver

_MODES = {
    "readonly": ("Read only", "Looks around; changes and runs nothing."),
    "plan": ("Plan", "Looks around, writes a plan, and asks whether to go on."),
    "supervised": ("Supervised", "Asks before it changes or runs something."),
    "full": ("Full", "Works without asking."),
}
_EFFORTS = ("off", "minimum", "low", "medium", "high", "xhigh", "max")
_DEFAULT = "default"
_EDITS = "auto_accept_edits"
_EDITING = ("write", "edit")
_MOST_MODELS = 300


def modes(info: SessionInfo) -> dict[str, Any]:
    return {
        "currentModeId": info.mode,
        "availableModes": [
            {"id": mode, "name": _MODES[mode][0], "description": _MODES[mode][1]} for mode in MODES
        ],
    }


def options(
    door: Door, info: SessionInfo, *, booleans: bool = False, second: bool = False
) -> list[dict[str, Any]]:
    """The complete list of options, as they stand; switches only for those who show them.

    `second`: in version 2's words.
    """
    found: list[dict[str, Any]] = [
        {
            "id": "mode",
            "name": "Mode",
            "description": "How much the agent may do without asking.",
            "category": "mode",
            "type": "select",
            "currentValue": info.mode,
            "options": [
                {"value": mode, "name": _MODES[mode][0], "description": _MODES[mode][1]}
                for mode in MODES
            ],
        },
        {
            "id": "model",
            "name": "Model",
            "category": "model",
            "type": "select",
            "currentValue": info.model,
            "options": _models(door, info),
        },
    ]
    if _thinks(door, info):
        found.append(
            {
                "id": "thought_level",
                "name": "Thinking",
                "description": "How hard the model is to think.",
                "category": "thought_level",
                "type": "select",
                "currentValue": info.reasoning if info.reasoning in _EFFORTS else _DEFAULT,
                "options": [
                    {"value": value, "name": value.capitalize()} for value in (_DEFAULT, *_EFFORTS)
                ],
            }
        )
    if booleans:
        found.append(
            {
                "id": _EDITS,
                "name": "Accept edits",
                "description": "Write and edit files without asking, where that may be allowed.",
                "type": "boolean",
                "currentValue": bool(Waiver.of(info.extra).tools),
            }
        )
    return [{"configId": one.pop("id"), **one} for one in found] if second else found


def _models(door: Door, info: SessionInfo) -> list[dict[str, Any]]:
    """Models whose provider can be used now; the current one and the agent's own are always there.

    The agent's own leads back from any other, also where no catalogue lists it.
    """
    usable: dict[str, bool] = {}
    found: dict[str, str] = {}
    for model in door.models():
        if model.provider not in usable:
            usable[model.provider] = _resolves(door, model.ref, info.agent)
        if usable[model.provider] and len(found) < _MOST_MODELS:
            found[model.ref] = model.name or model.ref
    for ref in (_own(door, info.agent), info.model):
        if ref:
            found.setdefault(ref, ref)
    return [{"value": ref, "name": name} for ref, name in found.items()]


def _own(door: Door, agent: str) -> str:
    """The model that the agent is configured with, if it can be used."""
    try:
        return door.model(door.profile(agent).model, agent).ref
    except Fault:
        return ""  # the agent is gone from the configuration, or its provider has no key


def _resolves(door: Door, ref: str, agent: str) -> bool:
    try:
        door.model(ref, agent)
    except Fault:
        return False  # no key for it: not an option
    return True


def _thinks(door: Door, info: SessionInfo) -> bool:
    try:
        return door.model(info.model, info.agent).reasoning
    except Fault:
        return False  # the model was taken out of the configuration


async def set_option(door: Door, info: SessionInfo, option: Any, value: Any, by: Any) -> None:
    """Change one option. Raises BadInput for what is not in the list."""
    if option == _EDITS:
        if not isinstance(value, bool):
            raise BadInput("Parameter 'value' must be true or false")
        await door.keep(info.id, Waiver, by, tools=_EDITING if value else ())
        return
    if not isinstance(value, str):
        raise BadInput("Parameter 'value' must be one of the option's values")
    match option:
        case "mode":
            await door.set_mode(info.id, value, by)
        case "model":
            await door.set_model(info.id, value, by)
        case "thought_level" if _thinks(door, info):
            if value not in (_DEFAULT, *_EFFORTS):
                raise BadInput(f"Unknown value for thought_level: {value}")
            await door.set_reasoning(info.id, "" if value == _DEFAULT else value, by)
        case _:
            raise BadInput(
                f"Unknown configuration option: {option}",
                "Use one of those that session/new listed.",
            )
