"""The zot protocol: newline-delimited JSON commands, responses and events."""

from .desk import Desk, Settings

__all__ = ["Desk", "Settings"]
