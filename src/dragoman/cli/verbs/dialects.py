"""`dragoman dialects`: the protocols that are spoken, where, and what brings them."""

import os

import dragoman
from dragoman import TYPE_CHECKING
from dragoman.client.address import socket_path
from dragoman.dialects.descriptor import REGISTRY
from dragoman.settings import places

from .. import say
from ..parse import Args

if TYPE_CHECKING:
    from typing import Any

    from dragoman.dialects.descriptor import Dialect


_CHECKOUT = os.path.dirname(os.path.dirname(os.path.dirname(dragoman.__file__)))


def run(args: Args) -> int:
    """Print what is spoken; no daemon needs to run."""
    rows = [_row(one, args.config_dir) for one in REGISTRY.all()]
    if args.json:
        say.plain_json({"dialects": rows, "problems": REGISTRY.problems})
    else:
        _show(rows)
    for problem in REGISTRY.problems:
        say.warn(problem)
    return 1 if REGISTRY.problems else 0


def _row(one: "Dialect", config_dir: str | None) -> "dict[str, Any]":
    transports = ["any", "stdio"]
    sockets = []
    if one.socket:
        transports.insert(0, "pipe" if os.name == "nt" else "unix")
        sockets.append(socket_path(config_dir, dialect=one.name))
    if one.websocket is not None:
        transports.append("websocket")
    return {
        "name": one.name,
        "title": one.title,
        "transports": transports,
        "sockets": sockets,
        "native": ", ".join(path for name, path in places.native(os.environ) if name == one.name),
        "websocket": one.websocket[0] if one.websocket is not None else "",
        "stdio": one.stdio,
        "package": one.package,
        "doc": one.doc if _is_there(one.doc) else "",
    }


def _is_there(doc: str) -> bool:
    """Whether a page can be read: a package is installed without the folder that ours lie in."""
    return "://" in doc or os.path.exists(os.path.join(_CHECKOUT, doc))


def _show(rows: "list[dict[str, Any]]") -> None:
    for row in rows:
        name = say.style(row["name"], "bold")
        room = say.columns() - len(row["name"]) - 2
        title = say.cut(row["title"], room) if say.columns() else row["title"]
        say.out(f"{name}  {title}")
        found = [
            ("socket", ", ".join(row["sockets"]) or "any.sock only"),
            ("websocket", row["websocket"]),
            ("stdio", row["stdio"]),
            ("package", row["package"]),
            ("more", row["doc"]),
        ]
        for label, value in found:
            if value:
                say.out(f"  {label:<11} {value}")
