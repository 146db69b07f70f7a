"""Asks the person at the terminal about approvals, while the host goes on telling things."""

import os
import sys

from dragoman import TYPE_CHECKING
from dragoman.client.reader import NONE, ready
from dragoman.engine.faults import AlreadySettled, Changed, UnknownAsk

from . import say
from .screen import ask_of

if TYPE_CHECKING:
    from typing import Any

    from dragoman.client.plain import Plain

    from .dialogue import Dialogue


class QuestionQueue:
    """Open questions, oldest first; one is on the screen at a time."""

    def __init__(self, host: "Plain") -> None:
        self._host = host
        self._open: dict[str, dict[str, Any]] = {}
        self._shown = ""
        self._ended = False  # nothing more can be typed
        self._dialogue: Dialogue | None = None  # about the question on the screen
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
        """Answer without a person, by the rule: yes to all, or no to all."""
        from .dialogue import by_rule

        decided, said = by_rule(ask_of(ask), rule)
        if said:
            say.err(say.style(said, "yellow", stream=sys.stderr))
        more = {"digest": ask.get("digest", ""), "comment": decided.comment}
        self._answer(ask["id"], decided.verdict, decided.text, more)

    def wait(self, reader: int = NONE) -> bool:
        """Show the oldest question; True when the host has something to tell, else it was typed.

        Raises BrokenPipeError when nobody reads any more what is printed to `reader`.
        """
        self._show()
        if self._host.waiting:
            return True
        places: list[Any] = [self._host]
        if self._shown and not self._ended:
            places.append(sys.stdin)
        found = ready(places, reader)
        if sys.stdin in found:
            self._typed()
        return self._host in found

    def _show(self) -> None:
        if self._shown or not self._open or self._ended:
            return
        ask = next(iter(self._open.values()))
        self._shown = ask["id"]
        if self._dialogue is None or self._dialogue.ask.id != ask["id"]:
            from .dialogue import Dialogue, screen_size

            self._dialogue = Dialogue(ask_of(ask), screen_size(), may_skip=True)
        from .dialogue import put

        put(say.style(self._dialogue.prompt(), "yellow", stream=sys.stderr), sys.stderr)

    def _typed(self) -> None:
        data = os.read(sys.stdin.fileno(), 65536)
        if not data:
            self._ended = True
            return
        ask = self._open.get(self._shown)
        if ask is None or self._dialogue is None:
            return
        decided = self._dialogue.typed(data.decode(errors="replace"))
        self._shown = ""
        if decided is None:
            return  # the next page, or the same question again
        self._open.pop(ask["id"])
        if decided.skip:
            self.skipped.add(ask["id"])
            return
        more = {"scope": decided.scope, "lasts": decided.lasts, "digest": ask.get("digest", "")}
        self._answer(ask["id"], decided.verdict, decided.text, more)

    def _answer(self, ask_id: str, verdict: str, text: str, more: dict[str, str]) -> None:
        params = {"id": ask_id, "verdict": verdict, "text": text, **more}
        try:
            settled = self._host.call("dragoman/answer", params)["settled"]
        except (AlreadySettled, UnknownAsk, Changed) as problem:
            say.err(f"  {problem}")
            return
        if settled.get("scope"):
            say.err(f"  remembered: {say.clean(settled['scope'])}")
