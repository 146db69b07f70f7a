"""Who may connect, and the note that is made of whoever may not."""

import os
from collections.abc import Callable

from dragoman.wire.link import Peer

Audit = Callable[[str, Peer], None]
"""Takes what happened ("admitted", "refused") and to whom."""


class Doorkeeper:
    """Admits processes of one user only; root as well when that is allowed.

    `refuses` says of a process whether one of our tools started it: those are refused whoever runs
    them.
    """

    __slots__ = ("_audit", "_refuses", "_root", "_uid")

    def __init__(
        self,
        audit: Audit,
        *,
        allow_root: bool = False,
        uid: int | None = None,
        refuses: Callable[[int | None], bool] = lambda pid: False,
    ) -> None:
        self._audit = audit
        self._refuses = refuses
        self._root = allow_root
        self._uid = os.geteuid() if uid is None else uid

    def __call__(self, peer: Peer) -> bool:
        admitted = peer.uid == self._uid or (self._root and peer.uid == 0)
        admitted = admitted and not self._refuses(peer.pid)
        self._audit("admitted" if admitted else "refused", peer)
        return admitted
