"""The zeroclaw protocol: JSON-RPC 2.0, one message per line, over a local socket."""

from .desk import Desk, Settings

__all__ = ["Desk", "Settings"]
