"""Who pays: the key that `dragoman login` kept, as the host uses it."""

import os
from collections.abc import Callable, Mapping, Sequence

import msgspec

from dragoman.providers.registry import ProviderConfig
from dragoman.settings import login
from dragoman.settings.places import Places


class Account:
    """Knows what was kept, and sees when somebody logs in or out beside a running host."""

    def __init__(self, where: Places) -> None:
        self._where = where
        self.changed: list[Callable[[], None]] = []
        self._seen = self._mark()
        self._login = login.read(where)

    def _mark(self) -> tuple[int, int] | None:
        """Changes whenever the file does."""
        try:
            found = os.stat(login.path_of(self._where))
        except OSError:
            return None
        return found.st_mtime_ns, found.st_ino

    def over(self, configs: Mapping[str, ProviderConfig]) -> dict[str, ProviderConfig]:
        """The providers with that key; one of the configuration goes before it."""
        made = dict(configs)
        if self._login is not None and self._login.key:
            name = self._login.provider
            config = made.get(name, ProviderConfig())
            if not config.api_key:
                made[name] = msgspec.structs.replace(config, api_key=self._login.key)
        return made

    def look(self) -> Sequence[str]:
        """Whose key is kept now; whoever uses it learns of a change."""
        mark = self._mark()
        if mark != self._seen:
            self._seen, self._login = mark, login.read(self._where)
            for tell in self.changed:
                tell()
        return [self._login.provider] if self._login is not None else []

    async def forget(self) -> None:
        """Log out."""
        login.forget(self._where)
        self.look()
