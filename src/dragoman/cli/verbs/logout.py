"""`dragoman logout`: forget the key that `dragoman login` kept."""

from .. import reach, say
from ..parse import Args
from ..places import find


def run(args: Args) -> int:
    from dragoman.settings import login

    from ..local.login import plain_name

    where = find(args.config_dir)
    if args.provider:
        meant, kept = plain_name(args.provider), login.chosen(where)
        if meant != kept:
            say.err(
                f"dragoman: Nobody is logged in with {meant}{f', but with {kept}' * bool(kept)}."
            )
            return 1
    name = login.forget(where)
    if name:
        reach.reload(args)
    say.out(f"Logged out of {name}." if name else "Nobody is logged in.")
    return 0
