"""A page whose stream lives never stays behind what the host has, in a real browser."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import httpx
from tests.browser.test_dashboard import CHROMIUM, Browser
from tests.browser.test_dashboard import pytestmark as marks
from tests.browser.test_rooms import token_of
from tests.daemon.running import Daemon, call, hang, say, script
from tests.store.making import make_info

from dragoman.engine import events as ev
from dragoman.engine.ask import Ask
from dragoman.engine.content import Text, ToolCall
from dragoman.engine.ports import Batch, Entry
from dragoman.store.sqlite import SqliteStore

pytestmark = marks
TICKS = "for i in 1 2 3 4 5 6 7 8 9; do echo tick $i; sleep 60; done"


async def keep(path: Path, cwd: str, id: str, bodies: Sequence[ev.Kept]) -> None:
    """A session as another host left it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    store = SqliteStore(path)
    more = {"cwd": cwd, "agent": "default", "title": id}
    epoch = await store.create(make_info(id, **more), "me")
    rows = [
        Entry(seq, 1000 + seq, str(type(body).__struct_config__.tag), ev.encode_body(body))
        for seq, body in enumerate(bodies, 1)
    ]
    await store.append(Batch(id, epoch, rows, make_info(id, last_seq=len(rows), **more)))
    await store.give(id, epoch)
    await store.close()


def long(cwd: str, model: str) -> list[ev.Kept]:
    bodies: list[ev.Kept] = [ev.Opened("default", cwd, model, "supervised")]
    for turn in range(60):
        bodies += [
            ev.TurnBegan(f"t{turn}", (Text(f"Question {turn}\n" * 9),)),
            ev.Spoke(f"t{turn}", 1, (Text(f"Answer {turn}"),), "end_turn"),
            ev.TurnEnded(f"t{turn}", "completed", "end_turn"),
        ]
    return bodies


def edge(cwd: str, model: str) -> list[ev.Kept]:
    """A page has 80 events: the newest one of these begins after the fourth."""
    calls = tuple(ToolCall(f"c{n}", name, {}) for n, name in ((1, "one"), (2, "two")))
    before: list[ev.Kept] = [
        ev.Opened("default", cwd, model, "supervised"),
        ev.TurnBegan("t", (Text("Two calls"),)),
        ev.Spoke("t", 1, calls, "tool_use"),
        ev.Asked(Ask("first", "edge", "tool", "May it?", 1, call_id="c2")),
    ]
    after: list[ev.Kept] = [
        ev.CallStarted("t", "c1", "one"),
        ev.Settled("first", "allow"),
        ev.CallStarted("t", "c2", "two"),
    ]
    return [*before, *after, *[ev.Noted("info", f"note {n}") for n in range(77)]]


def test_a_page_is_not_behind_the_host(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    turns = [  # of each session
        say("The first answer"),
        hang({"type": "say", "text": "One two three"}),
        call("bash", command=TICKS), call("bash", command="echo hi"),
    ]  # fmt: skip
    config = script(tmp_path, turns) + "[gateway]\nport = 0\n"
    model = f"scripted/{tmp_path / 'script.json'}"
    store = tmp_path / "data" / "sessions.db"
    asyncio.run(keep(store, str(work), "long", long(str(work), model)))
    asyncio.run(keep(store, str(work), "edge", edge(str(work), model)))
    with Daemon(tmp_path, config=config, gateway=True) as daemon:
        daemon.wait_ready()
        address = json.loads((daemon.data / "gateway.json").read_text())["address"]
        code = daemon.said.decode().split("pair with the code ")[1].split()[0]
        headers = {"authorization": f"Bearer {token_of(daemon)}"}
        with (
            Browser(address, code, CHROMIUM, script="behind.mjs") as browser,
            httpx.Client(base_url=address, headers=headers, timeout=60) as rest,
        ):
            first = rest.post("/api/sessions", json={"cwd": str(work)}).json()["id"]
            rest.post(f"/api/sessions/{first}/prompt", json={"text": "Begin"})
            browser.go_on(first)
            browser.step("ahead")

            browser.step("jumping")
            rest.post("/api/sessions/long/prompt", json={"text": "What now?"})
            rest.patch("/api/sessions/long", json={"title": "Over"})
            browser.go_on()
            assert browser.step("jumped")["asked"] == 1

            again = browser.step("again")
            assert [one.strip() for one in again["drafts"]] == ["One two three"]
            assert again["output"].count("tick 1\n") == 1

            browser.step("hidden")
            rest.post("/api/sessions/long/prompt", json={"text": "Ask", "wait": False})
            browser.go_on()
            browser.step("called")

            before, after, last = browser.step("edge")["edge"]
            assert before == [["one", "running", False], ["two", "running", False]]
            assert after == [["one", "done", False], ["two", "waits", True]]
            assert last == [["one", "done", False], ["two", "running", False]]
            assert browser.step("over")["troubles"] == []
