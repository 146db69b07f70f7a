"""Slash commands: how this protocol shows them, and what our own do and say."""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dragoman.engine.faults import Fault
from dragoman.engine.ports.commands import Command, Commands

if TYPE_CHECKING:
    from .attach import Attachment, Running

OWN = (
    Command("compact", "Replace the history by a summary"),
    Command("model", "Show the model, or use another one", "provider/model"),
    Command("clear", "Forget the conversation so far"),
    Command("undo", "Put files back to before the last turn that changed some", "turn, or list"),
    Command("redo", "Take the last undo back"),
    Command("status", "Show the session, its model and what it has used"),
)

IN_TURNS = frozenset({"undo", "redo"})  # the engine carries these out itself, as a turn


def all_commands(kept: Mapping[str, Command]) -> Commands:
    """Our own and those of the files; a file does not hide one of ours."""
    return Commands.of(OWN, kept)


def listed(commands: Commands, *, second: bool = False) -> list[dict[str, Any]]:
    """The members of `availableCommands`; version 2 says of everything what it is."""
    found = []
    for command in commands.found.values():
        shown: dict[str, Any] = {"name": command.name, "description": command.description}
        if second:
            shown["type"] = "command"
        if command.hint:
            shown["input"] = (
                {"type": "text", "hint": command.hint} if second else {"hint": command.hint}
            )
        found.append(shown)
    return found


async def run_own(attachment: "Attachment", running: "Running", name: str, words: str) -> str:
    """Do a command and show its answer as the agent's; returns that text."""
    acts = {"compact": _compact, "model": _model, "clear": _clear, "status": _status}
    try:
        text = await acts[name](attachment, running, words)
    except Fault as fault:
        text = str(fault)
    attachment.say(text)
    return text


async def _compact(attachment: "Attachment", running: "Running", words: str) -> str:
    conn = attachment.connection
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


async def _model(attachment: "Attachment", running: "Running", words: str) -> str:
    conn = attachment.connection
    info = await conn.door.info(attachment.id)
    if not words:
        return f"The model is {info.model}. To use another one: /model provider/model"
    return f"The model is now {await conn.door.set_model(attachment.id, words, conn.who)}."


async def _clear(attachment: "Attachment", running: "Running", words: str) -> str:
    await attachment.connection.door.clear(attachment.id, attachment.connection.who)
    return "The conversation was cleared; the next prompt begins a new one."


async def _status(attachment: "Attachment", running: "Running", words: str) -> str:
    conn = attachment.connection
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
