"""Why something could not be done: one class per reason, each with a code, a text and a way out.

Dialects map `code` to their own numbers by a table; nobody parses the text.
"""

import os

from dragoman import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class Fault(Exception):
    """Base of every failure that a client may cause or see."""

    code = "internal"

    def __init__(self, message: str, hint: str = "", **data: object) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.data = data

    def __str__(self) -> str:
        # Some messages end with a name, without a full stop: the hint begins anew.
        # Those that end with a line of something shown go on below it.
        if self.message.endswith("\n"):
            return f"{self.message}{self.hint}".strip()
        stop = "." if self.hint and self.message[-1:] not in ("", *".!?:…") else ""
        return f"{self.message}{stop} {self.hint}".strip()


class BadInput(Fault):
    """A parameter is missing, malformed or not allowed."""

    code = "bad_input"


class UnknownSession(Fault):
    code = "unknown_session"

    def __init__(self, session_id: str) -> None:
        super().__init__(f"Session not found: {session_id}", session=session_id)


class UnknownAgent(Fault):
    code = "unknown_agent"


def no_agent(names: "Iterable[str]") -> BadInput:
    """Several agents, none of which was named or is the one to take then."""
    return BadInput(
        "Several agents are configured and none was named.",
        f"Name one of: {', '.join(names)}; or configure one that is called default.",
    )


class UnknownModel(Fault):
    code = "unknown_model"


class UnknownAsk(Fault):
    code = "unknown_approval"

    @classmethod
    def named(cls, ask_id: str) -> "UnknownAsk":
        return cls(f"Approval not found: {ask_id}", ask=ask_id)


class UnknownRule(Fault):
    code = "unknown_rule"


class Changed(Fault):
    """What was shown, or is meant, is not what is there now. `data` has what is there."""

    code = "changed"


class AlreadySettled(Fault):
    """The approval was answered before. `data` has `by` and `verdict`."""

    code = "already_settled"


class Busy(Fault):
    """A turn runs and the caller did not want to wait, or waited too long, or the queue is full."""

    code = "busy"


def stopping() -> Busy:
    """Nothing new is accepted once stopping has begun."""
    return Busy("The host is shutting down.", "Connect again when it is back.")


class GoesOn(Fault):
    """The host stops; what was asked for goes on when it is back and is not to be sent again."""

    code = "goes_on"


class NothingRunning(Fault):
    code = "nothing_running"


class TooMany(Fault):
    """A limit on a number of things (sessions, approvals) is reached."""

    code = "limit"


class WrongState(Fault):
    """The session's status does not permit this. `data` has `status`."""

    code = "wrong_state"


class InUse(Fault):
    """Another live process owns the session. `data` has `owner`."""

    code = "in_use"


class StaleEpoch(Fault):
    """Somebody else took the session over; this process may not append to it any more."""

    code = "stale_epoch"


def taken_over(session: str) -> StaleEpoch:
    return StaleEpoch(
        f"Session {session} was taken over by another writer.",
        "Open the session again to go on with it.",
        session=session,
    )


class StoreFailed(Fault):
    """The store could not write or read (disk full, permissions, corruption)."""

    code = "store_failed"


class Refused(Fault):
    """Policy, a hook or a human said no."""

    code = "refused"


class ProviderFailed(Fault):
    """The model could not answer. `kind` says whether waiting may help.

    kind: auth | rate_limit | overloaded | server | network | bad_request | context_full | refused
    """

    code = "provider_failed"

    def __init__(
        self,
        message: str,
        kind: str = "server",
        *,
        status: int | None = None,
        retry_after: float | None = None,
        hint: str = "",
    ) -> None:
        super().__init__(message, hint, status=status, kind=kind)
        self.kind = kind
        self.status = status
        self.retry_after = retry_after

    @property
    def may_retry(self) -> bool:
        return self.kind in ("rate_limit", "overloaded", "server", "network")


MORE_FILES = "Let it open more files: ulimit -n 8192"  # where the system's limit was reached
_ASYNCIO = ("Connect call failed", "error while attempting to bind")


def in_words(problem: BaseException) -> str:
    """What an error of the system says, without its number, and which file it is about."""
    import re

    said = " ".join(str(problem).split())
    if isinstance(problem, OSError):
        said = problem.strerror or said
        if said.startswith(_ASYNCIO) and problem.errno:  # the address, which we name ourselves
            said = os.strerror(problem.errno)
        if isinstance(problem.filename, str):
            said += f": {problem.filename}"
    return re.sub(r"\[Errno -?\d+\] ?", "", said) or type(problem).__name__


def sort_of(problem: BaseException) -> str:
    """One word for what went wrong, of not too many: figures tell failures apart by it."""
    if isinstance(problem, ProviderFailed):
        return problem.kind
    return problem.code if isinstance(problem, Fault) else type(problem).__name__
