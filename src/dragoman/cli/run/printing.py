"""What `dragoman run` prints: the answer on stdout, everything around it on stderr."""

import asyncio
import os
import sys
import time
from collections.abc import Sequence
from typing import Any

import msgspec

from dragoman.engine import events as ev
from dragoman.engine.content import ToolCall, not_streamed, text_of
from dragoman.engine.events import Event
from dragoman.engine.visible import harmless, many, noted, unpainted, visible

_RESULT_LINES = 8
_LIVE_LINES = 200  # of one running command; the rest is counted
_QUIET = 0.5  # seconds without a word before the spinner says what is waited for
_CR = "\r"  # the first half of a line end of two characters
_SPIN = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


def is_dumb() -> bool:
    """Whether the terminal only prints; an empty TERM says nothing of it, so neither do we."""
    return os.environ.get("TERM", "") in ("", "dumb")


class Ink:
    """Colours where the stream is a terminal that wants them."""

    def __init__(self, stream: Any) -> None:
        self.on = not os.environ.get("NO_COLOR") and not is_dumb() and stream.isatty()

    def __call__(self, text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.on else text


class JsonLines:
    """Prints every event as one JSON object per line."""

    def speak(self, events: Sequence[Event]) -> None:
        for event in events:
            body = msgspec.to_builtins(event.body)
            shown = {"session": event.session, "seq": event.seq, "at": event.at, **body}
            sys.stdout.write(msgspec.json.encode(shown).decode() + "\n")
        sys.stdout.flush()


class Spinner:
    """One line on a terminal that says what is waited for; gone before anything else is said."""

    def __init__(self) -> None:
        self._on = sys.stderr.isatty() and not is_dumb()
        self._timer: asyncio.TimerHandle | None = None
        self._drawn = False
        self._began = time.monotonic()
        self.waits = "the model"

    def wait(self) -> None:
        """Nothing is being said: say soon what is waited for."""
        if self._on and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_QUIET, self._draw)

    def clear(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._drawn:
            self._drawn = False
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def _draw(self) -> None:
        passed = time.monotonic() - self._began
        spin = _SPIN[int(passed * 8) % len(_SPIN)]
        sys.stderr.write(f"\r\x1b[K{spin} waits for {self.waits}, {passed:.0f} s")
        sys.stderr.flush()
        self._drawn = True
        self._timer = asyncio.get_running_loop().call_later(0.125, self._draw)


class Prose:
    """The answer on stdout: passed on as it comes, and on a terminal drawn as Markdown.

    On a terminal a paragraph is first written as it comes; when it is whole, it is drawn again in
    its place.
    """

    def __init__(self) -> None:
        self._ink = Ink(sys.stdout)
        self._splitter: Any = None
        self._spoken = False  # something was drawn: a blank line comes before the next
        self._raw = ""  # what stands on the screen as it came
        self._held = ""  # half of a line end
        self.mid_line = False

    def write(self, text: str) -> None:
        text = self._held + text
        self._held = _CR if text.endswith(_CR) else ""  # the line feed may come with the next piece
        text = text.removesuffix(_CR)
        if not text:
            return
        if not self._ink.on:
            sys.stdout.write(harmless(text))
            self.mid_line = not text.endswith("\n")
            return
        if self._splitter is None:
            from dragoman.tui.chunks import Splitter

            self._splitter = Splitter()
        ready = self._splitter.feed(text)
        if ready:
            self._draw(ready)
        tail = harmless(self._splitter.tail)
        if not self._raw and self._spoken and not self._splitter.tight and tail.strip():
            sys.stdout.write("\n")
        if tail.startswith(self._raw):
            sys.stdout.write(tail[len(self._raw) :])
            self._raw = tail
        self.mid_line = bool(self._raw)

    def flush(self) -> None:
        """Draw what still waited for the end of its paragraph."""
        self._held = ""
        if self._splitter is not None:
            self._draw(self._splitter.end())
            self._spoken = False
        elif self.mid_line:
            sys.stdout.write("\n")
        self.mid_line = False
        sys.stdout.flush()

    def _draw(self, chunks: Any) -> None:
        if not chunks:
            return
        from rich.console import Console

        from dragoman.tui.prose import rows

        size = os.get_terminal_size(sys.stdout.fileno())
        width = size.columns or 80
        console = Console(file=sys.stdout, force_terminal=True, color_system="standard",
                          width=width, highlight=False, markup=False, emoji=False)  # fmt: skip
        first = self._take_back(width, size.lines or 24)
        for at, chunk in enumerate(chunks):
            if at == 0 and not first:
                sys.stdout.write(harmless(chunk.text[len(self._raw) :]).rstrip("\n") + "\n")
                continue  # it scrolled away as it came, and stays as it is
            if self._spoken and not chunk.tight and not (at == 0 and self._raw):
                sys.stdout.write("\n")
            self._spoken = True
            for row in rows(chunk.text, max(width - 1, 20), chunk.opener):
                console.print(row.shown, no_wrap=True, overflow="ignore", crop=False)
        self._spoken = True
        self._raw = ""
        sys.stdout.flush()

    def _take_back(self, width: int, height: int) -> bool:
        """Wipe out what stands as it came; False when its beginning has left the screen."""
        if not self._raw:
            return True
        from rich.cells import cell_len

        tall = sum(max(cell_len(line.expandtabs(8)) - 1, 0) // width + 1
                   for line in self._raw.split("\n"))  # fmt: skip
        if tall >= height:
            return False
        up = f"\x1b[{tall - 1}A" if tall > 1 else ""
        sys.stdout.write(f"\r{up}\x1b[J")
        return True


class Screen:
    """Prints a turn for a person. No two kinds of lines ever run into each other."""

    def __init__(self) -> None:
        self._ink = Ink(sys.stderr)
        self._prose = Prose()
        self._thinking = False  # a thought stands at the end of the last line
        self._streamed = ""  # of the message that is being said
        self._live: dict[str, tuple[str, int]] = {}  # by call: a half line, lines so far
        self._at_work: dict[str, str] = {}  # the names of calls that run
        self._spinner = Spinner()
        self._began = time.monotonic()
        self._cost = 0.0
        self._model = ""
        self._tokens = 0
        self.stopped = False  # whoever reads this cancelled the turn

    def speak(self, events: Sequence[Event]) -> None:
        self._spinner.clear()
        for event in events:
            self._one(event.body)
        sys.stdout.flush()
        sys.stderr.flush()
        if not self._prose.mid_line and not self._thinking:  # it would wipe half a line out
            self._spinner.wait()

    def _rest_of(self, text: str) -> None:
        rest, follows = not_streamed(text, self._streamed)
        self._streamed = ""
        if not follows:
            self.fresh_line()
        if rest:
            self._end_thought()
            self._prose.write(rest)

    def _one(self, body: ev.Body) -> None:
        match body:
            case ev.TextDelta(text=text):
                self._end_thought()
                self._streamed += text
                self._prose.write(text)
                self._spinner.waits = "the rest of the answer"
            case ev.ThoughtDelta(text=text):
                self._prose.flush()
                sys.stderr.write(self._ink(harmless(text), "2"))
                self._thinking = not text.endswith("\n")
                self._spinner.waits = "the model, which thinks"
            case ev.Spoke(content=content):
                self._rest_of(text_of(content))
                self.fresh_line()
                self._cost += body.cost
                self._model, self._tokens = body.model or self._model, body.usage.context
                for block in content:
                    if isinstance(block, ToolCall):
                        args = block.raw
                        if block.args is not None:
                            args = msgspec.json.encode(block.args).decode()
                        self.aside(f"▸ {block.name} {cut(visible(args, strict=True))}", "36")
            case ev.CallStarted(name=name, why=why):
                self._at_work[body.call_id] = visible(name)
                self._spinner.waits = self._awaited()
                if why:
                    self.aside(f"  allowed by {visible(why)}", "2")
            case ev.Progress(call_id=call_id, text=text):
                self._progress(call_id, text)
            case ev.Asked():
                self._spinner.waits = "an answer"
            case ev.Settled(verdict="cancelled", by=None) if self.stopped:
                pass  # with the turn, whose end is told
            case ev.Settled(verdict=verdict, by=by, scope=scope):
                self._spinner.waits = self._awaited()
                kept = f"; remembered: {visible(scope)}" if scope else ""
                who = visible(str(by)) if by else "the host"
                self.aside(f"  {verdict} by {who}{kept}", "33")
            case ev.CallEnded():
                self._ended(body)
            case ev.Compacting(state="began"):
                from dragoman.tui.piece import SUMMARY

                self._spinner.waits = SUMMARY
            case ev.Compacting(state="failed" | "cancelled") | ev.Compacted():
                self._spinner.waits = "the model"
            case ev.Retrying(reason=reason, delay=delay):
                self.aside(f"  {reason}; trying again in {delay:.1f} s", "33")
            case ev.Planned(entries=entries):
                for entry in entries:
                    mark = {"completed": "x", "in_progress": "~"}.get(entry.status, " ")
                    self.aside(f"  [{mark}] {harmless(entry.content)}", "35")
            case ev.Noted(title=title, text=text):
                self.aside(f"  {noted(title, text)}", "33")
            case ev.TurnEnded(outcome="failed", error=error):
                self.aside(f"failed: {error}", "31")
            case ev.TurnEnded(outcome="interrupted", cause="shutdown"):
                self.aside("interrupted: the daemon was stopped", "33")
            case ev.TurnEnded(outcome="cancelled" | "interrupted"):
                self.aside("cancelled", "33")

    def _progress(self, call_id: str, text: str) -> None:
        """Output of a running command, whole lines as they come."""
        half, count = self._live.get(call_id, ("", 0))
        *lines, half = (half + text).split("\n")
        for line in lines:
            count += 1
            if count <= _LIVE_LINES:
                self.aside(f"  {cut(harmless(unpainted(line)))}", "2")
        self._live[call_id] = (half[-10_000:], count)

    def _awaited(self) -> str:
        from dragoman.tui.piece import at_work

        return at_work(list(self._at_work.values()))

    def _ended(self, body: ev.CallEnded) -> None:
        self._at_work.pop(body.call_id, None)
        self._spinner.waits = self._awaited()
        style = "31" if body.is_error else "2"
        if body.call_id in self._live:  # it was shown as it came
            half, count = self._live.pop(body.call_id)
            if half.strip() and count < _LIVE_LINES:
                self.aside(f"  {cut(harmless(unpainted(half)))}", "2")
            if count > _LIVE_LINES:
                self.aside(f"  … {many(count - _LIVE_LINES, 'more line')}", "2")
            if body.is_error or body.outcome != "done":
                lines = harmless(unpainted(text_of(body.content))).strip().splitlines()
                if len(lines) > 1 and lines[-1].startswith("[exit -1]"):
                    lines.pop()  # it did not end by itself: the line before says why
                self.aside(f"  {cut(lines[-1])}" if lines else f"  {body.outcome}", style)
            return
        lines = harmless(unpainted(text_of(body.content))).strip().splitlines()
        for line in lines[:_RESULT_LINES]:
            self.aside(f"  {cut(line)}", style)
        if len(lines) > _RESULT_LINES:
            self.aside(f"  … {many(len(lines) - _RESULT_LINES, 'more line')}", "2")

    def _end_thought(self) -> None:
        if self._thinking:
            sys.stderr.write("\n")
            sys.stderr.flush()
            self._thinking = False

    def fresh_line(self) -> None:
        self._spinner.clear()
        self._end_thought()
        self._prose.flush()

    def aside(self, text: str, code: str) -> None:
        """A line beside the answer, in which nothing steers the terminal, whoever wrote it."""
        self.fresh_line()
        sys.stderr.write(self._ink(visible(text), code) + "\n")

    def end(self) -> None:
        """The last words: what it took, where somebody looks on."""
        self.fresh_line()
        if not sys.stderr.isatty():
            return
        seconds = time.monotonic() - self._began
        cost = f"${self._cost:.4f}" if self._cost else "no cost"
        facts = [self._model, f"{seconds:.1f} s", cost, f"{self._tokens:,} tokens in context"]
        self.aside(" · ".join(fact for fact in facts if fact), "2")


def cut(text: str, room: int = 160) -> str:
    text = " ".join(text.split())
    return text if len(text) <= room else f"{text[: room - 1]}…"
