"""`dragoman token new|list|revoke`."""

from .. import say
from ..parse import Args
from ..places import tell

_SHOWN = 10  # names of tokens in an error


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
        whole=("name",),
        spare=("kind", "made"),
        empty="no tokens; make one with: dragoman token new",
    )
    return 0


def _revoke(args: Args) -> int:
    from dragoman.engine.faults import BadInput
    from dragoman.host.tokens import list_tokens, revoke_token

    known = list_tokens(args.config_dir)
    ids = [one.id for one in known if one.id == args.id] or [
        one.id for one in known if args.id and one.name == args.id
    ]
    if len(ids) > 1:
        raise BadInput(
            f"{len(ids)} tokens are named {say.clean(args.id)}: {', '.join(ids)}.",
            "Give the id of the one that you mean; `dragoman token list` says when each was made.",
        )
    if not ids or not revoke_token(args.config_dir, ids[0]):
        named = sorted({say.clean(one.name or one.id) for one in known})
        names = ", ".join(named[:_SHOWN]) or "none"
        more = ", …" if len(named) > _SHOWN else ""
        raise BadInput(
            f"There is no token {say.clean(args.id)} (there are: {names}{more}).",
            "See: dragoman token list",
        )
    said = f"{ids[0]} is worthless now"
    return say.result(args, {"id": ids[0], "revoked": True}, said)


_SUBS = {"new": _new, "list": _list, "revoke": _revoke}
