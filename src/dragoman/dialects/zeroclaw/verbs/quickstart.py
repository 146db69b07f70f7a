"""`quickstart/*`: a first agent, or one more, from a few answers."""

import re
from typing import TYPE_CHECKING, Any

from dragoman.engine.faults import BadInput, Fault

from ..shapes import Params
from ..spelling import verb
from .config import DISMISSED, LOCAL, configured, is_set_up

if TYPE_CHECKING:
    from ..hear import ZeroclawHearer

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_MODES = {
    "supervised": "Reads alone, asks before it changes or runs anything.",
    "readonly": "Reads, and changes nothing.",
    "plan": "Reads, writes a plan, and asks whether to go on.",
    "full": "Works alone inside its sandbox.",
}
_FIELDS = (
    ("api_key", "API key", "The provider's key; empty: from the environment.", True),
    ("base_url", "Address", "The provider's address, when it is not the usual one.", False),
)


class Fields(Params, frozen=True):
    section: str
    type_key: str | None = None


class Submitted(Params, frozen=True):
    submission: dict[str, Any]


class Dismiss(Params, frozen=True):
    run_id: str | None = None
    surface: str | None = None
    last_step: str | None = None


def _keys(conn: "ZeroclawHearer", table: str) -> list[str]:
    found = conn.door.config.get(table) if conn.door.config is not None else None
    return sorted(found) if isinstance(found, dict) else []


def _providers(conn: "ZeroclawHearer") -> list[str]:
    lacking = conn.door.facts.without_key()
    return list(dict.fromkeys([*(model.provider for model in conn.door.models()), *lacking]))


async def state(conn: "ZeroclawHearer", _: None) -> Any:
    ready = list(dict.fromkeys(model.provider for model in conn.door.models()))
    return {
        "kind": "ok",
        "quickstart_completed": await is_set_up(conn),
        "agents": list(conn.door.agents()),
        "risk_profiles": _keys(conn, "risk_profiles"),
        "runtime_profiles": _keys(conn, "runtime_profiles"),
        "default_runtime_profile": None,
        "model_providers": ready,
        "channels": _keys(conn, "channels"),
        "unassigned_channels": [],
        "storage": ["sqlite"],
        "model_provider_types": [
            {
                "kind": name,
                "display_name": name.capitalize(),
                "local": name in LOCAL,
                "default_runtime_profile": None,
            }
            for name in _providers(conn)
        ],
        "channel_types": [],
        "risk_presets": [
            {"preset_name": name, "label": name.capitalize(), "help": text}
            for name, text in _MODES.items()
        ],
        "runtime_presets": [],
        "memory_kinds": ["none", "sqlite"],
        "personality_files": [],
    }


def fields(conn: "ZeroclawHearer", params: Fields) -> dict[str, Any]:
    if params.section != "model_provider":
        return {"fields": []}
    local = params.type_key in LOCAL
    return {
        "fields": [
            {
                "key": key,
                "label": label,
                "help": text,
                "kind": "string",
                "is_secret": secret,
                "enum_variants": None,
                "required": False,
                "default": None,
            }
            for key, label, text, secret in _FIELDS
            if not (secret and local)
        ]
    }


def _read(conn: "ZeroclawHearer", given: dict[str, Any]) -> tuple[dict[str, Any], list[Any]]:
    """The agent's settings, and what is wrong with the answers."""
    errors: list[Any] = []
    made: dict[str, Any] = {}

    def wrong(step: str, field: str, message: str) -> None:
        errors.append({"step": step, "field": field, "message": message})

    agent = given.get("agent")
    name = agent.get("name") if isinstance(agent, dict) else None
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        wrong("agent", "name", "Use letters, digits, - and _.")
    elif name in conn.door.agents():
        wrong("agent", "name", f"There is an agent {name} already.")
    else:
        made["name"] = name
    prompt = agent.get("system_prompt") if isinstance(agent, dict) else None
    if isinstance(prompt, str) and prompt.strip():
        made["append_system_prompt"] = prompt
    _provider(conn, given.get("model_provider"), made, wrong)
    mode, value = _choice(given.get("risk_profile"))
    if mode == "existing" and value in _keys(conn, "risk_profiles"):
        made["risk_profile"] = value
    elif value in _MODES:
        made["mode"] = value
    elif mode:
        wrong("risk_profile", "value", f"Unknown: {value!r}.")
    mode, value = _choice(given.get("runtime_profile"))
    if mode == "existing" and value:
        if value in _keys(conn, "runtime_profiles"):
            made["runtime_profile"] = value
        else:
            wrong("runtime_profile", "value", f"Unknown: {value!r}.")
    if given.get("channels"):
        wrong("channels", "channels", "Channels come with apps, not with agents.")
    return made, errors


def _provider(conn: "ZeroclawHearer", given: Any, made: dict[str, Any], wrong: Any) -> None:
    mode, value = _choice(given)
    step = "model_provider"
    if mode == "existing":
        name = str(value).partition(".")[0]
        if name not in _providers(conn):
            wrong(step, "value", f"Unknown: {value!r}.")
        made["provider"] = name
        return
    if mode != "fresh" or not isinstance(value, dict):
        wrong(step, "mode", "Choose a provider.")
        return
    kind, model = value.get("provider_type"), value.get("model")
    if not isinstance(kind, str) or kind not in _providers(conn):
        wrong(step, "provider_type", f"Unknown: {kind!r}.")
    else:
        made["provider"] = kind
    if isinstance(model, str) and model.strip():
        made["model"] = model.strip()
    more = value.get("fields")
    for key, *_ in _FIELDS:
        text = more.get(key) if isinstance(more, dict) else None
        if isinstance(text, str) and text.strip():
            made[key] = text.strip()


def _choice(given: object) -> tuple[str, Any]:
    if not isinstance(given, dict):
        return "", None
    return str(given.get("mode", "")), given.get("value")


def validate(conn: "ZeroclawHearer", params: Submitted) -> dict[str, Any]:
    _, errors = _read(conn, params.submission)
    return {"kind": "errors", "errors": errors} if errors else {"kind": "ok"}


async def apply(conn: "ZeroclawHearer", params: Submitted) -> Any:
    """Write the agent into the configuration; it is there at once."""
    config = configured(conn)
    made, errors = _read(conn, params.submission)
    if errors:
        return {"kind": "errors", "errors": errors}
    name = made.pop("name")
    try:
        await config.add_entry("agents", name)
        for key, value in made.items():
            await config.set(f"agents.{name}.{key}", value)
    except Fault as fault:
        if name in conn.door.agents():
            await config.remove_entry("agents", name)
        error = {"step": "agent", "field": "name", "message": str(fault)}
        return {"kind": "errors", "errors": [error]}
    provider = conn.door.profile(name).model.partition("/")[0]
    return {
        "kind": "applied",
        "agent": {
            "alias": name,
            "model_provider": f"{provider}.{name}",
            "risk_profile": made.get("risk_profile") or made.get("mode") or "supervised",
            "runtime_profile": made.get("runtime_profile", ""),
            "channels": [],
            "memory_backend": "sqlite",
        },
        "daemon_restarted": False,
    }


async def dismiss(conn: "ZeroclawHearer", params: Dismiss) -> dict[str, Any]:
    if params.last_step is not None and len(params.last_step) > 200:
        raise BadInput("Invalid params: `last_step` is too long.")
    await conn.door.shelf.put(*DISMISSED, (params.run_id or "yes")[:200].encode())
    return {"recorded": True}


VERBS = {
    "quickstart/state": verb(state),
    "quickstart/fields": verb(fields, Fields),
    "quickstart/validate": verb(validate, Submitted),
    "quickstart/apply": verb(apply, Submitted),
    "quickstart/dismiss": verb(dismiss, Dismiss),
}
