"""What becomes of what was typed: a prompt, a word into the turn, a command, a shell command."""

import asyncio
import codecs
import contextlib
import os
import signal
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from dragoman.client import attachments
from dragoman.engine.faults import Fault

from . import commands
from .piece import Piece
from .unknown import check

if TYPE_CHECKING:
    from .app import Terminal

_MOST = 100_000  # characters of output that are held
_LIMIT = 600.0  # seconds
_ANYWHERE = frozenset({"help", "quit", "editor", "vi", "thinking", "image"})


def anywhere(text: str) -> bool:
    """Whether it means the same in every session, and before there is one."""
    name = text.partition(" ")[0].strip()
    return text.startswith("!") or (name[:1] == "/" and name[1:] in _ANYWHERE)


async def taken(app: "Terminal", text: str, queued: bool) -> None:
    """Do what was typed; what could not be done stands in the editor again."""
    try:
        if text.startswith("!") and text[1:].strip():
            await _shell(app, text[1:].strip())
            return
        name, _, words = text[1:].partition(" ")
        if text.startswith("/") and (own := commands.OWN.get(name.strip())) is not None:
            if (doing := own.act(app, words.strip())) is not None:
                await doing
            return
        await check(text, commands.OWN, app.desk)
        await send(app, text, queued)
    except Fault:
        app.writing.give_back(text)
        raise


async def send(app: "Terminal", text: str, queued: bool) -> None:
    """Say it into the running turn, or give it as a prompt that waits its turn."""
    desk = app.desk
    along = app.writing.take_bag()  # at once: what is added from now on goes with the next prompt
    try:
        content = attachments.prompt(text, desk.cwd, *(block for _, block in along))
        if missed := attachments.missed(text, desk.cwd):
            app.say(missed, "warning")
        simple = len(content) == 1 and not text.startswith("/")
        if desk.story.turn and not queued and simple and await desk.steer(text):
            app.notice("told; the agent hears it at its next step")
            return
        await desk.send(content)
    except Fault:
        app.writing.give_back_bag(along)
        raise
    app.changed()


async def _shell(app: "Terminal", command: str) -> None:
    story = app.desk.story
    piece = story.put(Piece("shell", name=command, at=int(time.time() * 1000)))
    piece.outcome = "running"

    def changed() -> None:
        story.touched(piece)
        app.changed()

    changed()
    running = asyncio.ensure_future(run(command, app.desk.cwd, piece, changed))
    app.shells.append(running)
    try:
        await asyncio.wait({running})  # esc may stop it, and that is no fault of ours
    finally:
        if running in app.shells:
            app.shells.remove(running)
        running.cancel()
        await asyncio.wait({running})
    if not running.cancelled():
        running.result()
    app.writing.carry(f"output of {command}", attachments.context(f"$ {command}", piece.text))


async def run(command: str, folder: str, piece: Piece, changed: Callable[[], None]) -> None:
    """`!command`: run it in the session's folder, with the user's rights.

    The piece shows its output as it comes.
    """
    shell = os.environ.get("SHELL") or "/bin/sh"
    # Our own pipe: what the command left behind may hold it open, and must not keep us from
    # seeing that the command itself has ended.
    pipe, end = os.pipe()
    output = os.fdopen(pipe, "rb", buffering=0)
    try:
        process = await asyncio.create_subprocess_exec(
            shell, "-c", command,
            cwd=folder,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=end,
            stderr=end,
            start_new_session=True,
        )  # fmt: skip
    except OSError as problem:
        output.close()
        piece.text, piece.outcome = str(problem), "failed"
        changed()
        return
    except BaseException:
        output.close()
        raise
    finally:
        os.close(end)
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    reader = asyncio.StreamReader()
    reading, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), output
    )
    try:
        async with asyncio.timeout(_LIMIT):
            while data := await reader.read(65536):
                piece.text = (piece.text + decoder.decode(data))[-_MOST:]
                changed()
            code = await process.wait()
    except (TimeoutError, asyncio.CancelledError) as problem:
        with contextlib.suppress(ProcessLookupError):  # it is gone, and left others behind
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
        over = isinstance(problem, TimeoutError)
        piece.outcome = f"stopped after {_LIMIT:g} s" if over else "stopped"
        changed()
        if isinstance(problem, asyncio.CancelledError):
            raise
        return
    finally:
        reading.close()
    piece.outcome = "done" if code == 0 else f"exit {code}"
    changed()
