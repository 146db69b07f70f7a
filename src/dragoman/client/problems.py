"""What can go wrong between a client and the host, as the host's own faults."""

from dragoman import TYPE_CHECKING
from dragoman.engine import faults
from dragoman.engine.faults import Fault

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any


class NotRunning(Fault):
    """No daemon answers at the address."""

    code = "not_running"


class ConnectionGone(Fault):
    """The daemon ended the connection, or does not answer."""

    code = "connection_gone"


def not_running(path: str, why: str = "") -> NotRunning:
    """The fault for an address that nobody answers at, with the way out."""
    detail = f" ({why})" if why else ""
    return NotRunning(
        f"The daemon is not running: nobody listens at {path}{detail}.",
        "Start it with: dragoman daemon --background",
    )


def no_text(problem: UnicodeEncodeError) -> Fault:
    """The fault for words of the command line that are no text."""
    before = problem.object[: problem.start].rpartition('"')[2][-20:]
    after = problem.object[problem.start :].partition('"')[0][:20]
    shown = f"{before}{after}".encode("ascii", "backslashreplace").decode()
    return faults.BadInput(f"This is no UTF-8 text: {shown}.", "Write it in UTF-8.")


def beginning(known: "Iterable[str]", given: str) -> list[str]:
    """Those that begin as it was given; an empty word, as of a script's variable, begins none."""
    return [one for one in known if given and one.startswith(given)]


def the_only(found: "Sequence[str]", given: str) -> str:
    """The one session that begins as it was given. Raises UnknownSession, BadInput for several."""
    if not found:
        raise faults.UnknownSession(given)
    if len(found) > 1:
        names = ", ".join(found[:4])
        said = f"{len(found)} sessions begin with {given}: {names}."
        raise faults.BadInput(said, "Write more of it.")
    return found[0]


def fault_of(error: "dict[str, Any]") -> Fault:
    """The fault that an error of the wire tells of."""
    data = error.get("data")
    told = data if isinstance(data, dict) else {}
    message = str(told.get("message") or error.get("message") or "The host refused.")
    hint = str(told.get("hint") or "")
    kind = _classes().get(str(told.get("code", "")), Fault)
    made = Fault.__new__(kind)  # single classes take other arguments
    Fault.__init__(made, message, hint, code=error.get("code"))
    return made


def _classes() -> "dict[str, type[Fault]]":
    found: dict[str, type[Fault]] = {}
    for value in vars(faults).values():
        if isinstance(value, type) and issubclass(value, Fault):
            found[value.code] = value
    return found
