"""The daemon itself: health, figures, settings, and the stream of events."""

import os
import sqlite3
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

import msgspec

from dragoman.engine.events import Event
from dragoman.engine.info import SessionQuery, each_session
from dragoman.engine.ports import row_of
from dragoman.holding import Holder

from ..speak import Subscribed, filter_of
from ..times import seconds
from . import shapes
from .table import Asked, Operation, Refused

_SETTINGS = ("humanlayer", "user-settings")
_HEAD = b'{"jsonrpc":"2.0","result":{"event":'
_TAIL = 2  # braces that close the envelope


async def health(asked: Asked) -> shapes.Health:
    ready = bool(asked.desk.door.agents())
    why = None if ready else "no agent is configured"
    program = shapes.Program(ready, error=why)
    status = "ok" if ready else "degraded"
    return shapes.Health(status, asked.desk.version, shapes.Dependencies(program))


async def debug_info(asked: Asked) -> shapes.DebugInfo:
    door = asked.desk.door
    waiting = len(await door.asks(pending=True))
    sessions = len([info.id async for info in each_session(door.list, SessionQuery(limit=1_000))])
    path, size, changed, tables = _database(door.facts.data_dir)
    return shapes.DebugInfo(
        path,
        size,
        tables,
        {"sessions": sessions, "approvals": waiting, "events": await door.newest()},
        "hlyr",
        seconds(changed or door.now_ms()),
    )


def _database(folder: str) -> tuple[str, int, int, int]:
    """Path, size, time of change and tables of the store; zeros where it is in memory."""
    names = [name for name in _names(folder) if name.endswith(".db")]
    names.sort(key=lambda name: (name != "sessions.db", name))  # others keep other things
    if not names:
        return ":memory:", 0, 0, 0
    path = os.path.join(folder, names[0])
    found = os.stat(path)
    with sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True) as store:
        row = store.execute("select count(*) from sqlite_master where type = 'table'").fetchone()
    store.close()
    return path, found.st_size, found.st_mtime_ns // 1_000_000, row[0]


def _names(folder: str) -> list[str]:
    return os.listdir(folder) if folder and os.path.isdir(folder) else []


async def config(asked: Asked) -> shapes.Config:
    return shapes.Config("", bool(asked.desk.door.agents()))


async def update_config(asked: Asked) -> shapes.Config:
    if asked.body.claude_path:
        raise Refused(400, "this host has agents of its own: set [agents.<name>] command instead")
    return await config(asked)


async def config_status(asked: Asked) -> shapes.ConfigStatus:
    known = {model.provider for model in asked.desk.door.models()}
    known -= set(asked.desk.door.facts.without_key())
    return shapes.ConfigStatus(
        shapes.KeyState("openrouter" in known),
        shapes.KeyState("baseten" in known),
        shapes.KeyState(bool({"zai", "z_ai", "zhipu"} & known)),
    )


async def user_settings(asked: Asked) -> shapes.UserSettings:
    found = row_of(await asked.desk.door.shelf.get(*_SETTINGS), shapes.UserSettings)
    if found is not None:
        return found
    now = seconds(asked.desk.door.now_ms())
    return shapes.UserSettings(False, now, now)


async def update_user_settings(asked: Asked) -> shapes.UserSettings:
    kept, given = await user_settings(asked), msgspec.structs.asdict(asked.body)
    changes: dict[str, Any] = {name: one for name, one in given.items() if one is not None}
    now = seconds(asked.desk.door.now_ms())
    made = msgspec.structs.replace(kept, updated_at=now, **changes)
    await asked.desk.door.shelf.put(*_SETTINGS, msgspec.json.encode(made))
    return made


class Streamed(Holder):
    """Events as server-sent ones (`engine.hub.Shape`)."""

    _told: Subscribed

    def speak(self, events: Sequence[Event]) -> bytes | None:
        blob = self._told.speak(events)
        if blob is None:
            return None
        return b"".join(b"data: %b\n\n" % one[len(_HEAD) : -_TAIL] for one in blob.messages)


async def events(asked: Asked) -> Streamed:
    desk, query = asked.desk, asked.query
    types = [name for given in query.eventTypes for name in given.split(",") if name]
    wanted = await filter_of(desk.door, types, query.sessionId, query.runId)
    await desk.waiting.look()
    desk.recall_expiries()
    return Streamed(Subscribed(desk.door, wanted, desk.waiting, desk.past))


OPERATIONS = (
    Operation("GET", ("/health",), "getHealth", "Whether it serves", health, returns=shapes.Health),
    Operation("GET", ("/debug-info",), "getDebugInfo", "Figures of the store", debug_info,
              returns=shapes.DebugInfo),
    Operation("GET", ("/config", "/settings/config"), "getConfig", "What it runs agents with",
              config, returns=shapes.Config),
    Operation("PATCH", ("/config", "/settings/config"), "updateConfig", "Change that",
              update_config, body=shapes.UpdateConfig, returns=shapes.Config),
    Operation("GET", ("/config/status", "/config-status"), "getConfigStatus",
              "Which providers have keys", config_status, returns=shapes.ConfigStatus),
    Operation("GET", ("/user-settings", "/settings/user"), "getUserSettings",
              "Settings of the desktop app", user_settings, returns=shapes.UserSettings,
              wraps="UserSettingsAnswer"),
    Operation("PATCH", ("/user-settings", "/settings/user"), "updateUserSettings", "Change them",
              update_user_settings, body=shapes.UpdateUserSettings,
              returns=shapes.UserSettings, wraps="UserSettingsAnswer"),
    Operation("GET", ("/stream/events",), "streamEvents", "Events as they happen", events,
              query=shapes.EventsQuery, streams=True),
)  # fmt: skip
