"""Our own client: `connect` for programs, `plain.Plain` for commands that ask and leave.

    async with connect() as host:
        session = await host.open(cwd=".")
        async for event in host.prompt(session.id, "list the files here"):
            print(event.body)

The names below are imported when they are first used, so that thin commands stay thin.
"""

from dragoman import TYPE_CHECKING

if TYPE_CHECKING:
    from .address import socket_path as socket_path
    from .host import Facts as Facts
    from .host import HostClient as HostClient
    from .host import connect as connect
    from .plain import Plain as Plain
    from .problems import ConnectionGone as ConnectionGone
    from .problems import NotRunning as NotRunning
    from .problems import fault_of as fault_of

_WHERE = {
    "ConnectionGone": "problems",
    "Facts": "host",
    "HostClient": "host",
    "NotRunning": "problems",
    "Plain": "plain",
    "connect": "host",
    "fault_of": "problems",
    "socket_path": "address",
}
__all__ = sorted(_WHERE)


def __getattr__(name: str) -> object:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
