"""Changes single keys of config.toml; comments, order and everything else stay as they are."""

import copy
import errno
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from time import monotonic, sleep
from typing import Any

from dragoman.engine.faults import BadInput
from dragoman.observe.redact import is_secret

from . import shape, toml
from .load import BadSettings, read_text
from .redact import misplaced
from .shape import Path

_PATIENCE = 5.0  # seconds for whoever changes the file at the same time


@contextmanager
def changing(file: str) -> Iterator[None]:
    """Read the file and write it while no other process of ours does: its change would be lost.

    Where nothing can be locked (some network file systems), the last one counts. Raises BadInput.
    """
    with ExitStack() as held:
        for pause in until_alone(file, held):
            sleep(pause)
        yield


def until_alone(file: str, held: ExitStack) -> Iterator[float]:
    """Keep others from changing the file; says how long to wait before each further look.

    Nothing tells when they have done so, and who serves clients waits without keeping them waiting.
    """
    try:
        import fcntl

        folder = os.path.dirname(os.path.realpath(file))
        os.makedirs(folder, mode=0o700, exist_ok=True)
        fd = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        held.callback(os.close, fd)
        until = monotonic() + _PATIENCE
        while not _locked(fcntl.flock, fd, fcntl.LOCK_EX | fcntl.LOCK_NB):
            if monotonic() > until:
                raise BadInput(
                    f"Another process has been changing {file} for {_PATIENCE:g} seconds.",
                    "Let it finish, or end it, then try again.",
                )
            yield 0.01
    except (ImportError, OSError):
        return  # no such locks here, or no such folder, which is told when it is written


def _locked(lock: Callable[[int, int], None], fd: int, how: int) -> bool:
    try:
        lock(fd, how)
    except BlockingIOError:
        return False
    return True


def with_value(file: str, key: str, value: object) -> str:
    """The file's text with a value of JSON for a dotted key; null takes it out. Raises BadInput."""
    if value is None:
        return remove(read_valid(file), split_key(key))
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    found, read = _read(key, text)
    if isinstance(value, dict | list) and isinstance(read, str):
        hint = f"See: dragoman config explain {key}"
        raise BadInput(f"{key} must be a text, no object and no list.", hint)
    return put(read_valid(file), found.path, read)


def set_key(file: str, key: str, text: str) -> Any:
    """Write a value, given as text, for a dotted key; returns the value. Raises BadInput."""
    found, value = _read(key, text)
    with changing(file):
        save(file, put(read_valid(file), found.path, value))
    return value


def _read(key: str, text: str) -> tuple[shape.Key, Any]:
    """A key and the value that a text means for it. Raises BadInput."""
    found = _find(key)
    # In a free table the value's form says its type, but a secret is a text, also one of digits.
    kind = str if found.kind is Any and is_secret(found.path[-1]) else found.kind
    value = shape.read(kind, text)
    if problem := shape.problem(found.kind, value):
        shown = misplaced(found, text)
        raise BadInput(f"{key} {problem} (got {shown!r}).", f"See: dragoman config explain {key}")
    return found, value


def put_table(file: str, path: Path, values: Mapping[str, Any]) -> None:
    """Write several keys of one table at once. Raises BadInput."""
    with changing(file):
        text = read_valid(file)
        for name, value in values.items():
            at = (*path, name)
            if problem := shape.problem(shape.key(at).kind, value):
                raise BadInput(f"{shape.join(at)} {problem}.")
            text = put(text, at, value)
        save(file, text)


def unset_key(file: str, key: str) -> bool:
    """Take a key or a whole table out; False when it was not there. Raises BadInput."""
    path = split_key(key)
    with changing(file):
        before = read_valid(file)
        after = remove(before, path)
        if after == before:
            return False
        save(file, after)
    return True


def split_key(key: str) -> Path:
    """A dotted key as its parts. Raises BadInput."""
    try:
        path = shape.split(key)
        return shape.key(path).path
    except shape.UnknownKey:
        return path  # of another version, or a slip: it can be taken out all the same
    except ValueError as problem:
        raise BadInput(f"{problem}.") from None


def _find(key: str) -> shape.Key:
    try:
        found = shape.key(split_key(key))
    except shape.UnknownKey as unknown:
        raise BadInput(unknown.sentence, "See: dragoman config explain") from None
    if not found.leaf:
        raise BadInput(
            f"{key} is a table, not a value.", f"Name a key in it: dragoman config explain {key}"
        )
    return found


def read_valid(file: str) -> str:
    """The file's text, which is TOML. Raises BadSettings."""
    text = read_text(file)
    try:
        toml.parse(text)
    except toml.NotToml as problem:
        raise BadSettings(
            [f"{file} is not valid TOML and is left as it is: {problem}."], "Repair it first."
        ) from None
    return text


def put(text: str, path: Path, value: Any) -> str:
    """The text with a key set. Raises BadInput when the file's form does not let us."""
    if toml.is_deep(value):
        raise BadInput(f"{shape.join(path)} cannot be set: the value is nested too deeply.")
    wanted = toml.parse(text)
    here = wanted
    for part in path[:-1]:
        here = here.setdefault(part, {})
        if not isinstance(here, dict):
            raise BadInput(f"{shape.join(path)} cannot be set: {part} is not a table in the file.")
    here[path[-1]] = copy.deepcopy(value)
    changed = _put(text, path, value)
    _same(changed, wanted, path)
    return changed


def _put(text: str, path: Path, value: Any) -> str:
    import tomlkit

    document = tomlkit.parse(text)
    here: Any = document
    for depth, part in enumerate(path[:-1]):
        if part not in here:
            # Tables in between get no header of their own.
            here[part] = added = tomlkit.table(is_super_table=depth < len(path) - 2)
            if depth == len(path) - 2:
                added[path[-1]] = value
                if not tomlkit.dumps(document).endswith(added.as_string()):
                    added.add(tomlkit.nl())  # a blank line before what follows
        here = here[part]
    if path[-1] in here:
        here[path[-1]] = value
    else:
        _add(here, path[-1], value)
    return tomlkit.dumps(document)


def _add(table: Any, key: str, value: Any) -> None:
    """Add a key below the last one: comments after that are about what follows."""
    from tomlkit.items import Table

    below: list[Any] = []
    if isinstance(table, Table):
        body = table.value.body
        while body and body[-1][0] is None:
            below.insert(0, body.pop()[1])
    table[key] = value
    for item in below:
        table.value.append(None, item)


def remove(text: str, path: Path) -> str:
    """The text without a key, or without a table and all that is in it.

    Tables that held nothing else go with it, unless a comment stands in them.
    """
    import tomlkit

    wanted = toml.parse(text)
    try:
        above = shape.lookup(wanted, path[:-1])
        del above[path[-1]]
    except (KeyError, TypeError):
        return text
    document = tomlkit.parse(text)
    del shape.lookup(document, path[:-1])[path[-1]]
    for length in range(len(path) - 1, 0, -1):
        table = shape.lookup(document, path[:length])
        if table or "#" in table.as_string():
            break
        del shape.lookup(document, path[: length - 1])[path[length - 1]]
    changed = tomlkit.dumps(document)
    if not text.endswith("\n\n"):
        changed = changed.rstrip("\n") + "\n" if changed.strip() else ""
    _same(changed, wanted, path, empty_tables=True)
    return changed


def _same(text: str, wanted: dict[str, Any], path: Path, *, empty_tables: bool = False) -> None:
    """Never write what does not read back as meant."""
    try:
        found = toml.parse(text)
    except toml.NotToml:
        found = {}
    if empty_tables:
        found, wanted = _pruned(found), _pruned(wanted)
    if found != json_like(wanted):
        raise BadInput(
            f"{shape.join(path)} cannot be changed in this file without rewriting it.",
            "Change it with an editor.",
        )


def _pruned(table: dict[str, Any]) -> dict[str, Any]:
    pairs = ((key, _pruned(one) if isinstance(one, dict) else one) for key, one in table.items())
    return {key: one for key, one in pairs if one != {}}


def json_like(value: Any) -> Any:
    """Tuples as lists, so that what was meant and what was read can be compared."""
    if isinstance(value, Mapping):
        return {key: json_like(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [json_like(one) for one in value]
    return value


def _key(part: str) -> str:
    plain = part and part.isascii() and all(c.isalnum() or c in "_-" for c in part)
    return part if plain else render(part)


def render(value: Any) -> str:
    """A value as TOML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, Mapping):
        pairs = ", ".join(f"{_key(str(key))} = {render(one)}" for key, one in value.items())
        return f"{{ {pairs} }}" if pairs else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(render(one) for one in value)}]"
    return str(value)  # dates and times write themselves


def _formed(file: str, text: str) -> str:
    """The text with the line ends of the file, and with its mark of the encoding, if it has one."""
    try:
        with open(file, "rb") as old:
            data = old.read()
    except OSError:
        return text  # there is none; whoever cannot read it is told when it is written
    if 2 * data.count(b"\r\n") > data.count(b"\n"):
        text = text.replace("\r\n", "\n").replace("\n", "\r\n")
    return "\ufeff" + text.removeprefix("\ufeff") if data.startswith(b"\xef\xbb\xbf") else text


def save(file: str, text: str) -> None:
    """Replace the file in one go; only its owner may read it. Raises BadInput."""
    real = os.path.realpath(file)  # a link stays a link
    text = _formed(real, text)
    beside = f"{real}.{os.getpid()}.new"
    try:
        os.makedirs(os.path.dirname(real), mode=0o700, exist_ok=True)
        fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            with os.fdopen(fd, "w", encoding="utf-8", newline="") as out:
                out.write(text)
                out.flush()
                os.fsync(out.fileno())
            os.replace(beside, real)
        except BaseException:
            os.unlink(beside)
            raise
    except OSError as problem:
        full = problem.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))
        mend = "Make room there" if full else "Repair its permissions"
        raise BadInput(
            f"{file} cannot be written: {problem.strerror}.",
            f"{mend}, or choose another directory with --config-dir.",
        ) from None
