"""How the terminal was called."""

from typing import NamedTuple


class Wish(NamedTuple):
    """What is wanted of the session that is shown first, or begins next."""

    cwd: str
    config_dir: str | None = None
    prompt: str = ""
    session: str = ""  # an id, or its beginning
    newest: bool = False
    pick: bool = False
    agent: str = ""
    model: str = ""
    mode: str | None = None
    vi: bool = False
    worktree: bool = False
