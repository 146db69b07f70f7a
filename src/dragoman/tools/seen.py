"""Files as a human saw them before a call was allowed: hashed, and compared before they change."""

from dragoman.engine.ask import Seen
from dragoman.engine.faults import Changed
from dragoman.engine.ports import ToolEnv


def seen(path: str, data: bytes | None) -> Seen:
    """A file as it is now; None when there is none."""
    from hashlib import sha256  # loads a library, and is needed when something is written

    return Seen(path, "" if data is None else sha256(data).hexdigest())


def expect(env: ToolEnv, path: str, data: bytes | None, shown: str) -> None:
    """Raise Changed unless the file is the one that a human was shown, when one was."""
    if env.seen is not None and seen(path, data) not in env.seen:
        raise Changed(
            f"{shown} is not any more what was shown when this call was allowed.",
            "Nothing was changed. Call it again to ask again.",
        )
