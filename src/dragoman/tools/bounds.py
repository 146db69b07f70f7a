"""The walls that tools work within (`policy.paths.Boundary`), and what a system says of a path."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from dragoman.engine.faults import BadInput
from dragoman.engine.ports import ToolEnv

if TYPE_CHECKING:
    from dragoman.policy.paths import Boundary

BoundsOf = Callable[[ToolEnv], "Boundary"]


def os_fault(path: str, error: OSError) -> BadInput:
    """What the operating system said, as a sentence."""
    if isinstance(error, FileNotFoundError):
        return BadInput(f"{path}: no such file or directory.", path=path)
    if isinstance(error, IsADirectoryError):
        return BadInput(f"{path} is a directory", path=path)
    reason = (error.strerror or str(error)).lower()
    return BadInput(f"{path}: {reason}.", path=path)
