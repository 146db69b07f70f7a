"""Which dialect is this first line?

Each dialect's descriptor says how sure it is that a line is its own; the surest has it. With ours
that makes this rule, for an endpoint that takes any protocol (docs/protocols/any.md has examples):

1. A text `type` and no `jsonrpc`: **openclawos** when it is one of its types and there is a
   `method` or a `requestId`, otherwise **zot**.
2. JSON-RPC with one of the HumanLayer daemon's own method names: **humanlayer**.
3. `initialize` with `protocol_version`, `tui_id`, `tui_sig` or `env`, or with `protocolVersion` and
   nothing else: **zeroclaw**. Every other `initialize`: **acp**.
4. Any other method: **acp** when it begins with `session/` or `_` or is one of ACP's, else
   **zeroclaw**.
5. What is no message at all: **zeroclaw**, which answers every kind of nonsense with an error.

Blank lines decide nothing.
"""

from collections.abc import Callable
from itertools import dropwhile
from typing import Any

import msgspec

from dragoman.dialects.descriptor import REGISTRY
from dragoman.holding import Holder
from dragoman.wire.lines import READ_ON, UNSEEN, Ends, ends_of
from dragoman.wire.link import Hearer, Link, Opener, tell_overlong


def which(line: bytes) -> str:
    """The name of the dialect that this line belongs to."""
    try:
        message: Any = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        message = None
    return REGISTRY.which(message)


def _is_blank(line: bytes) -> bool:
    return not line.strip()


class AnyHearer(Holder):
    """A connection whose dialect is not known yet; after the first line it only passes on."""

    _link: Link
    _openers: Callable[[str], Opener]
    max_line: int
    _told: Callable[[str, Link], None] = lambda name, link: None
    dialect: str = ""  # not known yet
    inner: Hearer | None = None  # the dialect's own, once it is known
    limit_counts_newline: bool = False
    wants_ends: bool = True

    @property
    def max_pending(self) -> int:
        return READ_ON * self.max_line

    def _choose(self, line: bytes) -> Hearer:
        name = self.dialect = which(line)
        self._told(name, self._link)
        return self._openers(name)(self._link)

    def hear(self, lines: list[bytes]) -> None:
        if self.inner is None:
            lines = list(dropwhile(_is_blank, lines))  # no protocol minds them, and none is in them
            if not lines:
                return
            self.inner = self._choose(lines[0])
        inner = self.inner
        limit = inner.max_line - (1 if inner.limit_counts_newline else 0)
        fitting: list[bytes] = []
        for line in lines:
            if len(line) <= limit:
                fitting.append(line)
                continue
            if fitting:
                inner.hear(fitting)
                fitting = []
            tell_overlong(inner, len(line), ends_of(line))
        if fitting:
            inner.hear(fitting)

    def overlong(self, size: int, ends: Ends = UNSEEN) -> None:
        if self.inner is None:
            from dragoman.wire.overlong import beginning_of

            self.inner = self._choose(beginning_of(ends))
        tell_overlong(self.inner, size, ends)

    def ended(self) -> None:
        if self.inner is None:
            self._link.close()
        else:
            self.inner.ended()

    def lost(self) -> None:
        if self.inner is not None:
            self.inner.lost()
