"""The first frame, drawn before anything that draws is loaded.

Loading Textual takes most of the time until its own first frame. The curtain shows the same screen
at once, and what is typed meanwhile is kept by the terminal until it is read.
"""

import os
import sys
import termios
from typing import Self

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


class Curtain:
    """For `with`: drawn at the beginning; at the end the terminal is as it was before."""

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
