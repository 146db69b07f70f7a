"""How git is called: it runs no hooks, asks nobody, and minds no wishes of our environment."""

import os

STILL = (
    *("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "commit.gpgSign=false"),
    *("-c", "protocol.allow=never", "-c", "submodule.recurse=false", "-c", "gc.auto=0"),
)


def checkout_of(cwd: str) -> str:
    """The checkout around a folder; empty: there is none."""
    place = os.path.realpath(cwd)
    while not os.path.lexists(os.path.join(place, ".git")):
        above = os.path.dirname(place)
        if above == place:
            return ""
        place = above
    return place


def plain_env() -> dict[str, str]:
    """Our environment without what steers git."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return kept | {"GIT_TERMINAL_PROMPT": "0", "GIT_EDITOR": "true", "LC_ALL": "C"}
