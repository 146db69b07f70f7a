"""Answers that are packed though nobody asked for it: gzip and deflate, as they come."""

import zlib
from collections.abc import Callable

_GZIP, _DEFLATE = 31, 15  # as zlib names them
_STEP = 256 * 1024  # bytes unpacked at a time: a bomb is told in pieces, never held


class Unpacker:
    """Unpacks a stream of bytes, packed as a Content-Encoding says."""

    def __init__(self, name: str) -> None:
        self._name = name[:50]
        self._bits = {"gzip": _GZIP, "x-gzip": _GZIP, "deflate": _DEFLATE}.get(name, 0)
        self._inner = zlib.decompressobj(self._bits or _DEFLATE)
        self._begun = False

    @property
    def whole(self) -> bool:
        return self._inner.eof or not self._begun

    def feed(self, data: bytes, sink: Callable[[bytes], None]) -> str:
        """Hand over what these bytes hold; returns what is wrong with them."""
        if not self._bits:
            return f"the answer is packed as {self._name}, which nobody asked for"
        try:
            if not self._begun and data:
                self._begin(data)
            while data:
                if self._inner.eof:
                    if self._bits != _GZIP or data[0] != 0x1F:
                        break  # what fills up the end
                    self._inner = zlib.decompressobj(_GZIP)  # packed in several pieces
                made = self._inner.decompress(data, _STEP)
                data = self._inner.unconsumed_tail or self._inner.unused_data
                if made:
                    sink(made)
        except zlib.error as error:
            return f"the packed answer cannot be unpacked: {error}"
        return ""

    def _begin(self, data: bytes) -> None:
        self._begun = True
        if self._bits == _DEFLATE and data[0] & 0x0F != 8:  # bare, as some servers send it
            self._inner = zlib.decompressobj(-_DEFLATE)
