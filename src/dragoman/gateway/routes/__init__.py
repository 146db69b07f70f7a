"""What is served at which path: one module per resource, one table of all."""

from importlib import import_module

from . import dialect, streamable
from .table import AnyRoute

_MODULES = (
    "health", "access", "sessions", "prompts", "approvals", "agents", "config", "live", "hooks",
    "rendering", "apps", "schedules", "finding", "story", "fleet", "links", "push",
)  # fmt: skip


def all_routes() -> list[AnyRoute]:
    """Every route, those with fixed paths before those with open ones."""
    modules = [import_module(f".{name}", __package__) for name in _MODULES]
    ours = [route for module in modules for route in module.ROUTES]
    return [*ours, *streamable.routes(), *dialect.routes()]
