"""`file/attach` and `fs/list_dir`."""

import asyncio
import os
import stat
from typing import TYPE_CHECKING, Any

from ..attachments import take
from ..faults import FS_BAD_PATH, FS_DENIED, FS_NOT_FOUND, Refusal
from ..shapes import Attach, ListDir
from ..spelling import verb
from .sessions import usable

if TYPE_CHECKING:
    from ..hear import ZeroclawHearer

_MOST = 10_000


async def attach(conn: "ZeroclawHearer", params: Attach) -> Any:
    session = await usable(conn, params.session_id)
    names = ("ref_id", "marker", "workspace_path", "size_bytes", "deduplicated")
    kept = await take(conn, session.cwd, params.files)
    return {"files": [{name: getattr(one, name) for name in names} for one in kept]}


async def list_dir(conn: "ZeroclawHearer", params: ListDir) -> dict[str, Any]:
    path = _path(params.path)
    entries = await asyncio.to_thread(_entries, path, bool(params.show_hidden))
    return {"cwd": path, "entries": entries}


def _path(given: str) -> str:
    path = os.path.expanduser(given)
    if "\0" in path or ".." in path.split(os.sep) or not os.path.isabs(path):
        raise Refusal(FS_BAD_PATH, f"Not a usable path: {given!r}; it must be absolute")
    return path


def _entries(path: str, hidden: bool) -> list[dict[str, Any]]:
    found = []
    try:
        with os.scandir(path) as listing:
            for entry in listing:
                if hidden or not entry.name.startswith("."):
                    found.append(_entry(entry))
                if len(found) >= _MOST:
                    break
    except PermissionError:
        raise Refusal(FS_DENIED, f"Permission denied: {path}") from None
    except OSError as trouble:
        raise Refusal(FS_NOT_FOUND, f"Cannot list {path}: {trouble.strerror}") from None
    return sorted(found, key=lambda row: (not row["is_dir"], row["name"].lower()))


def _entry(entry: os.DirEntry[str]) -> dict[str, Any]:
    row: dict[str, Any] = {
        "name": entry.name,
        "full_path": entry.path,
        "is_dir": False,
        "is_hidden": entry.name.startswith("."),
        "size": 0,
        "mtime": None,
    }
    try:
        known = entry.stat()
    except OSError:  # a link that leads nowhere
        return row
    row["is_dir"] = stat.S_ISDIR(known.st_mode)
    row["size"] = known.st_size
    row["mtime"] = max(int(known.st_mtime), 0)
    return row


VERBS = {
    "file/attach": verb(attach, Attach, nested=("files",)),
    "fs/list_dir": verb(list_dir, ListDir),
}
