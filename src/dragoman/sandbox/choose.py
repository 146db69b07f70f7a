"""Which sandbox holds on this machine."""

from collections.abc import Sequence
from typing import Any

from dragoman.engine.faults import BadInput
from dragoman.observe.programs import find

from .launch import Confine, Unconfined

_SIGNALS = 6  # the ABI of Landlock from which on it scopes signals
BACKENDS = ("auto", "landlock", "bubblewrap", "none")


def choose(
    backend: str = "auto",
    *,
    network: bool = True,
    unix: bool = False,
    processes: int = 0,
    domains: Sequence[str] = (),
) -> Confine:
    """The sandbox of this name; `auto` takes the best there is.

    Landlock that does not know about signals yet (before ABI 6) comes after bubblewrap.
    Raises BadInput when a backend was asked for by name and is not to be had: no silent fall-back.
    """
    from .landlock import Landlock, abi
    from .limits import PROCESSES, Limits

    limits = Limits(processes or PROCESSES)
    if domains and backend == "none":
        raise BadInput(
            "domains: nothing can hold commands to them without a sandbox.",
            'Use [sandbox] backend = "auto", or list no domains.',
        )
    if backend == "none":
        return Unconfined()
    version = abi() if backend in ("auto", "landlock") else 0
    wrapped = backend == "bubblewrap" or (backend == "auto" and version < _SIGNALS)
    if wrapped and find("bwrap"):
        from .bubblewrap import Bubblewrap

        return Bubblewrap(network=network, unix=unix, limits=limits, domains=domains)
    if version > 0:
        return Landlock(network=network, unix=unix, limits=limits, domains=domains)
    if backend == "auto" and domains:
        raise BadInput(
            "domains: this system has no sandbox that could hold commands to them.",
            "Install bubblewrap, or list no domains.",
        )
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
