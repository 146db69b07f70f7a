"""What is served at which path: one module per resource, one table of all."""

from .table import Route


def all_routes() -> list[Route]:
    """Every route, those with fixed paths before those with open ones."""
    from . import (
        access,
        agents,
        approvals,
        apps,
        config,
        health,
        hooks,
        humanlayer,
        live,
        prompts,
        sessions,
    )  # fmt: skip

    modules = (
        health, access, sessions, prompts, approvals, agents, config, live, hooks, humanlayer, apps,
    )  # fmt: skip
    return [route for module in modules for route in module.ROUTES]
