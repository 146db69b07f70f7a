"""Whether the terminal is light or dark, by what the environment tells."""

from collections.abc import Mapping

from dragoman.engine.reading import counted


def is_light(env: Mapping[str, str]) -> bool:
    """By COLORFGBG ("foreground;background"), which many terminals set; dark when unknown."""
    back = counted(env.get("COLORFGBG", "").rpartition(";")[2])
    return back in (7, 9, 10, 11, 12, 13, 14, 15)
