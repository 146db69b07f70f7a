"""The HumanLayer daemon protocol: line-delimited JSON-RPC 2.0 with approvals and subscriptions."""

from .desk import Desk, Settings

__all__ = ["Desk", "Settings"]
