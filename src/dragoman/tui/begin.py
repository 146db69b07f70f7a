"""Opens the terminal as the command line asks for it."""

import gc
import os
import shlex
import sys
from collections.abc import Mapping
from typing import Protocol

from dragoman.engine.faults import BadInput
from dragoman.engine.reading import counted

from .curtain import Curtain
from .wish import Wish


class TerminalFlags(Protocol):
    """What the command line says of the terminal, and `continue`, which Python cannot name."""

    prompt: list[str] | None
    resume: bool
    cwd: str | None
    config_dir: str | None
    agent: str | None
    model: str | None
    mode: str | None
    worktree: bool
    vi: bool
    plain: bool
    light: bool
    dark: bool


def begin(args: TerminalFlags) -> int:
    """Run the terminal; returns the exit code."""
    wish = wish_of(args)
    if args.plain or os.environ.get("TERM", "dumb") in ("dumb", ""):
        from .plain import talk

        return talk(wish)
    light = bool(args.light) or (not args.dark and is_light(os.environ))
    os.environ.setdefault("TEXTUAL_FPS", "400")  # a key is drawn within 3 ms; we draw text at 10
    for stale in ("COLUMNS", "LINES"):  # Textual would believe them; the terminal knows better
        os.environ.pop(stale, None)
    sys.setswitchinterval(0.0005)  # keys are read, and the screen is written, by threads
    gc.disable()  # loading makes no garbage worth looking for; the first frame turns it on again
    with Curtain(welcome=not (wish.newest or wish.session or wish.pick)):
        from .app import Terminal

        if not sys.stderr.isatty():  # Textual draws there; `2> file` shall not lose the screen
            sys.__stderr__ = sys.__stdout__  # type: ignore[misc]
        app = Terminal(wish, light=light)
        code = app.run()
    if back := way_back(app.desk.session, wish.config_dir):
        print(back)
    return app.return_code or code or 0


def is_light(env: Mapping[str, str]) -> bool:
    """By COLORFGBG ("foreground;background"), which many terminals set; dark when unknown."""
    back = counted(env.get("COLORFGBG", "").rpartition(";")[2])
    return back in (7, 9, 10, 11, 12, 13, 14, 15)


def way_back(session: str, config_dir: str | None) -> str:
    """How to open the session again that was left; nothing when there was none."""
    if not session:
        return ""
    where = f" --config-dir {shlex.quote(config_dir)}" if config_dir else ""
    return f"come back with: dragoman{where} -r {session[:8]}"


def wish_of(args: TerminalFlags) -> Wish:
    """What the words of the command line mean. Raises BadInput."""
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
