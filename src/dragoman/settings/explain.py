"""What a key means, what it may hold, what it holds now and where that comes from."""

from typing import Any

import msgspec

from dragoman.engine.faults import BadInput
from dragoman.engine.ports.rows import Explained as Explained
from dragoman.observe.redact import redact

from . import shape
from .load import Loaded, Source
from .model import Settings
from .shape import Key, Path


def explain(loaded: Loaded, key: str = "") -> list[Explained]:
    """The key, or every key of a section; without a key, of everything. Raises BadInput."""
    try:
        path = shape.split(key) if key else ()
        start = shape.key(path)
    except shape.UnknownKey as unknown:
        raise BadInput(unknown.sentence, "See: dragoman config explain") from None
    except ValueError as problem:
        raise BadInput(f"{problem}.") from None
    found: list[Explained] = []
    _walk(loaded, start, _value(loaded, start.path), found)
    return found


def schema() -> dict[str, Any]:
    """The JSON Schema of config.toml, for editors; unknown keys only warn, so they are allowed."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Dragoman configuration",
        **msgspec.json.schema(Settings),
    }


def value_of(loaded: Loaded, key: str) -> Any:
    """The value of a key or section as plain data, secrets included. Raises BadInput."""
    explain(loaded, key)  # says what is wrong with the key
    return msgspec.to_builtins(_value(loaded, shape.key(shape.split(key)).path))


def _value(loaded: Loaded, path: Path) -> Any:
    here: Any = loaded.settings
    for part in path:
        here = here.get(part) if isinstance(here, dict) else getattr(here, part, None)
    return here


def _walk(loaded: Loaded, key: Key, value: Any, found: list[Explained]) -> None:
    if key.leaf:
        found.append(_one(loaded, key, value))
        return
    if key.fields is not None:
        for name, below in key.fields.items():
            inner = below.default if value is None else getattr(value, name)
            _walk(loaded, below._replace(path=(*key.path, name)), inner, found)
        return
    # A map of sections: what is there, or the form of an entry when there is none.
    for name in value or {"<name>": None}:
        below = shape.key_below(key, name)._replace(path=(*key.path, name))
        _walk(loaded, below, (value or {}).get(name), found)


def _one(loaded: Loaded, key: Key, value: Any) -> Explained:
    source = _source(loaded, key.path)
    return Explained(
        key=shape.join(key.path).replace('"<name>"', "<name>"),
        doc=key.doc,
        allowed=shape.allowed(key.kind) + (", or not set" if key.optional else ""),
        default=msgspec.to_builtins(key.default),
        value=redact(msgspec.to_builtins(value), key.path[-1]),
        source=f"{source.kind} {source.where}" if source else "default",
        env="DRAGOMAN_" + "__".join(key.path),
    )


def _source(loaded: Loaded, path: Path) -> Source | None:
    for length in range(len(path), 0, -1):
        if path[:length] in loaded.sources:
            return loaded.sources[path[:length]]
    below = (one for at, one in loaded.sources.items() if at[: len(path)] == path)
    return next(below, None)
