"""Which store the settings name, opened."""

import os
from glob import escape, glob
from typing import TYPE_CHECKING

from dragoman.engine.faults import BadInput
from dragoman.engine.ports import Store
from dragoman.observe.log import get_log
from dragoman.settings.host import Fleet
from dragoman.settings.load import Loaded, load, load_or_defaults
from dragoman.settings.model import Settings
from dragoman.settings.places import Places, absolute
from dragoman.standing import led_to

if TYPE_CHECKING:
    from dragoman.store.postgres.changes import Node

MEMORY = ":memory:"
USUAL = "sessions.db"

log = get_log("store")


def database_of(settings: Settings) -> str:
    """The address of the database that sessions live in; empty: a file."""
    return settings.fleet.database or settings.store.database


def file_of(settings: Settings, where: Places) -> str:
    """The file that sessions live in, from the root on, wherever we were started; or `:memory:`.

    Of a link it is what that leads to: the log, the marks and damaged copies lie beside it.
    """
    given = settings.store.path
    if given == MEMORY:
        return given
    if given == "~" or given.startswith("~/"):
        return led_to(absolute(given, os.environ))
    return led_to(os.path.abspath(os.path.join(where.data_dir, given or USUAL)))


def files_of(settings: Settings, where: Places) -> tuple[str, ...]:
    """The file, all that lies beside it and damaged copies that were moved aside; none: no file."""
    path = file_of(settings, where)
    if path == MEMORY or database_of(settings):
        return ()
    return (
        *(path + end for end in ("", "-wal", "-shm", ".lock")),
        *glob(f"{escape(path)}.corrupt-*"),
    )


def kept_at(where: Places) -> Loaded:
    """The settings, or where they cannot be read, the defaults: enough to find the store.

    Raises BadSettings where the sessions may be elsewhere, or there are none.
    """
    found = load_or_defaults(where.config_file, "store", "fleet")
    if not found.path and not os.path.exists(file_of(found.settings, where)):
        load(where.config_file)  # an empty answer would be a lie
    return found


def named(given: Fleet) -> "Node":
    """What of its fleet this machine is. Raises BadInput."""
    import socket

    from dragoman.fleet.desk import GUEST
    from dragoman.store.postgres.changes import Node

    name = given.node or socket.gethostname()
    if GUEST in name or not name.strip():
        raise BadInput(f"fleet.node cannot be {name!r}.", f"Choose a name without {GUEST}.")
    roots = tuple(os.path.realpath(root) for root in given.shared_roots)
    return Node(name, tuple(given.labels), roots)


def _told(place: str, why: str) -> None:
    if why:
        log.error("stalled", database=place, problem=why)
    else:
        log.info("the database is back", database=place)


async def open_store(
    settings: Settings, where: Places, notices: list[str], *, repair: bool = True
) -> Store:
    """The store of the settings, and what the user should be told about it.

    A database that cannot be reached is a StoreFailed: sessions that belong there are never begun
    elsewhere.
    """
    if address := database_of(settings):
        from dragoman.store.postgres import PostgresStore

        made = await PostgresStore.open(address)
        made.writer.on_stall = lambda why: _told(made.place, why)
        return made
    if settings.store.path == MEMORY:
        from dragoman.store.memory import MemoryStore

        return MemoryStore()
    from dragoman.store.sqlite import open_store as open_file

    synchronous = settings.store.synchronous.upper()
    store, told = open_file(file_of(settings, where), synchronous=synchronous, repair=repair)
    notices.extend(told)
    return store
