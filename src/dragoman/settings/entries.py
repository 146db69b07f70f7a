"""Entries of tables that users fill by name: added, renamed with what refers to them."""

from collections.abc import Mapping
from typing import Any

from dragoman.engine.faults import BadInput

from . import shape, toml
from .shape import Path
from .write import put, read_valid, remove, split_key

# Where entries of a table are named: keys of every agent, or single keys.
_IN_AGENTS = {"risk_profiles": "risk_profile", "runtime_profiles": "runtime_profile",
              "providers": "provider"}  # fmt: skip
_SINGLE: dict[str, tuple[Path, ...]] = {"agents": (("acp", "default_agent"),)}
_LONGEST = 100


def maps() -> list[tuple[str, str]]:
    """The tables that hold entries by name, and what they are."""
    return [(name, doc) for name, doc, by_name in sections() if by_name]


def sections() -> list[tuple[str, str, bool]]:
    """All tables of the configuration: name, meaning, whether it holds entries by name."""
    fields: Mapping[str, shape.Key] = shape.key(()).fields or {}
    return [(name, one.doc, one.fields is None) for name, one in fields.items() if not one.leaf]


def with_entry(file: str, table: str, key: str) -> str:
    """The file's text with one more, empty entry. Raises BadInput."""
    path = _place(table, key)
    text = read_valid(file)
    if key in _entries(text, path[:-1]):
        raise BadInput(f"{table} has an entry {key} already.", "Choose another name.")
    import tomlkit

    document = tomlkit.parse(text)
    if path[0] not in document:
        document[path[0]] = tomlkit.table(is_super_table=True)
    document[path[0]][key] = tomlkit.table()
    return tomlkit.dumps(document)


def renamed(file: str, table: str, old: str, new: str) -> tuple[str, list[str]]:
    """The file's text with an entry renamed, and what else was changed with it."""
    before = _place(table, old)
    _place(table, new)  # says what is wrong with the new name
    text = read_valid(file)
    entries = _entries(text, before[:-1])
    if old not in entries:
        raise BadInput(f"{table} has no entry {old} in the file.", "Nothing was renamed.")
    if new in entries:
        raise BadInput(f"{table} has an entry {new} already.", "Choose another name.")
    import tomlkit

    document = tomlkit.parse(text)
    here: Any = document[table]
    kept = here[old]
    del here[old]
    here[new] = kept
    changed = tomlkit.dumps(document)
    notes = []
    for path, value in _references(toml.parse(changed), table, old, new):
        changed = put(changed, path, value)
        notes.append(f"{shape.join(path)} is {value} now")
    return changed, notes


def without_entry(file: str, table: str, key: str) -> str:
    """The file's text without an entry. Raises BadInput."""
    path = _place(table, key)
    text = read_valid(file)
    if key not in _entries(text, path[:-1]):
        raise BadInput(f"{table} has no entry {key} in the file.", "Nothing was deleted.")
    return remove(text, path)


def _place(table: str, key: str) -> Path:
    path = split_key(table)
    if len(path) != 1 or path[0] not in dict(maps()):
        names = ", ".join(name for name, _ in maps())
        raise BadInput(f"{table} holds no entries by name.", f"These do: {names}.")
    if not key.strip() or len(key) > _LONGEST or not key.isprintable():
        raise BadInput(f"{key!r} is no name for an entry.", "Use letters, digits, - and _.")
    return (*path, key)


def _entries(text: str, path: Path) -> dict[str, Any]:
    found: Any = toml.parse(text)
    for part in path:
        found = found.get(part, {})
    return found if isinstance(found, dict) else {}


def _references(tree: dict[str, Any], table: str, old: str, new: str) -> list[tuple[Path, str]]:
    found: list[tuple[Path, str]] = []
    field = _IN_AGENTS.get(table)
    for alias, agent in tree.get("agents", {}).items():
        if field and isinstance(agent, dict) and agent.get(field) == old:
            found.append((("agents", alias, field), new))
        model = agent.get("model") if table == "providers" and isinstance(agent, dict) else None
        if isinstance(model, str) and model.startswith(f"{old}/"):
            found.append((("agents", alias, "model"), new + model[len(old) :]))
    for section, name in _SINGLE.get(table, ()):
        if tree.get(section, {}).get(name) == old:
            found.append(((section, name), new))
    return found
