"""What requests carry. Names are in snake_case here; both spellings are taken (`spelling.py`)."""

from typing import Any, Literal

import msgspec

from dragoman.engine.events import Mode


class Params(msgspec.Struct, frozen=True):
    """Base of all params. Clients write null for what they leave out."""


class Initialize(Params, frozen=True):
    protocol_version: int | None = None
    tui_id: str | None = None
    tui_sig: str | None = None
    env: dict[str, Any] | None = None
    client_capabilities: Any = None
    client_info: Any = None  # {name, version}, or a name
    client_name: str | None = None
    client_version: str | None = None


class New(Params, frozen=True):
    agent_alias: str
    cwd: str | None = None
    session_id: str | None = None
    tui_id: str | None = None
    exclude_memory: bool | None = None
    chat_mode: Literal["chat", "acp"] | None = None
    keep_siblings: bool | None = None
    mode: Mode | None = None  # ours
    worktree: bool | None = None  # ours


class OfSession(Params, frozen=True):
    session_id: str


class File(msgspec.Struct, frozen=True):
    """An attachment: a path on this machine, or its bytes."""

    path: str | None = None
    data_b64: str | None = None
    filename: str | None = None
    mime_type: str | None = None
    source: Literal["file", "clipboard"] | None = None


class Prompt(OfSession, frozen=True):
    prompt: str
    attachments: tuple[File, ...] | None = None


class Attach(OfSession, frozen=True):
    files: tuple[File, ...]


class Approve(OfSession, frozen=True):
    request_id: str
    decision: str
    replacement: str | None = None
    comment: str | None = None
    scope: str | None = None  # of those that the question offers
    lasts: str | None = None  # session, project, agent
    digest: str | None = None  # of the question that was seen


class Overrides(msgspec.Struct, frozen=True):
    model: str | None = None
    model_provider: str | None = None
    temperature: float | None = None
    mode: Mode | None = None  # ours


class Configure(OfSession, frozen=True):
    overrides: Overrides


class Listed(Params, frozen=True):
    query: str | None = None
    limit: int | None = None


class Messages(OfSession, frozen=True):
    limit: int | None = None
    before_index: int | None = None


class ListDir(Params, frozen=True):
    path: str
    show_hidden: bool | None = None


class CostQuery(Params, frozen=True):
    agent: str | None = None
    from_: str | None = msgspec.field(name="from", default=None)
    to: str | None = None


class ConfigGet(Params, frozen=True):
    prop: str | None = None


class ConfigProp(Params, frozen=True):
    prop: str


class ConfigSet(ConfigProp, frozen=True):
    value: Any


class ConfigList(Params, frozen=True):
    prefix: str | None = None


class ConfigPath(Params, frozen=True):
    path: str


class MapKey(ConfigPath, frozen=True):
    key: str


class MapRename(ConfigPath, frozen=True):
    from_: str = msgspec.field(name="from")
    to: str


class AliasSource(Params, frozen=True):
    source: str


class CatalogModels(Params, frozen=True):
    model_provider: str | None = None
    provider: str | None = None


class LogQuery(Params, frozen=True):
    since_ts: str | None = None
    until_ts: str | None = None
    until_id: str | None = None
    severity_min: int | None = None
    q: str | None = None
    category: str | None = None
    action: str | None = None
    outcome: str | None = None
    trace_id: str | None = None
    limit: int | None = None


class LogGet(Params, frozen=True):
    id: str
