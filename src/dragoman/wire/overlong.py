"""Whose was a line that was too long to be kept? Its two ends often say the id of the request.

The id is read only where it is certain to be the request's own: as the last member of the whole
object, or behind nothing but plain members at its beginning.
"""

import re

import msgspec

from .lines import Ends

_TEXT = rb'"(?:[^"\\]|\\.)*"'
_NUMBER = rb"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?"
_ID = rb'"[iI][dD]"\s*:\s*(' + _NUMBER + rb"|" + _TEXT + rb")\s*"
_PLAIN = _TEXT + rb"\s*:\s*(?:" + _TEXT + rb"|" + _NUMBER + rb"|true|false|null)\s*,\s*"
_FIRST = rb"^\s*\{\s*(?:" + _PLAIN + rb")*?" + _ID + rb"[,}]"
_LAST = rb"[,{]\s*" + _ID + rb"\}\s*$"
_BEGINNING = rb"^\s*\{\s*((?:" + _PLAIN + rb")+)"


def beginning_of(ends: Ends) -> bytes:
    """The plain members at the line's beginning, as an object; empty when there are none."""
    found = re.match(_BEGINNING, ends[0])
    return b"{%b}" % found[1].rstrip().rstrip(b",") if found is not None else b""


def id_of(ends: Ends) -> int | float | str | None:
    """The id of the request whose line this was; None when that cannot be told."""
    head, tail = ends
    found = re.search(_LAST, tail) or re.match(_FIRST, head)
    if found is None:
        return None
    try:
        return msgspec.json.decode(found[1], type=int | float | str)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
