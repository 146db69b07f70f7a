"""`dragoman` alone: the terminal."""

import os
import sys

from dragoman import TYPE_CHECKING
from dragoman.engine.faults import BadInput

from ..parse import Args

if TYPE_CHECKING:
    from dragoman.tui.begin import Wish


def run(args: Args) -> int:
    """Open it; everything that draws is imported only now."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise BadInput(
            "The terminal needs a terminal on both its input and its output.",
            'In scripts and pipes, use: dragoman run "PROMPT"',
        )
    from dragoman.tui.begin import begin

    wish = wish_of(args)
    return begin(wish, plain=bool(args.plain), light=bool(args.light), dark=bool(args.dark))


def wish_of(args: Args) -> "Wish":
    """What the words of the command line mean. Raises BadInput."""
    from dragoman.tui.begin import Wish

    words = list(args.prompt or ())
    prompt = " ".join(words).encode(errors="replace").decode()
    newest, resume = bool(getattr(args, "continue")), bool(args.resume)
    if newest and resume:
        raise BadInput("--continue and --resume exclude each other.", "Give one of them.")
    session = ""
    if resume and words:
        session, prompt = words[0], " ".join(words[1:])
    folder = os.path.abspath(os.path.expanduser(args.cwd or os.getcwd()))
    if not os.path.isdir(folder):
        raise BadInput(f"{folder} is no folder.")
    return Wish(
        cwd=os.path.realpath(folder),
        config_dir=args.config_dir,
        prompt=prompt,
        session=session,
        newest=newest,
        pick=resume and not session,
        agent=args.agent or "",
        model=args.model or "",
        mode=args.mode,
        worktree=bool(args.worktree),
        vi=bool(args.vi) or os.environ.get("DRAGOMAN_KEYS") == "vi",
    )
