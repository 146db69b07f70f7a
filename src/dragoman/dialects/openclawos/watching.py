"""Configuration for apps: by path, and as it changes. Secrets stay hidden."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dragoman.observe.redact import HIDDEN

from .faults import Wrong

if TYPE_CHECKING:
    from .hear import OpenclawosHearer

_MOST_WATCHES = 64


def get(conn: "OpenclawosHearer", path: str) -> Any:
    """The value at a dotted path; None when there is nothing. Raises Wrong for a secret."""
    config = conn.door.config
    if config is None:
        return None
    value = config.get(path)
    if value == HIDDEN:
        raise Wrong("FORBIDDEN", f"{path} is a secret and is not given out")
    return value


class ConfigWatch:
    """One `config.watch`: changes below its paths go out as stream chunks."""

    def __init__(self, conn: "OpenclawosHearer", request_id: bytes, paths: list[str]) -> None:
        self._conn = conn
        self._request_id = request_id
        self._paths = [parts for path in paths if (parts := _parts(path))]
        config = conn.door.config
        self._stop: Callable[[], None] = config.watch(self._told) if config else lambda: None

    def _told(self, path: str, old: Any, new: Any) -> None:
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
                before, after = _dig(old, rest), _dig(new, rest)
                if before != after:
                    self._say(".".join(watched), before, after)

    def _say(self, path: str, old: Any, new: Any) -> None:
        self._send({"path": path, "oldValue": old, "newValue": new}, False)

    def _send(self, chunk: Any, done: bool) -> None:
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
    conn.watches.append(ConfigWatch(conn, request_id, paths))
    return {"ok": True, "paths": paths}


def _parts(path: str) -> list[str]:
    path = path.removeprefix("$").replace("[", ".").replace("]", "")
    return [part for part in path.split(".") if part]


def _dig(value: Any, parts: list[str]) -> Any:
    for part in parts:
        value = value.get(part) if isinstance(value, dict) else None
    return value
