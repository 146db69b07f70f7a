"""`dragoman sessions …`: list, read, drive and export sessions."""

from importlib import import_module

from dragoman import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

_MODULES = {
    "list": "rows",
    "show": "rows",
    "tail": "following",
    "send": "following",
    "export": "writing",
    "undo": "undoing",
    "redo": "undoing",
    "worktree": "undoing",
}


def run(args: "Any") -> int:
    """Run one sub-command."""
    module = import_module(f"{__name__}.{_MODULES.get(args.sub, 'changing')}")
    return int(getattr(module, args.sub)(args))
