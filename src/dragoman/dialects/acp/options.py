"""Modes and configuration options of a session, always both and always in step."""

from typing import Any

from dragoman.engine.door import MODES, Door
from dragoman.engine.faults import BadInput, Fault
from dragoman.engine.info import SessionInfo
from dragoman.engine.ports import ModelInfo
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


def _listed() -> list[tuple[str, str, str]]:
    """The modes in their order: id, name, description."""
    return [(mode, *_MODES[mode]) for mode in MODES]


def modes(info: SessionInfo) -> dict[str, Any]:
    shown = [{"id": id, "name": name, "description": about} for id, name, about in _listed()]
    return {"currentModeId": info.mode, "availableModes": shown}


def _select(
    id: str, name: str, current: str, choices: list[dict[str, Any]], about: str = ""
) -> dict[str, Any]:
    """An option that has one of several values; its category is called as itself."""
    return {
        "id": id,
        "name": name,
        **({"description": about} if about else {}),
        "category": id,
        "type": "select",
        "currentValue": current,
        "options": choices,
    }


def options(
    door: Door, info: SessionInfo, *, booleans: bool = False, second: bool = False
) -> list[dict[str, Any]]:
    """The complete list of options, as they stand; switches only for those who show them.

    `second`: in version 2's words.
    """
    modes = [{"value": id, "name": name, "description": about} for id, name, about in _listed()]
    about = "How much the agent may do without asking."
    found = [
        _select("mode", "Mode", info.mode, modes, about),
        _select("model", "Model", info.model, _models(door, info)),
    ]
    if _thinks(door, info):
        level = info.reasoning if info.reasoning in _EFFORTS else _DEFAULT
        levels = [{"value": one, "name": one.capitalize()} for one in (_DEFAULT, *_EFFORTS)]
        about = "How hard the model is to think."
        found.append(_select("thought_level", "Thinking", level, levels, about))
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
            usable[model.provider] = _model(door, model.ref, info.agent) is not None
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


def _model(door: Door, ref: str, agent: str) -> ModelInfo | None:
    """A model that can be used now: it is configured, and has its key."""
    try:
        return door.model(ref, agent)
    except Fault:
        return None


def _thinks(door: Door, info: SessionInfo) -> bool:
    model = _model(door, info.model, info.agent)
    return model is not None and model.reasoning


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
