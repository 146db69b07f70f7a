"""`dragoman memory list|forget`: what agents remember across sessions."""

from dragoman.engine.faults import BadInput

from .. import say
from ..parse import Args
from ..places import tell
from ..times import ago


def run(args: Args) -> int:
    """Read the memories; they are files that several processes may share."""
    from dragoman.cli.local import memories

    tell(args.config_dir, "")
    if args.sub == "forget":
        gone = memories.forget(args.config_dir, args.id, args.agent)
        if not gone:
            raise BadInput(f"Nothing is remembered as {args.id}.", "See: dragoman memory list")
        text = f"forgotten: {say.clean(args.id)} ({', '.join(gone)})"
        return say.result(args, {"id": args.id, "agents": gone}, text)
    found = memories.entries(args.config_dir, args.agent)
    if say.as_json(args, {"entries": found}):
        return 0
    rows = [
        (row["agent"], row["key"], row["category"], ago(row["updated"]), row["content"])
        for row in found
    ]
    say.table(
        ("agent", "id", "kind", "changed", "content"),
        rows,
        whole=("id",),
        empty="nothing is remembered",
    )
    return 0
