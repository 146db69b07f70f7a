"""`dragoman agents`: the agents of the configuration."""

from .. import reach, say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def run(args: "Any") -> int:
    """Print one row per agent."""
    with reach.host(args) as host:
        found = host.call("dragoman/agents")
    if args.json:
        say.plain_json(found)
        return 0
    rows = [
        (
            f"{row['alias']} *" if row["alias"] == found["default"] else row["alias"],
            row["model"] or row["problem"],
            row["mode"],
            row["reasoning"],
            row["backend"],
        )
        for row in found["agents"]
    ]
    say.table(("agent", "model", "mode", "reasoning", "backend"), rows, empty="no agents")
    return 0
