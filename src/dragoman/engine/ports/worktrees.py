"""Git worktrees of sessions: what is kept of one, and who makes and ends them."""

from typing import Protocol

from ..traits import Trait


class Worktree(Trait, frozen=True):
    """Where a session's worktree is, and what its branch came from."""

    NAME = "worktree"

    repository: str = ""  # the checkout that it was made from
    path: str = ""
    branch: str = ""
    base: str = ""  # the commit at which it began
    ended: str = ""  # "merged" or "dropped"
    unnamed: bool = False  # it was made before there was a title to name it after


class Worktrees(Protocol):
    """Makes and ends them (`host/worktrees.py`). They may take a while: call in a thread."""

    def make(self, cwd: str, name: str, mark: str) -> tuple[str, Worktree]:
        """A worktree with a branch; the working folder inside of it. Raises BadInput."""
        ...

    def name(self, tree: Worktree, title: str) -> str:
        """Name its branch after a title; the branch's name, whatever came of it."""
        ...

    def end(self, tree: Worktree, how: str, title: str) -> str:
        """Merge what is in it into the checkout, or throw it away; says what was done."""
        ...
