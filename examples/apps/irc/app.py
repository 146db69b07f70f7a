"""An IRC channel: the agent answers in private, and in channels when it is spoken to by name.

    dragoman apps add examples/apps/irc

It is configured in config.toml; `dragoman apps logs @examples/irc` shows what it does:

    [channels.irc]
    server = "irc.example.org"      # port = 6697, tls = true unless said otherwise
    nick = "dragoman"
    channels = ["#agents"]
    password = "…"                  # or IRC_PASSWORD in the daemon's environment
"""

import asyncio
import os
import ssl
from typing import Any

from dragoman.apps import App, Message

app = App("@examples/irc", name="IRC", description="Talk to the agent over IRC")
irc = app.channel("irc")
LINE = 400  # bytes of text in one message: the server adds our name and cuts at 512
PAUSE = 0.5  # seconds between messages after the first few, or servers cut us off
_LONGEST_WAIT = 60.0


def split(text: str) -> list[str]:
    """A text as messages: one line each, none too long, no character cut in two."""
    messages = []
    for line in text.replace("\r", "").split("\n"):
        rest = line.encode()
        while len(rest) > LINE:
            cut = LINE
            while rest[cut] & 0xC0 == 0x80:
                cut -= 1
            space = rest.rfind(b" ", LINE // 2, cut)
            cut = space if space > 0 else cut
            messages.append(rest[:cut].decode())
            rest = rest[cut:].lstrip()
        if rest:
            messages.append(rest.decode())
    return messages


class Connection:
    """One connection to the server, from its greeting to its end."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = settings
        self.nick = str(settings.get("nick") or "dragoman")
        self.ready = asyncio.Event()
        self._writer: asyncio.StreamWriter | None = None
        self._sent = 0
        self._lock = asyncio.Lock()

    async def run(self) -> None:
        given = self.settings
        secure = ssl.create_default_context() if given.get("tls", True) else None
        port = int(given.get("port") or (6697 if secure else 6667))
        reader, self._writer = await asyncio.open_connection(given["server"], port, ssl=secure)
        try:
            password = given.get("password") or os.environ.get("IRC_PASSWORD")
            if password:
                await self.say(f"PASS {password}")
            await self.say(f"NICK {self.nick}")
            await self.say(f"USER {self.nick} 0 * :{given.get('realname') or 'an agent'}")
            while line := await reader.readline():
                await self.heard(line.decode("utf-8", "replace").rstrip("\r\n"))
        finally:
            self.ready.clear()
            self._writer.close()

    async def say(self, line: str) -> None:
        assert self._writer is not None
        self._writer.write(line.replace("\r", " ").replace("\n", " ").encode() + b"\r\n")
        await self._writer.drain()

    async def send(self, target: str, text: str) -> None:
        """Send a text, slowly enough for the server."""
        async with self._lock:
            for message in split(text):
                if self._sent >= 4:
                    await asyncio.sleep(PAUSE)
                self._sent += 1
                await self.say(f"PRIVMSG {target} :{message}")
            self._sent = 0

    async def heard(self, line: str) -> None:
        source, _, rest = line[1:].partition(" ") if line.startswith(":") else ("", "", line)
        words, _, text = rest.partition(" :")
        command, *params = words.split(" ")
        if command == "PING":
            await self.say(f"PONG :{text or ' '.join(params)}")
        elif command == "001":
            for channel in self.settings.get("channels") or []:
                await self.say(f"JOIN {channel}")
            self.ready.set()
            print(f"connected as {self.nick}", flush=True)
        elif command == "433":  # the name is taken
            self.nick += "_"
            await self.say(f"NICK {self.nick}")
        elif command == "PRIVMSG" and text and params:
            await self._message(source.partition("!")[0], params[0], text)

    async def _message(self, sender: str, target: str, text: str) -> None:
        if text.startswith("\x01"):
            return  # a client's question about our client
        if target.lower() == self.nick.lower():
            await irc.received(sender, text, sender=sender)
            return
        name, _, rest = text.partition(" ")
        if name.rstrip(":,").lower() == self.nick.lower() and rest.strip():
            await irc.received(target, rest.strip(), sender=sender, channel=target)


current: Connection | None = None


@irc.deliver
async def deliver(message: Message) -> None:
    """To the conversation's channel or person: the part of its key after the first colon."""
    target = message.session.partition(":")[2] or message.target
    if current is None:
        print(f"not connected: a message for {target} is lost", flush=True)
        return
    await asyncio.wait_for(current.ready.wait(), 30)
    await current.send(target, message.text)


@app.background
async def keep_connected() -> None:
    global current
    wait = 1.0
    while True:
        settings = await app.config("channels.irc") or {}
        if not settings.get("server"):
            raise SystemExit("[channels.irc] of the configuration names no server")
        current = Connection(settings)
        began = asyncio.get_running_loop().time()
        try:
            await current.run()
            print("the server ended the connection", flush=True)
        except OSError as problem:
            print(f"{settings['server']}: {problem.strerror or problem}", flush=True)
        current = None
        wait = (
            1.0 if asyncio.get_running_loop().time() - began > 60 else min(wait * 2, _LONGEST_WAIT)
        )
        await asyncio.sleep(wait)


if __name__ == "__main__":
    app.run()
