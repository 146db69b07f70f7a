"""Our own slash commands: what they do and what they say."""

import asyncio
from typing import TYPE_CHECKING

from dragoman.engine.faults import Fault

if TYPE_CHECKING:
    from .attach import Attachment, Running
    from .hear import AcpHearer


async def run_own(
    conn: "AcpHearer", attachment: "Attachment", running: "Running", name: str, words: str
) -> str:
    """Do a command and show its answer as the agent's; returns that text."""
    acts = {"compact": _compact, "model": _model, "clear": _clear, "status": _status}
    try:
        text = await acts[name](conn, attachment, running, words)
    except Fault as fault:
        text = str(fault)
    attachment.say(text)
    return text


async def _compact(
    conn: "AcpHearer", attachment: "Attachment", running: "Running", words: str
) -> str:
    work = await conn.door.compact(attachment.id, conn.who)
    running.work = work
    if running.cancelled:
        attachment.cancel()
    finished = await asyncio.shield(work.done)
    if finished.outcome == "completed":
        return "The history was replaced by a summary."
    if finished.outcome in ("cancelled", "interrupted"):
        return "The compaction was cancelled."
    return f"The history could not be compacted: {finished.error}"


async def _model(
    conn: "AcpHearer", attachment: "Attachment", running: "Running", words: str
) -> str:
    info = await conn.door.info(attachment.id)
    if not words:
        return f"The model is {info.model}. To use another one: /model provider/model"
    return f"The model is now {await conn.door.set_model(attachment.id, words, conn.who)}."


async def _clear(
    conn: "AcpHearer", attachment: "Attachment", running: "Running", words: str
) -> str:
    await conn.door.clear(attachment.id, conn.who)
    return "The conversation was cleared; the next prompt begins a new one."


async def _status(
    conn: "AcpHearer", attachment: "Attachment", running: "Running", words: str
) -> str:
    info = await conn.door.info(attachment.id)
    usage = info.usage
    lines = [
        f"Session: {info.id}" + (f" ({info.title})" if info.title else ""),
        f"Agent: {info.agent}",
        f"Model: {info.model}",
        f"Mode: {info.mode}",
        f"Directory: {info.cwd}",
        f"Turns: {info.turns}, messages: {info.messages}",
        f"Tokens: {usage.input} in, {usage.output} out; in context now: {info.last_usage.context}",
        f"Cost: ${info.cost:.4f}",
    ]
    others = [who for who in conn.door.present(attachment.id) if who.id != conn.who.id]
    if others:
        names = ", ".join(f"{who.name or who.peer} ({who.dialect})" for who in others)
        lines.append(f"Also attached: {names}")
    return "\n".join(lines)
