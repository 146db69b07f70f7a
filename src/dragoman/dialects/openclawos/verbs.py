"""Every method: the type of its parameters, and what it does."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.wire.verbs import C, Order, P, Quick, Verb

from . import grants, hooks, shapes, watching
from .faults import Wrong
from .manifest import read_manifest

if TYPE_CHECKING:
    from dragoman.wire.serve import Call

    from .hear import OpenclawosHearer
    from .seat import Seat

PROTOCOL = "1.0"
OK = {"ok": True}
_MOST_GRANTS = 1024


# --- life ---


def register(conn: "OpenclawosHearer", asked: shapes.Register) -> Any:
    seat = conn.desk.admit(conn, read_manifest(asked.manifest))
    return {"appId": seat.name, "token": seat.token, "protocolVersion": PROTOCOL}


def heartbeat(conn: "OpenclawosHearer", asked: shapes.Heartbeat) -> Any:
    """The whole way; `beats` has the same bytes in less than half the time (decision 0073)."""
    seat = _seat(conn)
    seat.beat_at = now = conn.desk.now()
    seat.heard_at = conn.desk.passed()
    if asked.status is not None:
        seat.status = asked.status
    return {"ok": True, "serverTime": now}


def beats(conn: "OpenclawosHearer") -> "Callable[[shapes.Request], bytes | None] | None":
    """Answers plain heartbeats until something else is heard, with the bytes of `heartbeat`.

    They are by far the most frequent, and the whole way takes 2.5 times as long (decision 0073).
    """
    seat, desk = conn.seat, conn.desk
    if seat is None:
        return None
    seat.beat_now = now = desk.now()
    seat.beat_line = desk.voice.beats(now)
    return seat.beat


def ready(conn: "OpenclawosHearer", asked: shapes.Ready) -> Any:
    conn.desk.make_ready(_seat(conn))
    return OK


def shutdown(conn: "OpenclawosHearer", asked: shapes.Shutdown) -> Any:
    conn.desk.shut_down(_seat(conn), asked.reason or "", asked.timeout)
    return OK


# --- capabilities ---


def offer(conn: "OpenclawosHearer", asked: shapes.Offering) -> Any:
    seat = _seat(conn)
    if len(seat.grants) >= _MOST_GRANTS:
        raise Wrong("CONFLICT", f"{seat.name} has {_MOST_GRANTS} capabilities already")
    granted = grants.register(seat, asked.type, asked.config)
    if isinstance(granted, str):
        return {"capabilityId": "", "granted": False, "reason": granted}
    return {"capabilityId": granted.id, "granted": True}


def withdraw(conn: "OpenclawosHearer", asked: shapes.Withdrawal) -> Any:
    grant = _seat(conn).grants.get(asked.capabilityId)
    if grant is None:
        return {"ok": False}
    grant.withdraw()
    return OK


# --- hooks ---


def subscribe(conn: "OpenclawosHearer", asked: shapes.Events) -> Any:
    seat = _seat(conn)
    subscribed: list[str] = []
    denied: list[str] = []
    for name in asked.events:
        (subscribed if seat.subscribe(name) else denied).append(name)
    return {"subscribed": subscribed, "denied": denied}


def unsubscribe(conn: "OpenclawosHearer", asked: shapes.Events) -> Any:
    seat = _seat(conn)
    for name in asked.events:
        seat.unsubscribe(name)
    return {"unsubscribed": asked.events}


def hook_result(conn: "OpenclawosHearer", asked: shapes.HookResult) -> Any:
    return {"ok": _seat(conn).answer(asked.eventId, asked.result)}


def hook_info(conn: "OpenclawosHearer", asked: shapes.OneEvent) -> Any:
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


def config_get(conn: "OpenclawosHearer", asked: shapes.ConfigGet) -> Any:
    return {"value": watching.get(conn, asked.path or "")}


def config_watch(call: "Call[OpenclawosHearer]", asked: shapes.ConfigWatch) -> Any:
    return watching.watch(call.conn, call.id, asked.paths or [])


# --- sessions and messages ---


async def session_get(conn: "OpenclawosHearer", asked: shapes.SessionGet) -> Any:
    from .sessions import entry

    found = await conn.desk.sessions.find(asked.key)
    return {"session": entry(found) if found is not None else None}


async def session_list(conn: "OpenclawosHearer", asked: shapes.SessionList) -> Any:
    return await conn.desk.sessions.list(asked)


async def dispatch(conn: "OpenclawosHearer", asked: shapes.Dispatch) -> Any:
    return await conn.desk.sessions.dispatch(conn, asked)


async def queue(conn: "OpenclawosHearer", asked: shapes.Queue) -> Any:
    return await conn.desk.sessions.queue(conn, asked)


async def gateway_call(conn: "OpenclawosHearer", asked: shapes.GatewayCall) -> Any:
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


def _verb(
    params: type[P],
    run: Callable[[C, P], object],
    *,
    order: Order = "pool",
    direct: bool = False,
    quick: Quick | None = None,
) -> Verb:
    return Verb(
        run,
        order=order,
        direct=direct,
        quick=quick,
        read=_reader(params),
        takes=params,
    )


def _reader(params: type[P]) -> Callable[[bytes], P]:
    """Reads params of this type; `null` is none."""
    decode = msgspec.json.Decoder(params).decode
    return lambda raw: decode(b"{}" if bytes(raw) == b"null" else raw)


VERBS: dict[str, Verb] = {
    "app.register": _verb(shapes.Register, register),
    "app.heartbeat": _verb(shapes.Heartbeat, heartbeat, order="free", quick=beats),
    "app.ready": _verb(shapes.Ready, ready),
    "app.shutdown": _verb(shapes.Shutdown, shutdown),
    "capability.register": _verb(shapes.Offering, offer),
    "capability.unregister": _verb(shapes.Withdrawal, withdraw),
    "hook.subscribe": _verb(shapes.Events, subscribe),
    "hook.unsubscribe": _verb(shapes.Events, unsubscribe),
    "hook.result": _verb(shapes.HookResult, hook_result),
    "hook.info": _verb(shapes.OneEvent, hook_info),
    "config.get": _verb(shapes.ConfigGet, config_get),
    "config.watch": _verb(shapes.ConfigWatch, config_watch, direct=True),
    "session.get": _verb(shapes.SessionGet, session_get),
    "session.list": _verb(shapes.SessionList, session_list),
    "message.dispatch": _verb(shapes.Dispatch, dispatch),
    "agent.queue": _verb(shapes.Queue, queue),
    "gateway.call": _verb(shapes.GatewayCall, gateway_call),
}
