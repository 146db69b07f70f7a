"""`dragoman memory list|forget`: what agents remember across sessions."""

from .. import say
from ..parse import Args
from ..places import tell
from ..times import ago


def run(args: Args) -> int:
    """Read the memories; they are files that several processes may share."""
    from dragoman.cli.local import memories

    tell(args.config_dir, "")
    if args.sub == "forget":
        key, gone = memories.forget(args.config_dir, args.id, args.agent)
        text = f"forgotten: {say.clean(key)} ({', '.join(gone)})"
        return say.result(args, {"id": key, "agents": gone}, text)
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
        spare=("kind", "changed"),
        empty="nothing is remembered",
    )
    return 0
