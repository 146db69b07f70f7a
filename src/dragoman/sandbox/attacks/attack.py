"""One attempt to get out."""

from typing import NamedTuple


class Attack(NamedTuple):
    """What a hostile command could do. Placeholders are filled in by the world it runs in.

    It has worked when it prints ESCAPED or the secret, when anything outside of the working
    directory has changed, or when the victim is gone. Everything is harmless where it works:
    it aims at a world made for it, or asks for what is so already.
    """

    name: str
    what: str
    shell: str = ""
    python: str = ""  # run after `driver`'s helpers
    real: bool = True  # it works without a sandbox, which shows that it is no dud
    root: bool = False  # only root gets anywhere with it, walls or not
    gap: str = ""  # why it cannot be stopped for ordinary users under Landlock alone


def opens(path: str) -> str:
    """Shell words that open a file for reading and writing, and change nothing."""
    return f"[ -e {path} ] && : <> {path} && echo ESC''APED"
