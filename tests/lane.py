"""How much of a long test runs: a part of it every day, all of it with LONG=1, as in CI."""

import os

LONG = os.environ.get("LONG", "") not in ("", "0")


def share(whole: int, part: int) -> int:
    """`whole` in the long lane, else `part`."""
    return whole if LONG else part
