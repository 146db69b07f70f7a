"""How a fault reads in the one field that zot has for it: `error`, a text."""

from dragoman.engine.faults import Fault

BUSY = "agent is busy: wait for done, or send abort first"
AUTH_REQUIRED = "auth required: send hello with token first"
INVALID_TOKEN = "invalid token"
CANCELLED = "context canceled"
REFUSED = "the model refused to answer"


def told(fault: Fault) -> str:
    """The text of a failed response."""
    if fault.code == "busy":
        return f"agent is busy: {fault}"
    return str(fault)


def explained(command: str, problem: BaseException) -> str:
    """What a client is told of whatever went wrong."""
    from dragoman.wire.verbs import BadParams, Cancelled, Crowded, UnknownMethod

    if isinstance(problem, Fault):
        return told(problem)
    if isinstance(problem, UnknownMethod):
        return "unknown command"
    if isinstance(problem, BadParams):
        return f"invalid {command}: {problem}"
    if isinstance(problem, Crowded):
        return "agent is busy: too many commands wait"
    if isinstance(problem, Cancelled):
        return "the host stopped"
    return f"internal error: {type(problem).__name__}: {problem}"
