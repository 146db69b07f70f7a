"""`sessions undo` and `sessions redo`."""

from dragoman import TYPE_CHECKING

from ... import reach, say
from ...times import ago

if TYPE_CHECKING:
    from dragoman.cli.parse import Args


def undo(args: "Args") -> int:
    """Put files back to before a turn, or show the turns that changed some."""
    if args.list:
        return _listed(args)
    return _restored(args, "dragoman/undo", "undone", turn=args.turn or "")


def redo(args: "Args") -> int:
    """Take the last undo back."""
    return _restored(args, "dragoman/redo", "redone")


def worktree(args: "Args") -> int:
    """End a session's worktree."""
    with reach.host(args) as host:
        session = reach.session_id(host, args.session)
        done = host.call("dragoman/endWorktree", {"session_id": session, "how": args.how})
    if args.json:
        say.plain_json(done)
    else:
        say.out(done["done"])
    return 0


def _restored(args: "Args", method: str, verb: str, **params: str) -> int:
    with reach.host(args) as host:
        session = reach.session_id(host, args.session)
        done = host.call(method, {"session_id": session, **params})
    if args.json:
        say.plain_json(done)
        return 0
    say.out(f"{verb}: {', '.join(done['turns'])}")
    for file in done["files"]:
        say.out(f"  {file['fate']:8} {file['path']}")
    if done["note"]:
        say.err(done["note"])
    return 0


def _listed(args: "Args") -> int:
    with reach.host(args) as host:
        session = reach.session_id(host, args.session)
        found = host.call("dragoman/checkpoints", {"session_id": session})["checkpoints"]
    if args.json:
        say.plain_json({"checkpoints": found})
        return 0
    if not found:
        say.err("no turn changed a file that was kept")
    for one in found:
        say.out(f"{one['turn']}  {ago(one['at'])}{'  (undone)' if one['undone'] else ''}")
        for file in one["files"]:
            say.out(f"  {file['fate']:8} {file['path']}")
    return 0
