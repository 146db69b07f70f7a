"""Installing apps: what a folder's manifest asks for, and what the configuration grants."""

import os
import sys
from typing import Any

import msgspec

from dragoman.dialects.openclawos.faults import Wrong
from dragoman.dialects.openclawos.grants import RULES
from dragoman.dialects.openclawos.manifest import Manifest, read_manifest
from dragoman.engine.faults import BadInput
from dragoman.settings import write
from dragoman.settings.load import load
from dragoman.settings.places import Places
from dragoman.settings.protocols import App
from dragoman.settings.shape import join

FILES = ("openclawos.manifest.json", "openclawos.json", "openclaw.plugin.json")
_RUNNERS = {".py": sys.executable, ".js": "node", ".mjs": "node", ".cjs": "node"}
_MEANT = "Name the folder that has the app's manifest."


class AskedFor(msgspec.Struct, frozen=True):
    """What the app of a folder is and asks for."""

    id: str
    name: str
    version: str
    description: str
    folder: str
    command: str
    args: tuple[str, ...]
    wants: dict[str, tuple[str, ...]]  # kind -> names
    env: tuple[str, ...]
    hosts: tuple[str, ...]


def look(folder: str) -> AskedFor:
    """Read the manifest of a folder. Raises BadInput."""
    place = os.path.realpath(os.path.expanduser(folder))
    if not os.path.isdir(place):
        if os.path.lexists(place):
            raise BadInput(f"{place} is no folder.", _MEANT)
        raise BadInput(f"{place} is not there.", _MEANT)
    for name in FILES:
        path = os.path.join(place, name)
        if os.path.isfile(path):
            break
    else:
        raise BadInput(
            f"There is no manifest in {place}.", f"An app has one of: {', '.join(FILES)}."
        )
    try:
        with open(path, "rb") as file:
            raw = msgspec.json.decode(file.read())
        manifest = read_manifest(raw)
    except OSError as problem:
        raise BadInput(f"{path} cannot be read: {problem.strerror}.") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise BadInput(f"{path} is no JSON: {problem}.") from None
    except Wrong as wrong:
        raise BadInput(f"{path}: {wrong.message}.") from None
    main = str(raw.get("main") or "")
    program = os.path.realpath(os.path.join(place, main))
    if not main or not program.startswith(place + os.sep) or not os.path.isfile(program):
        raise BadInput(f"{path}: `main` ({main or 'missing'}) is no file of the folder.")
    runner = _RUNNERS.get(os.path.splitext(program)[1], "")
    if not runner and not os.access(program, os.X_OK):
        raise BadInput(f"{program} cannot be run: it is neither Python, JavaScript nor executable.")
    resources = (raw.get("capabilities") or {}).get("resources") or {}
    network = resources.get("network") or {}
    return AskedFor(
        manifest.id,
        manifest.name or manifest.id,
        manifest.version,
        str(raw.get("description") or ""),
        place,
        runner or program,
        (program,) if runner else (),
        wants(manifest),
        _texts(resources.get("env")),
        _texts(network.get("hosts")),
    )


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(str(one) for one in value) if isinstance(value, list) else ()


def wants(manifest: Manifest) -> dict[str, tuple[str, ...]]:
    """All that a manifest declares to offer and hear, by kind."""
    found = {kind: tuple(sorted(rule.declared(manifest))) for kind, rule in RULES.items()}
    return {kind: names for kind, names in found.items() if names}


def entry(where: Places, id: str) -> App:
    """The app as the configuration has it. Raises BadInput."""
    found = load(where.config_file).settings.openclawos.apps.get(id)
    if found is None:
        raise BadInput(f"There is no app {id}.", "See: dragoman apps")
    return found


def narrowed(asked: dict[str, tuple[str, ...]], denied: list[str]) -> dict[str, tuple[str, ...]]:
    """What is left of what an app asks for. Raises BadInput for what it does not ask for."""
    left = {kind: list(names) for kind, names in asked.items()}
    for word in denied:
        kind, name = part(word)
        if name not in left.get(kind, ()):
            raise BadInput(f"The app does not ask for {word}.", f"It asks for: {spell(asked)}.")
        left[kind].remove(name)
    return {kind: tuple(names) for kind, names in left.items()}


def part(word: str) -> tuple[str, str]:
    kind, colon, name = word.partition(":")
    if not colon or kind not in RULES or not name:
        raise BadInput(
            f"{word!r} is no permission.", f"Write KIND:NAME; kinds: {', '.join(RULES)}."
        )
    return kind, name


def spell(granted: dict[str, tuple[str, ...]]) -> str:
    words = [f"{kind}:{name}" for kind, names in granted.items() for name in names]
    return ", ".join(words) or "nothing"


def install(where: Places, asked: AskedFor, granted: dict[str, tuple[str, ...]]) -> None:
    """Write the app into the configuration; a running daemon starts it."""
    values = {
        "command": asked.command,
        "args": list(asked.args),
        "cwd": asked.folder,
        "folder": asked.folder,
        "pass_env": list(asked.env),
        "granted": {kind: list(names) for kind, names in granted.items()},
    }
    write.put_table(where.config_file, ("openclawos", "apps", asked.id), values)


def permit(where: Places, id: str, granted: dict[str, tuple[str, ...]]) -> None:
    values = {"granted": {kind: list(names) for kind, names in granted.items()}}
    write.put_table(where.config_file, ("openclawos", "apps", id), values)


def remove(where: Places, id: str) -> None:
    entry(where, id)
    write.unset_key(where.config_file, join(("openclawos", "apps", id)))
