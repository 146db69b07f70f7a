"""What apps send: the request, and the parameters of each method."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Raw, Struct, UnsetType


class Settings(Struct, frozen=True):
    """`[openclawos]` as this dialect needs it, with its defaults."""

    require_token: bool = False
    invoke_timeout_ms: int = 30_000
    heartbeat_timeout_secs: float = 90
    apps: dict[str, Any] = {}  # entries of the configuration, by id; of each `granted` counts here


class Request(Struct, frozen=True, gc=False):
    """One line from an app. `id` and `params` stay as they came until they are needed."""

    type: Literal["request"]
    id: Raw
    method: Annotated[str, Meta(min_length=1)]
    params: Raw = Raw()
    token: str | None = None


class Register(Struct, frozen=True):
    manifest: Any = None


class Heartbeat(Struct, frozen=True):
    status: dict[str, Any] | None = None


class Ready(Struct, frozen=True):
    metadata: dict[str, Any] | None = None


class Shutdown(Struct, frozen=True):
    reason: str | None = None
    timeout: float | None = None


class Offering(Struct, frozen=True):
    """`capability.register`; a type that does not exist is a denial, not an error."""

    type: str
    config: dict[str, Any]


class Withdrawal(Struct, frozen=True):
    capabilityId: str


class Events(Struct, frozen=True):
    events: list[str]


class OneEvent(Struct, frozen=True):
    event: str


class HookResult(Struct, frozen=True):
    """Without `result` the app has no opinion; null is a no."""

    eventId: str
    result: Any | UnsetType = UNSET


class ConfigGet(Struct, frozen=True):
    path: str | None = None


class ConfigWatch(Struct, frozen=True):
    paths: list[str] | None = None


class SessionGet(Struct, frozen=True):
    key: str


class Filter(Struct, frozen=True):
    agentId: str | None = None
    channelId: str | None = None
    accountId: str | None = None
    active: bool | None = None


class SessionList(Struct, frozen=True):
    filter: Filter | None = None
    limit: int | None = None
    offset: int | None = None


class Dispatch(Struct, frozen=True):
    sessionKey: str
    content: str
    metadata: dict[str, Any] | None = None


class Queue(Struct, frozen=True):
    sessionKey: str
    text: str
    metadata: dict[str, Any] | None = None


class GatewayCall(Struct, frozen=True):
    method: str
    params: Any = None
