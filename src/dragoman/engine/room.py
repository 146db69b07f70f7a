"""Which live sessions may leave memory, and making room by letting the longest idle ones go."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .host import Host
    from .session import Session


def spare(session: "Session") -> bool:
    """Nothing runs in it, nobody watches it, no question of it is open."""
    return not (session.busy or session.closing or session.watches or session.state.asks)


async def relieve(host: "Host", origin: str = "") -> bool:
    """Let the longest idle spare session go (of one dialect, when named); False: there is none.

    Only a durable store keeps what is let go, so elsewhere nothing is.
    """
    if not host.store.durable:
        return False
    found = [
        session
        for session in host.live.values()
        if spare(session)
        and not host.is_loading(session.id)  # its first events are on their way to the store
        and (not origin or session.state.origin == origin)
    ]
    if not found:
        return False
    await host.close(min(found, key=lambda session: session.last_used).id, "idle")
    return True
