"""`dragoman store copy FROM TO`."""

from .. import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def run(args: "Any") -> int:
    """Copy, telling how far it is."""
    from dragoman.cli.local.stores import copied

    def told(done: "Any") -> None:
        if not args.json:
            say.err(f"{done.sessions} sessions, {done.events} events")

    done = copied(args.source, args.target, told)
    if args.json:
        say.json(done)
    else:
        say.out(f"copied {done.sessions} sessions, {done.events} events, {done.values} values")
    if done.behind:
        say.warn(f"{done.behind} events were written meanwhile: copy once more to get them.")
        return 1
    return 0
