"""Every method of the protocol, by name."""

from dragoman.dialects.dragoman.calls import heard
from dragoman.wire.verbs import Verb

from ..spelling import verb
from . import core
from .agents import VERBS as AGENTS
from .config import VERBS as CONFIG
from .cron import VERBS as CRON
from .files import VERBS as FILES
from .logs import VERBS as LOGS
from .memory import VERBS as MEMORY
from .quickstart import VERBS as QUICKSTART
from .sessions import VERBS as SESSIONS
from .turns import VERBS as TURNS
from .writings import VERBS as WRITINGS

VERBS: dict[str, Verb] = {
    **core.VERBS,
    **SESSIONS,
    **TURNS,
    **FILES,
    **CONFIG,
    **AGENTS,
    **MEMORY,
    **LOGS,
    **CRON,
    **WRITINGS,
    **QUICKSTART,
    **{
        name: verb(one.run, one.params, direct=one.direct, native=True, alone=one.changes)
        for name, one in heard().items()
    },  # our own protocol has no socket of its own
}

core.METHODS = tuple(name for name in VERBS if not name.startswith("dragoman/"))
