"""Results that something follows."""

from collections.abc import Callable
from typing import Any


class After:
    """A result, and what is to be done once it was sent."""

    __slots__ = ("result", "then")

    def __init__(self, result: Any, then: Callable[[], None]) -> None:
        self.result = result
        self.then = then
