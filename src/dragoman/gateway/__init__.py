"""HTTP and WebSocket: ACP and zeroclaw for remote clients, REST, webhooks, the dashboard."""

from typing import Any


async def open_gateway(composed: Any, desks: Any, guests: Any) -> Any:
    """Listen as `[gateway]` says; the result has `address` and `close()`. Raises Fault."""
    from .gate import Gate

    gate = Gate(composed, desks, guests)
    await gate.open()
    return gate
