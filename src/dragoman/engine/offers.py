"""What apps offer to everybody: tools, model providers, methods, HTTP routes, channels.

The dialect that carries an app puts its offers here; sessions take tools from here, the model
registry takes providers, the gateway takes routes and methods.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from .ports import Provider, Tool

Invoke = Callable[[dict[str, Any]], Awaitable[Any]]


class Offer(msgspec.Struct, frozen=True):
    """One thing an app offers. `call` is how to use it (methods, routes, channels)."""

    id: str
    kind: str  # tool | provider | gateway_method | http_route | channel
    name: str
    app: str
    call: Invoke | None = None
    tool: Tool | None = None
    provider: Provider | None = None
    config: dict[str, Any] = {}


class Offers:
    """All that is on offer now."""

    __slots__ = ("_by_id", "listeners")

    def __init__(self) -> None:
        self._by_id: dict[str, Offer] = {}
        self.listeners: list[Callable[[Offer, bool], None]] = []

    def add(self, offer: Offer) -> None:
        self._by_id[offer.id] = offer
        for listener in tuple(self.listeners):
            listener(offer, True)

    def remove(self, offer_id: str) -> Offer | None:
        offer = self._by_id.pop(offer_id, None)
        if offer is not None:
            for listener in tuple(self.listeners):
                listener(offer, False)
        return offer

    def find(self, kind: str, name: str) -> Offer | None:
        for offer in self._by_id.values():
            if offer.kind == kind and offer.name == name:
                return offer
        return None

    def all(self, kind: str | None = None) -> list[Offer]:
        return [offer for offer in self._by_id.values() if kind is None or offer.kind == kind]
