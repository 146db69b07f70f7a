"""`dragoman logout`: forget the key that `dragoman login` kept."""

from .. import say
from ..places import find

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def run(args: "Any") -> int:
    from dragoman.settings import login

    name = login.forget(find(args.config_dir))
    say.out(f"Logged out of {name}." if name else "Nobody is logged in.")
    return 0
