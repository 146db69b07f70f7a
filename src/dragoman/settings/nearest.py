"""The known word that somebody has most likely meant by another."""

from dragoman import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def nearest(word: str, known: "Sequence[str]", cutoff: float = 0.6) -> str:
    """The nearest of the known words, or nothing.

    The same letters in another order are the commonest slip: `modle` is `model`, not `mode`.
    """
    from difflib import get_close_matches  # 8 ms, and only ever needed after a mistake

    low = word.lower()
    near = get_close_matches(low, known, n=3, cutoff=cutoff)
    swapped = (one for one in near if sorted(one) == sorted(low))
    return next(swapped, near[0] if near else "")
