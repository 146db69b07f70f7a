"""`dragoman token new|list|revoke`."""

from .. import say
from ..parse import Args
from ..places import tell


def run(args: Args) -> int:
    """Run one sub-command."""
    done = int(_SUBS[args.sub](args))
    tell(args.config_dir, "")
    return done


def _new(args: Args) -> int:
    from dragoman.host.tokens import new_token

    token, secret = new_token(args.config_dir, args.name or "")
    if args.json:
        say.json({"id": token.id, "name": token.name, "token": secret})
    else:
        say.err("Keep it: it is not shown again.")
        say.out(f"{token.id}  {secret}")
    return 0


def _list(args: Args) -> int:
    from time import localtime, strftime

    from dragoman.host.tokens import list_tokens

    found = list_tokens(args.config_dir)
    if args.json:
        say.json(found)
        return 0
    say.table(
        ("id", "name", "kind", "made"),
        [
            (one.id, one.name, one.kind, strftime("%Y-%m-%d %H:%M", localtime(one.created_at)))
            for one in found
        ],
        empty="no tokens; make one with: dragoman token new",
    )
    return 0


def _revoke(args: Args) -> int:
    from dragoman.engine.faults import BadInput
    from dragoman.host.tokens import revoke_token

    if not revoke_token(args.config_dir, args.id):
        raise BadInput(f"There is no token {args.id}.", "See: dragoman token list")
    return say.result(args, {"id": args.id, "revoked": True}, f"{args.id} is worthless now")


_SUBS = {"new": _new, "list": _list, "revoke": _revoke}
