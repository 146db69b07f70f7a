"""What a measure yields: a figure beside its reference, and the bar it is held to."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median


@dataclass(frozen=True)
class Row:
    """One figure. `ratio` is ours divided by the reference, or the figure itself for absolutes."""

    area: str
    name: str
    value: str
    reference: str
    ratio: float
    bar: str = ""  # "<= 2.0", ">= 1.2"; empty: for information
    spread: str = ""  # lowest and highest of the rounds; of the reference's after a slash

    @property
    def held(self) -> bool | None:
        """Whether the bar is held; None without one."""
        if not self.bar:
            return None
        sign, limit = self.bar.split()
        return self.ratio <= float(limit) if sign == "<=" else self.ratio >= float(limit)

    def plain(self) -> dict[str, object]:
        return {**asdict(self), "held": self.held}


def compared(
    area: str,
    name: str,
    mine: Sequence[float],
    label: str,
    theirs: Sequence[float],
    unit: str,
    bar: str = "",
    *,
    digits: int = 2,
    pick: str = "best",
) -> Row:
    """A row of two series of rounds: the best of each (the highest for `>=`), or the medians."""
    choose = median if pick == "median" else max if bar.startswith(">=") or pick == "most" else min
    value, other = choose(mine), choose(theirs)
    return Row(
        area,
        name,
        f"{value:.{digits}f} {unit}",
        f"{label} {other:.{digits}f}",
        value / other,
        bar,
        f"{spread(mine, digits)} / {spread(theirs, digits)}",
    )


def held_to(
    area: str,
    name: str,
    mine: Sequence[float],
    unit: str,
    bar: str = "",
    *,
    digits: int = 2,
    note: str = "",
    worst: bool = False,
) -> Row:
    """A row that is held to an absolute limit: the best of the rounds, or the worst of them."""
    value = max(mine) if bar.startswith(">=") or worst else min(mine)
    limit = f"{bar.split()[1]} {unit}" if bar else ""
    return Row(
        area,
        name,
        f"{value:.{digits}f} {unit}",
        "; ".join(part for part in (limit, note) if part),
        value,
        bar,
        spread(mine, digits) if len(mine) > 1 else "",
    )


def spread(values: Sequence[float], digits: int = 2) -> str:
    """The lowest and the highest."""
    return f"{min(values):.{digits}f}-{max(values):.{digits}f}"


def table(rows: list[Row]) -> str:
    """All rows in columns."""
    head = ("area", "measure", "ours", "reference", "ratio", "bar", "", "spread")
    cells = [head]
    for row in rows:
        mark = {True: "ok", False: "MISSED", None: ""}[row.held]
        cells.append(
            (row.area, row.name, row.value, row.reference, f"{row.ratio:.2f}", row.bar, mark,
             row.spread)
        )  # fmt: skip
    widths = [max(len(line[at]) for line in cells) for at in range(len(head))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in cells
    )
