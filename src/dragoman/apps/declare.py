"""What an app declares before it runs: offers, channels, hooks, and its manifest of them."""

import inspect
import types
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from .channel import Channel
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
_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean"}


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


def parameters_of(function: Callable[..., Any], skip: frozenset[str]) -> dict[str, Any]:
    """The JSON Schema of what a function takes; parameters without default are required."""
    hints = get_type_hints(function)
    properties: dict[str, Any] = {}
    required: list[str] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if name in skip or parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        made = _schema(hints.get(name, Any))
        if parameter.default is parameter.empty:
            required.append(name)
        elif parameter.default is not None:
            made["default"] = parameter.default
        properties[name] = made
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    return schema


def _schema(hint: Any) -> dict[str, Any]:
    if hint in _PLAIN:
        return {"type": _PLAIN[hint]}
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Literal:
        return {"enum": list(inner)}
    if origin in (list, tuple, set) or hint in (list, tuple, set):
        return {"type": "array", "items": _schema(inner[0])} if inner else {"type": "array"}
    if origin is dict or hint is dict:
        return {"type": "object"}
    if origin in (Union, types.UnionType):
        kinds = [_schema(one) for one in inner if one is not type(None)]
        return kinds[0] if len(kinds) == 1 else {"anyOf": kinds}
    return {}
