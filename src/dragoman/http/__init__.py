"""Asking others over HTTP: the one client of everything here that asks.

`port` says what a client does and how it fails; `client` is ours, on asyncio and httptools.
"""

from .client import Client
from .port import (
    Answer,
    BadRequest,
    HttpFault,
    HungUp,
    NotHttp,
    TimedOut,
    Timeouts,
    Unreachable,
    Untrusted,
    Whole,
)
from .trust import trusting

__all__ = [
    "Answer",
    "BadRequest",
    "Client",
    "HttpFault",
    "HungUp",
    "NotHttp",
    "TimedOut",
    "Timeouts",
    "Unreachable",
    "Untrusted",
    "Whole",
    "trusting",
]
