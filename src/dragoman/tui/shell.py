"""`!command`: a command of the user's own, in the session's folder, with the user's rights."""

import asyncio
import codecs
import os
import signal
from collections.abc import Callable

from .piece import Piece

_MOST = 100_000  # characters of output that are held
_LIMIT = 600.0  # seconds


async def run(command: str, folder: str, piece: Piece, changed: Callable[[], None]) -> None:
    """Run it; the piece shows its output as it comes."""
    shell = os.environ.get("SHELL") or "/bin/sh"
    try:
        process = await asyncio.create_subprocess_exec(
            shell, "-c", command,
            cwd=folder,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip
    except OSError as problem:
        piece.text, piece.outcome = str(problem), "failed"
        changed()
        return
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    assert process.stdout is not None
    try:
        async with asyncio.timeout(_LIMIT):
            while data := await process.stdout.read(65536):
                piece.text = (piece.text + decoder.decode(data))[-_MOST:]
                changed()
            code = await process.wait()
    except (TimeoutError, asyncio.CancelledError) as problem:
        os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
        piece.outcome = "stopped"
        changed()
        if isinstance(problem, asyncio.CancelledError):
            raise
        return
    piece.outcome = "done" if code == 0 else f"exit {code}"
    changed()
