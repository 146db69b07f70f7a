"""Prints events for a person: answers as they stream, everything around them dimmed."""

import sys

from dragoman import TYPE_CHECKING

from . import say
from .times import clock

if TYPE_CHECKING:
    from typing import Any

    from dragoman.engine.ask import Ask

ROOM = 500  # characters of a question in a list: what fits was shown whole
_LINES = 8
_ROOM = 160


class Screen:
    """One stream of events on the terminal. `quiet` leaves out who prompts (we know it was us)."""

    def __init__(self, *, quiet: bool = False, numbered: bool = False) -> None:
        self._quiet = quiet
        self._numbered = numbered
        self._mid_line = False
        self._streamed = False  # the text of this model call was printed as it came

    def show(self, told: "dict[str, Any]") -> None:
        """Print one event as the host sends it."""
        self._head = f"{told['seq']:>5} {clock(told['at'])} " if self._numbered else ""
        self._tell(told["event"])
        sys.stdout.flush()

    def fresh_line(self) -> None:
        if self._mid_line:
            sys.stdout.write("\n")
            self._mid_line = False

    def _row(self, text: str, *styles: str) -> None:
        self.fresh_line()
        say.out(say.style(self._head, "dim") + say.style(safe(text), *styles))

    def _tell(self, event: "dict[str, Any]") -> None:
        match event["type"]:
            case "text_delta":
                text = safe(event["text"])
                sys.stdout.write(text)
                self._streamed = True
                self._mid_line = not text.endswith("\n")
            case "step_began":
                self._streamed = False
            case "opened":
                self._row(f"opened in {say.clean(event['cwd'])} with {event['model']}", "dim")
            case "turn_began":
                self._streamed = False
                if not self._quiet:
                    self._row(
                        f"{who(event.get('by'), 'you')}: {safe(text_of(event['content']))}", "bold"
                    )
            case "steered":
                self._row(
                    f"{who(event.get('by'), 'you')}, meanwhile: {safe(text_of(event['content']))}"
                )
            case "spoke":
                self._spoke(event)
            case "call_ended":
                self._call_ended(event)
            case "asked":
                ask = event["ask"]
                self._row(f"? {what(ask)}", "yellow")
                self._row(f"  dragoman approve {ask['id']}", "dim")
            case "call_started":
                if event.get("why"):
                    self._row(f"  allowed by {brief(event['why'], 1000)}", "dim")
            case "settled":
                comment = f": {brief(event['comment'])}" if event.get("comment") else ""
                kept = f"; remembered: {brief(event['scope'], 1000)}" if event.get("scope") else ""
                by = who(event.get("by"), "the host")
                self._row(f"  {event['verdict']} by {by}{comment}{kept}", "yellow")
            case "planned":
                for entry in event["entries"]:
                    mark = {"completed": "x", "in_progress": "~"}.get(entry.get("status", ""), " ")
                    self._row(f"  [{mark}] {brief(entry['content'])}", "magenta")
            case "renamed":
                self._row(f"renamed: {brief(event['title'])}", "dim")
            case "model_set":
                self._row(f"model: {event['model']} ({who(event.get('by'), 'the host')})", "dim")
            case "mode_set":
                self._row(f"mode: {event['mode']} ({who(event.get('by'), 'the host')})", "dim")
            case "compacted":
                self._row(f"compacted: {brief(event['summary'])}", "dim")
            case "cleared":
                self._row("cleared", "dim")
            case "noted":
                self._row(f"{event['title']} {brief(event.get('text', ''))}".rstrip(), "yellow")
            case "retrying":
                self._row(f"{brief(event['reason'])}; again in {event['delay']:.1f} s", "yellow")
            case "turn_ended":
                self._turn_ended(event)
            case "lagged":
                lost = say.many(event["dropped"], "passing event was", "passing events were")
                self._row(f"({lost} skipped)", "dim")
            case "deleted":
                self._row("the session was deleted", "red")

    def _spoke(self, event: "dict[str, Any]") -> None:
        text = text_of(event["content"])
        if text and not self._streamed:
            self._row(safe(text))
        self._streamed = False
        self.fresh_line()
        for block in event["content"]:
            if block["type"] == "tool_call":
                self._row(f"▸ {block['name']} {brief(arguments(block.get('args')))}", "cyan")

    def _call_ended(self, event: "dict[str, Any]") -> None:
        lines = safe(text_of(event.get("content", ()))).strip().splitlines()
        style = "red" if event.get("is_error") else "dim"
        for line in lines[:_LINES]:
            self._row(f"  {brief(line)}", style)
        if len(lines) > _LINES:
            self._row(f"  … {say.many(len(lines) - _LINES, 'more line')}", "dim")

    def _turn_ended(self, event: "dict[str, Any]") -> None:
        self.fresh_line()
        if event["outcome"] == "failed":
            self._row(f"failed: {brief(event.get('error', ''), 1000)}", "red")
        elif event["outcome"] != "completed":
            self._row(event["outcome"], "yellow")


def text_of(content: "Any") -> str:
    """The text of a message's blocks."""
    return "".join(block["text"] for block in content if block["type"] == "text")


def arguments(args: "dict[str, Any] | None") -> str:
    from json import dumps

    return dumps(args, ensure_ascii=False) if args else ""


def ask_of(ask: "dict[str, Any]") -> "Ask":
    """A question as the host sends it."""
    from msgspec import convert

    from dragoman.engine.ask import Ask

    return convert(ask, Ask)


def what(ask: "dict[str, Any]", room: int = ROOM) -> str:
    """What is asked, in one line that says how much it leaves out."""
    from dragoman.engine.shown import line

    return line(ask_of(ask), room)[0]


def brief(text: str, room: int = _ROOM) -> str:
    """The text on one line, cut."""
    return say.cut(" ".join(say.clean(text).split()), room)


def called(row: "dict[str, Any]") -> str:
    """What a session is called: its title, else its first prompt without what came along."""
    return str(row["title"] or row["query"].partition("\n\n<context name=")[0])


def safe(text: str) -> str:
    """The text with its lines, without the power to steer the terminal."""
    return "\n".join(say.clean(line) for line in text.split("\n"))


def who(by: "dict[str, Any] | None", otherwise: str) -> str:
    """A client, as people call it."""
    if not by:
        return otherwise
    name = by.get("name") or by.get("peer") or by.get("id")
    return say.clean(f"{name} ({by['dialect']})" if name else by["dialect"])
