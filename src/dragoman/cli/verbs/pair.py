"""`dragoman pair`: a code that lets a browser or another machine in."""

from .. import say
from ..places import warn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def run(args: "Any") -> int:
    """Print the code and where to use it."""
    from dragoman.host.tokens import address, new_code, read_settings

    warn(args.config_dir)
    where, settings = read_settings(args.config_dir)
    code = new_code(args.config_dir)
    place = address(where, settings)
    if args.json:
        say.json({"code": code, "address": place, "expires_in": 600})
    else:
        say.err(f"Open {place}/ and give this code. It works once, for ten minutes.")
        say.out(code)
    return 0
