"""The Agent Client Protocol, version 1, and the family of clients that speak its older form."""

from .desk import Desk
from .shapes import Settings

__all__ = ["Desk", "Settings"]
