"""The figures as pictures for the docs: all that have a bar to hold, and a hundred sessions."""

import re
from html import escape

from .rows import Row

_ROW, _WIDTH, _RIGHT = 22, 420, 150
_LETTER = 6.6  # pixels, generous for most fonts at this size
_FIGURE = re.compile(r"\s*[\d.,]+( \w+)?$")


def _label(row: Row) -> str:
    """The measure, and whom it is held against."""
    peer = _FIGURE.sub("", row.reference)
    return f"{row.name} / {peer}" if peer[:1].isalpha() else row.name


def _top(width: int, height: int) -> list[str]:
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="system-ui, sans-serif" font-size="12">',
        "<style>text{fill:#24292f}.in{fill:#2f7d5b}.out{fill:#b3402f}.line{stroke:#57606a}"
        ".other{fill:#8c959f}@media(prefers-color-scheme:dark){text{fill:#d0d7de}"
        ".in{fill:#4fb286}.out{fill:#e5705d}.line{stroke:#8b949e}.other{fill:#6e7681}}</style>",
    ]


def svg(rows: list[Row]) -> str:
    """Each measure as a share of what it may cost; the line marks the limit."""
    shown = [row for row in rows if row.bar]
    left = int(max((len(_label(row)) for row in shown), default=40) * _LETTER) + 20
    height = _ROW * len(shown) + 60
    width = left + _WIDTH + _RIGHT
    out = [
        *_top(width, height),
        f'<text x="{left}" y="20">share of the limit (the line is the limit)</text>',
    ]
    limit_x = left + _WIDTH * 0.8
    for number, row in enumerate(shown):
        y = 36 + number * _ROW
        sign, text = row.bar.split()
        limit = float(text)
        above, below = (row.ratio, limit) if sign == "<=" else (limit, row.ratio)
        share = above / below if below else 9.0 if above else 0.0
        size = max(2.0, min(share, 1.25) * _WIDTH * 0.8)
        kind = "in" if row.held else "out"
        out.append(
            f'<text x="{left - 10}" y="{y + 13}" text-anchor="end">{escape(_label(row))}</text>'
            f'<rect class="{kind}" x="{left}" y="{y + 2}" width="{size:.0f}" height="14" rx="2"/>'
            f'<text x="{left + _WIDTH + 8}" y="{y + 13}">{row.ratio:.2f} '
            f"({escape(row.bar)})</text>"
        )
    bottom = 36 + len(shown) * _ROW
    out.append(f'<line class="line" x1="{limit_x}" y1="30" x2="{limit_x}" y2="{bottom}"/>')
    out.append("</svg>")
    return "\n".join(out) + "\n"


def hundred(rows: list[Row]) -> str:
    """What a hundred sessions cost that stream fifty deltas a second each; empty without figures.

    Two pairs of bars to a way: the daemon's one process, and a hundred processes of a Go host.
    """
    pairs: list[tuple[str, float, float, str]] = []  # what, ours, theirs, unit
    for row in rows:
        if "100 " not in row.name or row.area != "model":
            continue
        ours, theirs = float(row.value.split()[0]), float(row.reference.rsplit(" ", 1)[-1])
        if row.name.startswith("memory of 100 streaming sessions"):
            pairs.append((row.name.replace(" of 100 streaming sessions", ""), ours, theirs, "MB"))
        elif ", 100 sessions, a delta every 20 ms" in row.name:
            format, _, way = row.name.partition(" delta, 100 sessions, a delta every 20 ms, ")
            share = 100 * 50 * 1e-6 * 100  # microseconds of each delta in percent of a core
            pairs.append((f"CPU, {format}, {way}", ours * share, theirs * share, "% of a core"))
    if not pairs:
        return ""
    left, height = 250, 50 * len(pairs) + 50
    width = left + _WIDTH + _RIGHT
    out = [
        *_top(width, height),
        f'<text x="{left}" y="20">100 sessions at 50 deltas a second: one daemon, and 100 processes'
        " of a Go host</text>",
    ]
    for number, (what, ours, theirs, unit) in enumerate(pairs):
        y = 36 + number * 50
        most = max(one[side] for one in pairs if one[3] == unit for side in (1, 2))
        out.append(f'<text x="{left - 10}" y="{y + 22}" text-anchor="end">{escape(what)}</text>')
        for place, (kind, value) in enumerate((("in", ours), ("other", theirs))):
            size = max(2.0, value / most * _WIDTH)  # type: ignore[operator]
            label = ("dragoman", "Go")[place]
            out.append(
                f'<rect class="{kind}" x="{left}" y="{y + place * 18}" width="{size:.0f}" '
                f'height="14" rx="2"/><text x="{left + size + 8:.0f}" y="{y + place * 18 + 11}">'
                f"{label} {value:.0f} {escape(unit)}</text>"
            )
    out.append("</svg>")
    return "\n".join(out) + "\n"
