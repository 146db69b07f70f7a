"""A session in a git worktree of its own: how it begins, and how the user ends it."""

import asyncio

import msgspec

from .events import ExtraSet, Who
from .faults import BadInput, Busy
from .host import Host, OpenSpec
from .ids import token
from .info import SessionInfo
from .opening import directory, whole_path
from .ports.worktrees import Worktree as Worktree
from .ports.worktrees import Worktrees as Worktrees


async def placed(host: Host, spec: OpenSpec) -> OpenSpec:
    """The same, in a worktree of its own."""
    cwd = directory(whole_path(spec.cwd, host._launch_dir, relative=not host.shared))
    mark = token()[:8]
    made, tree = await asyncio.to_thread(_of(host).make, cwd, spec.title, mark)
    return msgspec.structs.replace(
        spec, cwd=made, traits=(*spec.traits, tree), worktree=False, check_cwd=True
    )


async def named(host: Host, info: SessionInfo) -> None:
    """Name the branch of a worktree after the session's title, as soon as there is one."""
    tree = Worktree.of(info.extra)
    title = info.title or info.query.strip().partition("\n")[0]
    session = host.live.get(info.id)
    if not tree.unnamed or tree.ended or not title or session is None:
        return
    branch = await asyncio.to_thread(_of(host).name, tree, title)
    change = {"branch": branch, "unnamed": None}
    await session.ledger.put(ExtraSet({Worktree.NAME: change}, None))


async def ended(host: Host, session_id: str, how: str, by: Who | None) -> str:
    """End a session's worktree by the user's word. Raises BadInput, Busy."""
    if how != "merge" and how != "drop":
        raise BadInput(f"Unknown end of a worktree: {how}.", "Use merge or drop.")
    session = await host.get(session_id)
    tree = Worktree.of(session.state.extra)
    if not tree.path or tree.ended:
        was = f" It was {tree.ended}." if tree.ended else ""
        raise BadInput(f"Session {session_id} has no worktree.{was}", "Open one with --worktree.")
    if session.inbox.busy:
        raise Busy(f"Session {session_id} is at work.", "Wait for its turn to end, or cancel it.")
    said = await asyncio.to_thread(_of(host).end, tree, how, session.state.title)
    fate = "merged" if how == "merge" else "dropped"
    await session.ledger.put(ExtraSet({Worktree.NAME: {"ended": fate}}, by))
    return said


def _of(host: Host) -> Worktrees:
    if host.worktrees is None:
        raise BadInput("This host makes no worktrees.")
    found: Worktrees = host.worktrees
    return found
