"""`dragoman approve ID`: yes to an approval that was seen whole; `dragoman deny ID`: no."""

import sys

from dragoman.client.plain import Plain
from dragoman.engine.faults import BadInput
from dragoman.engine.visible import many

from .. import reach, say
from ..parse import Args
from ..screen import ROOM, ask_of


def run(args: Args) -> int:
    """Answer, and say what was answered."""
    keep = args.always or args.scope or getattr(args, "for")
    more = {"scope": args.scope or "", "lasts": getattr(args, "for") or ""}
    return settle(args, "allow_always" if keep else "allow", args.comment or "", more)


def deny(args: Args) -> int:
    """Answer no, and say so."""
    return settle(args, "deny", args.reason or "")


def settle(args: Args, verdict: str, comment: str, more: "dict[str, str] | None" = None) -> int:
    """Give one verdict to the daemon."""
    with reach.daemon(args) as host:
        ask = reach.ask_id(host, args.id)
        params = {"id": ask, "verdict": verdict, "comment": comment, **(more or {})}
        if verdict != "deny":
            params["digest"] = args.digest or _seen(host, ask)
        settled = host.call("dragoman/answer", params)["settled"]
    if say.as_json(args, settled):
        return 0
    tool = f" {settled['tool']}" if settled.get("tool") else ""
    said = {"allow": "allowed", "allow_always": "allowed from now on", "deny": "denied"}
    say.out(f"{said[settled['verdict']]}:{say.clean(tool)} ({ask})")
    if settled.get("scope"):
        rule = f" ({settled['rule']})" if settled.get("rule") else ""
        say.out(f"remembered: {say.clean(settled['scope'])}{rule}")
    return 0


def _seen(host: Plain, ask_id: str) -> str:
    """The digest of a question that the list shows whole, or that is read and agreed to here."""
    from dragoman.engine.shown import line

    row = host.call("dragoman/approval", {"id": ask_id})["approval"]
    ask = ask_of(row["ask"])
    left = line(ask, ROOM)[1]
    if not left or row.get("settled"):
        return ask.digest
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        count = many(left, "character was", "characters were")
        raise BadInput(
            f"This question is longer than the list shows: {count} left out.",
            f"Read it with `dragoman approvals show {ask_id}`, then approve it with --digest.",
        )
    from ..dialogue import Dialogue, screen_size

    dialogue = Dialogue(ask, screen_size())
    while True:
        sys.stderr.write(dialogue.prompt())
        sys.stderr.flush()
        typed = sys.stdin.readline()
        decided = dialogue.typed(typed or "n")
        if decided is not None and decided.verdict == "allow":
            return ask.digest
        if decided is not None:
            raise BadInput("Nothing was answered.")
