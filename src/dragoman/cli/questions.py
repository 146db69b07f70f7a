"""Asks the person at the terminal about approvals, while the host goes on telling things."""

import os
import select
import sys

from dragoman.engine.faults import AlreadySettled, UnknownAsk

from . import say
from .screen import brief, safe, what

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from dragoman.client.plain import Plain


class Questions:
    """Open questions, oldest first; one is on the screen at a time."""

    def __init__(self, host: "Plain") -> None:
        self._host = host
        self._open: dict[str, dict[str, Any]] = {}
        self._shown = ""
        self._ended = False  # nothing more can be typed
        self.skipped: set[str] = set()

    @property
    def count(self) -> int:
        return len(self._open)

    def add(self, ask: "dict[str, Any]") -> None:
        """A question came. It is shown when its turn comes."""
        if ask["id"] not in self.skipped:
            self._open.setdefault(ask["id"], ask)

    def settled(self, ask_id: str, verdict: str, by: str) -> bool:
        """A question was answered somewhere; True when it is the one on the screen."""
        was = self._open.pop(ask_id, None)
        if was is not None and ask_id == self._shown:
            self._shown = ""
            sys.stderr.write(f"\n  {verdict} by {by}\n")
            return True
        return False

    def settle(self, ask: "dict[str, Any]", rule: str) -> None:
        """Answer without a person: yes to all, or no to all."""
        verdict, text = ruled(ask, rule)
        if verdict == "deny":
            say.err("  no (use --approve all to allow it, --approve ask to wait for somebody)")
        self._answer(ask["id"], verdict, text)

    def wait(self) -> bool:
        """Show the oldest question; True when the host has something to tell, else it was typed."""
        self._show()
        if self._host.waiting:
            return True
        places: list[Any] = [self._host]
        if self._shown and not self._ended:
            places.append(sys.stdin)
        ready, _, _ = select.select(places, [], [])
        if sys.stdin in ready:
            self._typed()
        return self._host in ready

    def _show(self) -> None:
        if self._shown or not self._open or self._ended:
            return
        ask = next(iter(self._open.values()))
        self._shown = ask["id"]
        title = what(ask)
        reason = f"\n  {brief(ask['reason'])}" if ask.get("reason") else ""
        if ask["kind"] == "question":
            lines = "".join(f"\n  {n}. {safe(c)}" for n, c in enumerate(ask.get("choices", ()), 1))
            text = f"? {title}{reason}{lines}\n> "
        else:
            text = f"? {title}{reason}\n  [y]es, [a]lways, [n]o, [s]kip: "
        sys.stderr.write(say.style(text, "yellow", stream=sys.stderr))
        sys.stderr.flush()

    def _typed(self) -> None:
        data = os.read(sys.stdin.fileno(), 65536)
        if not data:
            self._ended = True
            return
        ask = self._open.get(self._shown)
        if ask is None:
            return
        verdict, text = decide(ask, data.decode(errors="replace").strip())
        if verdict == "again":
            self._shown = ""
            return
        self._open.pop(ask["id"])
        self._shown = ""
        if verdict == "skip":
            self.skipped.add(ask["id"])
            return
        self._answer(ask["id"], verdict, text)

    def _answer(self, ask_id: str, verdict: str, text: str) -> None:
        params = {"id": ask_id, "verdict": verdict, "text": text}
        try:
            self._host.call("dragoman/answer", params)
        except (AlreadySettled, UnknownAsk) as problem:
            say.err(f"  {problem}")


def ruled(ask: "dict[str, Any]", rule: str) -> tuple[str, str]:
    """What a rule ("all", "none") answers, as (verdict, text)."""
    if ask["kind"] != "question":
        return ("allow", "") if rule == "all" else ("deny", "")
    choices = ask.get("choices", ())
    return ("answer", choices[0]) if choices and rule == "all" else ("cancelled", "")


def decide(ask: "dict[str, Any]", said: str) -> tuple[str, str]:
    """What was meant, as (verdict, text); "skip" and "again" are no verdicts."""
    if ask["kind"] == "question":
        choices = ask.get("choices", ())
        if said.isdigit() and 0 < int(said) <= len(choices):
            return "answer", choices[int(said) - 1]
        return ("answer", said) if said else ("again", "")
    word = said.lower()
    if word in ("y", "yes"):
        return "allow", ""
    if word in ("a", "always"):
        return "allow_always", ""
    if word in ("n", "no"):
        return "deny", ""
    return ("skip", "") if word in ("s", "skip") else ("again", "")
