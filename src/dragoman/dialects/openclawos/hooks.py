"""Names of hooks, what their events say, and what an interceptor's result means."""

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from dragoman.engine.hooks import (
    Block,
    Executed,
    Executing,
    HookContext,
    Outgoing,
    P,
    Payload,
    Session,
)
from dragoman.engine.points import OBSERVABLE
from dragoman.holding import Holder

from .faults import reported

if TYPE_CHECKING:
    from .desk import Desk

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


# What an app calls the fields that it may change, and what they must be.
_CHANGED: dict[type[Payload], dict[str, tuple[str, type]]] = {
    Outgoing: {
        "channelId": ("channel", str),
        "target": ("target", str),
        "content": ("content", str),
        "metadata": ("metadata", dict),
    },
    Executing: {"params": ("args", dict)},
}


def data_of(data: Payload) -> dict[str, Any]:
    """What an event says, in the protocol's words."""
    match data:
        case Outgoing():
            made: dict[str, Any] = {
                "channelId": data.channel,
                "target": data.target,
                "content": data.content,
            }
            if data.metadata is not None:
                made["metadata"] = data.metadata
        case Executing() | Executed():
            made = {
                "toolName": data.tool,
                "name": data.tool,
                "params": data.args,
                "callId": data.call_id,
            }
            if isinstance(data, Executed):
                made |= {"isError": data.is_error, "result": data.result}
        case Session():
            made = {"sessionId": data.id}
        case _:
            made = msgspec.structs.asdict(data)
            del made["more"]
    return {**made, **data.more}


def changed(data: P, said: dict[str, Any]) -> P:
    """The data with an app's result laid over it."""
    known = _CHANGED.get(type(data), {})
    fields: dict[str, Any] = {}
    more = dict(data.more)
    for name, value in said.items():
        field, kind = known.get(name, ("", object))
        if field and isinstance(value, kind):
            fields[field] = value
            more.pop(name, None)
        else:
            more[name] = value
    return msgspec.structs.replace(data, more=more, **fields)


def payload(
    event_id: str, name: str, given: Payload, context: HookContext, now: int
) -> dict[str, Any]:
    """The payload of `hook:<name>`."""
    data = data_of(given)
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


def channel_of(data: Payload) -> str:
    """The channel a message is for; empty: none, or an app made something else of it."""
    return data.channel if isinstance(data, Outgoing) and "channelId" not in data.more else ""


class Delivery(Holder):
    """Gives each message that may go out to the app that owns its channel, after all others."""

    _desk: "Desk"
    name: str = "delivery"

    def observe(self, hook: str, data: Payload, context: HookContext) -> None:
        channel = channel_of(data)
        if not channel or not isinstance(data, Outgoing):
            return
        owner = self._desk.owner("channel", channel)
        outbox = self._desk.outbox
        ready = owner is not None and owner.ready
        if context.turn and (not ready or outbox.gives(channel)):
            outbox.keep(data, context)  # what comes from the outbox itself has no turn
        elif owner is not None and ready:
            owner.push(hook, data, context)

    async def intercept(self, hook: str, data: P, context: HookContext) -> P | Block | None:
        return None
