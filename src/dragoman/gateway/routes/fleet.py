"""The nodes of a fleet, where this host is one of them."""

import msgspec

from dragoman.engine.ports.rows import NodeRow

from .table import Plain, Route


class NodeView(msgspec.Struct, frozen=True):
    """`silent`: seconds since it was last heard of; `lag`: events it has still to read."""

    name: str
    alive: bool
    draining: bool
    degraded: bool
    sessions: int
    running: int
    live: int
    lag: float
    silent: float
    version: str
    labels: list[str]


class FleetView(msgspec.Struct, frozen=True):
    """`joined` is false where this host works alone."""

    joined: bool
    nodes: list[NodeView]


def _node(row: NodeRow) -> NodeView:
    facts = row.facts if row.alive else {}
    return NodeView(
        row.name, row.alive, row.draining, bool(facts.get("degraded")), row.sessions,
        int(facts.get("running") or 0), int(facts.get("live") or 0), float(facts.get("lag") or 0),
        row.silent, row.version, list(row.labels),
    )  # fmt: skip


async def fleet(call: Plain) -> FleetView:
    look = call.door.facts.fleet
    if look is None:
        return FleetView(False, [])
    return FleetView(True, [_node(row) for row in await look()])


ROUTES = [
    Route("GET", "/api/fleet", fleet, "Nodes that share the database", "host", returns=FleetView,
          may_fail=(503,)),
]  # fmt: skip
