"""Every method: the type of its parameters, and what it does."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from . import grants, hooks, shapes, watching
from .faults import Wrong
from .manifest import read_manifest

if TYPE_CHECKING:
    from .hear import OpenclawosHearer
    from .seat import Seat

PROTOCOL = "1.0"
OK = {"ok": True}
_MOST_GRANTS = 1024


class Verb(NamedTuple):
    read: Callable[[Any], Any]
    run: Callable[["OpenclawosHearer", Any, bytes], Any]
    waits: bool = False


# --- life ---


def register(conn: "OpenclawosHearer", asked: shapes.Register, request_id: bytes) -> Any:
    seat = conn.desk.admit(conn, read_manifest(asked.manifest))
    return {"appId": seat.name, "token": seat.token, "protocolVersion": PROTOCOL}


def heartbeat(conn: "OpenclawosHearer", asked: shapes.Heartbeat, request_id: bytes) -> Any:
    seat = _seat(conn)
    seat.beat_at = now = conn.desk.now()
    seat.status = asked.status
    return {"ok": True, "serverTime": now}


def ready(conn: "OpenclawosHearer", asked: shapes.Ready, request_id: bytes) -> Any:
    conn.desk.make_ready(_seat(conn))
    return OK


def shutdown(conn: "OpenclawosHearer", asked: shapes.Shutdown, request_id: bytes) -> Any:
    conn.desk.shut_down(_seat(conn), asked.reason or "", asked.timeout)
    return OK


# --- capabilities ---


def offer(conn: "OpenclawosHearer", asked: shapes.Offering, request_id: bytes) -> Any:
    seat = _seat(conn)
    if len(seat.grants) >= _MOST_GRANTS:
        raise Wrong("CONFLICT", f"{seat.name} has {_MOST_GRANTS} capabilities already")
    granted = grants.register(seat, asked.type, asked.config)
    if isinstance(granted, str):
        return {"capabilityId": "", "granted": False, "reason": granted}
    return {"capabilityId": granted.id, "granted": True}


def withdraw(conn: "OpenclawosHearer", asked: shapes.Withdrawal, request_id: bytes) -> Any:
    grant = _seat(conn).grants.get(asked.capabilityId)
    if grant is None:
        return {"ok": False}
    grant.withdraw()
    return OK


# --- hooks ---


def subscribe(conn: "OpenclawosHearer", asked: shapes.Events, request_id: bytes) -> Any:
    seat = _seat(conn)
    subscribed: list[str] = []
    denied: list[str] = []
    for name in asked.events:
        (subscribed if seat.subscribe(name) else denied).append(name)
    return {"subscribed": subscribed, "denied": denied}


def unsubscribe(conn: "OpenclawosHearer", asked: shapes.Events, request_id: bytes) -> Any:
    seat = _seat(conn)
    for name in asked.events:
        seat.unsubscribe(name)
    return {"unsubscribed": asked.events}


def hook_result(conn: "OpenclawosHearer", asked: shapes.HookResult, request_id: bytes) -> Any:
    return {"ok": _seat(conn).answer(asked.eventId, asked.result)}


def hook_info(conn: "OpenclawosHearer", asked: shapes.OneEvent, request_id: bytes) -> Any:
    heard = _seat(conn).hears.get(asked.event)
    if heard is None:
        raise Wrong("HOOK_NOT_SUBSCRIBED", f"Not subscribed to hook: {asked.event}")
    hook = hooks.hook_of(asked.event) or asked.event
    limits = conn.door.hooks
    return {
        "event": asked.event,
        "hook": hook,
        "intercepts": heard.intercepts,
        "timeoutMs": round(limits.timeouts.get(hook, limits.timeout) * 1000),
        "delivered": heard.delivered,
        "answered": heard.answered,
    }


# --- configuration ---


def config_get(conn: "OpenclawosHearer", asked: shapes.ConfigGet, request_id: bytes) -> Any:
    return {"value": watching.get(conn, asked.path or "")}


def config_watch(conn: "OpenclawosHearer", asked: shapes.ConfigWatch, request_id: bytes) -> Any:
    return watching.watch(conn, request_id, asked.paths or [])


# --- sessions and messages ---


async def session_get(conn: "OpenclawosHearer", asked: shapes.SessionGet, request_id: bytes) -> Any:
    from .sessions import entry

    found = await conn.desk.sessions.find(asked.key)
    return {"session": entry(found) if found is not None else None}


async def session_list(
    conn: "OpenclawosHearer", asked: shapes.SessionList, request_id: bytes
) -> Any:
    return await conn.desk.sessions.list(asked)


async def dispatch(conn: "OpenclawosHearer", asked: shapes.Dispatch, request_id: bytes) -> Any:
    return await conn.desk.sessions.dispatch(conn, asked)


async def queue(conn: "OpenclawosHearer", asked: shapes.Queue, request_id: bytes) -> Any:
    return await conn.desk.sessions.queue(conn, asked)


async def gateway_call(
    conn: "OpenclawosHearer", asked: shapes.GatewayCall, request_id: bytes
) -> Any:
    found = conn.door.offers.find("gateway_method", asked.method)
    if found is None or found.call is None:
        for seat in conn.desk.apps.values():
            if asked.method in seat.manifest.methods:
                text = f'Gateway method "{asked.method}" is declared by app "{seat.name}"'
                raise Wrong("CAPABILITY_DENIED", f"{text} but not granted and ready")
        raise Wrong("NOT_FOUND", f"Unknown gateway method: {asked.method}")
    return {"result": await found.call(asked.params)}


def _seat(conn: "OpenclawosHearer") -> "Seat":
    assert conn.seat is not None
    return conn.seat


def _reader(kind: type) -> Callable[[Any], Any]:
    return msgspec.json.Decoder(kind).decode


VERBS: dict[str, Verb] = {
    "app.register": Verb(_reader(shapes.Register), register),
    "app.heartbeat": Verb(_reader(shapes.Heartbeat), heartbeat),
    "app.ready": Verb(_reader(shapes.Ready), ready),
    "app.shutdown": Verb(_reader(shapes.Shutdown), shutdown),
    "capability.register": Verb(_reader(shapes.Offering), offer),
    "capability.unregister": Verb(_reader(shapes.Withdrawal), withdraw),
    "hook.subscribe": Verb(_reader(shapes.Events), subscribe),
    "hook.unsubscribe": Verb(_reader(shapes.Events), unsubscribe),
    "hook.result": Verb(_reader(shapes.HookResult), hook_result),
    "hook.info": Verb(_reader(shapes.OneEvent), hook_info),
    "config.get": Verb(_reader(shapes.ConfigGet), config_get),
    "config.watch": Verb(_reader(shapes.ConfigWatch), config_watch),
    "session.get": Verb(_reader(shapes.SessionGet), session_get, True),
    "session.list": Verb(_reader(shapes.SessionList), session_list, True),
    "message.dispatch": Verb(_reader(shapes.Dispatch), dispatch, True),
    "agent.queue": Verb(_reader(shapes.Queue), queue, True),
    "gateway.call": Verb(_reader(shapes.GatewayCall), gateway_call, True),
}
