"""The least that a Python host can do for a stored turn: no sessions, no engine, no history.

A prompt starts a task that takes 50 deltas from a model (an asynchronous generator, a turn of the
loop each), writes the first at once and the others every two milliseconds, has a thread commit one
row to SQLite (all that wait in one transaction), and answers. Usage: bare_turns.py PATH FILE
"""

import asyncio
import queue
import sqlite3
import sys
import threading

import msgspec
import uvloop

DECODE, ENCODE = msgspec.json.Decoder().decode, msgspec.json.Encoder().encode
SESSION = "0f8fad5b-d9cb-469f-a165-70867728950e"


class Store:
    def __init__(self, path: str) -> None:
        self.queue: queue.SimpleQueue = queue.SimpleQueue()
        self.path = path
        self.loop = asyncio.get_running_loop()
        threading.Thread(target=self.run, daemon=True).start()

    def keep(self, row: bytes) -> asyncio.Future:
        future = self.loop.create_future()
        self.queue.put((row, future))
        return future

    def run(self) -> None:
        link = sqlite3.connect(self.path, isolation_level=None)
        link.execute("PRAGMA journal_mode = WAL")
        link.execute("PRAGMA synchronous = NORMAL")
        link.execute("PRAGMA wal_autocheckpoint = 4000")
        link.execute("CREATE TABLE turns (num INTEGER PRIMARY KEY, body BLOB)")
        while True:
            jobs = [self.queue.get()]
            while not self.queue.empty():
                jobs.append(self.queue.get())
            link.execute("BEGIN IMMEDIATE")
            link.executemany("INSERT INTO turns (body) VALUES (?)", [(row,) for row, _ in jobs])
            link.execute("COMMIT")
            self.loop.call_soon_threadsafe(self.done, [future for _, future in jobs])

    @staticmethod
    def done(futures: list) -> None:
        for future in futures:
            future.set_result(None)


async def model():
    for _ in range(50):
        yield "some text "
        await asyncio.sleep(0)


class Turns(asyncio.Protocol):
    store: Store

    def connection_made(self, transport) -> None:
        self.transport = transport
        self.loop = asyncio.get_running_loop()
        self.gathered: list[str] = []
        self.timer = None

    def data_received(self, data: bytes) -> None:
        self.task = self.loop.create_task(self.turn(DECODE(data)["id"]))

    def flush(self) -> None:
        self.timer = None
        if self.gathered:
            text, self.gathered = "".join(self.gathered), []
            self.timer = self.loop.call_later(0.002, self.flush)  # type: ignore[assignment]
            update = {"sessionUpdate": "agent_message_chunk", "text": text}
            params = {"sessionId": SESSION, "update": update}
            note = {"jsonrpc": "2.0", "method": "session/update", "params": params}
            self.transport.write(ENCODE(note) + b"\n")

    async def turn(self, asked: int) -> None:
        said = []
        async for piece in model():
            said.append(piece)
            self.gathered.append(piece)
            if self.timer is None:
                self.flush()
        if self.timer is not None:
            self.timer.cancel()
        self.flush()
        text = "".join(said)
        await self.store.keep(ENCODE({"session": SESSION, "user": "go", "assistant": text}))
        result = {"stopReason": "end_turn"}
        self.transport.write(ENCODE({"jsonrpc": "2.0", "id": asked, "result": result}) + b"\n")


async def main() -> None:
    Turns.store = Store(sys.argv[2])
    loop = asyncio.get_running_loop()
    server = await loop.create_unix_server(Turns, sys.argv[1], backlog=4096)
    await server.serve_forever()


uvloop.run(main())
