"""`config/*`: the running configuration, secrets hidden."""

from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.engine.faults import BadInput, Fault
from dragoman.engine.ports.rows import Explained
from dragoman.observe.redact import is_secret
from dragoman.wire.codec import encode

from ..faults import available
from ..shapes import (
    AliasSource,
    CatalogModels,
    ConfigGet,
    ConfigList,
    ConfigPath,
    ConfigProp,
    ConfigSet,
    MapKey,
    MapRename,
)
from ..spelling import verb
from .sessions import provider_of

if TYPE_CHECKING:
    from dragoman.engine.ports.config import ConfigPort

    from ..hear import ZeroclawHearer

_GROUPS = {
    "agents": "Agents", "risk_profiles": "Agents", "runtime_profiles": "Agents",
    "autonomy": "Agents", "memory": "Agents", "providers": "Models", "models": "Models",
    "mcp": "Tools", "sandbox": "Tools", "acp": "Protocols", "zeroclaw": "Protocols",
    "humanlayer": "Protocols", "openclawos": "Protocols", "dialects": "Protocols",
}  # fmt: skip
_OTHERS = "Host"  # the group of all that is in none
_TABLES = {
    "risk_profiles": "risk_profiles",
    "runtime_profiles": "runtime_profiles",
    "mcp_bundles": "mcp",
    "channels": "channels",
}
_NOT_OURS = ("tts_providers", "transcription_providers", "knowledge_bundles")
DISMISSED = ("zeroclaw", "quickstart_dismissed")  # where that is kept
LOCAL = frozenset({"ollama", "local", "demo", "scripted"})


def configured(conn: "ZeroclawHearer") -> "ConfigPort":
    return available(conn.door.config, "Configuration is")


def _raw(value: object) -> msgspec.Raw:
    """Values of the configuration keep their own names, whatever the spelling."""
    return msgspec.Raw(encode(value))


def get(conn: "ZeroclawHearer", params: ConfigGet) -> Any:
    value = configured(conn).get(params.prop or "")
    if params.prop is None:
        return _raw(value)
    return {"prop": params.prop, "value": _raw(value)}


async def put(conn: "ZeroclawHearer", params: ConfigSet) -> dict[str, Any]:
    await configured(conn).set(params.prop, params.value)
    return {"prop": params.prop, "set": True}


async def drop(conn: "ZeroclawHearer", params: ConfigProp) -> dict[str, Any]:
    await configured(conn).set(params.prop, None)
    return {"prop": params.prop, "deleted": True}


def listed(conn: "ZeroclawHearer", params: ConfigList) -> Any:
    prefix = params.prefix or ""
    special = _model_of(conn, prefix)
    if special is not None:
        return {"entries": [_entry(special)]}
    rows = _explained(conn)
    rows = [row for row in rows if "<name>" not in row.key]  # forms of entries that are not there
    chosen = [row for row in rows if row.key == prefix or row.key.startswith(f"{prefix}.")]
    return {"entries": [_entry(row) for row in (chosen if prefix else rows)]}


def _explained(conn: "ZeroclawHearer") -> list[Explained]:
    explain = conn.door.facts.explain
    return [*explain("")] if explain is not None else []


def _entry(row: Explained) -> dict[str, Any]:
    top, _, last = row.key.partition(".")
    secret = is_secret(row.key.rpartition(".")[2])
    entry: dict[str, Any] = {
        "path": row.key,
        "category": top,
        "kind": _kind(row),
        "type_hint": row.allowed,
        "value": None if secret else _raw(row.value),
        "populated": row.source != "default",
        "is_secret": secret,
        "is_env_overridden": row.source.startswith("env"),
        "description": row.doc,
        "section": top if last else "",
    }
    if entry["kind"] == "enum":
        entry["enum_variants"] = row.allowed.removeprefix("one of ").replace('"', "").split(", ")
    return entry


def _kind(row: Any) -> str:
    allowed = row.allowed
    for words, kind in (
        ("one of", "enum"),
        ("true or false", "bool"),
        ("a whole number", "integer"),
        ("a number", "float"),
        ("a list", "string_array"),
        ("a table", "object"),
    ):
        if allowed.startswith(words):
            return kind
    return "string"


def _model_of(conn: "ZeroclawHearer", prefix: str) -> Explained | None:
    """The two keys by which the terminal client finds an agent's model to show."""
    parts = prefix.split(".")
    if len(parts) == 3 and parts[0] == "agents" and parts[2] == "model_provider":
        alias, which = parts[1], "provider"
    elif len(parts) == 5 and parts[:2] == ["providers", "models"] and parts[4] == "model":
        alias, which = parts[3], "model"
    else:
        return None
    try:
        provider, _, model = conn.door.profile(alias).model.partition("/")
    except Fault:
        return None
    value = f"{provider}.{alias}" if which == "provider" else model
    return Explained(prefix, "The model of this agent.", "a text", "", value, "agent", "")


def map_keys(conn: "ZeroclawHearer", params: ConfigPath) -> dict[str, Any]:
    value = configured(conn).get(params.path)
    return {"path": params.path, "keys": sorted(value) if isinstance(value, dict) else []}


def sections(conn: "ZeroclawHearer", _: None) -> Any:
    """The tables of our own configuration, for a pane that shows and changes them by groups."""
    known = conn.door.facts.sections
    rows = known() if known is not None and conn.door.config is not None else ()
    found = [
        {
            "key": name,
            "label": name.replace("_", " ").capitalize(),
            "help": text,
            "has_picker": False,
            "completed": True,
            "ready": True,
            "group": _GROUPS.get(name, _OTHERS),
            "is_quickstart": False,
            "shape": "one_tier_alias_map" if by_name else "direct_form",
        }
        for name, text, by_name in rows
    ]
    order = [*dict.fromkeys(_GROUPS.values()), _OTHERS]
    return {"sections": sorted(found, key=lambda row: order.index(str(row["group"])))}


def templates(conn: "ZeroclawHearer", _: None) -> dict[str, Any]:
    """The tables to which entries can be added by name."""
    known = conn.door.facts.sections
    rows = known() if known is not None and conn.door.config is not None else ()
    return {
        "templates": [
            {"path": name, "kind": "map", "value_type": "object", "description": text}
            for name, text, by_name in rows
            if by_name
        ]
    }


async def create_key(conn: "ZeroclawHearer", params: MapKey) -> dict[str, Any]:
    await configured(conn).add_entry(params.path, params.key)
    return {"path": params.path, "key": params.key, "created": True}


async def delete_key(conn: "ZeroclawHearer", params: MapKey) -> dict[str, Any]:
    await configured(conn).remove_entry(params.path, params.key)
    return {"path": params.path, "key": params.key, "deleted": True}


async def rename_key(conn: "ZeroclawHearer", params: MapRename) -> dict[str, Any]:
    notes = await configured(conn).rename_entry(params.path, params.from_, params.to)
    told = {"path": params.path, "from": params.from_, "to": params.to, "renamed": True}
    return {**told, "warnings": list(notes)}


def alias_source(conn: "ZeroclawHearer", params: AliasSource) -> dict[str, Any]:
    source = params.source
    if source == "model_providers":
        values = list(dict.fromkeys(model.provider for model in conn.door.models()))
    elif source == "agents":
        values = list(conn.door.agents())
    elif source in _TABLES:
        found = configured(conn).get(_TABLES[source])
        values = sorted(found) if isinstance(found, dict) else []
    elif source == "skill_bundles":
        values = ["default"]
    elif source in _NOT_OURS:
        values = []
    else:
        raise BadInput(f"Invalid params: unknown source {source!r}.")
    return {"source": source, "values": values}


async def status(conn: "ZeroclawHearer", _: None) -> Any:
    """Whether there is nothing to talk to yet, and nobody said that this is as it should be."""
    needed = not await is_set_up(conn)
    return {
        "needs_quickstart": needed,
        "reason": "no agent is configured" if needed else "",
        "has_partial_state": False,
        "missing": ["agents"] if needed else [],
    }


async def is_set_up(conn: "ZeroclawHearer") -> bool:
    return bool(conn.door.agents()) or await conn.door.shelf.get(*DISMISSED) is not None


def validate(conn: "ZeroclawHearer", _: None) -> dict[str, Any]:
    check = conn.door.facts.check_config
    problem = check() if check is not None else ""
    return {"valid": False, "error": problem} if problem else {"valid": True}


def reload(conn: "ZeroclawHearer", _: None) -> dict[str, Any]:
    configured(conn).reload()
    return {"reloading": True}


def catalog(conn: "ZeroclawHearer", _: None) -> dict[str, Any]:
    names = dict.fromkeys(model.provider for model in conn.door.models())
    return {
        "model_providers": [
            {"name": name, "display_name": name.capitalize(), "local": name in LOCAL}
            for name in names
        ]
    }


def _per_token(price: float | None) -> str | None:
    """US dollars for one token, as a text, from those for a million."""
    return None if price is None else f"{price / 1e6:.12f}".rstrip("0").rstrip(".")


def catalog_models(conn: "ZeroclawHearer", params: CatalogModels) -> dict[str, Any]:
    name = params.model_provider or params.provider
    if not name:
        raise BadInput("Invalid params: `model_provider` is missing.")
    name = provider_of(conn, name)
    found = [model for model in conn.door.models(name) if model.provider == name]
    prices = {
        model.id: {
            "prompt": _per_token(model.price_input),
            "completion": _per_token(model.price_output),
            "input_cache_read": _per_token(model.price_cache_read),
        }
        for model in found
        if model.price_input is not None
    }
    return {
        "model_provider": name,
        "models": [model.id for model in found],
        "pricing": _raw(prices),
        "local": name in LOCAL,
        "live": False,
    }


# What is asked behind a change is answered by what is so after it.
VERBS = {
    "config/get": verb(get, ConfigGet, serial=True),
    "config/set": verb(put, ConfigSet, serial=True),
    "config/delete": verb(drop, ConfigProp, serial=True),
    "config/list": verb(listed, ConfigList, serial=True),
    "config/map-keys": verb(map_keys, ConfigPath, serial=True),
    "config/sections": verb(sections),
    "config/templates": verb(templates),
    "config/status": verb(status),
    "config/validate": verb(validate, serial=True),
    "config/reload": verb(reload, serial=True),
    "config/catalog": verb(catalog),
    "config/catalog-models": verb(catalog_models, CatalogModels),
    "config/map-key-create": verb(create_key, MapKey, serial=True),
    "config/map-key-delete": verb(delete_key, MapKey, serial=True),
    "config/map-key-rename": verb(rename_key, MapRename, serial=True),
    "config/resolve-alias-source": verb(alias_source, AliasSource, serial=True),
}
