"""`logs/*`: what the daemon logged since it began, newest first, and what comes."""

from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.engine.faults import BadInput
from dragoman.engine.reading import counted
from dragoman.observe.feed import Feed, LogLine
from dragoman.wire.codec import encode
from dragoman.wire.jsonrpc import INTERNAL_ERROR, notification

from ..faults import Refusal
from ..shapes import LogGet, LogQuery
from ..spelling import verb

if TYPE_CHECKING:
    from ..hear import ZeroclawHearer

# OpenTelemetry's numbers, which this protocol uses.
_SEVERITIES = {"debug": 5, "info": 9, "warning": 13, "error": 17}
_LIMIT = 200
_MOST = 1_000


def _feed(conn: "ZeroclawHearer") -> Feed:
    feed = conn.door.facts.logs
    if not isinstance(feed, Feed):
        raise Refusal(INTERNAL_ERROR, "Logs are not available")
    return feed


def _event(row: LogLine) -> dict[str, Any]:
    return {
        "id": str(row.number),
        "@timestamp": row.time,
        "severity_number": _SEVERITIES.get(row.level, 9),
        "severity_text": "WARN" if row.level == "warning" else row.level.upper(),
        "event": {
            "category": row.area,
            "action": row.event,
            "outcome": _outcome(row),
        },
        "service": {"name": "dragoman"},
        "zeroclaw": {},
        "message": row.event,
        "attributes": row.pairs,
        "schema_version": 2,
    }


def _outcome(row: LogLine) -> str:
    return "failure" if row.level == "error" else "success"


def subscribe(conn: "ZeroclawHearer", _: None) -> Any:
    """Follow the log. A client that does not read misses lines; a second call changes nothing."""
    feed = _feed(conn)

    def told(row: LogLine) -> None:
        if not conn.link.paused:
            conn.link.send(notification("logs/event", _event(row)))

    if not conn.held.follows_log:
        conn.held.follows_log = True
        conn.held.on_lost.append(feed.follow(told))
    return {"subscribed": True}


def query(conn: "ZeroclawHearer", params: LogQuery) -> Any:
    limit = _LIMIT if params.limit is None else max(1, min(params.limit, _MOST))
    until = None if params.until_id is None else counted(params.until_id)
    if until is None and params.until_id is not None:
        raise BadInput("Invalid params: `until_id` is the id of an event.")
    found: list[dict[str, Any]] = []
    at_end = True
    for row in _feed(conn).newest():
        if until is not None and row.number >= until or not _wanted(row, params):
            continue
        if len(found) == limit:
            at_end = False
            break
        found.append(_event(row))
    last = found[-1] if found and not at_end else None
    cursor = [last["@timestamp"], last["id"]] if last is not None else None
    return {
        "events": msgspec.Raw(encode(found)),
        "next_cursor": cursor,
        "next_cursor_line_offset": None,
        "at_end": at_end,
    }


def _wanted(row: LogLine, params: LogQuery) -> bool:
    text = (params.q or "").lower()
    return (
        _SEVERITIES.get(row.level, 9) >= (params.severity_min or 0)
        and (params.since_ts is None or row.time >= params.since_ts)
        and (params.until_ts is None or row.time <= params.until_ts)
        and (params.category is None or row.area == params.category)
        and (params.action is None or row.event == params.action)
        and (params.outcome is None or _outcome(row) == params.outcome)
        and (params.trace_id is None or row.pairs.get("trace_id") == params.trace_id)
        and (not text or text in row.event.lower() or text in str(row.pairs).lower())
    )


def get(conn: "ZeroclawHearer", params: LogGet) -> Any:
    for row in _feed(conn).newest():
        if str(row.number) == params.id:
            return {"event": msgspec.Raw(encode(_event(row)))}
    raise BadInput(f"Invalid params: there is no log event {params.id}.")


VERBS = {
    "logs/subscribe": verb(subscribe),
    "logs/query": verb(query, LogQuery),
    "logs/get": verb(get, LogGet),
}
