"""Keys of earlier versions: read until a date, of which whoever still uses one is told.

A key that gets another name, or is not needed any more, is written down here for at least six
months (GOVERNANCE.md). After its date the row may go; until it does, the key is told and not read.
"""

from collections.abc import Iterator, Sequence
from datetime import date
from typing import Any, NamedTuple

from .shape import Path, join


class Retired(NamedTuple):
    """One key that is to go; `*` in a path stands for any name."""

    path: Path
    until: date
    instead: Path = ()  # what takes its value
    because: str = ""  # why nothing does

    def fits(self, path: Path) -> bool:
        return len(path) == len(self.path) and all(
            pattern in ("*", part) for pattern, part in zip(self.path, path, strict=True)
        )

    def heir(self, path: Path) -> Path:
        """The key that replaces this one, with the names that `path` has."""
        names = iter(
            [part for pattern, part in zip(self.path, path, strict=True) if pattern == "*"]
        )
        return tuple(next(names) if part == "*" else part for part in self.instead)

    def over(self, today: date | None = None) -> bool:
        return (today or date.today()) >= self.until

    def told(self, path: Path, today: date | None = None) -> str:
        """What became of the key, as the rest of a sentence that begins with its name."""
        if not self.instead:
            return f"is not needed: {self.because}. Take it out: it is unknown from {self.until} on"
        heir = join(self.heir(path))
        if self.over(today):
            return f"was read until {self.until}; it is {heir} now. It is ignored"
        return f"is {heir} now. Rename it: it is read until {self.until}"


RETIRED: tuple[Retired, ...] = (
    Retired(
        ("mcp", "*", "oauth_scope"), date(2027, 6, 1),
        because="a server says itself which scopes it wants",
    ),
)  # fmt: skip


def find(path: Path, table: Sequence[Retired] | None = None) -> Retired | None:
    return next((one for one in (RETIRED if table is None else table) if one.fits(path)), None)


def take_over(
    raw: dict[str, Any], today: date | None = None, table: Sequence[Retired] | None = None
) -> Iterator[tuple[Path, str]]:
    """Give the values of such keys to those that replaced them, in place; tells of each."""
    for one in RETIRED if table is None else table:
        for path, above in list(_places(raw, one.path)):
            value = above.pop(path[-1])
            if one.instead and not one.over(today):
                _put(raw, one.heir(path), value)
            yield path, one.told(path, today)


def _places(here: Any, pattern: Path, above: Path = ()) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Every path in the tables that fits, and the table that its last name is in."""
    if not isinstance(here, dict):
        return
    for name in list(here) if pattern[0] == "*" else [pattern[0]] if pattern[0] in here else []:
        if len(pattern) == 1:
            yield (*above, name), here
        else:
            yield from _places(here[name], pattern[1:], (*above, name))


def _put(raw: dict[str, Any], path: Path, value: Any) -> None:
    """Set a key unless it is there: the newer name counts."""
    here: Any = raw
    for part in path[:-1]:
        here = here.setdefault(part, {})
        if not isinstance(here, dict):
            return  # told as a wrong value
    here.setdefault(path[-1], value)
