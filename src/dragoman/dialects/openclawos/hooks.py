"""Names of hooks, what their events say, and what an interceptor's result means."""

from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from dragoman.engine.hooks import INTERCEPTABLE, OBSERVABLE, Block, HookContext
from dragoman.observe.log import get_log

from .faults import reported

if TYPE_CHECKING:
    from .desk import Desk

log = get_log("apps")

ALIASES = {
    "before_agent_start": "agent_starting",
    "agent_end": "agent_completed",
    "before_tool_call": "tool_executing",
    "after_tool_call": "tool_completed",
}
_WITH_RUN = frozenset({"agent_starting", "agent_completed", "tool_executing", "tool_completed"})


def hook_of(name: str) -> str | None:
    """The engine's hook behind a name; None when there is no such hook."""
    hook = ALIASES.get(name, name)
    return hook if hook in OBSERVABLE else None


def is_interceptable(name: str) -> bool:
    return ALIASES.get(name, name) in INTERCEPTABLE


def payload(
    event_id: str, name: str, data: dict[str, Any], context: HookContext, now: int
) -> dict[str, Any]:
    """The payload of `hook:<name>`."""
    hook = ALIASES.get(name, name)
    if hook == "message_received":
        data = {**data, "channelId": context.channel}
    elif context.turn and hook in _WITH_RUN:
        data = {**data, "runId": context.turn}
    place: dict[str, Any] = {}
    if context.agent:
        place["agentId"] = context.agent
    if context.key:
        place["sessionKey"] = context.key
    if context.channel:
        place["channelId"] = context.channel
    if context.account:
        place["accountId"] = context.account
    place["timestamp"] = now
    return {"eventId": event_id, "hookName": name, "data": data, "context": place}


def verdict(result: Any) -> dict[str, Any] | Block | None:
    """null, `cancel` and `block` say no; an object is laid over the data; else no opinion.

    Raises ConnectionError when the app says that it failed: `{"error": {"message"}}`.
    """
    if result is UNSET:
        return None
    if result is None:
        return Block()
    if not isinstance(result, dict):
        return None
    if result.keys() == {"error"}:
        raise ConnectionError(f"failed: {reported(result['error']).message}")
    if result.get("cancel") is True or result.get("block") is True:
        reason = result.get("blockReason") or result.get("reason") or ""
        return Block(reason if isinstance(reason, str) else "")
    return result


class Delivery:
    """Gives each message that may go out to the app that owns its channel, after all others."""

    name = "delivery"

    def __init__(self, desk: "Desk") -> None:
        self._desk = desk

    def observe(self, hook: str, data: dict[str, Any], context: HookContext) -> None:
        channel = data.get("channelId")
        if not isinstance(channel, str) or not channel:
            return
        owner = self._desk.owner("channel", channel)
        if owner is not None and owner.ready:
            owner.push(hook, data, context)
        elif context.channel == channel:
            log.warning("no app takes this message", channel=channel, session=context.session)

    async def intercept(
        self, hook: str, data: dict[str, Any], context: HookContext
    ) -> dict[str, Any] | Block | None:
        return None
