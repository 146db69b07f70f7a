"""What a session spent its time on: turns with their model calls, tools and waits as bars."""

from collections.abc import Iterable

import msgspec

from dragoman.engine import events as ev
from dragoman.engine.content import Text
from dragoman.engine.events import Event
from dragoman.holding import Holder

_TITLE = 120


class Bar(msgspec.Struct, frozen=True, omit_defaults=True):
    """A stretch of time. `kind`: model, tool, wait. Without an end it still goes on."""

    kind: str
    name: str
    began: int
    ended: int | None = None
    outcome: str = ""
    seq: int = 0
    tokens: int = 0
    cost: float = 0.0


class TurnRow(msgspec.Struct, frozen=True, omit_defaults=True):
    turn: str
    seq: int  # of the prompt
    title: str
    began: int
    ended: int | None = None
    outcome: str = ""
    bars: tuple[Bar, ...] = ()
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float = 0.0


class Totals(msgspec.Struct, frozen=True):
    """Milliseconds by what they went to; tools by name."""

    model: int = 0
    tools: dict[str, int] = {}
    wait: int = 0
    turns: int = 0
    calls: int = 0
    cost: float = 0.0
    tokens_in: int = 0
    tokens_out: int = 0


class Timeline(Holder):
    """Folds kept events, oldest first, into turns; `keep` are how many of the newest stay."""

    keep: int
    turns: list[TurnRow] = []
    _open: dict[str, Bar] = {}  # tools and questions that have not ended
    _bars: list[Bar] = []
    _row: TurnRow | None = None
    _since: int = 0  # when the model began to be asked
    _latest: int = 0  # of the times of the turn
    _sums: Totals = Totals()
    _tools: dict[str, int] = {}

    def take(self, events: Iterable[Event]) -> None:
        for event in events:
            self._one(event, event.body)

    def totals(self) -> Totals:
        return msgspec.structs.replace(self._sums, tools=dict(self._tools))

    def close(self) -> None:
        """Nothing follows: a turn that is open stays open."""
        self._end(None, "")

    def _one(self, event: Event, body: ev.Body) -> None:
        if isinstance(body, ev.TurnBegan):
            self._end(None, "")
            self._latest = event.at
        # Within a turn no time is before another, although the clock may have been set back.
        at = self._latest = max(event.at, self._latest)
        match body:
            case ev.TurnBegan():
                # Files that went along are texts of their own, after what was said.
                words = next((one.text for one in body.content if isinstance(one, Text)), "")
                title = " ".join(words.split())[:_TITLE]
                self._row = TurnRow(body.turn, event.seq, title, at)
                self._since = at
            case ev.Spoke():
                self._spoke(event, body, at)
            case ev.CallStarted():
                self._open[body.call_id] = Bar("tool", body.name, at, seq=event.seq)
            case ev.CallEnded():
                self._closed(body.call_id, at, body.outcome)
                self._since = at
            case ev.Asked():
                name = body.ask.tool or body.ask.kind
                self._open[body.ask.id] = Bar("wait", name, at, seq=event.seq)
            case ev.Settled():
                self._closed(body.ask_id, at, body.verdict)
                self._since = max(self._since, at)
            case ev.TurnEnded():
                self._end(at, body.outcome)
            case _:
                return

    def _spoke(self, event: Event, body: ev.Spoke, at: int) -> None:
        usage = body.usage
        given = usage.input + usage.cache_read + usage.cache_write
        name = body.model or "model"
        bar = Bar("model", name, self._since or at, at, body.stop, event.seq,
                  given + usage.output, body.cost)  # fmt: skip
        self._bars.append(bar)
        self._since = at
        sums = self._sums
        self._sums = msgspec.structs.replace(
            sums, model=sums.model + at - bar.began, calls=sums.calls + 1,
            cost=sums.cost + body.cost, tokens_in=sums.tokens_in + given,
            tokens_out=sums.tokens_out + usage.output,
        )  # fmt: skip
        if self._row is not None:
            row = self._row
            self._row = msgspec.structs.replace(
                row, cost=row.cost + body.cost, tokens_in=row.tokens_in + given,
                tokens_out=row.tokens_out + usage.output,
            )  # fmt: skip

    def _closed(self, id: str, at: int, outcome: str) -> None:
        bar = self._open.pop(id, None)
        if bar is None:
            return
        self._bars.append(msgspec.structs.replace(bar, ended=at, outcome=outcome))
        if bar.kind == "wait":
            self._sums = msgspec.structs.replace(self._sums, wait=self._sums.wait + at - bar.began)
        else:
            self._tools[bar.name] = self._tools.get(bar.name, 0) + at - bar.began

    def _end(self, at: int | None, outcome: str) -> None:
        if self._row is not None:
            for id in tuple(self._open) if at is not None else ():
                self._closed(id, at or 0, "open")
            bars = sorted((*self._bars, *self._open.values()), key=lambda bar: bar.began)
            row = msgspec.structs.replace(
                self._row, ended=at, outcome=outcome, bars=tuple(bars[-_BARS:])
            )
            self.turns.append(row)
            del self.turns[: -self.keep]
            self._sums = msgspec.structs.replace(self._sums, turns=self._sums.turns + 1)
        self._row = None
        self._bars = []
        self._open = {}


_BARS = 500  # of one turn
