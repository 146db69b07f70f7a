"""Pages of session lists that were read before, good until something is written."""

from collections import OrderedDict
from time import monotonic

import msgspec

from .info import Page, SessionQuery

_KEPT = 32
_SECONDS = 1.0  # another process may write twice within one tick of the file system's clock


class Pages:
    """A small memory of lists."""

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: OrderedDict[bytes, tuple[object, float, Page]] = OrderedDict()

    def get(self, query: SessionQuery, version: object) -> Page | None:
        found = self._kept.get(msgspec.json.encode(query))
        if found is None or found[0] != version or monotonic() - found[1] > _SECONDS:
            return None
        return found[2]

    def put(self, query: SessionQuery, version: object, page: Page) -> None:
        """`version` is the store's from before the page was read."""
        self._kept[msgspec.json.encode(query)] = (version, monotonic(), page)
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
