"""Text in UTF-16, told by the mark at its beginning: no binary file for all its NULs.

Only the standard library is used, and nothing of ours: `scan.py` runs it in a process of its own.
"""

import codecs

_LOOK = 8192
_MARKS = ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))


def mark_of(data: bytes) -> tuple[bytes, str]:
    """The mark that data begins with and its encoding; both empty when there is none.

    Without any NUL it is no UTF-16 that people write: line feeds have one.
    """
    if b"\0" not in data[:_LOOK]:
        return b"", ""
    return next((found for found in _MARKS if data.startswith(found[0])), (b"", ""))


def narrowed(data: bytes) -> bytes:
    """Data with such a mark as UTF-8, without it; other data as it is."""
    mark, encoding = mark_of(data)
    if not mark:
        return data
    return data[len(mark) :].decode(encoding, "replace").encode("utf-8", "replace")
