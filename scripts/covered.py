#!/usr/bin/env python3
"""How much of the core the last measured test run reached: `covered.py [FLOOR]`.

Prints for each part the share of branches that were taken, and of lines and branches together (what
coverage.py calls its total). Fails when the branches of a part are below the floor.
"""

import json
import subprocess
import sys
from typing import Any

PARTS = ("engine", "wire", "store", "policy")
FLOOR = 95.0


def figures(report: dict[str, Any]) -> dict[str, tuple[float, float]]:
    """By part: percent of the branches, and of lines and branches."""
    found = {}
    for part in PARTS:
        sums = [
            file["summary"]
            for name, file in report["files"].items()
            if f"dragoman/{part}/" in name.replace("\\", "/")
        ]
        branches = sum(one["num_branches"] for one in sums)
        taken = sum(one["covered_branches"] for one in sums)
        lines = sum(one["num_statements"] for one in sums)
        ran = sum(one["covered_lines"] for one in sums)
        whole = branches + lines
        found[part] = (
            100 * taken / branches if branches else 0.0,
            100 * (taken + ran) / whole if whole else 0.0,
        )
    return found


def table(found: dict[str, tuple[float, float]], floor: float) -> tuple[str, bool]:
    """The figures as text, and whether all of them are high enough."""
    rows = [
        f"branch coverage of {part}: {branches:.1f} %"
        + (f" (below {floor:g} %)" if branches < floor else "")
        + f"; with lines {whole:.1f} %"
        for part, (branches, whole) in found.items()
    ]
    return "\n".join(rows), all(branches >= floor for branches, _ in found.values())


def main(words: list[str]) -> int:
    floor = float(words[0]) if words else FLOOR
    made = subprocess.run(
        [sys.executable, "-m", "coverage", "json", "-q", "-o", "-"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if made.returncode:
        print(made.stdout + made.stderr, file=sys.stderr)
        return 1
    said, enough = table(figures(json.loads(made.stdout)), floor)
    print(said)
    return 0 if enough else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
