"""A program that repeats its standard input, for test_stdio: `stdio_echo.py [uvloop|asyncio]`."""

import asyncio
import os
import sys

from dragoman.transports import stdio
from dragoman.transports.loop import tame_reads


class Echo:
    """Answers every line; prints where nothing may be printed."""

    max_line = 1 << 24
    max_pending = 1 << 24
    limit_counts_newline = False

    def __init__(self, link) -> None:
        self.link = link

    def hear(self, lines: list[bytes]) -> None:
        print("stray print", flush=True)
        for line in lines:
            if line == b"shout":
                os.write(1, b"stray write\n")
                os.system("echo stray child")
            elif line.startswith(b"big "):
                self.link.send(b"x" * int(line[4:]))
            else:
                self.link.send(b">" + line)

    def overlong(self, size: int) -> None:
        self.link.send(b"too long")

    def ended(self) -> None:
        self.link.send(b"ended")
        self.link.close()

    def lost(self) -> None:
        print("lost", file=sys.stderr, flush=True)


async def main() -> None:
    line = await stdio.serve(Echo)
    await line.gone.wait()


if sys.argv[1] == "uvloop":
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
else:
    tame_reads()
    asyncio.run(main())
