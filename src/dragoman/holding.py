"""Records that change: each field is declared once, and none is shown.

The words for such an object end up in logs (an event loop names the callback that failed by them),
and fields hold keys, tokens and what people wrote.
"""

import msgspec


class Holder(msgspec.Struct, eq=False):
    """What holds state. It is itself alone, whatever its fields are equal to."""

    __repr__ = object.__repr__
