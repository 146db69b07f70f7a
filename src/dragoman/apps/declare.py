"""What an app declares before it runs: offers, channels, hooks, and its manifest of them."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

from .channel import Channel
from .schema import parameters_of
from .work import (
    Listener,
    Offered,
    OfferedMethod,
    OfferedProvider,
    OfferedRoute,
    OfferedTool,
)

if TYPE_CHECKING:
    from .app import App

F = TypeVar("F", bound=Callable[..., Any])
Watcher = Callable[[str, Any, Any], Any]
_CALL = frozenset({"call"})


class Declared:
    """The decorators of an app."""

    def __init__(self, id: str, name: str, version: str, description: str) -> None:
        self.id = id
        self.name = name or id
        self.version = version
        self.description = description
        self._offered: dict[tuple[str, str], Offered] = {}
        self._channels: dict[str, Channel] = {}
        self._observers: dict[str, list[Listener]] = {}
        self._interceptors: dict[str, list[Listener]] = {}
        self._background: list[Callable[[], Awaitable[Any]]] = []
        self._watchers: list[tuple[list[str], Watcher]] = []

    def tool(
        self,
        name: str = "",
        description: str = "",
        *,
        parameters: dict[str, Any] | None = None,
        kind: str = "other",
    ) -> Callable[[F], F]:
        """A tool for models. Name, description and parameters default to the function's own."""
        if callable(name):
            raise TypeError("write @app.tool() with parentheses: a bare @app.tool offers nothing")

        def declare(function: F) -> F:
            called = name or function.__name__
            config = {
                "toolId": called,
                "name": called,
                "description": description or (function.__doc__ or "").strip(),
                "parameters": parameters or parameters_of(function, _CALL),
                "kind": kind,
            }
            self._offer(OfferedTool(called, function, config))
            return function

        return declare

    def method(self, name: str) -> Callable[[F], F]:
        """A gateway method: the function gets the parameters and returns the result."""
        config = {"methodName": name, "method": name}
        return lambda function: self._offer(OfferedMethod(name, function, config))

    def route(self, path: str, *, public: bool = False) -> Callable[[F], F]:
        """An HTTP route: the function gets a `Request` and returns a body or a response.

        Only paired clients reach it, unless it is public.
        """
        config = {"route": path, "path": path, "public": public}
        return lambda function: self._offer(OfferedRoute(path, function, config))

    def provider(self, name: str, models: list[Any]) -> Callable[[F], F]:
        """A model provider: the function is an async generator of what the model says."""
        config = {"providerId": name, "id": name, "models": models}
        return lambda function: self._offer(OfferedProvider(name, function, config))

    def _offer(self, offered: Offered) -> Any:
        self._offered[offered.kind, offered.name] = offered
        return offered.function

    def channel(self: "App", name: str) -> Channel:  # type: ignore[misc]
        """A channel: `deliver` sends out, `received` brings in."""
        return self._channels.setdefault(name, Channel(self, name))

    def observe(self, *hooks: str) -> Callable[[F], F]:
        """Be told at hooks: the function gets data and context."""
        return lambda function: self._listen(self._observers, hooks, function)

    def intercept(self, *hooks: str) -> Callable[[F], F]:
        """Have a say at hooks: return changed fields, `Block(reason)`, or None."""
        return lambda function: self._listen(self._interceptors, hooks, function)

    def _listen(self, group: dict[str, list[Listener]], hooks: tuple[str, ...], function: F) -> F:
        for hook in hooks:
            group.setdefault(hook, []).append(function)
        return function

    def watch(self, *paths: str) -> Callable[[F], F]:
        """Be told of changes of the configuration: path, old and new value."""

        def declare(function: F) -> F:
            self._watchers.append((list(paths), function))
            return function

        return declare

    def background(self, function: F) -> F:
        """Work of the app's own, begun when it is first ready and cancelled at its end."""
        self._background.append(function)
        return function

    def manifest(self) -> dict[str, Any]:
        """What the app declares, made of what was decorated."""

        def names(kind: str) -> list[str]:
            return [name for of, name in self._offered if of == kind]

        subscribes = [*self._observers, *(["message_sending"] if self._channels else [])]
        capabilities = {
            "channels": {"provides": list(self._channels)},
            "tools": {"provides": names("tool")},
            "hooks": {"subscribes": subscribes, "intercepts": list(self._interceptors)},
            "gateway": {"methods": names("gateway_method"), "httpRoutes": names("http_route")},
            "providers": {"provides": names("provider")},
        }
        return {
            "id": self.id,
            "name": self.name,
            "version": self.version,
            "description": self.description,
            "type": "app",
            "main": "app.py",
            "protocol": {"version": "1.0"},
            "capabilities": capabilities,
        }
