"""Promises with a number: `make timed` holds us to them on a quiet machine, the suite does not.

A busy machine must not change what the suite says. There a limit only tells what works from what
hangs, so it is far above the one and far below the other.
"""

import pytest


def promised(seconds: float, else_within: float = 60) -> pytest.MarkDecorator:
    """Give a test `within`: in the suite a limit that only a hang exceeds, in `make timed` ours."""
    return pytest.mark.parametrize(
        "within",
        [
            pytest.param(else_within, id="ends"),
            pytest.param(seconds, id=f"in {seconds:g} s", marks=pytest.mark.timed),
        ],
    )


# Whether a test also judges figures that are no time, such as ratios of times.
judging = pytest.mark.parametrize(
    "judged",
    [pytest.param(False, id="works"), pytest.param(True, id="figures", marks=pytest.mark.timed)],
)
