"""What happened in a session, in the order a reader wants it."""

import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple


def utc(ms: int) -> str:
    """Date and time in UTC, for files."""
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(ms / 1000))


def written(form: str, info: dict[str, Any], events: Sequence[dict[str, Any]]) -> str:
    """A session as a file: `json`, `markdown` or `html`."""
    if form == "markdown":
        from .markdown import markdown

        return markdown(info, events)
    if form == "html":
        from .document import document

        return document(info, events)
    from json import dumps

    return (
        dumps({"format": 1, "session": info, "events": events}, ensure_ascii=False, indent=1) + "\n"
    )


class Part(NamedTuple):
    """One piece of the story.

    `kind`: user, agent, thought, call, result, asked, plan, note. `title` is one line, `text` the
    body, `code` whether the body is to be shown as it is.
    """

    kind: str
    at: int
    title: str
    text: str = ""
    code: bool = False
    bad: bool = False


def title_of(info: dict[str, Any]) -> str:
    """What a session is called."""
    words = str(info["title"] or info["query"] or info["id"]).split()
    return " ".join(words)[:200]


def facts_of(info: dict[str, Any]) -> list[tuple[str, str]]:
    """The rows at the head of a document."""
    usage = info["usage"]
    rows = [
        ("Session", info["id"]),
        ("Agent", f"{info['agent']}, {info['model']}"),
        ("Directory", info["cwd"]),
        ("Opened", f"{utc(info['created_at'])}" + (f", {info['origin']}" * bool(info["origin"]))),
        ("Status", info["status"]),
        ("Turns", str(info["turns"])),
        ("Tokens", f"{usage['input']} in, {usage['output']} out"),
    ]
    if info["cost"]:
        rows.append(("Cost", f"${info['cost']:.4f}"))
    return rows


def story(events: Sequence[dict[str, Any]]) -> Iterator[Part]:
    """The parts of a session's history."""
    for told in events:
        event, at = told["event"], told["at"]
        tell = _TELL.get(event["type"])
        if tell is not None:
            yield from tell(event, at)


def _text(content: Any) -> str:
    found = []
    for block in content:
        if block["type"] == "text":
            found.append(block["text"])
        elif block["type"] == "image":
            found.append(f"[image, {block['mime_type']}]")
    return "\n".join(found)


def _by(event: dict[str, Any], otherwise: str) -> str:
    by = event.get("by")
    if not by:
        return otherwise
    return f"{by['name']} ({by['dialect']})" if by.get("name") else f"{otherwise} ({by['dialect']})"


def _seeded(event: dict[str, Any], at: int) -> Iterator[Part]:
    yield Part("note", at, f"Continues {event['parent']}")
    for message in event["messages"]:
        if message["role"] == "user":
            yield Part("user", at, "User", _text(message["content"]))
        elif message["role"] == "assistant":
            yield from _spoke(message, at)
        else:
            for block in message["content"]:
                yield Part("result", at, block.get("name", ""), _text(block["content"]), code=True)


def _turn_began(event: dict[str, Any], at: int) -> Iterator[Part]:
    yield Part("user", at, _by(event, "User"), _text(event["content"]))


def _spoke(event: dict[str, Any], at: int) -> Iterator[Part]:
    from json import dumps

    for block in event["content"]:
        kind = block["type"]
        if kind == "text" and block["text"].strip():
            yield Part("agent", at, "Agent", block["text"])
        elif kind == "thinking" and block["text"].strip():
            yield Part("thought", at, "Thinking", block["text"])
        elif kind == "tool_call":
            args = block.get("args")
            shown = dumps(args, ensure_ascii=False, indent=2) if args is not None else block["raw"]
            yield Part("call", at, block["name"], shown, code=True)
    if event.get("error"):
        yield Part("note", at, "The model failed", event["error"], bad=True)


def _call_ended(event: dict[str, Any], at: int) -> Iterator[Part]:
    bad = bool(event.get("is_error"))
    title = event["name"] if event["outcome"] == "done" else f"{event['name']}: {event['outcome']}"
    yield Part("result", at, title, _text(event.get("content", ())), code=True, bad=bad)


def _asked(event: dict[str, Any], at: int) -> Iterator[Part]:
    ask = event["ask"]
    yield Part("asked", at, f"Asked: {ask['title']}", ask.get("summary", ""))


def _settled(event: dict[str, Any], at: int) -> Iterator[Part]:
    said = event.get("text") or event.get("comment") or ""
    yield Part("asked", at, f"Answered: {event['verdict']}, by {_by(event, 'the host')}", said)


def _planned(event: dict[str, Any], at: int) -> Iterator[Part]:
    marks = {"completed": "x", "in_progress": "~"}
    lines = [f"[{marks.get(e.get('status', ''), ' ')}] {e['content']}" for e in event["entries"]]
    yield Part("plan", at, "Plan", "\n".join(lines), code=True)


def _turn_ended(event: dict[str, Any], at: int) -> Iterator[Part]:
    if event["outcome"] != "completed":
        yield Part("note", at, f"Turn {event['outcome']}", event.get("error", ""), bad=True)


def _noted(event: dict[str, Any], at: int) -> Iterator[Part]:
    yield Part("note", at, event["title"], event.get("text", ""), bad=event["level"] == "error")


def _said(title: str, field: str) -> Any:
    def tell(event: dict[str, Any], at: int) -> Iterator[Part]:
        yield Part("note", at, f"{title}{event[field]}" if field else title)

    return tell


_TELL: dict[str, Any] = {
    "seeded": _seeded,
    "turn_began": _turn_began,
    "steered": _turn_began,
    "spoke": _spoke,
    "call_ended": _call_ended,
    "asked": _asked,
    "settled": _settled,
    "planned": _planned,
    "turn_ended": _turn_ended,
    "noted": _noted,
    "renamed": _said("Title: ", "title"),
    "model_set": _said("Model: ", "model"),
    "mode_set": _said("Mode: ", "mode"),
    "reasoning_set": _said("Reasoning: ", "effort"),
    "compacted": _said("Compacted: ", "summary"),
    "cleared": _said("Cleared", ""),
}
