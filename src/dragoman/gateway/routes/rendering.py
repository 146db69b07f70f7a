"""Markdown as HTML, for the dashboard."""

import asyncio
from typing import Annotated

import msgspec
from msgspec import Meta

from .table import Call, Route

_LIMIT = 8 * 1024 * 1024


class Texts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    texts: Annotated[tuple[str, ...], Meta(max_length=500)]


class Rendered(msgspec.Struct, frozen=True):
    html: list[str]


def _all(texts: tuple[str, ...]) -> list[str]:
    from dragoman.markup.html import render

    return [render(text) for text in texts]


async def render(call: Call[Texts, None]) -> Rendered:
    """In a thread: a long text must not keep other clients waiting."""
    return Rendered(await asyncio.to_thread(_all, call.body.texts))


ROUTES = [
    Route("POST", "/api/render", render, "Markdown as safe HTML", "dashboard", body=Texts,
          returns=Rendered, limit=_LIMIT, may_fail=(400, 413)),
]  # fmt: skip
