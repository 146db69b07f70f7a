"""What a measure yields: a figure beside its reference, and the bar it is held to."""

from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Row:
    """One figure. `ratio` is ours divided by the reference, or the figure itself for absolutes."""

    area: str
    name: str
    value: str
    reference: str
    ratio: float
    bar: str = ""  # "<= 2.0", ">= 1.2"; empty: for information
    spread: str = ""  # lowest and highest of the rounds

    @property
    def held(self) -> bool | None:
        """Whether the bar is held; None without one."""
        if not self.bar:
            return None
        sign, limit = self.bar.split()
        return self.ratio <= float(limit) if sign == "<=" else self.ratio >= float(limit)

    def plain(self) -> dict[str, object]:
        return {**asdict(self), "held": self.held}


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
