"""Sessions and drafts: list, look, begin, change, continue, stop, search."""

from typing import Any
from uuid import uuid4

import msgspec
from msgspec import UNSET

from dragoman.engine.content import Text
from dragoman.engine.faults import Fault
from dragoman.engine.host import OpenSpec
from dragoman.engine.info import SessionInfo, SessionQuery, each_session
from dragoman.engine.traits import Given, Waiver
from dragoman.wire.codec import encode

from .. import shapes as rpc
from ..conversation import conversation, snapshots
from ..launch import launch, resume, whole
from ..models import agent_of, model_of
from ..rows import Own, state_of, status_of, summary_of
from ..sessions import (
    archive,
    archive_many,
    change_settings,
    found,
    interrupt,
    recent_paths,
    rename,
)
from . import shapes
from .files import is_folder, made_folder
from .table import Asked, Operation, Refused, RestAnswer

_NO_STATE = ("", "{}", "null")  # of an editor in which nothing was written
_PAGE = 500
_MOST = 10_000


def shown(asked: Asked, info: SessionInfo) -> shapes.Session:
    """A session as this interface has it."""
    state = state_of(info, asked.desk.door)
    known: dict[str, Any] = {}
    for name in shapes.Session.__struct_fields__:
        value = getattr(state, name, UNSET)
        if value is not UNSET:
            known[name] = value
    own = Own.of(info.extra)
    if state.status == "draft":
        known |= {"query": own.draft, "summary": summary_of(own.draft)}
        if own.discarded:
            known["status"] = "discarded"
        if own.place:
            known["working_dir"] = own.place
    known["editor_state"] = own.editor_state or None
    known["additional_directories"] = list(Given.of(info.extra).roots) or None
    known["proxy_enabled"] = False
    return shapes.Session(**known)


async def _all(asked: Asked) -> list[SessionInfo]:
    infos: list[SessionInfo] = []
    async for info in each_session(asked.desk.door.list, SessionQuery(limit=_PAGE)):
        infos.append(info)
        if len(infos) >= _MOST:
            break
    return infos


def _kind(info: SessionInfo) -> str:
    """Which of the lists has it: normal, archived, draft, or none (a discarded draft)."""
    if info.archived:
        return "archived"
    if status_of(info) != "draft":
        return "normal"
    return "" if Own.of(info.extra).discarded else "draft"


async def list_(asked: Asked) -> shapes.SessionsAnswer:
    query: shapes.ListQuery = asked.query
    infos = await _all(asked)
    leaves = query.leavesOnly if query.leafOnly is None else query.leafOnly
    if leaves:
        parents = {info.parent for info in infos}
        infos = [info for info in infos if info.id not in parents]
    kinds = [_kind(info) for info in infos]
    counts = shapes.Counts(*(kinds.count(kind) for kind in ("normal", "archived", "draft")))
    if query.filter:
        if query.filter not in ("normal", "archived", "draft"):
            raise Refused(400, f"unknown filter {query.filter}: use normal, archived or draft")
        chosen = {query.filter}
    elif query.archivedOnly:
        chosen = {"archived"}
    else:
        chosen = {"normal", "draft", *(["archived"] if query.includeArchived else [])}
    rows = [shown(asked, info) for info, kind in zip(infos, kinds, strict=True) if kind in chosen]
    return shapes.SessionsAnswer(rows, counts)


async def search(asked: Asked) -> shapes.SessionsAnswer:
    words = asked.query.query.strip().lower()
    limit = max(1, min(asked.query.limit, 200))
    hits = [
        info
        for info in await _all(asked)
        if words in f"{info.title}\n{info.query}\n{info.cwd}".lower()
    ]
    return shapes.SessionsAnswer([shown(asked, info) for info in hits[:limit]])


async def show(asked: Asked) -> shapes.Session:
    info = await found(asked.desk, asked.path["id"])
    return shown(asked, info)


async def create(asked: Asked) -> object:
    """Begin a session; with `draft` it waits for its launch."""
    body: shapes.CreateSession = asked.body
    if body.proxy_enabled:
        raise Refused(400, "proxies are not offered here: configure a provider instead")
    makes = body.create_directory_if_not_exists or body.createDirectoryIfNotExists
    if body.working_dir and makes:
        made_folder(body.working_dir)
    if body.draft:
        return await _draft(asked, body)
    try:
        made = await launch(asked.desk, asked.who, body)
    except Fault as fault:
        raise Refused(400, str(fault)) from fault
    except Exception as problem:
        if "working directory does not exist" in str(problem):
            return _no_directory(body.working_dir or "")
        raise
    if body.auto_accept_edits:
        settings = rpc.ChangeSettings(made.session_id, auto_accept_edits=True)
        await change_settings(asked.desk, asked.who, settings)
    return made


def _no_directory(path: str) -> RestAnswer:
    return RestAnswer(422, encode({
        "error": "directory_not_found", "path": path, "requires_creation": True,
        "message": f"working directory does not exist: {path}",
    }))  # fmt: skip


async def _draft(asked: Asked, body: shapes.CreateSession) -> rpc.Created:
    door, run_id = asked.desk.door, str(uuid4())
    agent, word = agent_of(door, body.agent, body.model)
    model, notice = model_of(door, agent, word)
    place = whole(body.working_dir) if body.working_dir else ""
    own = Own(run_id, body.permission_prompt_tool or "", body.query or "", body.editor_state or "")
    if place and not is_folder(place):  # its launch asks whether it is to be made
        own, place = msgspec.structs.replace(own, place=place), ""
    roots = tuple(whole(one) for one in body.additional_directories or ())
    spec = OpenSpec(
        agent=agent,
        cwd=place,
        model=model,
        title=(body.title or "")[:500],
        interactive=True,
        traits=(own, Given(roots=roots)),
    )
    info = await door.open(spec, asked.who)
    settings = rpc.ChangeSettings(
        info.id,
        body.auto_accept_edits,
        body.dangerously_skip_permissions or None,
        body.dangerously_skip_permissions_timeout,
        body.permission_mode,
    )
    if body.auto_accept_edits or body.dangerously_skip_permissions or body.permission_mode:
        await change_settings(asked.desk, asked.who, settings)
    return rpc.Created(info.id, run_id, notice)


async def _its_draft(asked: Asked, *, discarded: bool = False) -> SessionInfo:
    """The draft that is meant; `discarded`: also one that was thrown away."""
    info = await found(asked.desk, asked.path["id"])
    status = status_of(info)
    if status == "draft" and Own.of(info.extra).discarded and not discarded:
        status = "discarded"
    if status != "draft":
        raise Refused(400, f"session is not a draft but {status}")
    return info


async def launch_draft(asked: Asked) -> shapes.Session | RestAnswer:
    info = await _its_draft(asked)
    own, body = Own.of(info.extra), asked.body
    prompt = body.prompt or body.query or own.draft
    if not prompt.strip():
        raise Refused(400, "prompt is required")
    if own.place:
        if body.createDirectoryIfNotExists or body.create_directory_if_not_exists:
            made_folder(own.place)
        if not is_folder(own.place):
            return _no_directory(own.place)
        await _moved(asked, info, own)
    work = await asked.desk.door.prompt(info.id, (Text(prompt),), asked.who)
    await work.started
    return await show(asked)


async def _moved(asked: Asked, info: SessionInfo, own: Own) -> None:
    """The same draft in the folder that was chosen since: nothing was said in it yet."""
    own, cwd = msgspec.structs.replace(own, place=""), own.place
    door, extra = asked.desk.door, info.extra
    spec = OpenSpec(
        id=info.id, agent=info.agent, cwd=cwd, model=info.model, mode=info.mode, title=info.title,
        traits=(own, Given.of(extra), Waiver.of(extra)),
    )  # fmt: skip
    await door.delete(info.id, asked.who)
    await door.open(spec, asked.who)


async def discard_draft(asked: Asked) -> None:
    """Out of the lists, until it is restored."""
    await _keep(asked, await _its_draft(asked), discarded=True)


async def delete_empty(asked: Asked) -> None:
    """For good, and therefore only where nothing is lost."""
    info = await _its_draft(asked, discarded=True)
    own = Own.of(info.extra)
    if info.title or own.draft or own.editor_state not in _NO_STATE:
        raise Refused(400, "the draft is not empty")
    await asked.desk.door.delete(info.id, asked.who)


async def restore_drafts(asked: Asked) -> shapes.Outcome:
    if not asked.body.session_ids:
        raise Refused(400, "session_ids is required and cannot be empty")
    failed: list[str] = []
    for session_id in asked.body.session_ids:
        try:
            info = await asked.desk.door.info(session_id)
            if status_of(info) != "draft":
                failed.append(session_id)
            else:
                await _keep(asked, info, discarded=False)
        except Fault:
            failed.append(session_id)
    return shapes.Outcome(not failed, failed)


async def _keep(asked: Asked, info: SessionInfo, **fields: Any) -> None:
    await asked.desk.door.keep(info.id, Own, asked.who, **fields)


async def update(asked: Asked) -> shapes.Session:
    """Change what is given, and show the session as it is then."""
    body: shapes.UpdateSession = asked.body
    desk, who = asked.desk, asked.who
    info = await found(desk, asked.path["id"])
    if body.proxy_enabled:
        raise Refused(400, "proxies are not offered here: configure a provider instead")
    if body.working_dir:
        place = whole(body.working_dir)
        if status_of(info) == "draft":
            await _keep(asked, info, place="" if place == info.cwd else place)
        elif place != info.cwd:
            raise Refused(400, "a session keeps its directory: make another one")
    if body.status is not None:
        if body.status not in ("discarded", "draft") or status_of(info) != "draft":
            raise Refused(400, "status can be discarded or draft, and of a draft only")
        await _keep(asked, info, discarded=body.status == "discarded")
    if body.editor_state is not None:
        await _keep(asked, info, editor_state=body.editor_state)
    if body.title is not None:
        await rename(desk, who, rpc.Title(info.id, body.title))
    if body.archived is not None:
        await archive(desk, who, rpc.Archive(info.id, body.archived))
    if body.model_id or body.model:
        word = body.model_id or body.model or ""
        ref, notice = model_of(desk.door, info.agent, word)
        if not ref:
            raise Refused(400, notice or f"unknown model: {word}")
        await desk.door.set_model(info.id, ref, who)
    if body.additional_directories is not None:
        roots = [whole(one) for one in body.additional_directories]
        await desk.door.keep(info.id, Given, who, roots=roots)
    wanted = (body.auto_accept_edits, body.dangerously_skip_permissions, body.permission_mode)
    if wanted != (None, None, None):
        settings = rpc.ChangeSettings(
            info.id,
            body.auto_accept_edits,
            body.dangerously_skip_permissions,
            body.dangerously_skip_permissions_timeout_ms,
            body.permission_mode,
        )
        await change_settings(desk, who, settings)
    return await show(asked)


async def continue_(asked: Asked) -> rpc.Continued:
    body: shapes.ContinueSession = asked.body
    text = None if body.mcp_config is None else encode(body.mcp_config).decode()
    given = {name: getattr(body, name) for name in rpc.Instructions.__struct_fields__}
    params = rpc.Continue(session_id=asked.path["id"], mcp_config=text, **given)
    return await resume(asked.desk, asked.who, params)


async def stop(asked: Asked) -> rpc.Interrupted:
    return await interrupt(asked.desk, asked.who, rpc.OfSession(asked.path["id"]))


async def messages(asked: Asked) -> list[rpc.Said]:
    params = rpc.Conversation(asked.path["id"])
    return (await conversation(asked.desk, asked.who, params))["events"]


async def files(asked: Asked) -> list[rpc.Snapshot]:
    params = rpc.OfSession(asked.path["id"])
    return (await snapshots(asked.desk, asked.who, params))["snapshots"]


async def bulk_archive(asked: Asked) -> object:
    done = await archive_many(asked.desk, asked.who, asked.body)
    outcome = shapes.Outcome(done.success, done.failed_sessions)
    return outcome if done.success else RestAnswer(207, encode({"data": outcome}))


async def paths(asked: Asked) -> list[rpc.RecentPath]:
    limit = max(1, min(asked.query.limit, 100))
    return (await recent_paths(asked.desk, asked.who, rpc.Recent(limit)))["paths"]


OPERATIONS = (
    Operation("GET", ("/sessions",), "listSessions", "Sessions, newest activity first", list_,
              query=shapes.ListQuery, returns=shapes.SessionsAnswer),
    Operation("POST", ("/sessions",), "createSession", "Begin a session, or a draft", create,
              body=shapes.CreateSession, returns=rpc.Created, wraps="CreatedAnswer", status=201),
    Operation("GET", ("/sessions/search",), "searchSessions", "Sessions by their words", search,
              query=shapes.SearchQuery, returns=shapes.SessionsAnswer),
    Operation("POST", ("/sessions/archive",), "bulkArchiveSessions", "Archive many", bulk_archive,
              body=rpc.BulkArchive, returns=shapes.Outcome, wraps="OutcomeAnswer"),
    Operation("POST", ("/sessions/restore", "/sessions/restore-drafts"), "bulkRestoreDrafts",
              "Bring discarded drafts back", restore_drafts, body=shapes.SessionIds,
              returns=shapes.Outcome, wraps="OutcomeAnswer"),
    Operation("GET", ("/sessions/{id}",), "getSession", "One session", show,
              returns=shapes.Session, wraps="SessionAnswer"),
    Operation("PATCH", ("/sessions/{id}",), "updateSession", "Change its settings", update,
              body=shapes.UpdateSession, returns=shapes.Session, wraps="SessionAnswer"),
    Operation("DELETE", ("/sessions/{id}/launch", "/sessions/{id}/draft", "/sessions/{id}"),
              "deleteDraftSession", "Throw a draft away; it can be restored", discard_draft,
              status=204),
    Operation("DELETE", ("/sessions/{id}/hard-delete-empty",), "hardDeleteEmptyDraftSession",
              "Remove a draft for good in which nothing was written", delete_empty, status=204),
    Operation("POST", ("/sessions/{id}/launch", "/sessions/{id}/launch-draft"),
              "launchDraftSession", "Let a draft begin", launch_draft, body=shapes.LaunchDraft,
              returns=shapes.Session, wraps="SessionAnswer"),
    Operation("POST", ("/sessions/{id}/continue",), "continueSession", "Begin a child of it",
              continue_, body=shapes.ContinueSession, returns=rpc.Continued,
              wraps="ContinuedAnswer", status=201),
    Operation("POST", ("/sessions/{id}/interrupt",), "interruptSession", "Stop what it does", stop,
              returns=rpc.Interrupted, wraps="InterruptedAnswer"),
    Operation("GET", ("/sessions/{id}/messages",), "getSessionMessages", "Its conversation",
              messages, returns=list[rpc.Said], wraps="MessagesAnswer"),
    Operation("GET", ("/sessions/{id}/snapshots",), "getSessionSnapshots", "Files that it read",
              files, returns=list[rpc.Snapshot], wraps="SnapshotsAnswer"),
    Operation("GET", ("/recent-paths", "/sessions/recent-paths"), "getRecentPaths",
              "Working directories used last", paths, query=shapes.PathsQuery,
              returns=list[rpc.RecentPath], wraps="PathsAnswer"),
)  # fmt: skip
