"""Opens the terminal as the command line asks for it."""

import gc
import os
import shlex
import sys
from collections.abc import Mapping

from dragoman.engine.reading import counted

from .curtain import Curtain
from .wish import Wish


def begin(wish: Wish, *, plain: bool, light: bool, dark: bool) -> int:
    """Run the terminal; returns the exit code."""
    if plain or os.environ.get("TERM", "dumb") in ("dumb", ""):
        from .plain import talk

        return talk(wish)
    light = light or (not dark and is_light(os.environ))
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
