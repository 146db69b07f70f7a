"""/livez, /readyz, /metrics, /openapi.json, /api/status."""

from typing import Any

import msgspec

from dragoman.engine.faults import Fault

from ..http import Response, problem, reply, text
from .table import Plain, Route


class Status(msgspec.Struct, frozen=True):
    """The running host."""

    version: str
    started_at: int
    sessions: int
    clients: int
    approvals: int | None  # not known while the store is stalled
    durable: bool
    cost: float
    default_agent: str | None = None
    cwd: str = ""
    notices: tuple[str, ...] = ()
    modes: tuple[str, ...] = ()
    options: tuple[str, ...] = ()  # what a new session may be given
    fleet: bool = False
    stalled: str = ""  # why the store takes nothing now


async def livez(call: Plain) -> Response:
    return text("ok\n")


async def readyz(call: Plain) -> Response:
    """Ready means: not going down, and the store answers."""
    if call.door.stopping:
        return problem(503, "stopping", "The host is going down.")
    try:
        await call.door.newest()
    except Fault as fault:
        return problem(503, fault.code, fault.message, fault.hint)
    return text("ok\n")


async def metrics(call: Plain) -> Response:
    from ..metrics import render

    page = await render(call.gate)
    return text(page, content_type="text/plain; version=0.0.4; charset=utf-8")


async def openapi(call: Plain) -> Response:
    from ..openapi import document

    return reply(document(call.gate))


async def status(call: Plain) -> Status:
    from dragoman.engine.door import MODES

    from .sessions import NewSession

    facts = call.door.facts
    stalled = call.door.health.stalled
    return Status(
        version=facts.version,
        started_at=facts.started_at or 0,
        sessions=len(call.door.live_ids()),
        clients=len(call.door.visitors.clients),
        approvals=None if stalled else len(await call.door.asks()),
        durable=call.door.durable,
        cost=call.gate.meter.cost,
        default_agent=call.door.default_agent(),
        cwd=call.gate.cwd,
        notices=tuple(facts.notices()),
        modes=tuple(MODES),
        options=NewSession.__struct_fields__,
        fleet=facts.fleet is not None,
        stalled=stalled,
    )


ROUTES = [
    Route("GET", "/livez", livez, "The process answers", "health", media="text/plain", open=True),
    Route("GET", "/readyz", readyz, "The host can work", "health", media="text/plain", open=True,
          may_fail=(503,)),
    Route("GET", "/metrics", metrics, "Figures for Prometheus", "health", media="text/plain",
          local=True),
    Route("GET", "/openapi.json", openapi, "This document", "health", returns=dict[str, Any],
          open=True),
    Route("GET", "/api/status", status, "The running host", "host", returns=Status),
]  # fmt: skip
