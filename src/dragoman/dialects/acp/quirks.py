"""What single clients need, by the name they give in `clientInfo`.

A row says what was seen with that client; everybody else gets the defaults.
"""

import msgspec

from .faults import DOCUMENT, ECOSYSTEM


class Quirks(msgspec.Struct, frozen=True):
    """How to speak to one client."""

    codes: str = ""  # "": as configured; "zeroclaw" or "acp"
    object_output: bool = False  # `rawOutput` must be an object
    closed_updates: bool = False  # knows only the first updates of the protocol
    message_ids: bool = False  # takes `messageId` on what is said
    real_call_ids: bool = False  # shows a permission with the call it is about


class Manner(msgspec.Struct, frozen=True):
    """What a client is told beside what all are; whose is the same are told the same words."""

    quirks: Quirks = Quirks()
    notices: bool = True
    compaction: bool = True
    plans: bool = True
    booleans: bool = True


ALL = Manner()  # of every client of version 2

_BY_NAME: dict[str, Quirks] = {
    # Shows its sign-in page on -32000, wherever that comes from; a permission for a call of its own
    # would stay on the screen as a second call that never ends.
    "zed": Quirks(codes="acp", real_call_ids=True),
    # Its decoder refuses a tool call whose output is a string, and updates it does not know.
    "toad": Quirks(object_output=True, closed_updates=True),
    "batrachian-toad": Quirks(object_output=True, closed_updates=True),
}


def quirks_of(name: str, capabilities: object = None) -> Quirks:
    """The row for a client's name; "Zed Preview" and "zed" are one.

    Who speaks of files and terminals was made with an SDK, and old SDKs refuse an output that is no
    object; the family that wants a string says nothing of the kind.
    """
    words = name.strip().lower().replace("_", "-")
    found = _BY_NAME.get(words) or _BY_NAME.get(words.split(" ")[0]) or Quirks()
    if words.startswith("zeroclaw"):
        return found
    made = isinstance(capabilities, dict) and ("fs" in capabilities or "terminal" in capabilities)
    return msgspec.structs.replace(
        found,
        object_output=found.object_output or made,
        message_ids=capabilities is not None and not found.closed_updates,
    )


def codes_of(quirks: Quirks, configured: str) -> dict[str, int]:
    """The table of error numbers for a client."""
    return ECOSYSTEM if (quirks.codes or configured) == "acp" else DOCUMENT
