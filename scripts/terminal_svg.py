"""Runs a command in a terminal of its own and draws what it shows as an SVG.

    python scripts/terminal_svg.py --output docs/pictures/demo.svg --answer '[n]o: =y' -- dragoman run --demo

`--answer TEXT=REPLY` types REPLY and Enter when TEXT appears (once each, in order). The picture
holds real text: it can be selected, searched and read aloud.
"""

import argparse
import fcntl
import os
import pty
import re
import select
import struct
import sys
import termios
import time
from html import escape

_SGR = re.compile(r"\x1b\[([0-9;]*)m")
_OTHER = re.compile(r"\x1b(\[[0-9;?]*[A-Za-z]|\][^\x07\x1b]*(\x07|\x1b\\)|[@-_])")
_AGAIN = re.compile(r"\r(?:\x1b\[(\d+)A)?\x1b\[J")  # so many lines up, and from there anew
_COLOURS = {
    30: "#484f58", 31: "#ff7b72", 32: "#7ee787", 33: "#e3b341",
    34: "#79c0ff", 35: "#d2a8ff", 36: "#76e3ea", 37: "#c9d1d9",
}  # fmt: skip
_FRONT, _BACK, _BAR = "#c9d1d9", "#0d1117", "#161b22"
_SIZE, _WIDE, _HIGH = 14, 8.43, 20
_SECONDS = 60


def run(command: list[str], columns: int, answers: list[tuple[str, str]]) -> tuple[str, int]:
    """What the command showed in a terminal of that width, and its exit code."""
    child, terminal = pty.fork()
    if child == 0:
        os.environ.pop("NO_COLOR", None)
        os.environ.update(TERM="xterm-256color", COLUMNS=str(columns))
        os.execvp(command[0], command)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    said = b""
    seen = 0  # how much was there when the last answer was given
    deadline = time.monotonic() + _SECONDS
    while time.monotonic() < deadline:
        if not select.select([terminal], [], [], 0.2)[0]:
            continue
        try:
            data = os.read(terminal, 65536)
        except OSError:  # the other end is gone
            break
        if not data:
            break
        said += data
        if answers and answers[0][0].encode() in said[seen:]:
            seen = len(said)
            os.write(terminal, answers.pop(0)[1].encode() + b"\n")
    _, status = os.waitpid(child, 0)
    os.close(terminal)
    return said.decode("utf-8", "replace"), os.waitstatus_to_exitcode(status)


Run = tuple[str, str, bool, bool]  # text, colour, bold, dim


def lines_of(text: str, columns: int) -> list[list[Run]]:
    """The text as lines of runs in one style each; what is too long goes on in the next line."""
    text = _AGAIN.sub(lambda m: f"\f{m[1] or 0}\f", text.replace("\f", ""))
    text = _OTHER.sub(lambda m: m[0] if _SGR.fullmatch(m[0]) else "", text)
    lines: list[list[Run]] = [[]]
    room = columns
    colour, bold, dim = _FRONT, False, False
    for part in re.split(
        r"(\x1b\[[0-9;]*m|\n|\f\d+\f)", text.replace("\r\n", "\n").replace("\r", "")
    ):
        if found := _SGR.fullmatch(part):
            for code in [int(one or 0) for one in found[1].split(";")]:
                if code == 0:
                    colour, bold, dim = _FRONT, False, False
                elif code == 1:
                    bold = True
                elif code == 2:
                    dim = True
                else:
                    colour = _COLOURS.get(code, colour)
        elif part.startswith("\f"):
            lines[-1 - int(part.strip("\f")) :] = [[]]
            room = columns
        elif part == "\n":
            lines.append([])
            room = columns
        else:
            while part:
                if room <= 0:
                    lines.append([])
                    room = columns
                lines[-1].append((part[:room], colour, bold, dim))
                part, room = part[room:], room - len(part[:room])
    while lines and not lines[-1]:
        lines.pop()
    return lines


def draw(lines: list[list[Run]], columns: int, title: str) -> str:
    """The picture."""
    width = round(columns * _WIDE + 40)
    height = len(lines) * _HIGH + 70
    rows = []
    for number, line in enumerate(lines):
        spans = []
        for text, colour, bold, dim in line:
            style = f' fill="{colour}"' if colour != _FRONT else ""
            style += ' font-weight="600"' if bold else ""
            style += ' opacity="0.6"' if dim else ""
            spans.append(f"<tspan{style}>{escape(text)}</tspan>")
        y = 62 + number * _HIGH
        rows.append(f'<text x="20" y="{y}" xml:space="preserve">{"".join(spans)}</text>')
    lights = "".join(
        f'<circle cx="{22 + 20 * n}" cy="18" r="6" fill="{colour}"/>'
        for n, colour in enumerate(("#ff5f56", "#ffbd2e", "#27c93f"))
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'role="img" aria-label="{escape(title)}">\n'
        f"<title>{escape(title)}</title>\n"
        f'<rect width="{width}" height="{height}" rx="8" fill="{_BACK}"/>\n'
        f'<path d="M0 8a8 8 0 0 1 8-8h{width - 16}a8 8 0 0 1 8 8v28H0z" fill="{_BAR}"/>\n'
        f"{lights}\n"
        f'<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" '
        f'font-size="{_SIZE}" fill="{_FRONT}">\n' + "\n".join(rows) + "\n</g>\n</svg>\n"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", required=True)
    parser.add_argument("--columns", type=int, default=92)
    parser.add_argument("--answer", action="append", default=[], metavar="TEXT=REPLY")
    parser.add_argument("--title", default="")
    parser.add_argument("command", nargs="+")
    args = parser.parse_args()
    answers = [tuple(one.rpartition("=")[::2]) for one in args.answer]
    shown = " ".join([os.path.basename(args.command[0]), *args.command[1:]])
    text, code = run(args.command, args.columns, answers)
    if code or answers:
        print(text, file=sys.stderr)
        print(f"exit code {code}, questions that never came: {answers}", file=sys.stderr)
        return 1
    prompt = f"\x1b[32m$\x1b[0m \x1b[1m{shown}\x1b[0m\n"
    picture = draw(lines_of(prompt + text, args.columns), args.columns, args.title or shown)
    with open(args.output, "w", encoding="utf-8") as file:
        file.write(picture)
    return 0


if __name__ == "__main__":
    sys.exit(main())
