"""`dragoman store copy FROM TO`."""

from dragoman import TYPE_CHECKING

from .. import say
from ..parse import Args

if TYPE_CHECKING:
    from typing import Any


def run(args: Args) -> int:
    """Copy, telling how far it is."""
    from dragoman.cli.local.stores import copied

    def told(done: "Any") -> None:
        if not args.json:
            say.err(f"{done.sessions} sessions, {done.events} events")

    done = copied(args.source, args.target, told, args.config_dir)
    if args.json:
        say.json(done)
    else:
        say.out(f"copied {done.sessions} sessions, {done.events} events, {done.values} values")
    if done.busy:
        say.warn(
            f"{done.busy} sessions are in use in {args.target} and were left as they are there:"
            " stop who has them, then copy once more."
        )
    if done.behind:
        say.warn(f"{done.behind} events were written meanwhile: copy once more to get them.")
    return 1 if done.busy or done.behind else 0
