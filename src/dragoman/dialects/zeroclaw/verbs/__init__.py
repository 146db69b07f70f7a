"""Every method of the protocol, by name."""

from dragoman.wire.verbs import Verb

from . import core
from .agents import VERBS as AGENTS
from .config import VERBS as CONFIG
from .files import VERBS as FILES
from .logs import VERBS as LOGS
from .memory import VERBS as MEMORY
from .native.calls import VERBS as NATIVE
from .sessions import VERBS as SESSIONS
from .turns import VERBS as TURNS

VERBS: dict[str, Verb] = {
    **core.VERBS,
    **SESSIONS,
    **TURNS,
    **FILES,
    **CONFIG,
    **AGENTS,
    **MEMORY,
    **LOGS,
    **NATIVE,
}

core.METHODS = tuple(name for name in VERBS if not name.startswith("dragoman/"))
