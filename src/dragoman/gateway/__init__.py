"""HTTP and WebSocket: dialects for remote clients, REST, webhooks, the dashboard."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .gate import Gate
    from .ports import Composed, Desks, Guests


async def open_gateway(composed: "Composed", desks: "Desks", guests: "Guests") -> "Gate":
    """Listen as `[gateway]` says; the result has `address` and `close()`. Raises Fault."""
    from .gate import Gate

    gate = Gate(composed, desks, guests)
    try:
        await gate.open()
    except BaseException:  # it may listen already, and have left word where
        await gate.close()
        raise
    return gate
