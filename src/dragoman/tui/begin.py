"""Opens the terminal as the command line asks for it; draws its first frame."""

import gc
import os
import shlex
import sys
import termios
from collections.abc import Mapping
from typing import NamedTuple, Self

from dragoman.engine.reading import counted

WELCOME = (
    (),
    (("  dragoman", "bold"), ("  one host for every agent and client", "dim")),
    (),
    (("  type what the agent is to do, or", "dim"),),
    (
        ("  @", "cyan"), (" a file ", "dim"), ("  /", "cyan"), (" a command ", "dim"),
        ("  !", "cyan"), (" a shell command ", "dim"), ("  ctrl+s", "cyan"),
        (" all sessions", "dim"),
    ),
)  # fmt: skip
_CODES = {"bold": "1", "dim": "2", "cyan": "36", "yellow": "33", "grey": "90"}


class Wish(NamedTuple):
    """What is wanted of the session that is shown first, or begins next."""

    cwd: str
    config_dir: str | None = None
    prompt: str = ""
    session: str = ""  # an id, or its beginning
    newest: bool = False
    pick: bool = False
    agent: str = ""
    model: str = ""
    mode: str | None = None
    vi: bool = False
    worktree: bool = False


class Curtain:
    """The first frame, drawn before anything that draws is loaded.

    Loading Textual takes most of the time until its own first frame. The curtain shows the same
    screen at once, and what is typed meanwhile is kept by the terminal until it is read. For
    `with`: drawn at the beginning; at the end the terminal is as it was before.
    """

    def __init__(self, *, welcome: bool, state: str = "starting") -> None:
        self._welcome = welcome
        self._state = state
        self._plain = bool(os.environ.get("NO_COLOR"))
        self._saved: list[object] | None = None

    def __enter__(self) -> Self:
        try:
            self._saved = termios.tcgetattr(0)
            quiet = termios.tcgetattr(0)
            quiet[3] &= ~(termios.ECHO | termios.ICANON)
            termios.tcsetattr(0, termios.TCSANOW, quiet)
            size = os.get_terminal_size(1)
        except (OSError, termios.error):
            return self  # whoever draws next says what is wrong with the terminal
        sys.stdout.write(self._frame(size.columns, size.lines))
        sys.stdout.flush()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._saved is not None:
            termios.tcsetattr(0, termios.TCSANOW, self._saved)  # type: ignore[arg-type]
        if kind is not None:
            sys.stdout.write("\x1b[?1049l\x1b[?25h")
            sys.stdout.flush()

    def _frame(self, width: int, height: int) -> str:
        parts = ["\x1b[?1049h\x1b[2J\x1b[H"]
        if self._welcome:
            for row, line in enumerate(WELCOME, 1):
                parts.append(f"\x1b[{row};1H" + "".join(self._ink(*part) for part in line))
        rule = self._ink("─" * width, "grey")
        parts.append(f"\x1b[{height - 3};1H{rule}")
        parts.append(f"\x1b[{height - 2};1H{self._ink('›', 'cyan')}")
        parts.append(f"\x1b[{height - 1};1H{rule}")
        parts.append(f"\x1b[{height};1H{self._ink(f'◌ {self._state}', 'yellow')}")
        parts.append(f"\x1b[{height - 2};3H")
        return "".join(parts)

    def _ink(self, text: str, style: str) -> str:
        return text if self._plain else f"\x1b[{_CODES[style]}m{text}\x1b[0m"


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
    if back := way_back(app.desk.session, wish.config_dir, app.desk.worktree):
        print(back)
    return app.return_code or code or 0


def is_light(env: Mapping[str, str]) -> bool:
    """By COLORFGBG ("foreground;background"), which many terminals set; dark when unknown."""
    back = counted(env.get("COLORFGBG", "").rpartition(";")[2])
    return back in (7, 9, 10, 11, 12, 13, 14, 15)


def way_back(session: str, config_dir: str | None, worktree: bool = False) -> str:
    """How to open the session again that was left; nothing when there was none.

    With a worktree also how its work is taken over, or thrown away.
    """
    if not session:
        return ""
    where = f" --config-dir {shlex.quote(config_dir)}" if config_dir else ""
    back = f"come back with: dragoman{where} -r {session[:8]}"
    if not worktree:
        return back
    merge, drop = (
        f"dragoman sessions worktree {how} {session[:8]}{where}" for how in ("merge", "drop")
    )
    return f"{back}\ntake its worktree over with: {merge}\nor throw it away with: {drop}"
