"""Which sandbox holds on this machine."""

import shutil
from typing import Any

from dragoman.engine.faults import BadInput

from .launch import Confine, Unconfined

BACKENDS = ("auto", "landlock", "bubblewrap", "none")


def choose(backend: str = "auto", *, network: bool = True, processes: int = 0) -> Confine:
    """The sandbox of this name; `auto` takes the best there is.

    Raises BadInput when a backend was asked for by name and is not to be had: no silent fall-back.
    """
    from .landlock import Landlock, abi
    from .limits import PROCESSES, Limits

    limits = Limits(processes or PROCESSES)
    if backend == "none":
        return Unconfined()
    if backend in ("auto", "landlock") and abi() > 0:
        return Landlock(network=network, limits=limits)
    if backend in ("auto", "bubblewrap") and shutil.which("bwrap"):
        from .bubblewrap import Bubblewrap

        return Bubblewrap(network=network, limits=limits)
    if backend == "auto":
        return Unconfined()
    why = {
        "landlock": "This kernel has no Landlock (Linux 5.13 or newer has it).",
        "bubblewrap": "The program bwrap is not installed.",
    }
    raise BadInput(
        f'[sandbox] backend = "{backend}" is not available here. '
        + why.get(backend, f"It is none of: {', '.join(BACKENDS)}."),
        'Use "auto" to take the best there is, or "none".',
    )


def describe(confine: Any) -> str:
    """One sentence for `doctor` and the dashboard."""
    said = getattr(confine, "describe", None)
    return str(said()) if said else "none: commands can do what your user can"
