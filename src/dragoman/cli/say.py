"""What the command line prints: tables for people, JSON for programs, colours on a terminal."""

import os
import sys

from dragoman import TYPE_CHECKING

from .parse import Args

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any, TextIO

_STYLES = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "magenta": "35",
    "cyan": "36",
}


def colours(stream: "TextIO | None" = None) -> bool:
    """Whether this stream may carry colours: a terminal, not a dumb one, and NO_COLOR not set."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    try:  # an empty TERM is a dumb one: nothing is known of it
        return bool(os.environ.get("TERM")) and (stream or sys.stdout).isatty()
    except ValueError:  # closed
        return False


def style(text: str, *names: str, stream: "TextIO | None" = None) -> str:
    """The text in these styles, or as it is where colours do not belong."""
    if not names or not colours(stream):
        return text
    codes = ";".join(_STYLES[name] for name in names)
    return f"\x1b[{codes}m{text}\x1b[0m"


def clean(text: str) -> str:
    """The text without control characters, so that what a model wrote cannot steer the terminal."""
    if text.isprintable():
        return text
    from dragoman.engine.visible import harmless

    return harmless(text.replace("\n", " ").replace("\t", " ").replace("\r", " "))


def out(text: str = "") -> None:
    """One line for the reader of the result."""
    print(text)


def reader() -> int:
    """The descriptor behind which the reader of the result is; -1 where there is none."""
    try:
        return sys.stdout.fileno()
    except (OSError, ValueError):  # no file, or closed
        return -1


def err(text: str) -> None:
    """One line for the person, never for the program that reads the result."""
    print(text, file=sys.stderr)


def warn(text: str) -> None:
    err(f"{style('warning:', 'yellow', stream=sys.stderr)} {clean(text)}")


def typed(question: str, read: "Callable[[str], str] | None" = None) -> "str | None":
    """What a person answers at the terminal; None for one who leaves the question (Ctrl-D)."""
    try:
        return (read or input)(question).strip()
    except EOFError:
        err("")  # what is said next has a line of its own
        return None
    except KeyboardInterrupt:
        err("")
        raise


def agreed(question: str) -> bool:
    """Whether a person says yes to it."""
    return (typed(f"{question} [y/N] ") or "").lower() in ("y", "yes")


def json(value: "Any") -> None:
    """A value as JSON; structs are written by their fields."""
    import msgspec

    out(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def plain_json(value: "Any", *, indent: int | None = 2) -> None:
    """Plain data as JSON, without loading anything for structs."""
    from json import dumps

    out(dumps(value, indent=indent, ensure_ascii=False))


def as_json(args: Args, value: "Any") -> bool:
    """Whether `--json` was given; the value is printed then."""
    if args.json:
        plain_json(value)
    return bool(args.json)


def result(args: Args, value: "Any", text: str) -> int:
    """What a command did: as JSON when that is asked for, else in a line. Returns the exit code."""
    if not as_json(args, value):
        out(text)
    return 0


def many(count: int, noun: str, plural: str = "") -> str:
    """So many of something, as `engine.visible` says it."""
    from dragoman.engine.visible import many as said

    return said(count, noun, plural)


def columns() -> int:
    """How many columns a line may have: by COLUMNS, else by the terminal; 0 in a pipe, for all."""
    given = os.environ.get("COLUMNS", "")
    if given.isascii() and given.isdecimal() and int(given) > 0:
        return int(given)
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns
    except (OSError, ValueError):
        return 0


def table(
    headers: "Sequence[str]",
    rows: "Iterable[Sequence[object]]",
    *,
    whole: "Sequence[str]" = (),
    spare: "Sequence[str]" = (),
    empty: str = "nothing",
) -> None:
    """Rows in columns that fit the terminal; pipes get everything.

    The first column, and those named `whole`, are what people type again: they are never cut.
    Where there is no room for all, those named `spare` are left out, the first of them first.
    """
    cells = [[clean("" if cell is None else str(cell)) for cell in row] for row in rows]
    if not cells:
        out(style(empty, "dim"))
        return
    cells.insert(0, [header.upper() for header in headers])
    widths = [max(width(row[at]) for row in cells) for at in range(len(headers))]
    kept = [at for at, name in enumerate(headers) if not at or name in whole]
    parts = _fit(widths, kept, [headers.index(name) for name in spare])
    for number, row in enumerate(cells):
        for indent, part in zip(("", _BELOW), parts, strict=False):
            line = _line([row[at] for at in part], [widths[at] for at in part])
            if line or not indent:
                out(style(f"{indent}{line}", *(() if number else ("bold",))))


_USEFUL = 16  # columns of a longer text that tell something
_SPARE = 10  # the same of what may be left out
_BELOW = "  "


def _fit(widths: list[int], kept: list[int], spare: list[int]) -> list[list[int]]:
    """Narrow the widest columns until a row fits; gives which of them are on each of its lines.

    Those that are kept have a line of their own where nothing else has room beside them.
    """
    every = [*range(len(widths))]
    if not (room := columns()):
        return [every]
    useful = {at: _SPARE for at in spare} | {at: widths[at] for at in kept}
    least = [min(one, useful.get(at, _USEFUL)) for at, one in enumerate(widths)]
    shown = _without(spare, every, least, room)
    if _taken(shown, least) <= room and (len(shown) > len(kept) or len(kept) == len(every)):
        parts = [shown]
    else:
        room -= len(_BELOW)
        rest = [at for at in every if at not in kept]
        shown = _without(spare, rest, least, room)
        parts = [kept, shown]
    for at in shown:
        widths[at] = max(least[at], min(widths[at], room))
    while shown and _taken(shown, widths) > room:
        widest = max(shown, key=lambda at: widths[at] - least[at])
        if widths[widest] <= least[widest]:
            break
        widths[widest] -= 1
    return parts


def _without(spare: list[int], shown: list[int], least: list[int], room: int) -> list[int]:
    """These columns without those that are left out for the others to have room."""
    for at in spare:
        if _taken(shown, least) <= room:
            break
        shown = [one for one in shown if one != at]
    return shown


def _taken(shown: list[int], widths: list[int]) -> int:
    return sum(widths[at] for at in shown) + 2 * max(len(shown) - 1, 0)


def _line(cells: list[str], widths: list[int]) -> str:
    padded = (
        (short := cut(cell, room)) + " " * (room - width(short))
        for cell, room in zip(cells, widths, strict=True)
    )
    return "  ".join(padded).rstrip()


def row(whole: str, rest: str = "") -> None:
    """One line of a list: what people type again, and the rest as far as there is room."""
    room = columns()
    left = room - width(whole)
    out(f"{whole}{rest if not room else cut(rest, left) if left > 0 else ''}".rstrip())


def cut(text: str, room: int) -> str:
    """The text, shortened with an ellipsis to so many columns."""
    if width(text) <= room:
        return text
    text = text[: 8 * max(room, 0)]  # more marks on one character are nobody's language
    while text and width(text) > room - 1:
        text = text[:-1]
    return f"{text}…"


def width(text: str) -> int:
    """How many columns a terminal uses for the text, by the same tables as the terminal's own."""
    if text.isascii() or max(text) < _LATIN or not any(map(_is_odd, text)):
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


_LATIN = "\u0300"  # before this, every character takes one column
_OURS = "…→←·–—‘’“”▸×✓"  # so do these, which we write ourselves


def _is_odd(char: str) -> bool:
    return char >= _LATIN and char not in _OURS
