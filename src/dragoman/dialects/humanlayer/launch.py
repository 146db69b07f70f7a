"""launchSession and continueSession: from a client's words to an engine session."""

import asyncio
import os
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import msgspec

from dragoman.engine.content import Text
from dragoman.engine.events import ACTIVE, Who
from dragoman.engine.faults import Fault, NothingRunning, UnknownSession
from dragoman.engine.host import OpenSpec
from dragoman.engine.info import SessionInfo
from dragoman.engine.traits import Continues, Given, Waiver

from .approvals import EDITING
from .desk import Desk
from .faults import Failed, Wrong, not_found, required
from .models import agent_of, model_of
from .rows import Own, status_of
from .sessions import mode_of
from .shapes import Continue, Continued, Created, Instructions, Launch
from .times import later

if TYPE_CHECKING:
    from .rest.shapes import CreateSession

_STOP_SECONDS = 15.0
_TOOLS = ("read", "write", "edit", "bash", "ls", "glob", "grep", "ask_user", "plan")
_SAME = {"multiedit": "edit", "shell": "bash", "todowrite": "plan"}


async def launch(desk: Desk, who: Who, params: "Launch | CreateSession") -> Created:
    """Begin a session and give it its query; answers once it has started."""
    required(query=(params.query or "").strip())
    door = desk.door
    run_id = str(uuid4())
    given = Given()
    if params.mcp_config is not None:
        given = Given(mcp=tuple(_servers(msgspec.to_builtins(params.mcp_config), run_id)))
    until = None
    permission = params.permission_mode
    skip = bool(params.dangerously_skip_permissions) or permission == "bypassPermissions"
    timeout = params.dangerously_skip_permissions_timeout or 0
    if skip and timeout > 0:
        until = later(door.now_ms(), timeout)
    mode = mode_of(permission)
    own = Own(run_id, params.permission_prompt_tool or "")
    agent, word = agent_of(door, params.agent, params.model)
    model, notice = model_of(door, agent, word)
    spec = OpenSpec(
        agent=agent,
        cwd=_directory(params.working_dir),
        model=model,
        mode=mode,
        title=(params.title or "")[:500],
        interactive=False,
        worktree=bool(params.worktree),
        traits=(
            own,
            _told(given, params),
            Waiver(skip, until, EDITING if permission == "acceptEdits" else ()),
        ),
    )
    try:
        info = await door.open(spec, who)
    except Fault as fault:
        raise Failed(f"failed to launch session: {fault}") from fault
    await _begin(desk, who, info, params.query or "", "failed to launch session")
    if until is not None:
        desk.expire_later(info.id, until)
    if notice:
        await door.note(info.id, "warning", notice)
    return Created(info.id, run_id, notice)


async def resume(desk: Desk, who: Who, params: Continue) -> Continued:
    """Begin a child of a session; a parent that still runs is interrupted first."""
    required(session_id=params.session_id, query=(params.query or "").strip())
    door = desk.door
    parent_id = params.session_id or ""
    mode = mode_of(params.permission_mode)
    run_id = str(uuid4())
    servers = _servers_from_text(params.mcp_config, run_id) if params.mcp_config else None
    try:
        parent = await door.info(parent_id)
    except UnknownSession:
        raise Failed(f"failed to get parent session: {not_found(parent_id)}") from None
    if status_of(parent) == "draft":
        raise Failed(
            "cannot continue session with status draft "
            "(must be completed, interrupted, running, or failed)"
        )
    if parent.status in ACTIVE:
        parent = await _stop(desk, who, parent_id)
    before = Given.of(parent.extra)
    given = Given(
        before.system_prompt,
        before.append_system_prompt,
        before.tools,
        roots=before.roots,
        mcp=before.mcp if servers is None else tuple(servers),
    )
    waiver = Waiver.of(parent.extra)
    if not waiver.all_at(door.now_ms()):
        waiver = Waiver(tools=waiver.tools)
    if params.permission_mode == "bypassPermissions":
        waiver = Waiver(True, tools=waiver.tools)
    elif params.permission_mode == "acceptEdits":
        waiver = Waiver(tools=EDITING)
    tool = params.permission_prompt_tool or Own.of(parent.extra).permission_prompt_tool
    before_it = Continues.after(parent_id, parent.extra)
    traits = (Own(run_id, tool), _told(given, params), waiver, before_it)
    spec = OpenSpec(title=parent.title, mode=mode, interactive=False, traits=traits)
    failed = "failed to launch resumed Claude session"
    try:
        info = await door.fork(parent_id, who, spec)
    except Fault as fault:
        raise Failed(f"{failed}: {fault}") from fault
    await _begin(desk, who, info, params.query or "", failed)
    desk.expire_later(info.id, waiver.until)
    return Continued(info.id, run_id, info.id, parent_id)


async def _begin(desk: Desk, who: Who, info: SessionInfo, query: str, failed: str) -> None:
    """Give a session that was made for it its query; without that it is not left behind."""
    try:
        work = await desk.door.prompt(info.id, (Text(query),), who)
        await work.started
    except Fault as fault:
        try:
            await desk.door.delete(info.id, who)
        except Fault as problem:
            desk.door.trouble("a session without its query stays", problem, session=info.id)
        raise Failed(f"{failed}: {fault}") from fault


async def _stop(desk: Desk, who: Who, session_id: str) -> SessionInfo:
    """Interrupt a session and wait until it rests."""
    door = desk.door
    try:
        async with asyncio.timeout(_STOP_SECONDS):
            info = await door.info(session_id)
            while info.status in ACTIVE:
                try:
                    await door.interrupt(session_id, who)
                except NothingRunning:
                    pass  # it came to its end meanwhile
                await door.idle(session_id)
                info = await door.info(session_id)
            return info
    except TimeoutError:
        raise Failed(
            "failed to interrupt running session: it did not stop in time", "Try again."
        ) from None
    except Fault as fault:
        raise Failed(f"failed to interrupt running session: {fault}") from fault


def _told(given: Given, params: Instructions) -> Given:
    """What the client set, on top of what the session has already."""
    changes: dict[str, Any] = {}
    if params.system_prompt:
        changes["system_prompt"] = params.system_prompt
    more = tuple(text for text in (params.append_system_prompt, params.custom_instructions) if text)
    if more:
        changes["append_system_prompt"] = more
    if params.max_turns is not None and params.max_turns > 0:
        changes["max_steps"] = params.max_turns
    if params.additional_directories:
        changes["roots"] = tuple(whole(path) for path in params.additional_directories if path)
    allowed = _names(params.allowed_tools)
    refused = _names(params.disallowed_tools)
    if allowed or refused:
        known = allowed or given.tools or _TOOLS
        changes["tools"] = tuple(name for name in known if name not in refused)
    return msgspec.structs.replace(given, **changes)


def _names(tools: list[str] | None) -> list[str]:
    """Tool names as we spell them; a pattern in parentheses is about permission, not the name."""
    names = (tool.partition("(")[0].strip() for tool in tools or ())
    known = (name if name.startswith("mcp__") else name.lower() for name in names)
    return list(dict.fromkeys(_SAME.get(name, name) for name in known if name))


def _servers(config: dict[str, Any], run_id: str) -> list[dict[str, Any]]:
    """MCP servers as the engine takes them; stdio ones are told the run."""
    servers = config.get("mcpServers")
    if servers is None:
        return []
    if not isinstance(servers, dict):
        raise Wrong("invalid request: mcp_config.mcpServers must be an object")
    found = []
    for name, server in servers.items():
        if not isinstance(server, dict):
            raise Wrong(f"invalid request: mcp_config.mcpServers.{name} must be an object")
        one: dict[str, Any] = {"name": name}
        if server.get("url"):
            one |= {
                "type": server.get("type") or "http",
                "url": server["url"],
                "headers": server.get("headers") or {},
            }
        elif isinstance(server.get("command"), str) and server["command"]:
            env, args = server.get("env") or {}, server.get("args") or []
            if not isinstance(env, dict):
                raise Wrong(f"invalid request: mcp_config.mcpServers.{name}.env must be an object")
            if not isinstance(args, list):
                raise Wrong(f"invalid request: mcp_config.mcpServers.{name}.args must be an array")
            one |= {
                "command": server["command"],
                "args": args,
                "env": {**env, "HUMANLAYER_RUN_ID": run_id},
            }
        else:
            raise Wrong(f"invalid request: mcp_config.mcpServers.{name} has no command and no url")
        found.append(one)
    return found


def _servers_from_text(text: str, run_id: str) -> list[dict[str, Any]]:
    try:
        config = msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError) as error:
        raise Wrong(f"invalid mcp_config JSON: {error}") from None
    return _servers(config, run_id)


def whole(path: str) -> str:
    """A path from the root on. Raises Wrong for a relative one."""
    found = os.path.expanduser(path)
    if not os.path.isabs(found):
        raise Wrong(f"a directory must be given as a whole path, not relative: {path}")
    return os.path.normpath(found)


def _directory(given: str | None) -> str:
    if not given:
        return ""
    path = whole(given)
    if not os.path.exists(path):
        raise Failed(f"working directory does not exist: {given}")
    if not os.path.isdir(path):
        raise Failed(f"working directory path exists but is not a directory: {given}")
    return path
