"""The seam for a sandbox: it may change how a child process is started, nothing else."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from dragoman.engine.ports import ToolEnv

from .bounds import Bounds


@dataclass(slots=True, frozen=True)
class Launch:
    """How a child process is going to be started.

    A sandbox gives back a copy (`dataclasses.replace`): with other `argv` (bubblewrap and so on),
    with a `preexec` that runs in the child between fork and exec (Landlock: the rule set is made
    beforehand, its descriptor is in `keep`), or both. `done` runs in the parent once the child has
    started or failed to: the place to close what was opened for it.
    """

    argv: tuple[str, ...]
    cwd: str
    env: Mapping[str, str]
    preexec: Callable[[], None] | None = None
    keep: tuple[int, ...] = ()  # descriptors that the child inherits
    done: Callable[[], None] | None = field(default=None)


class Confine(Protocol):
    """A sandbox for the commands of one agent."""

    name: str  # as `doctor` shows it

    def confine(self, launch: Launch, env: ToolEnv, bounds: Bounds) -> Launch:
        """The launch with the walls around it. Raises Refused when they cannot be put up."""
        ...


class Unconfined:
    """No sandbox: commands can do what the user can."""

    name = "none"

    def confine(self, launch: Launch, env: ToolEnv, bounds: Bounds) -> Launch:
        return launch
