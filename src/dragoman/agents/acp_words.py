"""What a hosted agent says, in our words: calls, results, permissions, plans."""

from base64 import b64decode, b64encode
from binascii import Error as BadBase64
from collections.abc import Sequence
from typing import Any

import msgspec

from dragoman.engine.ask import Change
from dragoman.engine.content import (
    Detail,
    Diff,
    Image,
    Location,
    Message,
    PlanEntry,
    Prompt,
    Text,
    ToolCall,
    text_of,
)
from dragoman.holding import Holder

_KINDS = frozenset("read edit delete move search execute think fetch switch_mode other".split())
_NAME = 64
_TEXT = 256 * 1024  # characters of one call's result that are kept
_DIFF = 256 * 1024
_EARLIER = 32_000  # characters of earlier conversation that a new child is told
_ALLOWING = ("allow_once", "allow_always")
_REFUSING = ("reject_once", "reject_always")

Fields = dict[str, Any]
_CANCELLED: Fields = {"outcome": {"outcome": "cancelled"}}


class HostedCall(Holder):
    """A tool call of the hosted agent, as far as it is known."""

    id: str
    name: str = ""
    kind: str = "other"
    title: str = ""
    args: Fields = {}
    content: list[Any] = []
    output: Any = None
    places: list[Any] = []
    started: bool = False
    ended: bool = False
    granted: bool = False  # a human, or policy, said yes
    refused: str = ""  # why not
    known: ToolCall | None = None  # as it was told last
    said: str = ""  # what was shown of its output while it ran

    def take(self, update: Fields) -> None:
        """Members that are there replace what was known."""
        if isinstance(update.get("kind"), str) and update["kind"] in _KINDS:
            self.kind = update["kind"]
        if isinstance(update.get("title"), str) and update["title"]:
            self.title = update["title"]
        raw = update.get("rawInput")
        if isinstance(raw, dict) and raw:
            self.args = raw
        elif raw not in (None, {}, ""):
            self.args = {"input": raw}
        if isinstance(update.get("content"), list):
            self.content = update["content"]
        if update.get("rawOutput") is not None:
            self.output = update["rawOutput"]
        if isinstance(update.get("locations"), list):
            self.places = update["locations"]
        self.name = self.name or _name(update) or ""

    def tool_call(self) -> ToolCall:
        args = self.args or ({"title": self.title} if self.title else {})
        return ToolCall(self.id, self.name or self.kind, args)

    @property
    def summary(self) -> str:
        """One line for a human who must decide."""
        # We ask in these words ourselves: a host of ours need not say them twice.
        title = "" if self.title == f"Approve {self.tool_call().name}?" else self.title
        for key in ("command", "path", "file_path", "url", "summary"):
            value = self.args.get(key)
            if isinstance(value, str) and value:
                return f"{title}: {value}" if title and value != title else value
        shown = _texts(self.content)
        return f"{title}: {shown}" if shown and title else title or shown or self.title

    @property
    def changes(self) -> tuple[Change, ...]:
        """The differences that the agent shows with its request."""
        found: list[Change] = []
        for one in self.content:
            match one:
                case {"type": "diff", "path": str(path), "newText": str(new)}:
                    old = one.get("oldText")
                    found.append(Change(path, old if isinstance(old, str) else None, new))
        return tuple(found)

    def text(self) -> str:
        """What it said: its content, else its raw output."""
        said = _texts(self.content)
        if said or self.output is None:
            return said[:_TEXT]
        match self.output:
            case str(words) | {"output": str(words)}:
                return words[:_TEXT]
        return msgspec.json.encode(self.output).decode()[:_TEXT]

    def result(self) -> tuple[tuple[Text | Image, ...], Detail | None]:
        found: list[Text | Image] = [Text(text)] if (text := self.text()) else []
        diffs = [
            Diff(one.path, one.old, one.new)
            for one in self.changes
            if len(one.new) + len(one.old or "") <= _DIFF
        ]
        for one in self.content:
            match one:
                case {"type": "content", "content": {"type": "image"} as block}:
                    image = read_image(block)
                    found += [image] if image else []
        if not found:
            changed = ", ".join(diff.path for diff in diffs)
            found.append(Text(f"Changed {changed}." if changed else "(no output)"))
        places = tuple(
            Location(place["path"], line if isinstance(line := place.get("line"), int) else None)
            for place in self.places
            if isinstance(place, dict) and isinstance(place.get("path"), str)
        )
        detail = Detail(diffs=tuple(diffs), locations=places) if diffs or places else None
        return tuple(found), detail


def _name(update: Fields) -> str:
    """The tool's own name where the agent tells it; ACP itself knows only titles and kinds."""
    given = update.get("name")
    meta = update.get("_meta")
    if not isinstance(given, str) and isinstance(meta, dict):
        for table in meta.values():
            if isinstance(table, dict) and isinstance(table.get("toolName"), str):
                given = table["toolName"]
    return given[:_NAME] if isinstance(given, str) else ""


def _texts(content: Sequence[Any]) -> str:
    found = []
    for one in content:
        match one:
            case {"type": "content", "content": block} if text := block_text(block):
                found.append(text)
    return "\n".join(found)


def block_text(block: Any) -> str:
    """The text of a content block; what is no text is named."""
    match block:
        case {"type": "text", "text": str(text)}:
            return text
        case {"type": "resource", "resource": {"text": str(text)}}:
            return text
        case {"type": "resource", "resource": {"uri": str(uri)}}:
            return f"[{uri}]"
        case {"type": "resource_link", "uri": str(uri)}:
            return f"[{block.get('name') or uri}]({uri})"
        case {"type": "image" | "audio" as kind}:
            return f"[{kind}]"
    return ""


def read_image(block: Fields) -> Image | None:
    try:
        data = b64decode(str(block.get("data") or ""), validate=True)
    except (BadBase64, ValueError):
        return None
    return Image(str(block.get("mimeType") or "image/png"), data) if data else None


def plan_of(update: Fields) -> list[PlanEntry]:
    found = []
    given = update.get("entries")
    for one in given if isinstance(given, list) else ():
        if isinstance(one, dict):
            try:
                found.append(msgspec.convert(one, PlanEntry))
            except msgspec.ValidationError:
                found.append(PlanEntry(str(one.get("content", ""))))
    return found


def prompt_blocks(content: Prompt, images: bool) -> list[Fields]:
    """A prompt of ours as content blocks."""
    found: list[Fields] = []
    for block in content:
        if isinstance(block, Text):
            found.append({"type": "text", "text": block.text})
        elif isinstance(block, Image) and images:
            data = b64encode(block.data).decode()
            found.append({"type": "image", "mimeType": block.mime_type, "data": data})
        else:
            found.append({"type": "text", "text": "[an image that this agent cannot see]"})
    return found


def earlier(messages: Sequence[Message]) -> str:
    """What was said before, for a child that was not there."""
    lines = []
    for message in messages:
        text = text_of(message.content).strip()
        if text and message.role in ("user", "assistant"):
            lines.append(f"{message.role}: {text}")
    said = "\n\n".join(lines)[-_EARLIER:]
    return f"Earlier in this conversation:\n\n{said}" if said else ""


# --- permissions -----------------------------------------------------------------------------


def options_of(params: Fields) -> list[Fields]:
    given = params.get("options")
    return [one for one in given if isinstance(one, dict)] if isinstance(given, list) else []


def is_question(options: Sequence[Fields]) -> bool:
    """Several ways to say yes once are a question with choices, not a request for permission.

    Several ways to say yes for always are the scopes of one.
    """
    return [one.get("kind") for one in options].count("allow_once") > 1


def chosen(options: Sequence[Fields], verdict: str) -> Fields:
    """The outcome for a verdict: the option that is nearest to it.

    What is for always is remembered here, as far as was said; the agent's own "always" may reach
    further, so it is told of this once.
    """
    if verdict == "cancelled":
        return _CANCELLED
    wanted = _ALLOWING if verdict in ("allow", "allow_always") else _REFUSING
    found = (_option(options, "kind", kind) for kind in wanted)
    return next((one for one in found if one is not _CANCELLED), _CANCELLED)


def picked(options: Sequence[Fields], name: str) -> Fields:
    """The outcome for a choice by its name."""
    return _option(options, "name", name)


def _option(options: Sequence[Fields], key: str, value: str) -> Fields:
    """The outcome for the first option of which this is true."""
    for option in options:
        if option.get(key) == value:
            return {"outcome": {"outcome": "selected", "optionId": option.get("optionId")}}
    return _CANCELLED
