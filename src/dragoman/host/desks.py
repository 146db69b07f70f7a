"""The desks of one process: what each dialect keeps for all its connections."""

from collections.abc import Mapping
from typing import Any

from dragoman.dialects.descriptor import REGISTRY, Dialect, load
from dragoman.engine.door import Door
from dragoman.engine.faults import BadInput
from dragoman.settings.model import Settings
from dragoman.wire.link import Opener


class Desks:
    """The desks of one process, made when they are first needed."""

    def __init__(self, door: Door, settings: Settings) -> None:
        self._door = door
        self._settings = settings
        self._made: dict[str, Any] = {}

    def desk(self, name: str) -> Any:
        """Raises BadInput for a dialect that nobody speaks, or whose settings are wrong."""
        found = self._made.get(name)
        if found is None:
            dialect = REGISTRY.find(name)
            if dialect is None:
                known = ", ".join(one.name for one in REGISTRY.all())
                raise BadInput(f"There is no dialect {name!r}.", f"Known: {known}.")
            given = _section(dialect, self._settings)
            found = self._made[name] = dialect.make_desk(self._door, given)
        return found

    def websockets(self) -> dict[str, Dialect]:
        """Path of the gateway -> the dialect spoken there."""
        return {
            path: one
            for one in REGISTRY.all()
            if one.websocket
            for path in one.websocket[0].split()
        }

    def section(self, dialect: Dialect) -> Any:
        """What the configuration says about a dialect. Raises BadInput."""
        return _section(dialect, self._settings)

    def port(
        self, dialect: Dialect, sources: Mapping[tuple[str, ...], Any], *, native: bool
    ) -> int:
        """The port of loopback where a dialect's HTTP is served; 0 for none.

        It is when its setting stands in the configuration, or addresses are native.
        """
        rest = dialect.rest
        if rest is None:
            return 0
        own = ":" in dialect.settings
        at = ("dialects", dialect.name) if own else (dialect.settings,)
        if not native and (*at, rest.setting) not in sources:
            return 0
        given = getattr(self.section(dialect), rest.setting, rest.port)
        return int(given)

    def opener(self, name: str) -> Opener:
        """What a listener calls for each new connection."""
        made = self._made
        return lambda link: (made.get(name) or self.desk(name)).hearer(link)

    def apply(self, old: Settings, new: Settings) -> None:
        """Tell desks that are in use about a changed configuration."""
        self._settings = new
        for name, desk in self._made.items():
            dialect = REGISTRY.find(name)
            if dialect is not None:
                given = _section(dialect, new)
                if given != _section(dialect, old):
                    desk.settings = given

    async def close(self) -> None:
        for desk in self._made.values():
            close = getattr(desk, "close", None)
            if close is not None and (ending := close()) is not None:
                await ending


def _section(dialect: Dialect, settings: Settings) -> object:
    """What the configuration says about a dialect; None when it can be told nothing."""
    kind = dialect.settings
    if not kind or ":" not in kind:
        return getattr(settings, kind) if kind else None
    import msgspec

    try:
        return msgspec.convert(settings.dialects.get(dialect.name, {}), load(kind))
    except msgspec.ValidationError as wrong:
        raise BadInput(f"dialects.{dialect.name}: {wrong}") from None
