"""Manifests of apps: what they must say, and what they declare to offer and hear."""

import msgspec
from msgspec import Struct

from .faults import Wrong

TYPES = ("app", "skill", "agent", "extension")
_Names = list[str] | None


class Provided(Struct, frozen=True):
    provides: _Names = None
    requires: _Names = None


class HookNames(Struct, frozen=True):
    subscribes: _Names = None
    intercepts: _Names = None


class GatewayNames(Struct, frozen=True):
    methods: _Names = None
    httpRoutes: _Names = None


class ProviderNames(Struct, frozen=True):
    provides: _Names = None
    models: _Names = None


class Capabilities(Struct, frozen=True):
    channels: Provided | None = None
    tools: Provided | None = None
    hooks: HookNames | None = None
    gateway: GatewayNames | None = None
    providers: ProviderNames | None = None


class ProtocolAsked(Struct, frozen=True):
    version: str | int | float | None = None
    minKernelVersion: str | None = None


class Package(Struct, frozen=True):
    """A manifest as it comes. What is not named here is allowed and not looked at."""

    id: str | None = None
    type: str | None = None
    protocol: ProtocolAsked | None = None
    name: str | None = None
    version: str | None = None
    description: str | None = None
    main: str | None = None
    capabilities: Capabilities | None = None


class Manifest(Struct, frozen=True):
    """What counts of a manifest."""

    id: str
    type: str
    name: str = ""
    version: str = ""
    channels: frozenset[str] = frozenset()
    tools: frozenset[str] = frozenset()
    subscribes: frozenset[str] = frozenset()
    intercepts: frozenset[str] = frozenset()
    methods: frozenset[str] = frozenset()
    routes: frozenset[str] = frozenset()
    providers: frozenset[str] = frozenset()
    models: tuple[str, ...] = ()

    def may_hear(self, hook: str) -> bool:
        """Whether the app may subscribe. One with a channel hears what is sent to it anyway."""
        if hook in self.subscribes or hook in self.intercepts:
            return True
        return hook == "message_sending" and bool(self.channels)


def read_manifest(given: object) -> Manifest:
    """Check a manifest. Raises Wrong (INVALID_PARAMS) that says what is missing or malformed."""
    if not isinstance(given, dict):
        raise Wrong("INVALID_PARAMS", "Invalid manifest")
    try:
        package = msgspec.convert(given, Package)
    except msgspec.ValidationError as trouble:
        raise Wrong("INVALID_PARAMS", f"Invalid manifest: {_where(str(trouble))}") from None
    if not (package.id and package.type and package.protocol and package.protocol.version):
        text = "Missing required manifest fields: id, type, protocol.version"
        raise Wrong("INVALID_PARAMS", text)
    if package.type not in TYPES:
        raise Wrong(
            "INVALID_PARAMS",
            f'Invalid manifest: type must be one of {", ".join(TYPES)}, not "{package.type}"',
        )
    if len(package.id) > 256:
        raise Wrong("INVALID_PARAMS", "Invalid manifest: id is longer than 256 characters")
    can = package.capabilities or Capabilities()
    channels, tools = can.channels or Provided(), can.tools or Provided()
    hooks, gateway = can.hooks or HookNames(), can.gateway or GatewayNames()
    providers = can.providers or ProviderNames()
    return Manifest(
        package.id,
        package.type,
        package.name or package.id,
        package.version or "",
        _set(channels.provides),
        _set(tools.provides),
        _set(hooks.subscribes),
        _set(hooks.intercepts),
        _set(gateway.methods),
        _set(gateway.httpRoutes),
        _set(providers.provides),
        tuple(providers.models or ()),
    )


def _set(names: _Names) -> frozenset[str]:
    return frozenset(names or ())


def _where(trouble: str) -> str:
    """msgspec's words with the path of the field as an app's author would write it."""
    text, _, place = trouble.partition(" - at `$")
    field = place.rstrip("`").lstrip(".")
    return f"{field}: {text[:1].lower()}{text[1:]}" if field else text
