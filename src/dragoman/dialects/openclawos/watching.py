"""Configuration for apps: by path, and as it changes. Secrets stay hidden."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dragoman.engine.reading import found_at
from dragoman.observe.redact import HIDDEN, is_secret, redact

from .faults import Wrong

if TYPE_CHECKING:
    from .hear import OpenclawosHearer

_MOST_WATCHES = 64


def get(conn: "OpenclawosHearer", path: str) -> Any:
    """The value at a dotted path; None when there is nothing. Raises Wrong for a secret.

    What belongs to the app itself is given as it is: its channels, its own tables.
    """
    config = conn.door.config
    if config is None:
        return None
    own = AppSettings(conn)
    parts = _parts(path)
    if not parts:
        return own.laid_over(config.get(""))
    if (mine := own.place(parts)) is not None:
        return own.value(mine)
    value = found_at(own.laid_over(config.get(parts[0]), parts[0]), parts[1:])
    if value == HIDDEN:
        raise Wrong("FORBIDDEN", f"{path} is a secret and is not given out")
    return value


class AppSettings:
    """What of the configuration belongs to one app, wherever the file has it."""

    def __init__(self, conn: "OpenclawosHearer") -> None:
        seat = conn.seat
        assert seat is not None and conn.door.config is not None
        self._config = conn.door.config
        desk = conn.desk
        self._names = (seat.name, *self._short(seat.name, list(desk.apps)))
        # A channel that another app serves is that one's, whatever this one's manifest says.
        self._channels = [
            name
            for name in seat.manifest.channels
            if desk.owner("channel", name) in (None, seat) and desk.may(seat.name, "channel", name)
        ]

    def _short(self, id: str, here: list[str]) -> tuple[str, ...]:
        """The name without its scope, unless another app of that name was first."""
        name = id.rpartition("/")[2]
        installed = self._config.get("openclawos.apps")
        first = next(
            one
            for one in (*(installed if isinstance(installed, dict) else ()), *here, id)
            if one.rpartition("/")[2] == name
        )
        return (name,) if first == id else ()

    def place(self, parts: list[str]) -> tuple[str, ...] | None:
        """The place of a path in the app's own tables; None when it is not in there."""
        match parts:
            case ["channels", name, *rest] if name in self._channels:
                return ("channels", name, *rest)
            case ["apps", name, *rest] if name in self._names:
                return ("", *rest)
            case ["openclawos", "apps", name, "config", *rest] if name == self._names[0]:
                return ("", *rest)
            case [name, *rest] if name in self._names and self._config.get(name) is None:
                return ("", *rest)
        return None

    def value(self, place: tuple[str, ...]) -> Any:
        """What is at such a place, as it is; the first part is empty for the app's own table."""
        first, *rest = place
        value: Any = self._table() if not first else self._config.clear((first, rest.pop(0)))
        return found_at(value, rest)

    def _table(self) -> dict[str, Any] | None:
        """All tables of the app as one; those in its own entry count most."""
        entry = self._config.clear(("openclawos", "apps", self._names[0], "config"))
        tables = [self._config.clear(("apps", name)) for name in reversed(self._names)]
        found = [table for table in (*tables, entry) if table]
        return {key: value for table in found for key, value in table.items()} if found else None

    def laid_over(self, tree: Any, below: str = "") -> Any:
        """The configuration as all see it, with the app's own tables as they are."""
        if not isinstance(tree, dict):
            return tree
        whole = {below: tree} if below else tree
        for name in self._channels:
            if isinstance(whole.get("channels"), dict) and name in whole["channels"]:
                whole["channels"][name] = self._config.clear(("channels", name))
        if isinstance(whole.get("apps"), dict):
            for name in self._names:
                if name in whole["apps"]:
                    whole["apps"][name] = self._config.clear(("apps", name))
        return whole[below] if below else whole

    def told(self, path: str, old: Any, new: Any) -> tuple[str, Any, Any] | None:
        """A change as this app may see it; None when it must not."""
        parts = path.split(".")
        if self.place(parts) is not None:
            return path, old, new
        name = parts[-1]
        hidden_old, hidden_new = redact(old, name), redact(new, name)
        if any(is_secret(part) for part in parts) or hidden_old == hidden_new:
            return None
        return path, hidden_old, hidden_new


class ConfigWatch:
    """One `config.watch`: changes below its paths go out as stream chunks."""

    def __init__(self, conn: "OpenclawosHearer", request_id: bytes, paths: list[str]) -> None:
        self._conn = conn
        self._request_id = request_id
        self._paths = [parts for path in paths if (parts := _parts(path))]
        config = conn.door.config
        self._stop: Callable[[], None] = lambda: None
        if config is not None:
            self._stop = config.watch(self._changed, clear=True)

    def _changed(self, path: str, old: object, new: object) -> None:
        if self._conn.seat is not None:
            seen = AppSettings(self._conn).told(path, old, new)
            if seen is not None:
                self._told(*seen)

    def _told(self, path: str, old: object, new: object) -> None:
        changed = path.split(".")
        if not self._paths:
            self._say(path, old, new)
            return
        for watched in self._paths:
            if changed[: len(watched)] == watched:
                self._say(path, old, new)
                return
            if watched[: len(changed)] == changed:  # a whole branch came or went
                rest = watched[len(changed) :]
                before, after = found_at(old, rest), found_at(new, rest)
                if before != after:
                    self._say(".".join(watched), before, after)

    def _say(self, path: str, old: object, new: object) -> None:
        self._send({"path": path, "oldValue": old, "newValue": new}, False)

    def _send(self, chunk: object, done: bool) -> None:
        conn = self._conn
        now = conn.desk.now()
        conn.link.send(conn.desk.voice.chunk(now, self._request_id, chunk, done))

    def finish(self) -> None:
        """The kernel stops: the last chunk."""
        self.close()
        self._send(None, True)

    def close(self) -> None:
        self._stop()


def watch(conn: "OpenclawosHearer", request_id: bytes, paths: list[str]) -> dict[str, Any]:
    if len(conn.watches) >= _MOST_WATCHES:
        text = f"This connection has {_MOST_WATCHES} watches already"
        raise Wrong("CONFLICT", text)
    conn.watches += (ConfigWatch(conn, request_id, paths),)
    return {"ok": True, "paths": paths}


def _parts(path: str) -> list[str]:
    path = path.removeprefix("$").replace("[", ".").replace("]", "")
    return [part for part in path.split(".") if part]
