"""Shows a fleet: PostgreSQL and three nodes in a temporary folder, a turn, a kill, and what follows.

Run: make fleet
"""

import asyncio
import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.cross.house import House, Speaker

from dragoman.testing.postgres import Server

NAMES = ("one", "two", "three")
PROMPT = "count slowly to 60"


def say(text: str) -> None:
    print(text, flush=True)


async def start(folder: Path, name: str, url: str, work: Path) -> House:
    (folder / name).mkdir()
    house = House(folder / name)
    house.more = {
        "DRAGOMAN_fleet__database": url,
        "DRAGOMAN_fleet__node": name,
        "DRAGOMAN_fleet__lease": "1.5",
        "DRAGOMAN_fleet__shared_roots": str(work),
    }
    await house.start()
    return house


async def nodes(house: House) -> None:
    env = {**os.environ, **house.more}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "dragoman", "fleet", "--config-dir", str(house.config), env=env
    )
    await process.wait()


async def watch(house: House, session: str) -> Speaker:
    speaker = await house.zeroclaw()
    await speaker.call("dragoman/watch", {"session_id": session, "since": 0})
    return speaker


def kind(message: dict[str, object]) -> str:
    params = message.get("params")
    event = params.get("event") if isinstance(params, dict) else None
    return str(event.get("type", "")) if isinstance(event, dict) else ""


async def show(folder: Path, server: Server) -> None:
    work = folder / "work"
    work.mkdir()
    houses = dict(
        zip(NAMES, await asyncio.gather(*(start(folder, n, server.url(), work) for n in NAMES)),
            strict=True)
    )  # fmt: skip
    try:
        say("Three nodes on one database:\n")
        await nodes(houses["one"])
        acp = await houses["one"].acp()
        made = await acp.call("session/new", {"cwd": str(work), "mcpServers": []})
        session = str(made["sessionId"])
        say(f"\nNode one has session {session}. A client of node two watches it and says:")
        say(f"  {PROMPT}")
        seen = await watch(houses["two"], session)
        zot = await houses["two"].zot(session)
        await zot.command("prompt", message=PROMPT)
        await seen.until(lambda m: kind(m) == "turn_began")
        await acp.until(lambda m: "7" in str(m.get("params", {}).get("update", {}).get("content")))
        say("\nNode one counts; it is killed in the middle of the turn.")
        began = asyncio.get_running_loop().time()
        await houses["one"].kill()
        note = await seen.until(lambda m: kind(m) == "noted")
        after = asyncio.get_running_loop().time() - began
        say(f"After {after:.1f} s: {note['params']['event']['text']}")
        ended = await seen.until(lambda m: kind(m) == "turn_ended")
        say(f"The turn ended: {ended['params']['event']['outcome']}.\n")
        await nodes(houses["two"])
    finally:
        for house in houses.values():
            await house.close()


def main() -> None:
    server = Server()
    try:
        with tempfile.TemporaryDirectory(prefix="fl-") as folder:
            asyncio.run(show(Path(folder), server))
    finally:
        server.stop()


main()
