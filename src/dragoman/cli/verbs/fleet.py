"""`dragoman fleet list|drain|move|grant`."""

from dragoman import TYPE_CHECKING
from dragoman.engine.faults import BadInput

from .. import say
from ..parse import Args
from ..places import warn

if TYPE_CHECKING:
    from typing import Any

_AWAY = "gives its sessions away, each when its turn is over"


def run(args: Args) -> int:
    """Run one sub-command."""
    warn(args.config_dir)
    return int(_SUBS[args.sub](args))


def _list(args: Args) -> int:
    from dragoman.cli.local.stores import with_desk

    found = with_desk(args.config_dir, lambda desk: desk.nodes())
    if args.json:
        say.json({"nodes": found})
        return 0
    say.table(
        ("node", "state", "sessions", "running", "lag", "silent", "labels", "version"),
        [_row(one) for one in found],
        spare=("version", "labels", "lag", "silent", "running", "sessions"),
        empty="no nodes: set [fleet] database, then start the daemon",
    )
    return 0


def _row(one: "Any") -> "tuple[str, ...]":
    state = "gone" if not one.alive else "draining" if one.draining else "ready"
    if one.alive and not one.draining and (one.facts.get("stalled") or one.facts.get("degraded")):
        state = "stalled" if one.facts.get("stalled") else "degraded"
    return (
        one.name,
        state,
        str(one.sessions),
        str(one.facts.get("running", "")) if one.alive else "",
        str(one.facts.get("lag", "")) if one.alive else "",
        f"{one.silent:.0f} s",
        ", ".join(one.labels),
        f"{one.version}, schema {one.schema}",
    )


def _drain(args: Args) -> int:
    from dragoman.cli.local.stores import with_desk

    if not with_desk(args.config_dir, lambda desk: desk.drain(args.node, not args.back)):
        raise BadInput(f"There is no node {args.node}.", "See: dragoman fleet")
    does = "takes sessions again" if args.back else _AWAY
    return say.result(args, {"node": args.node, "draining": not args.back}, f"{args.node} {does}")


def _move(args: Args) -> int:
    from dragoman.cli.local.stores import with_desk

    session = with_desk(args.config_dir, lambda desk: desk.move(args.session, args.node))
    found = {"session": session, "node": args.node}
    return say.result(args, found, f"{session} goes on on {args.node}")


def _grant(args: Args) -> int:
    from dragoman.cli.local.stores import with_desk

    with_desk(args.config_dir, lambda desk: desk.store.grant(args.role, args.kind))
    found = {"role": args.role, "kind": args.kind}
    return say.result(args, found, f"{args.role} is a {args.kind} from now on")


_SUBS = {"list": _list, "drain": _drain, "move": _move, "grant": _grant}
