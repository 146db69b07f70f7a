"""Reads what was kept with sessions before traits: their fields side by side, without names.

Rows are not rewritten for it: a store may be large, and what is read is regrouped in passing.
"""

from typing import Any

import msgspec

_GIVEN = (
    "system_prompt",
    "append_system_prompt",
    "tools",
    "max_steps",
    "approval_timeout",
    "temperature",
    "memory",
    "context_files",
    "auto_compact",
    "roots",
    "mcp",
)
_CORRESPONDENT = ("key", "channel", "account", "target", "metadata")
OLD: dict[str, tuple[str, str]] = {  # what a field was called: whose it is, and its name there
    **{name: ("given", name) for name in _GIVEN},
    **{name: ("correspondent", name) for name in _CORRESPONDENT},
    "run_id": ("humanlayer", "run_id"),
    "permission_prompt_tool": ("humanlayer", "permission_prompt_tool"),
    "skip_permissions": ("waiver", "everything"),
    "skip_permissions_until": ("waiver", "until"),
    "auto_accept_edits": ("waiver", "tools"),
    "chat_mode": ("zeroclaw", "chat_mode"),
    "overrides": ("zeroclaw", "overrides"),
    "zeroclaw_closed": ("zeroclaw", "closed"),
    "zeroclaw_killed_at": ("zeroclaw", "killed_at"),
    "webhook": ("gateway", "webhook"),
}
_PLACES = {"opened": "extra", "extra_set": "values"}  # where events have it


def regrouped(extra: dict[str, Any]) -> dict[str, Any]:
    """Fields under the names of their traits; what is so already stays."""
    made = {name: value for name, value in extra.items() if name not in OLD}
    for name, value in extra.items():
        if name not in OLD:
            continue
        trait, field = OLD[name]
        if name == "auto_accept_edits":
            value = ["write", "edit"] if value else None
        made[trait] = {**made.get(trait, {}), field: value}
    return made


def renewed(kind: str, body: bytes) -> bytes:
    """An event's body as it would be written today."""
    place = _PLACES.get(kind)
    if place is None or b'"' + place.encode() + b'":' not in body:
        return body
    event: dict[str, Any] = msgspec.json.decode(body)
    extra = event.get(place)
    if not isinstance(extra, dict) or OLD.keys().isdisjoint(extra):
        return body
    event[place] = regrouped(extra)
    return msgspec.json.encode(event)
