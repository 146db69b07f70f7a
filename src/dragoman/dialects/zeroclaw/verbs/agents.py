"""`agents/*` and `cost/query`."""

from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.engine.faults import BadInput
from dragoman.engine.info import SessionInfo, SessionQuery
from dragoman.wire.codec import encode

from ..shapes import CostQuery
from ..spelling import spoken, verb

if TYPE_CHECKING:
    from ..hear import ZeroclawHearer

_LOOKED_AT = 1_000  # the newest sessions, over which costs are summed
_DAY_MS = 86_400_000
_BIGGEST = 1024 * 1024  # bytes of `org_cost.json`


def agents(conn: "ZeroclawHearer", _: None) -> Any:
    return {
        "agents": [
            {"alias": alias, "enabled": True, "channels": []} for alias in conn.door.agents()
        ]
    }


async def agents_status(conn: "ZeroclawHearer", _: None) -> dict[str, Any]:
    door = conn.door
    live: dict[str, int] = {}
    for session in door.lives():
        live[session.agent] = live.get(session.agent, 0) + 1
    rows = []
    for alias in door.agents():
        page = await door.list(SessionQuery(agent=alias, limit=1, offset=1))
        rows.append(
            {
                "alias": alias,
                "enabled": True,
                "live_sessions": live.get(alias, 0),
                "persisted_sessions": page.total or 0,
                "channels": [],
            }
        )
    return {"agents": rows}


async def cost(conn: "ZeroclawHearer", params: CostQuery) -> Any:
    """What was spent. A session counts for the day and month of its last activity."""
    door = conn.door
    now = door.now_ms()
    first, last = moment(params.from_, 0), moment(params.to, now + _DAY_MS)
    page = await door.list(SessionQuery(agent=params.agent, limit=_LOOKED_AT))
    found = [info for info in page.sessions if first <= info.updated_at <= last]
    day = now - now % _DAY_MS
    month = day - (_day_of_month(now) - 1) * _DAY_MS
    return {
        "session_cost_usd": sum(s.cost for s in door.lives()),
        "daily_cost_usd": sum(info.cost for info in found if info.updated_at >= day),
        "monthly_cost_usd": sum(info.cost for info in found if info.updated_at >= month),
        "total_tokens": sum(info.usage.context for info in found),
        "request_count": sum(info.steps for info in found),
        "by_model": _by(conn, found, "model", "model"),
        "by_agent": _by(conn, found, "agent", "agent_alias"),
    }


def _by(conn: "ZeroclawHearer", infos: list[SessionInfo], name: str, told: str) -> msgspec.Raw:
    """Sums by a member of the sessions; the keys of this table are names of the user's."""
    sums: dict[str, tuple[float, int, int]] = {}
    for info in infos:
        key = getattr(info, name)
        usd, tokens, count = sums.get(key, (0.0, 0, 0))
        sums[key] = (usd + info.cost, tokens + info.usage.context, count + info.steps)
    rows: dict[str, Any] = {}
    for key, (usd, tokens, count) in sums.items():
        row = {told: key, "cost_usd": usd, "total_tokens": tokens, "request_count": count}
        rows[key] = spoken(row) if conn.camel else row
    return msgspec.Raw(encode(rows))


def moment(text: str | None, otherwise: int) -> int:
    if text is None:
        return otherwise
    from datetime import UTC, datetime

    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise BadInput(f"Invalid params: {text!r} is no RFC 3339 time.") from None
    return int((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() * 1000)


def _day_of_month(now: int) -> int:
    from time import gmtime

    return gmtime(now // 1000).tm_mday


async def org_cost(conn: "ZeroclawHearer", _: None) -> object:
    """What an administrator put into `org_cost.json` of the data folder; null without it."""
    import asyncio

    return await asyncio.to_thread(_org_cost, conn.door.facts.data_dir)


def _org_cost(folder: str) -> object:
    import os

    try:
        with open(os.path.join(folder, "org_cost.json"), "rb") as file:
            data = file.read(_BIGGEST + 1)
    except OSError:
        return None  # most hosts have none
    try:
        found = msgspec.json.decode(data)
    except msgspec.DecodeError:
        found = None
    if len(data) > _BIGGEST or not isinstance(found, dict):
        raise BadInput("org_cost.json in the data folder is no JSON object, or too large.")
    return msgspec.Raw(encode(found))  # with its own names


VERBS = {
    "agents/list": verb(agents),
    "agents/status": verb(agents_status),
    "cost/query": verb(cost, CostQuery),
    "cost/org": verb(org_cost),
}
