"""What becomes of what was typed: a prompt, a word into the turn, a command, a shell command."""

import asyncio
import time
from typing import TYPE_CHECKING

from dragoman.client import attachments
from dragoman.engine.faults import Fault

from . import commands
from .piece import Piece

if TYPE_CHECKING:
    from .app import Terminal


async def taken(app: "Terminal", text: str, queued: bool) -> None:
    """Do what was typed; what could not be done stands in the editor again."""
    try:
        if text.startswith("!") and text[1:].strip():
            await _shell(app, text[1:].strip())
            return
        name, _, words = text[1:].partition(" ")
        if text.startswith("/") and (own := commands.OWN.get(name.strip())) is not None:
            await own.act(app, words.strip())
            return
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
    from .shell import run

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
