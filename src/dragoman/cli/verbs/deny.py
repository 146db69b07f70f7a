"""`dragoman deny ID`: no to an approval."""

from .approve import settle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def run(args: "Any") -> int:
    """Answer, and say what was answered."""
    return settle(args, "deny", args.reason or "")
