"""`sessions export`: a session as JSON, Markdown or HTML."""

import os
import sys

from dragoman.engine.faults import BadInput

from ... import reach, say
from ...parse import Args


def export(args: Args) -> int:
    """Write the session to stdout or a file of our user's own."""
    with reach.host(args) as host:
        session = reach.session_id(host, args.session)
        info = host.call("dragoman/session", {"session_id": session})["session"]
        events = [*reach.history(host, session)]
    from dragoman.markup.story import written

    text = written(args.format, info, events)
    if not args.output or args.output == "-":
        sys.stdout.write(text)
        return 0
    try:
        made = os.open(args.output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(made, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as problem:
        raise BadInput(f"{args.output} cannot be written: {problem.strerror}.") from None
    if args.json:
        say.plain_json({"session": session, "file": args.output, "events": len(events)})
    else:
        say.err(f"{len(events)} events written to {args.output}")
    return 0
