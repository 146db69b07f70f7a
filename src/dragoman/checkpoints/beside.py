"""What others change while a command runs is told apart from its own, as far as it can be.

A system tells nobody who wrote a file. What is known: the changes that other sessions of this
process made by name meanwhile, and that two commands of different sessions ran at once. The first
are taken out; of the others it is not known whose they are, and an undo of them is refused.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

import msgspec

from dragoman.holding import Holder

from .database import FileChange
from .looking import WorkspaceLook


class OpenLook(Holder):
    """How a folder was when a command began, and what others did there since."""

    seen: WorkspaceLook
    count: int = 0  # commands of the turn that run now
    theirs: list[FileChange] = []  # in order
    # Paths that changed while another's command ran, too.
    doubtful: set[str] = msgspec.field(default_factory=set)


class Told(NamedTuple):
    """What counts as the command's own, and what others did, or may have done, to those files."""

    own: list[FileChange]
    others: list[FileChange]


def told_apart(
    found: Sequence[FileChange],
    theirs: Iterable[FileChange],
    doubtful: Collection[str],
    known: Collection[str],
) -> Told:
    """Tell changes apart; `known`: paths that the turn had changed before."""
    steps: dict[str, list[FileChange]] = {}
    for one in theirs:
        steps.setdefault(one.path, []).append(one)
    own: list[FileChange] = []
    others: list[FileChange] = []
    for change in found:
        done = steps.get(change.path)
        if done is None:
            own.append(change)
            if change.path in doubtful:
                others.append(change)
            continue
        first, last = done[0].before, done[-1].after
        linked = all(one.after == two.before for one, two in zip(done, done[1:], strict=False))
        if linked and (first, last) == (change.before, change.after):
            continue  # theirs alone
        if linked and change.path not in known and change.before == first:
            own.append(FileChange(change.path, last, change.after))
        elif linked and change.after == last:
            own.append(FileChange(change.path, change.before, first))
        else:
            own.append(change)
            others.append(FileChange(change.path, first, last))
    return Told(own, others)
