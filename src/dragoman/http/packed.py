"""Answers that are packed though nobody asked for it: gzip and deflate, as they come."""

import zlib
from collections.abc import Callable

_STEP = 256 * 1024  # bytes unpacked at a time: a bomb is told in pieces, never held


class Unpacker:
    """Unpacks a stream of bytes."""

    def __init__(self, bits: int) -> None:
        self._inner = zlib.decompressobj(bits)

    @property
    def whole(self) -> bool:
        return self._inner.eof

    def feed(self, data: bytes, sink: Callable[[bytes], None]) -> str:
        """Hand over what these bytes hold; returns what is wrong with them."""
        try:
            while data and not self._inner.eof:
                made = self._inner.decompress(data, _STEP)
                data = self._inner.unconsumed_tail
                if made:
                    sink(made)
        except zlib.error as error:
            return f"the packed answer cannot be unpacked: {error}"
        return ""


def unpacker(name: str) -> Unpacker | None:
    """For a Content-Encoding; None when it is none of these."""
    bits = {"gzip": 31, "x-gzip": 31, "deflate": 15}.get(name)
    return None if bits is None else Unpacker(bits)
