"""What zot clients send, typed. Output is built from plain dictionaries with sorted keys."""

import msgspec

MAX_LINE = 16 * 1024 * 1024


class Envelope(msgspec.Struct, gc=False):
    """The part of a command that all have. Its parameters are decoded by its verb."""

    id: str | None = None
    type: str | None = None


class Hello(msgspec.Struct, gc=False):
    token: msgspec.Raw = msgspec.Raw()  # anything: what is no text is a wrong token
    session: str | None = None


class Picture(msgspec.Struct, gc=False):
    mime_type: str | None = None
    data: str | None = None


class Prompt(msgspec.Struct):
    message: str | None = None
    images: list[Picture] | None = None


class SetModel(msgspec.Struct, gc=False):
    model: str | None = None


class SetReasoning(msgspec.Struct, gc=False):
    reasoning: str | None = None


class SetMode(msgspec.Struct, gc=False):
    mode: str | None = None


class Approve(msgspec.Struct, gc=False):
    """`decision` in words, or `allow` as a yes or no."""

    approval: str | None = None
    decision: str | None = None
    allow: bool | None = None
    comment: str | None = None
    text: str | None = None
    scope: str | None = None
    lasts: str | None = None
    digest: str | None = None


class ListSessions(msgspec.Struct, gc=False):
    limit: int | None = None
    cursor: str | None = None
    cwd: str | None = None


class Open(msgspec.Struct, gc=False):
    """`session` is an id, or "new"."""

    session: str | None = None
    agent: str | None = None
    cwd: str | None = None
