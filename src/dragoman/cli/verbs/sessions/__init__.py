"""`dragoman sessions …`: list, read, drive and export sessions."""

from importlib import import_module

from ...parse import Args

_MODULES = {
    "list": "rows",
    "show": "rows",
    "tail": "following",
    "send": "following",
    "export": "rows",
}


def run(args: Args) -> int:
    """Run one sub-command."""
    module = import_module(f"{__name__}.{_MODULES.get(args.sub, 'changing')}")
    return int(getattr(module, args.sub)(args))
