"""The configuration of a running host: read by path, changed in the file, watched."""

import asyncio
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import msgspec

from dragoman.engine.faults import BadInput, Fault
from dragoman.engine.reading import found_at
from dragoman.holding import Holder
from dragoman.observe.redact import redact
from dragoman.settings.load import Loaded, load
from dragoman.settings.model import Settings
from dragoman.settings.places import Places

Told = Callable[[str, Any, Any], None]


class LiveConfig(Holder):
    """`door.ConfigPort` over the settings file. Secrets never leave it."""

    loaded: Loaded
    places: Places
    flags: dict[str, Any] = {}
    applied: list[Callable[[Settings, Settings], None]] = []
    beside: list[Callable[[], object]] = []  # what else is read again with the file
    _watchers: list[Told] = []
    _clear_watchers: list[Told] = []

    @property
    def settings(self) -> Settings:
        return self.loaded.settings

    def tree(self) -> Any:
        """Everything as plain values, defaults included, secrets redacted."""
        tree: Any = redact(_plain(self.settings))
        return tree

    def get(self, path: str = "") -> Any:
        """The value at a dotted path; None when there is nothing. `$.` and `[n]` are understood."""
        return found_at(self.tree(), _parts(path))

    def clear(self, path: tuple[str, ...]) -> Any:
        """The value at a path as it is, secrets included: for the one whose they are."""
        return found_at(_plain(self.settings), path)

    def watch(self, callback: Told, *, clear: bool = False) -> Callable[[], None]:
        """Call back with each change; `clear`: also of secrets, as they are."""
        watchers = self._clear_watchers if clear else self._watchers
        watchers.append(callback)

        def stop() -> None:
            if callback in watchers:
                watchers.remove(callback)

        return stop

    async def set(self, path: str, value: object) -> None:
        """Write a value to the file and use it at once; None takes it out. Raises BadInput."""
        from dragoman.settings.write import with_value

        await self._rewrite(lambda file: with_value(file, path, value))

    async def add_entry(self, table: str, key: str) -> None:
        from dragoman.settings.entries import with_entry

        await self._rewrite(lambda file: with_entry(file, table, key))

    async def remove_entry(self, table: str, key: str) -> None:
        from dragoman.settings.entries import without_entry

        await self._rewrite(lambda file: without_entry(file, table, key))

    async def rename_entry(self, table: str, old: str, new: str) -> list[str]:
        from dragoman.settings.entries import renamed

        notes: list[str] = []

        def changed(file: str) -> str:
            text, notes[:] = renamed(file, table, old, new)
            return text

        await self._rewrite(changed)
        return notes

    async def _rewrite(self, changed: Callable[[str], str]) -> None:
        """Use another text of the file; one that is refused leaves the file as it was."""
        from dragoman.settings.load import read_text
        from dragoman.settings.write import save, until_alone

        file = self.places.config_file
        with ExitStack() as held:
            for pause in until_alone(file, held):
                await asyncio.sleep(pause)
            before, after = read_text(file), changed(file)
            if after != before:
                save(file, after)
            try:
                self.reload()
            except Fault:
                if after != before:
                    save(file, before)
                raise

    def reload(self) -> list[tuple[str, Any, Any]]:
        """Read the file again; a bad one leaves everything as it was. Raises BadSettings."""
        for look in self.beside:
            look()
        before = self.loaded
        fresh = load(self.places.config_file, flags=self.flags)
        old, bare = self.tree(), _plain(self.settings)
        self.loaded = fresh
        changes = list(differences(old, self.tree()))
        if before.settings != fresh.settings:
            for apply in tuple(self.applied):
                apply(before.settings, fresh.settings)
        for path, was, now in changes:
            for told in tuple(self._watchers):
                told(path, was, now)
        if self._clear_watchers:
            for path, was, now in differences(bare, _plain(self.settings)):
                for told in tuple(self._clear_watchers):
                    told(path, was, now)
        return changes


def differences(old: Any, new: Any, path: str = "") -> Any:
    """Each leaf that differs, as (dotted path, old, new)."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted({*old, *new}):
            below = f"{path}.{key}" if path else str(key)
            yield from differences(old.get(key), new.get(key), below)
    elif old != new:
        yield path, old, new


def _plain(value: object) -> object:
    if isinstance(value, msgspec.Struct):
        return {name: _plain(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value


def _parts(path: str) -> list[str]:
    if not isinstance(path, str):
        raise BadInput("A configuration path is a text like limits.max_sessions.")
    path = path.removeprefix("$").lstrip(".").replace("[", ".").replace("]", "")
    return [part for part in path.split(".") if part]
