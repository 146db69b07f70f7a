"""`dragoman replay`: plays a transcript as a server, on stdio or on a socket."""

import asyncio
import sys
from collections import deque
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman.engine.faults import BadInput
from dragoman.testing.score import PlayedConnection, Score, load
from dragoman.testing.talk import TalkError
from dragoman.transports.loop import Stopping, run
from dragoman.wire.link import Hearer, Link

if TYPE_CHECKING:
    from dragoman.cli.parse import Args

_MAX_LINE = 64 * 1024 * 1024


class Player:
    """Plays one transcript to every connection that comes."""

    def __init__(self, score: Score, only: str | None, strict: bool) -> None:
        self.score = score
        self.strict = strict
        self.failed = False
        self._names = [only] if only else list(score.parts)
        self._count = count()
        self._known: dict[str, Any] = {}
        self.over = asyncio.Event()  # a connection ended

    def hearer(self, link: Link) -> Hearer:
        """The server's side of a connection; the first plays the first part, and so on round."""
        number = next(self._count)
        name = self._names[number % len(self._names)]
        if name == self._names[0]:
            self._known = {}  # a new performance
        return _Playing(self, link, name, self._known)

    def say(self, name: str, text: str) -> None:
        print(f"{self.score.path.name}: {name}: {text}", file=sys.stderr, flush=True)


class _Playing:
    max_line = _MAX_LINE
    limit_counts_newline = False
    max_pending = 0

    def __init__(self, player: Player, link: Link, name: str, known: dict[str, Any]) -> None:
        self._player = player
        self._link = link
        self._name = name
        self._part = PlayedConnection(player.score.parts[name], known)
        self._heard: deque[bytes] = deque()
        self._ended = False
        self._go_on()

    def hear(self, lines: list[bytes]) -> None:
        self._heard.extend(lines)
        self._go_on()

    def overlong(self, size: int) -> None:
        self._wrong(0, f"a line of more than {size} bytes")

    def ended(self) -> None:
        self._ended = True
        self._go_on()
        self._link.close()

    def lost(self) -> None:
        left = self._part.next
        if left is not None and not (left.kind == "ended" and self._ended):
            self._player.failed = True
            self._player.say(self._name, f"the client left before line {left.line}: {left.text}")
        else:
            self._player.say(self._name, "played to its end")
        self._player.over.set()

    def _go_on(self) -> None:
        while (move := self._part.next) is not None:
            if move.kind == "tell":
                self._link.send(self._part.spoken(move))
            elif move.kind == "close":
                self._part.done()
                self._link.close()
                return
            elif move.kind == "ended":
                if not self._ended:
                    return
            elif not self._heard:
                return
            else:
                line = self._heard.popleft()
                fits, difference = self._part.compare(move, line)
                if difference:
                    said = line[:500].decode("utf-8", "replace")
                    self._wrong(
                        move.line, f"{difference}\n  waited for: {move.text}\n  got: {said}"
                    )
                if not fits:
                    continue
            self._part.done()

    def _wrong(self, line: int, text: str) -> None:
        self._player.say(self._name, f"line {line}: {text}")
        if self._player.strict:
            self._player.failed = True
            self._link.close()


async def _serve(args: "Args") -> int:
    try:
        score = load(Path(args.file))
        player = Player(score, args.connection, args.strict)
        if args.connection and args.connection not in score.parts:
            names = ", ".join(score.parts)
            raise BadInput(f"There is no connection {args.connection!r} in it.", f"Has: {names}.")
    except OSError as problem:
        raise BadInput(f"{args.file} cannot be read: {problem.strerror}.") from None
    except UnicodeDecodeError:
        said = f"{args.file} is no transcript: it is no text."
        raise BadInput(said, "Record one with: dragoman tap --record FILE") from None
    except TalkError as problem:
        raise BadInput(str(problem)) from None
    if args.socket:
        await _on_socket(player, args.socket)
    else:
        from dragoman.transports import stdio

        line = await stdio.serve(player.hearer)
        await line.gone.wait()
    return 1 if player.failed else 0


async def _on_socket(player: Player, path: str) -> None:
    from dragoman.host import lock
    from dragoman.transports import unix

    held = lock.hold(path)
    stopping = Stopping()
    listener = await unix.listen(path, player.hearer)
    print(f"ready: {path}", file=sys.stderr, flush=True)
    try:
        await stopping.came.wait()
    finally:
        await listener.close()
        held.release()


def main(args: "Args") -> int:
    """Play until the client leaves, or, on a socket, until interrupted."""
    return run(_serve(args))
