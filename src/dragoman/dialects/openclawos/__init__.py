"""The OpenClawOS kernel protocol: apps offer capabilities, hear hooks and bring messages."""

from .desk import Desk
from .shapes import Settings

__all__ = ["Desk", "Settings"]
