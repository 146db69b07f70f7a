"""Capabilities: what an app may offer, who has it, and how it is put on offer."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

from dragoman.engine.offers import Offer
from dragoman.holding import Holder

from . import invoke
from .faults import Wrong
from .manifest import Manifest

if TYPE_CHECKING:
    from .seat import Seat


class OfferKind(NamedTuple):
    """One type of capability: where its name stands, and what the denials say."""

    label: str
    keys: tuple[str, ...]
    section: str
    sole: bool  # one owner at a time
    declared: Callable[[Manifest], frozenset[str]]  # the names of it in a manifest

    def name_of(self, config: dict[str, Any]) -> str:
        """The name that is offered. Raises Wrong when there is none."""
        for key in self.keys:
            if isinstance(config.get(key), str) and config[key]:
                return str(config[key])
        places = " or ".join(f"config.{key}" for key in self.keys)
        raise Wrong("INVALID_PARAMS", f"Invalid params: {places} must be a non-empty string")


RULES = {
    "channel": OfferKind(
        "Channel", ("channelId", "id"), "channels.provides", True, lambda app: app.channels
    ),
    "tool": OfferKind("Tool", ("toolId", "name"), "tools.provides", True, lambda app: app.tools),
    "hook": OfferKind(
        "Hook", ("event",), "hooks", False, lambda app: app.subscribes | app.intercepts
    ),
    "gateway_method": OfferKind(
        "Gateway method", ("methodName", "method"), "gateway.methods", True, lambda app: app.methods
    ),
    "http_route": OfferKind(
        "HTTP route", ("route", "path"), "gateway.httpRoutes", False, lambda app: app.routes
    ),
    "provider": OfferKind(
        "Provider", ("providerId", "id"), "providers.provides", False, lambda app: app.providers
    ),
}


class Grant(Holder):
    """One capability that an app was granted."""

    seat: "Seat"
    kind: str
    name: str
    config: dict[str, Any]
    id: str
    offered: bool = False
    answered: bool = False  # at least once, when it was used

    def offer(self) -> None:
        """Let everybody use it: from the moment the app is ready."""
        if self.offered or self.kind == "hook":
            return
        offers = self.seat.desk.door.offers
        if self.kind == "provider" and offers.find("provider", self.name) is not None:
            return  # another app has this name: ours is next when that one goes
        self.offered = True
        offers.add(_offer(self))

    def pause(self) -> None:
        """Take it off offer; the grant stays."""
        if not self.offered:
            return
        self.offered = False
        desk = self.seat.desk
        desk.door.offers.remove(self.id)
        if self.kind == "provider":
            for other in desk.grants():
                if other.kind == "provider" and other.name == self.name and other.seat.ready:
                    if other is not self:
                        other.offer()

    def withdraw(self) -> None:
        self.seat.grants.pop(self.id, None)
        owned = self.seat.desk.owned
        if owned.get((self.kind, self.name)) is self:
            del owned[self.kind, self.name]
        self.pause()


def register(seat: "Seat", kind: str, config: dict[str, Any], id: str = "") -> Grant | str:
    """Grant a capability, or say why not. Raises Wrong when it has no name."""
    rule = RULES.get(kind)
    if rule is None:
        return f"Invalid capability type: {kind}"
    name = rule.name_of(config)
    if name not in rule.declared(seat.manifest):
        return f'{rule.label} "{name}" not declared in manifest capabilities.{rule.section}'
    desk = seat.desk
    if not desk.may(seat.name, kind, name):
        return f'{rule.label} "{name}" is not granted: see `dragoman apps permissions {seat.name}`'
    taken = desk.door.facts.built_in.get(kind, ())
    if name in taken or (kind == "tool" and invoke.tool_name(name) in taken):
        return f'{rule.label} "{name}" is built in: choose another name'
    if rule.sole and (owner := desk.owner(kind, name)) is not None:
        return f'{rule.label} "{name}" is already registered by app "{owner.name}"'
    grant = Grant(seat, kind, name, config, id or str(uuid4()))
    seat.grants[grant.id] = grant
    if rule.sole:
        desk.owned[kind, name] = grant
    if seat.ready:
        grant.offer()
    if kind == "channel":
        desk.outbox.meet(seat, name)
    return grant


def _offer(grant: Grant) -> Offer:
    app = grant.seat.name
    match grant.kind:
        case "tool":
            tool = invoke.AppTool(grant)
            return Offer(grant.id, "tool", tool.spec.name, app, tool=tool, config=grant.config)
        case "provider":
            from .provider import AppProvider, models_of

            provider = AppProvider(grant)
            config = {**grant.config, "models": models_of(grant)}
            return Offer(grant.id, "provider", grant.name, app, provider=provider, config=config)
        case "gateway_method":
            call = invoke.caller(grant)
        case "http_route":
            call = invoke.router(grant)
        case _:
            call = invoke.sender(grant)
    return Offer(grant.id, grant.kind, grant.name, app, call=call, config=grant.config)
