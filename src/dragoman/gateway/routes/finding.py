"""Finding: sessions by their words, folders and files by their names, what a prompt may begin with,
and what was spent today."""

import asyncio
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from dragoman.engine.info import SessionInfo, SessionQuery

from .. import views
from ..http import Refusal
from ..places import files, folders
from ..spending import Spent
from .table import Call, Plain, Route

_RECENT = 12


class SearchQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    text: Annotated[str, Meta(max_length=1000)] = ""
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100
    offset: Annotated[int, Meta(ge=0, le=10_000)] = 0


class Found(msgspec.Struct, frozen=True):
    """`more`: there are further ones after these."""

    sessions: list[SessionInfo]
    more: bool


class FolderQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    text: Annotated[str, Meta(max_length=4096)] = ""


class FileQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    cwd: Annotated[str, Meta(max_length=4096)] = ""
    text: Annotated[str, Meta(max_length=1000)] = ""


class CwdQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    cwd: Annotated[str, Meta(max_length=4096)] = ""


class Folders(msgspec.Struct, frozen=True):
    """`recent`: where sessions were lately; `folders`: what the typed text may become."""

    recent: list[str]
    folders: list[str]


class CommandView(msgspec.Struct, frozen=True):
    name: str
    description: str
    hint: str = ""


class Overview(msgspec.Struct, frozen=True):
    """Totals of all sessions, and what was spent today."""

    sessions: int
    archived: int
    today: list[Spent]


async def search(call: Call[None, SearchQuery]) -> Found:
    query = call.query
    found = await call.door.search(query.text, query.offset + query.limit + 1)
    page = found[query.offset : query.offset + query.limit]
    return Found([views.brief(one) for one in page], len(found) > query.offset + query.limit)


async def overview(call: Plain) -> Overview:
    whole = await call.door.list(SessionQuery(limit=1, counted=True))
    aside = await call.door.list(SessionQuery(archived=True, limit=1, counted=True))
    return Overview(whole.total or 0, aside.total or 0, await call.gate.spending.today())


async def find_folders(call: Call[None, FolderQuery]) -> Folders:
    page = await call.door.list(SessionQuery(limit=200))
    recent = list(dict.fromkeys(one.cwd for one in page.sessions))[:_RECENT]
    return Folders(recent, await asyncio.to_thread(folders, call.query.text))


def _folder(call: Call[Any, Any]) -> str:
    folder: str = call.query.cwd or call.gate.cwd
    if not folder.startswith("/") or "\0" in folder:
        raise Refusal(400, "bad_input", "The folder must be a whole path.")
    return folder


async def find_files(call: Call[None, FileQuery]) -> list[str]:
    return await asyncio.to_thread(files, _folder(call), call.query.text)


async def commands(call: Call[None, CwdQuery]) -> list[CommandView]:
    found = await asyncio.to_thread(call.door.commands, _folder(call))
    own = [
        CommandView("undo", "Put files back to before the last turn that changed some", "turn"),
        CommandView("redo", "Take the last undo back"),
    ]
    return [*own, *(CommandView(one.name, one.description, one.hint) for one in found.values())]


ROUTES = [
    Route("GET", "/api/search", search, "Sessions in which words stand, newest first", "sessions",
          query=SearchQuery, returns=Found, may_fail=(400,)),
    Route("GET", "/api/overview", overview, "How many sessions, and what was spent today", "host",
          returns=Overview),
    Route("GET", "/api/folders", find_folders, "Folders: recent ones, and by their beginning",
          "dashboard", query=FolderQuery, returns=Folders, may_fail=(400,)),
    Route("GET", "/api/files", find_files, "Files of a folder by letters of their names",
          "dashboard", query=FileQuery, returns=list[str], may_fail=(400,)),
    Route("GET", "/api/commands", commands, "Slash commands of a folder", "dashboard",
          query=CwdQuery, returns=list[CommandView], may_fail=(400,)),
]  # fmt: skip
