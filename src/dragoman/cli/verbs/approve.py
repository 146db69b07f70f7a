"""`dragoman approve ID`: yes to an approval."""

from .. import reach, say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def run(args: "Any") -> int:
    """Answer, and say what was answered."""
    verdict = "allow_always" if args.always else "allow"
    return settle(args, verdict, args.comment or "")


def settle(args: "Any", verdict: str, comment: str) -> int:
    """Give one verdict to the daemon."""
    with reach.daemon(args) as host:
        ask = reach.ask_id(host, args.id)
        params = {"id": ask, "verdict": verdict, "comment": comment}
        settled = host.call("dragoman/answer", params)["settled"]
    if args.json:
        say.plain_json(settled)
    else:
        tool = f" {settled['tool']}" if settled.get("tool") else ""
        said = {"allow": "allowed", "allow_always": "allowed from now on", "deny": "denied"}
        say.out(f"{said[verdict]}:{say.clean(tool)} ({ask})")
    return 0
