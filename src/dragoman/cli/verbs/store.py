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
            say.err(f"{say.many(done.sessions, 'session')}, {say.many(done.events, 'event')}")

    done = copied(args.source, args.target, told, args.config_dir)
    if args.json:
        say.json(done)
    else:
        parts = (done.sessions, "session"), (done.events, "event"), (done.values, "value")
        say.out(f"copied {', '.join(say.many(*part) for part in parts)}")
    if done.busy:
        say.warn(
            f"{say.many(done.busy, 'session is', 'sessions are')} in use in {args.target} and left "
            "as found there:"
            " stop who has them, then copy once more."
        )
    if done.behind:
        late = say.many(done.behind, "event was", "events were")
        say.warn(f"{late} written meanwhile: copy once more to get all.")
    return 1 if done.busy or done.behind else 0
