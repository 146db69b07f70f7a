"""Small types that the sections of the configuration share."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from dragoman.engine.points import HookPoint as HookPoint


def says(text: str) -> Meta:
    """The explanation of a key, shown by `dragoman config explain` and in the JSON Schema."""
    return Meta(description=text)


class Section(msgspec.Struct, frozen=True, omit_defaults=True):
    """Base of every table of the configuration."""


Whole = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(ge=1)]
Seconds = Annotated[float, Meta(ge=0)]
Money = Annotated[float, Meta(ge=0)]
Share = Annotated[float, Meta(ge=0, le=1)]
Temperature = Annotated[float, Meta(ge=0, le=2)]
Port = Annotated[int, Meta(ge=0, le=65535)]
StoreFile = Annotated[
    str,
    Meta(
        pattern=r"^(?![^/]*://)",
        extra={"allowed": "the path of a file; an address of PostgreSQL belongs to store.database"},
    ),
]
Filled = Annotated[str, Meta(min_length=1, extra={"allowed": "a text that is not empty"})]
Profile = Literal["strict", "standard", "open"]
Mode = Literal["readonly", "plan", "supervised", "full"]
MODES = "readonly: only looks; plan: looks and plans; supervised: asks first; full: never asks."
Effort = Literal["", "off", "minimum", "low", "medium", "high", "xhigh", "max"]
Words = tuple[str, ...]
Limit = Annotated[float, Meta(gt=0, le=600)]
# Of programs that the host starts: what they get, and what they are trusted with.
Environment = Annotated[dict[str, str], says("Its environment, added to a small clean one.")]
PassEnv = Annotated[
    Words, says("Variables of the daemon's environment that it gets, by name (its key, say).")
]
WithDaemon = Annotated[
    bool, says("It may connect to the daemon as you do: answer questions, change settings.")
]
OutsideSandbox = Annotated[bool, says("It runs outside of the sandbox, with your rights.")]
