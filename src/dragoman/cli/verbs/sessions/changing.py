"""`sessions cancel`, `rename`, `fork`, `archive`, `delete`, `undo`, `redo`, `worktree`."""

from dragoman.engine.faults import UnknownSession

from ... import reach, say
from ...parse import Args
from ...screen import brief
from ...times import ago


def cancel(args: Args) -> int:
    """Stop the turn that runs."""
    with reach.daemon(args) as host:
        session = reach.session_id(host, args.session)
        found = host.call("dragoman/cancel", {"session_id": session})
    return say.result(args, found, "cancelled")


def rename(args: Args) -> int:
    """Give a session a title."""
    title = " ".join(args.title)
    found = reach.of_session(args, "rename", title=title)["session"]
    return say.result(args, found, f"renamed: {brief(title)}")


def archive(args: Args) -> int:
    """Take a session out of the list, or put it back."""
    back = bool(args.undo)
    found = reach.of_session(args, "archive", archived=not back)["session"]
    return say.result(args, found, "back in the list" if back else "archived")


def fork(args: Args) -> int:
    """A new session that begins with what was said in another."""
    found = reach.of_session(args, "fork")["session"]
    return say.result(args, found, found["id"])


def delete(args: Args) -> int:
    """Remove a session and its history for good."""
    with reach.host(args) as host:
        session = reach.session_id(host, args.session)
        gone = host.call("dragoman/delete", {"session_id": session})["deleted"]
    if not gone:
        raise UnknownSession(session)
    return say.result(args, {"deleted": session}, f"deleted: {session}")


def undo(args: Args) -> int:
    """Put files back to before a turn, or show the turns that changed some."""
    if args.list:
        return _listed(args)
    return _restored(args, "undone", reach.of_session(args, "undo", turn=args.turn or ""))


def redo(args: Args) -> int:
    """Take the last undo back."""
    return _restored(args, "redone", reach.of_session(args, "redo"))


def worktree(args: Args) -> int:
    """End a session's worktree."""
    done = reach.of_session(args, "endWorktree", how=args.how)
    return say.result(args, done, done["done"])


def _restored(args: Args, verb: str, done: reach.Row) -> int:
    if say.as_json(args, done):
        return 0
    say.out(f"{verb}: {', '.join(done['turns'])}")
    _files(done["files"])
    if done["note"]:
        say.err(done["note"])
    return 0


def _listed(args: Args) -> int:
    found = reach.of_session(args, "checkpoints")["checkpoints"]
    if say.as_json(args, {"checkpoints": found}):
        return 0
    if not found:
        say.err("no turn changed a file that was kept")
    for one in found:
        say.out(f"{one['turn']}  {ago(one['at'])}{'  (undone)' if one['undone'] else ''}")
        _files(one["files"])
    return 0


def _files(files: "list[dict[str, str]]") -> None:
    for file in files:
        say.row(f"  {file['fate']:8} ", say.clean(file["path"]))
