"""`dragoman fleet list|drain|move|grant`."""

from dragoman import TYPE_CHECKING

from .. import say
from ..places import warn

if TYPE_CHECKING:
    from typing import Any

    from dragoman.cli.parse import Args


def run(args: "Args") -> int:
    """Run one sub-command."""
    warn(args.config_dir)
    return int(_SUBS[args.sub](args))


def _list(args: "Args") -> int:
    from dragoman.cli.local.fleets import nodes

    found = nodes(args.config_dir)
    if args.json:
        say.json({"nodes": found})
        return 0
    say.table(
        ("node", "state", "sessions", "running", "lag", "silent", "labels", "version"),
        [_row(one) for one in found],
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


def _drain(args: "Args") -> int:
    from dragoman.cli.local.fleets import drain

    drain(args.config_dir, args.node, back=args.back)
    if args.json:
        say.json({"node": args.node, "draining": not args.back})
    else:
        say.out(
            f"{args.node} takes sessions again"
            if args.back
            else f"{args.node} gives its sessions away, each when its turn is over"
        )
    return 0


def _move(args: "Args") -> int:
    from dragoman.cli.local.fleets import move

    session = move(args.config_dir, args.session, args.node)
    if args.json:
        say.json({"session": session, "node": args.node})
    else:
        say.out(f"{session} goes on on {args.node}")
    return 0


def _grant(args: "Args") -> int:
    from dragoman.cli.local.fleets import grant

    grant(args.config_dir, args.role, args.kind)
    if args.json:
        say.json({"role": args.role, "kind": args.kind})
    else:
        say.out(f"{args.role} is a {args.kind} from now on")
    return 0


_SUBS = {"list": _list, "drain": _drain, "move": _move, "grant": _grant}
