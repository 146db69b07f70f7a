"""Rows that parts of the process tell of themselves, and clients are shown."""

from typing import Any, Literal

import msgspec


class DoctorRow(msgspec.Struct, frozen=True):
    """One thing that was looked at, and what to do about it."""

    severity: Literal["ok", "warn", "error"]
    category: str
    message: str
    fix: str = ""


class Explained(msgspec.Struct, frozen=True):
    """One key of the configuration."""

    key: str
    doc: str
    allowed: str
    default: Any
    value: Any
    source: str  # default, or where the value was set
    env: str  # the variable that sets it


class NodeRow(msgspec.Struct, frozen=True):
    """One node of a fleet as the database knows it."""

    name: str
    owner: str
    alive: bool
    draining: bool
    labels: list[str]
    schema: int
    protocol: int
    version: str
    silent: float  # seconds since it was last heard of
    seen_ms: int
    sessions: int
    facts: dict[str, Any] = {}


class MemoryEntry(msgspec.Struct, frozen=True):
    """One thing that is remembered."""

    key: str
    content: str
    category: str
    session: str
    created: int
    updated: int
