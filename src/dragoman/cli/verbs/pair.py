"""`dragoman pair`: a code that lets a browser or another machine in."""

from dragoman.client.problems import NotRunning

from .. import reach, say
from ..parse import Args
from ..places import find, tell


def new_code(args: Args) -> reach.Row:
    """Of the running daemon, over its own socket; without one straight into the store."""
    try:
        return dict(reach.of_daemon(args, "pair"))
    except NotRunning:
        from dragoman.host import tokens
        from dragoman.settings.load import load_or_defaults

        where = find(args.config_dir)
        settings = load_or_defaults(where.config_file, "gateway").settings
        code = tokens.new_code(args.config_dir)
        tell(args.config_dir, "")
        say.warn("No daemon runs. Start it while the code is good: dragoman daemon --background")
        return {"code": code, "address": tokens.address(where, settings), "expires_in": 600}


def run(args: Args) -> int:
    """Print the code and where to use it."""
    found = new_code(args)
    code, place = found["code"], found["address"]
    if args.json:
        say.json(found)
    else:
        say.err(f"Open {place}/ and give this code. It works once, for ten minutes.")
        if found.get("fingerprint"):
            say.err(f"Its certificate has the SHA-256 fingerprint {found['fingerprint']}")
        say.out(code)
    return 0
