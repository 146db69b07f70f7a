"""Trace the way of one prompt and of one approval through our files.

    python scripts/trace_ways.py           print the figures and the files in order
    python scripts/trace_ways.py --write   draw both into docs/architecture.md

A host in memory with the five protocols' own hearers: zeroclaw sends a prompt while an ACP client
watches; and zeroclaw answers an approval that both are shown. Functions of ours count that run from
the bytes of the request to the last line of its answer; those of the test's client side and of the
model's stand-in do not.
"""

import asyncio
import json
import sys
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).parent.parent
SRC = str(ROOT / "src" / "dragoman") + "/"
PAGE = ROOT / "docs" / "architecture.md"
# The last one counts tokens for the stand-in; a real model tells them.
NOT_OURS = (
    "testing/", "transports/memory.py", "providers/scripted.py", "providers/estimate.py",
)  # fmt: skip


class Tracer:
    """Counts what runs between `begin` and `end`, each function once."""

    def __init__(self) -> None:
        self.codes: dict[CodeType, None] = {}

    def _call(self, frame: FrameType, event: str, arg: Any) -> None:
        if event == "call":
            self.codes[frame.f_code] = None

    def begin(self) -> None:
        sys.setprofile(self._call)

    def end(self) -> None:
        sys.setprofile(None)

    def way(self) -> tuple[list[str], list[str]]:
        """Files in the order in which they were first entered, and the functions."""
        files: dict[str, None] = {}
        functions: list[str] = []
        for code in self.codes:
            path = code.co_filename
            name = path.removeprefix(SRC)
            if path == name or name.startswith(NOT_OURS) or code.co_name.startswith("<"):
                continue
            files[name] = None
            functions.append(f"{name}:{code.co_qualname}")
        return list(files), functions


async def trace() -> dict[str, tuple[list[str], list[str]]]:
    from dragoman.dialects import acp, zeroclaw
    from dragoman.testing.host import EchoTool, memory_door
    from dragoman.testing.script import Scripted, call
    from dragoman.transports.memory import Client
    from dragoman.wire.link import Peer

    first: list[Any] = [call("echo", text="warm"), "warm"]
    script = Scripted([*first, "hello", call("echo", text="x"), "done"])
    door = memory_door(script, [EchoTool()])
    one = Client(zeroclaw.Desk(door, zeroclaw.Settings()).hearer, Peer("one", "memory"))
    two = Client(acp.Desk(door, acp.Settings()).hearer, Peer("two", "memory"))
    number = 0

    def ask(client: Client, method: str, params: dict[str, Any]) -> int:
        nonlocal number
        number += 1
        line = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        client.send(json.dumps(line).encode())
        return number

    async def until(client: Client, found: Any) -> dict[str, Any]:
        while True:
            line = json.loads(await client.receive())
            if found(line):
                return dict(line)

    def answers(id: int) -> Any:
        return lambda line: line.get("id") == id and "method" not in line

    await until(one, answers(ask(one, "initialize", {"protocol_version": 1})))
    made = await until(
        one, answers(ask(one, "session/new", {"agent_alias": "default", "cwd": "/"}))
    )
    session = made["result"]["session_id"]
    hello = {"protocolVersion": 1, "clientCapabilities": {}}
    await until(two, answers(ask(two, "initialize", hello)))
    joined = {
        "sessionId": session,
        "cwd": "/",
        "mcpServers": [],
        "_meta": {"dragoman": {"join": True}},
    }
    watches = await until(two, answers(ask(two, "session/resume", joined)))
    assert "result" in watches, watches

    def asked(line: dict[str, Any]) -> bool:
        return "approval" in json.dumps(line.get("params", {}).get("type", ""))

    def prompt() -> int:
        return ask(one, "session/prompt", {"session_id": session, "prompt": "go"})

    async def approve() -> int:
        question = (await until(one, asked))["params"]
        given = {
            "session_id": session,
            "decision": "allow_once",
            "request_id": question["request_id"],
        }
        return ask(one, "session/approve", given)

    # What is made once, with the first turn of a session, is not on the way of every prompt.
    warm = prompt()
    await approve()
    await until(one, answers(warm))
    await door.idle(session)

    ways = {}
    tracer = Tracer()
    tracer.begin()
    await until(one, answers(prompt()))
    tracer.end()
    await door.idle(session)
    ways["prompt"] = tracer.way()

    tracer = Tracer()
    tracer.begin()
    running = prompt()
    await approve()
    await until(one, answers(running))
    tracer.end()
    await door.idle(session)
    ways["approval"] = tracer.way()
    return ways


async def shortest(runs: int = 5) -> dict[str, tuple[list[str], list[str]]]:
    """Each way as it is when no timer of another turn strikes in between."""
    found = [await trace() for _ in range(runs)]
    return {name: min((one[name] for one in found), key=lambda way: len(way[1])) for name in TITLES}


TITLES = {
    "prompt": "The way of one prompt (zeroclaw asks, an ACP client watches)",
    "approval": "The way of one approval (the model calls a tool, zeroclaw allows it)",
}


def drawn(ways: dict[str, tuple[list[str], list[str]]]) -> str:
    """Both ways as a section of the page: the files in the order in which they are entered."""
    made = []
    for name, (files, _) in ways.items():
        made.append(f"**{TITLES[name]}**\n")
        made.append(" → ".join(f"`{file.removesuffix('.py')}`" for file in files) + "\n")
    return "\n".join(made)


BEGIN, END = "<!-- ways: scripts/trace_ways.py --write -->\n", "<!-- end of ways -->\n"


def page_with(page: str, ways: dict[str, tuple[list[str], list[str]]]) -> str:
    before, _, rest = page.partition(BEGIN)
    after = rest.partition(END)[2]
    return f"{before}{BEGIN}\n{drawn(ways)}\n{END}{after}"


def main() -> None:
    ways = asyncio.run(shortest())
    if "--write" in sys.argv:
        PAGE.write_text(page_with(PAGE.read_text(encoding="utf-8"), ways), encoding="utf-8")
    for name, (files, functions) in ways.items():
        print(f"{name}: {len(files)} files, {len(functions)} functions")
        if "-v" in sys.argv:
            print("\n".join(functions))


if __name__ == "__main__":
    main()
