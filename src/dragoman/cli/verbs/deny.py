"""`dragoman deny ID`: no to an approval."""

from dragoman import TYPE_CHECKING

from .approve import settle

if TYPE_CHECKING:
    from dragoman.cli.parse import Args


def run(args: "Args") -> int:
    """Answer, and say what was answered."""
    return settle(args, "deny", args.reason or "")
