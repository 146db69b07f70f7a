"""A dialect for tests: repeats what it hears and keeps a diary."""

import asyncio

from dragoman.wire.link import Hearer, Link


class Parrot(Hearer):
    """Answers each line with `prefix` + line; some words are orders."""

    max_line = 1 << 20

    def __init__(self, link: Link, prefix: bytes = b">") -> None:
        self.link = link
        self.prefix = prefix
        self.heard: list[list[bytes]] = []
        self.sizes: list[int] = []
        self.over = asyncio.Event()
        self.end = asyncio.Event()
        self.close_at_end = True
        self.losses = 0

    def hear(self, lines: list[bytes]) -> None:
        self.heard.append(lines)
        for line in lines:
            if line == b"close":
                self.link.send(b"bye")
                self.link.close()
            elif line == b"abort":
                self.link.abort()
            elif line.startswith(b"big "):
                self.link.send(b"x" * int(line[4:]))
            else:
                self.link.send(self.prefix + line)

    def overlong(self, size: int) -> None:
        self.sizes.append(size)
        self.link.send(b"too long")

    def ended(self) -> None:
        self.end.set()
        if self.close_at_end:
            self.link.close()

    def lost(self) -> None:
        self.losses += 1
        self.over.set()


class Cage:
    """Opens parrots and remembers them."""

    def __init__(self, **attributes: object) -> None:
        self.parrots: list[Parrot] = []
        self.attributes = attributes
        self.news = asyncio.Event()

    def __call__(self, link: Link) -> Parrot:
        parrot = Parrot(link)
        for name, value in self.attributes.items():
            setattr(parrot, name, value)
        self.parrots.append(parrot)
        self.news.set()
        return parrot

    async def first(self) -> Parrot:
        async with asyncio.timeout(60):
            await self.news.wait()
        return self.parrots[0]
