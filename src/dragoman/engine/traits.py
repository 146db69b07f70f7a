"""What is kept with a session beyond what every session has: each part in a shape of its own.

A dialect (or an agent, or the gateway) declares a `Trait`: a frozen struct with a name. Its values
are kept with the session under that name, in `extra`; only the trait itself reads them.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import msgspec
from msgspec import ValidationError, convert, to_builtins

from .faults import BadInput

_MOST_BEFORE = 64  # sessions before one that goes on with them


class Trait(msgspec.Struct, frozen=True, omit_defaults=True):
    """Every field has a default, so that a session without the trait has it too."""

    NAME: ClassVar[str]

    @classmethod
    def of(cls, extra: Mapping[str, Any]) -> Self:
        """What is kept; the defaults when nothing is, or nothing that can be read."""
        kept = extra.get(cls.NAME)
        if not kept:
            return cls()
        try:
            return convert(kept, cls)
        except ValidationError:
            return cls()

    def kept(self) -> dict[str, Any]:
        """As it is stored: what differs from the defaults."""
        made: dict[str, Any] = to_builtins(self)
        return {name: list(v) if isinstance(v, tuple) else v for name, v in made.items()}

    def changed(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """What to keep so that these fields get these values; raises BadInput."""
        unknown = [name for name in fields if name not in self.__struct_fields__]
        if unknown:
            raise BadInput(f"{self.NAME} keeps no {unknown[0]}.")
        try:
            after = convert({**self.kept(), **fields}, type(self)).kept()
        except ValidationError as problem:
            raise BadInput(f"{self.NAME} cannot keep this: {problem}.") from None
        return {name: after.get(name) for name in fields}


def together(*traits: Trait) -> dict[str, Any]:
    """`extra` of a new session."""
    return {trait.NAME: kept for trait in traits if (kept := trait.kept())}


def merged(extra: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """`extra` after a change: None removes a field, or all that is kept under a name."""
    made = dict(extra)
    for name, fields in change.items():
        if isinstance(fields, dict):
            before = made.get(name)
            whole = {**before, **fields} if isinstance(before, dict) else fields
            fields = {key: value for key, value in whole.items() if value is not None}
        if fields is None or fields == {}:
            made.pop(name, None)
        else:
            made[name] = fields
    return made


class Given(Trait, frozen=True):
    """What a session was given on top of its agent's profile, field by field, and beside it."""

    NAME = "given"

    system_prompt: str | None = None
    append_system_prompt: tuple[str, ...] | None = None
    tools: tuple[str, ...] | None = None
    max_steps: int | None = None
    approval_timeout: float | None = None
    temperature: float | None = None
    memory: bool | None = None
    asks: bool | None = None
    context_files: bool | None = None
    auto_compact: bool | None = None
    roots: tuple[str, ...] = ()  # folders beside the working directory
    mcp: tuple[dict[str, Any], ...] = ()  # servers

    def over(self) -> dict[str, Any]:
        """The fields of a profile that it replaces."""
        return {name: value for name in _OVER if (value := getattr(self, name)) is not None}


_OVER = tuple(name for name in Given.__struct_fields__ if name not in ("roots", "mcp"))


class Correspondent(Trait, frozen=True):
    """Whom a session talks with, when that is somebody elsewhere."""

    NAME = "correspondent"

    key: str = ""  # what the session is called there
    channel: str = ""
    account: str = ""
    target: str = ""
    metadata: dict[str, Any] = {}


class Waiver(Trait, frozen=True):
    """Calls that nobody needs to be asked about."""

    NAME = "waiver"

    everything: bool = False
    until: int | None = None  # milliseconds; when `everything` ends by itself
    tools: tuple[str, ...] = ()

    def covers(self, tool: str, now: int) -> bool:
        return tool in self.tools or self.everything and self.all_at(now)

    def all_at(self, now: int) -> bool:
        return self.everything and (self.until is None or now < self.until)


class PutBack(Trait, frozen=True):
    """What was undone or redone since the model last looked."""

    NAME = "restored"

    what: str = ""  # "undone" or "redone"; "": nothing was
    files: tuple[str, ...] = ()
    turn: int = 0  # how many turns there had been


class Background(Trait, frozen=True):
    """The commands that were left running in a session, by id, and how those ended that have."""

    NAME = "background"

    commands: dict[str, str] = {}
    ends: dict[str, str] = {}


class Continues(Trait, frozen=True):
    """The sessions whose conversation this one goes on with, newest first: what their turns
    changed can be undone here."""

    NAME = "continues"

    sessions: tuple[str, ...] = ()

    @classmethod
    def after(cls, id: str, extra: Mapping[str, Any]) -> Self:
        """What a session keeps that goes on with this one."""
        return cls((id, *cls.of(extra).sessions)[:_MOST_BEFORE])


class StartedBy(Trait, frozen=True):
    """The turn of another session that this one works for: its changes are that turn's."""

    NAME = "started_by"

    session: str = ""
    turn: str = ""
