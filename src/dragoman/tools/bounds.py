"""The walls that tools work within; `policy.paths.Boundary` is the real one."""

import os
from collections.abc import Callable
from typing import Protocol

from dragoman.engine.faults import BadInput
from dragoman.engine.ports import ToolEnv
from dragoman.sandbox.launch import Walls


class Bounds(Walls, Protocol):
    """Which paths may be touched, and how they are opened without being tricked."""

    @property
    def guards(self) -> bool:
        """What makes other programs run something is not written without a question."""
        ...

    def for_command(self, command: str) -> "Bounds":
        """The same for one command."""
        ...

    def resolve(self, path: str, write: bool = False) -> str:
        """The canonical form of a path that may be used. Raises Refused, BadInput."""
        ...

    def permits(self, real: str, write: bool = False) -> bool: ...

    def open_inside(self, path: str, flags: int = os.O_RDONLY) -> int:
        """Open what `resolve` gave. Raises Refused when a link took its place; OSError."""
        ...

    def open_parent(self, path: str, create: int | None = 0o755) -> tuple[int, str]:
        """The directory of what `resolve` gave, as a `dir_fd`, and the last name."""
        ...

    def withheld(self, top: str) -> tuple[list[str], list[tuple[int, int]]]:
        """What a search below `top` must leave out: places relative to it, and hard links."""
        ...


BoundsOf = Callable[[ToolEnv], Bounds]


def os_fault(path: str, error: OSError) -> BadInput:
    """What the operating system said, as a sentence."""
    if isinstance(error, FileNotFoundError):
        return BadInput(f"{path}: no such file or directory.", path=path)
    if isinstance(error, IsADirectoryError):
        return BadInput(f"{path} is a directory", path=path)
    reason = (error.strerror or str(error)).lower()
    return BadInput(f"{path}: {reason}.", path=path)
