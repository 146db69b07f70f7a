"""What the configuration may contain: the type, meaning and allowed values of every key."""

import sys
import types
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

import msgspec

from .model import Settings
from .nearest import nearest

Path = tuple[str, ...]


class UnknownKey(Exception):
    """A path that leads nowhere: `path` up to the wrong name, and the names that are there."""

    def __init__(self, path: Path, known: tuple[str, ...]) -> None:
        super().__init__(join(path))
        self.path = path
        self.known = known

    def __str__(self) -> str:
        return f"unknown key {join(self.path)}{self.near}"

    @property
    def sentence(self) -> str:
        """The text with its full stop."""
        text = f"{self}"
        return text if text.endswith("?") else f"{text}."

    @property
    def near(self) -> str:
        """`; did you mean X?`, or nothing."""
        if len(self.path) == 1 and (ours := _meant(self.path[0])):
            return f"; did you mean {ours}?"
        close = nearest(self.path[-1], self.known)
        return f"; did you mean {join((*self.path[:-1], close))}?" if close else ""


# What other agents' configurations call it.
_ELSEWHERE = {
    "mcpServers": "mcp.<name>", "mcp_servers": "mcp.<name>", "permissions": "autonomy",
    "approval_policy": "agents.default.mode", "model_provider": "agents.default.provider",
    "profiles": "risk_profiles.<name>",
}  # fmt: skip


def _meant(name: str) -> str:
    """The key of ours for one at the top that belongs below, or is another program's."""
    agent = key_below(key_below(ROOT, "agents"), "default")
    return _ELSEWHERE.get(name) or (
        f"agents.default.{name}" if name in (agent.fields or ()) else ""
    )


class Key(NamedTuple):
    """One key of the configuration."""

    path: Path
    kind: Any  # its type, without None and annotations
    doc: str
    default: Any
    optional: bool

    @property
    def fields(self) -> "Fields | None":
        """The keys below a section."""
        return fields_of(self.kind) if is_section(self.kind) else None

    @property
    def item(self) -> Any:
        """The type of a map's values."""
        return get_args(self.kind)[1] if get_origin(self.kind) is dict else None

    @property
    def leaf(self) -> bool:
        """Whether it holds a value and not further keys."""
        if is_section(self.kind):
            return False
        return self.item is None or not is_section(_bare(self.item)[0])


ROOT = Key((), Settings, "The configuration.", None, False)


def is_section(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def is_named(kind: Any, value: Any) -> bool:
    """Whether all texts of a value have the names that its key gives them: a list names none."""
    origin = get_origin(kind)
    if origin is Annotated:
        return is_named(get_args(kind)[0], value)
    if origin in (Union, types.UnionType):
        return any(is_named(one, value) for one in get_args(kind))
    if is_section(kind):
        return isinstance(value, Mapping)
    if origin is dict:
        each = get_args(kind)[1]
        return isinstance(value, Mapping) and all(is_named(each, one) for one in value.values())
    if origin in (list, tuple):
        each = get_args(kind)[0]
        return isinstance(value, list | tuple) and all(
            isinstance(one, Mapping) and is_named(each, one) for one in value
        )
    return not isinstance(value, Mapping | list | tuple)


class Fields(Mapping[str, Key]):
    """The keys of a section. Each is looked at when it is asked for: a start needs only a few."""

    def __init__(self, section: Any) -> None:
        self._section = section
        self._blank = section()  # every key has a default
        self._known: dict[str, Key] = {}

    def __contains__(self, name: object) -> bool:
        return name in self._section.__struct_fields__

    def __iter__(self) -> Iterator[str]:
        return iter(self._section.__struct_fields__)

    def __len__(self) -> int:
        return len(self._section.__struct_fields__)

    def __getitem__(self, name: str) -> Key:
        found = self._known.get(name)
        if found is None:
            kind, doc, optional = _bare(self._type(name))
            default = getattr(self._blank, name)
            found = self._known[name] = Key((name,), kind, doc, default, optional)
        return found

    def _type(self, name: str) -> Any:
        for owner in self._section.__mro__:
            written = owner.__dict__.get("__annotations__", {}).get(name)
            if written is not None:  # it is our own source text, kept as such until now
                return eval(written, vars(sys.modules[owner.__module__]))
        raise KeyError(name)


@lru_cache(maxsize=64)
def fields_of(section: Any) -> Fields:
    return Fields(section)


def build(kind: Any, value: Any) -> Any:
    """A checked raw value as this type; unknown keys are left out."""
    if is_section(kind):
        keys = fields_of(kind)
        return kind(**{name: build(keys[name].kind, value[name]) for name in value if name in keys})
    if get_origin(kind) is dict and is_section(item := _bare(get_args(kind)[1])[0]):
        return {name: build(item, one) for name, one in value.items()}
    return msgspec.convert(value, kind)


def _bare(kind: Any) -> tuple[Any, str, bool]:
    """A type without its outer annotation and None; its description; whether None was there."""
    doc = ""
    if get_origin(kind) is Annotated:
        inner, *notes = get_args(kind)
        # Nested annotations are flattened: what is no description is a constraint, and stays.
        doc = next((one.description for one in notes if one.description), "")
        limits = tuple(one for one in notes if not one.description)
        kind = Annotated[inner, *limits] if limits else inner
    if get_origin(kind) in (Union, types.UnionType):
        rest = tuple(one for one in get_args(kind) if one is not type(None))
        if len(rest) < len(get_args(kind)):
            return (rest[0] if len(rest) == 1 else Union[rest]), doc, True  # noqa: UP007
    return kind, doc, False


def key(path: Path) -> Key:
    """The key at a path. Raises UnknownKey.

    What follows the name of a table of plain values is one name: `log.levels.gateway.push`.
    """
    here = above = ROOT
    for at, name in enumerate(path):
        try:
            above, here = here, key_below(here, name)
        except UnknownKey as unknown:
            if above.item is not None and not unknown.known:
                return here._replace(path=(*path[: at - 1], ".".join(path[at - 1 :])))
            raise UnknownKey(path[: at + 1], unknown.known) from None
    return here._replace(path=path)


def split(text: str) -> Path:
    """A dotted key as its parts; parts with dots stand in quotes. Raises ValueError."""
    parts: list[str] = []
    rest = text.strip()
    while True:
        if rest[:1] in ("'", '"'):
            part, closed, rest = rest[1:].partition(rest[0])
            if not closed or (rest and not rest.startswith(".")):
                raise ValueError(f"{text!r} is not a key: a quote is not closed")
            rest, more = rest[1:], bool(rest)
        else:
            part, dot, rest = rest.partition(".")
            more = bool(dot)
        if not part:
            raise ValueError(f"{text!r} is not a key: a part of it is empty")
        parts.append(part)
        if not more:
            return tuple(parts)


def join(path: Path) -> str:
    """The parts of a key as one dotted text."""
    return ".".join(
        part if part and all(c.isalnum() or c in "_-/" for c in part) else f'"{part}"'
        for part in path
    )


def lookup(tables: Any, path: Path) -> Any:
    """What stands at a path of nested tables."""
    for part in path:
        tables = tables[part]
    return tables


def allowed(kind: Any) -> str:
    """What a type takes, in words."""
    low = high = above = None
    if get_origin(kind) is Annotated:
        kind, *notes = get_args(kind)
        for note in notes:
            low = note.ge if getattr(note, "ge", None) is not None else low
            above = note.gt if getattr(note, "gt", None) is not None else above
            high = note.le if getattr(note, "le", None) is not None else high
            if words := (getattr(note, "extra", None) or {}).get("allowed"):
                return str(words)
    if get_origin(kind) is Literal:
        return "one of " + ", ".join(f'"{one}"' for one in get_args(kind))
    if get_origin(kind) in (Union, types.UnionType):
        return " or ".join(allowed(one) for one in get_args(kind) if one is not type(None))
    if get_origin(kind) is tuple:
        return "a list of tables" if is_section(get_args(kind)[0]) else "a list of texts"
    if kind is Any:
        return "anything"
    if get_origin(kind) is dict:
        inner = _bare(get_args(kind)[1])[0]
        if is_section(inner) or inner is Any:
            return "a table"
        return f"a table whose values are each {allowed(inner)}"
    if is_section(kind):
        return "a table"
    if kind is bool:
        return "true or false"
    if kind is str:
        return "a text"
    word = "a whole number" if kind is int else "a number"
    if above is not None:
        return f"{word} above {above}" + (f", {high} at most" if high is not None else "")
    if low is not None and high is not None:
        return f"{word} from {low} to {high}"
    return f"{word}, {low} or more" if low is not None else word


def read(kind: Any, text: str) -> Any:
    """A value given as text, for a key of this type. What cannot be read stays a text."""
    bare = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    if bare is str or get_origin(bare) is Literal:
        return text
    if bare is bool:
        word = text.strip().lower()
        return {"true": True, "1": True, "yes": True, "on": True}.get(
            word, {"false": False, "0": False, "no": False, "off": False}.get(word, text)
        )
    if bare is int or bare is float:
        try:
            return bare(text.strip().replace("_", ""))
        except ValueError:
            return text
    if bare is Any or text.strip()[:1] in ("[", "{"):
        return _read_toml(text)
    if get_origin(bare) is tuple:
        return [word.strip() for word in text.split(",") if word.strip()]
    return text


def _read_toml(text: str) -> Any:
    import json

    from . import toml

    try:
        found = toml.parse(f"value = {text}")
        return found["value"] if len(found) == 1 else text  # a text of several lines is one
    except toml.NotToml:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return text
        return text if value is None or toml.is_deep(value) else value  # which no TOML can hold


def _is_writable(value: Any) -> bool:
    """Whether all texts of a value can be written: those of the environment may be any bytes."""
    if isinstance(value, Mapping):
        return all(map(_is_writable, (*value, *value.values())))
    if isinstance(value, list | tuple):
        return all(map(_is_writable, value))
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return False
    return True


def problem(kind: Any, value: Any) -> str:
    """Why a value does not fit a type, or nothing."""
    if not _is_writable(value):
        return "is no UTF-8 text"
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        if get_origin(kind) is tuple and is_section(get_args(kind)[0]):
            first = _first(get_args(kind)[0], value)
            return (
                f"has a table that does not fit: {first}" if first else "must be a list of tables"
            )
        return f"must be {allowed(kind)}"
    return ""


def _first(kind: Any, tables: Any) -> str:
    """What is wrong with the first table of a list that does not fit; nothing: the list is none."""
    for number, table in enumerate(tables if isinstance(tables, list) else (), 1):
        if not isinstance(table, dict):
            return f"number {number} is none"
        fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
        for name, field in fields.items():
            if name in table and (said := problem(field.type, table[name])):
                return f"{name} of number {number} {said}"
            if name not in table and field.required:
                return f"number {number} needs {name}"
        for name in table.keys() - fields:
            return f"number {number} has {name}, which is none of {', '.join(fields)}"
    return ""


class Finding(msgspec.Struct, frozen=True):
    """Something wrong in a raw configuration; only a `fatal` one stops us."""

    path: Path
    text: str
    fatal: bool


def check(raw: Mapping[str, Any], path: Path = (), here: Key = ROOT) -> list[Finding]:
    """Everything that is wrong in a raw configuration, unknown keys included."""
    found: list[Finding] = []
    for name, value in raw.items():
        at = (*path, name)
        try:
            below = key_below(here, name)
        except UnknownKey as unknown:
            found.append(Finding(at, f"{UnknownKey(at, unknown.known)}", False))
            continue
        tables = get_origin(below.item) is dict and isinstance(value, Mapping)
        if below.leaf and not tables:
            if text := problem(below.kind, value):
                found.append(Finding(at, f"{join(at)} {text}", True))
        elif isinstance(value, Mapping):
            found += check(value, at, below)
        else:
            found.append(Finding(at, f"{join(at)} must be a table", True))
    return found


def key_below(here: Key, name: str) -> Key:
    """The key `name` of a section or map. Raises UnknownKey."""
    fields = here.fields
    if fields is not None and name in fields:
        return fields[name]
    if here.item is not None:
        kind, _, optional = _bare(here.item)
        doc = (kind.__doc__ or here.doc) if is_section(kind) else here.doc
        return Key((name,), kind, doc, None, optional)
    if here.kind is Any:  # below a free table everything is free
        return Key((name,), Any, here.doc, None, True)
    raise UnknownKey((name,), tuple(fields or ()))
