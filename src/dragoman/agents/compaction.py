"""Makes a long history short: everything but its tail becomes one summary."""

import msgspec

from dragoman.engine.content import Image, Message, Text, Thinking, ToolCall, ToolResult, Usage
from dragoman.engine.faults import BadInput, ProviderFailed
from dragoman.engine.ports import (
    ModelInfo,
    ModelRequest,
    ModelRetry,
    ModelText,
    ModelUsage,
    Provider,
    TurnPort,
)

from .reply import streaming

KEEP = 4  # messages at the end that stay as they are
_LEAST = 1_000  # characters of a conversation; a summary of less is worth nothing
_PIECE = 4_000  # characters of one tool result that the summariser sees
_SYSTEM = (
    "You summarise a conversation between a user and an agent so that the agent can go on with "
    "the work knowing only your summary. Write plain text, no preamble, under these headings: "
    "Wanted (what the user wants, in their words where they matter); Decided (decisions and their "
    "reasons); Files (each file that was read or changed, and what of it matters); Done (what was "
    "changed and how it was checked, what failed); Open (what is left, questions, next step). "
    "Leave out greetings and repetition."
)


async def summarise(
    turn: TurnPort, provider: Provider, model: ModelInfo, *, automatic: bool
) -> str:
    """Ask the model for a summary and put it in place of the history."""
    messages = turn.messages
    if not messages:
        raise BadInput("nothing to compact")
    if len(messages) <= KEEP:
        raise BadInput("nothing to compact: keep-tail covers the whole transcript")
    turn.compacting(automatic=automatic)
    try:
        return await _summarise(turn, provider, model, automatic=automatic)
    except BaseException as problem:
        turn.uncompacted(str(problem) if isinstance(problem, Exception) else "")
        raise


async def _summarise(
    turn: TurnPort, provider: Provider, model: ModelInfo, *, automatic: bool
) -> str:
    messages = turn.messages
    keep = KEEP
    while keep and messages[len(messages) - keep].role == "tool":
        keep -= 1  # results go where their calls go
    old = messages[: len(messages) - keep]
    said = "\n\n".join(_flat(message) for message in old)
    room = max(20_000, model.context_window * 2)  # characters; a token has more than two
    while True:
        try:
            summary, usage = await _asked(turn, provider, model, _within(said, room))
            break
        except ProviderFailed as failure:  # the window is smaller than we were told
            if failure.kind != "context_full":
                raise
            room = min(room, len(said)) // 3
            if room < _LEAST:
                raise too_much(failure) from failure
    if not summary:
        raise ProviderFailed("empty summary from model", "refused")
    await turn.compacted(summary, keep, usage, model.cost(usage), automatic=automatic)
    return summary


def too_much(failure: ProviderFailed) -> ProviderFailed:
    """A full context in our words, then the provider's: by its words alone we took it for one."""
    return ProviderFailed(
        f"What is to be read at once does not fit into this model: {failure.message}.",
        "context_full",
        hint="Begin a new session with less, or choose a model with a larger window.",
    )


def _within(said: str, room: int) -> str:
    """The beginning, which says what is wanted, and the end, where things are."""
    if len(said) <= room:
        return said
    return said[: room // 4] + "\n\n[...]\n\n" + said[-room * 3 // 4 :]


async def _asked(
    turn: TurnPort, provider: Provider, model: ModelInfo, said: str
) -> tuple[str, Usage]:
    """The model's summary of a conversation."""
    request = ModelRequest(
        model=model,
        system=_SYSTEM,
        messages=(Message("user", (Text(f"<conversation>\n{said}\n</conversation>"),)),),
        max_output=min(4_096, model.max_output),
        session=turn.info.id,
        cwd=turn.info.cwd,
    )
    pieces: list[str] = []
    usage = Usage()
    async with streaming(provider, request) as parts:
        async for part in parts:
            if type(part) is ModelText:
                pieces.append(part.text)
                turn.summarising(part.text)
            elif type(part) is ModelUsage:
                usage = part.usage
            elif type(part) is ModelRetry:
                pieces.clear()
    return "".join(pieces).strip(), usage


def _flat(message: Message) -> str:
    lines = [f"--- {message.role} ---"]
    for block in message.content:
        match block:
            case Text(text=text):
                lines.append(text)
            case ToolCall(name=name, args=args):
                lines.append(f"[tool_call {name} {msgspec.json.encode(args).decode()[:_PIECE]}]")
            case ToolResult(content=content, is_error=is_error):
                said = " ".join(b.text if isinstance(b, Text) else "[image]" for b in content)
                lines.append(f"[tool_result{' error' if is_error else ''}] {said[:_PIECE]}")
            case Image(mime_type=mime, data=data):
                lines.append(f"[image: {mime}, {len(data)} bytes]")
            case Thinking():
                pass  # reasoning does not outlive its turn
    return "\n".join(lines)
