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


class Unknown(Unpacker):
    """A packing that we do not know."""

    def __init__(self, name: str) -> None:
        super().__init__(15)
        self._name = name

    @property
    def whole(self) -> bool:
        return True

    def feed(self, data: bytes, sink: Callable[[bytes], None]) -> str:
        return f"the answer is packed as {self._name}, which nobody asked for"


def unpacker(name: str) -> Unpacker:
    """For a Content-Encoding."""
    bits = {"gzip": 31, "x-gzip": 31, "deflate": 15}.get(name)
    return Unknown(name[:50]) if bits is None else Unpacker(bits)
