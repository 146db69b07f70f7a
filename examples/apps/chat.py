"""A chat on a local TCP port: every connection is a conversation, every line a message.

Beside a running daemon (`dragoman daemon`), in the repository:

    .venv/bin/python examples/apps/chat.py 7070
    nc 127.0.0.1 7070                               # in another terminal

Without a port it takes a free one and says which. It finds the daemon by itself; one with a
directory of its own is named by OPENCLAWOS_KERNEL_SOCKET (`dragoman status` shows it).
"""

import asyncio
import sys

from dragoman.apps import App, Message

app = App("@examples/chat", name="Chat", description="Talk to the agent over TCP")
chat = app.channel("chat")
people: dict[str, asyncio.StreamWriter] = {}


@chat.deliver
async def deliver(message: Message) -> None:
    writer = people.get(message.target)
    if writer is not None:
        writer.write(message.text.encode() + b"\n")
        await writer.drain()


async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    name = str(writer.get_extra_info("peername")[1])
    people[name] = writer
    try:
        while line := await reader.readline():
            await chat.received(name, line.decode("utf-8", "replace").strip(), sender=name)
    finally:
        del people[name]
        writer.close()


@app.background
async def listen() -> None:
    server = await asyncio.start_server(talk, "127.0.0.1", int((sys.argv + ["0"])[1]))
    print("listening on", server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    app.run()
