"""The page of a fleet in a real browser: two daemons on one PostgreSQL, one of which goes."""

import asyncio
import json
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from tests.browser.test_dashboard import CHROMIUM, SCREENS, Browser
from tests.browser.test_dashboard import pytestmark as marks
from tests.browser.test_rooms import all_clean, token_of
from tests.daemon.running import Daemon
from tests.postgres import new_database

from dragoman.testing.postgres import Server

pytestmark = [*marks[:2], pytest.mark.timeout(1200), pytest.mark.slow]
CONFIG = """
[gateway]
port = 0
[fleet]
database = "{}"
node = "{}"
labels = ["gpu"]
lease = 2.0
"""


def test_nodes_are_shown_with_what_they_have(tmp_path: Path, postgres: Server) -> None:
    work = tmp_path / "work"
    work.mkdir()
    SCREENS.mkdir(parents=True, exist_ok=True)
    url = asyncio.run(new_database(postgres))
    with ExitStack() as stack:
        daemons = {}
        for name in ("north", "south"):
            folder = tmp_path / name
            folder.mkdir()
            made = Daemon(folder, config=CONFIG.format(url, name), gateway=True)
            daemons[name] = stack.enter_context(made)
            made.wait_ready(60)
        north = daemons["north"]
        address = json.loads((north.data / "gateway.json").read_text())["address"]
        code = north.said.decode().split("pair with the code ")[1].split()[0]
        headers = {"authorization": f"Bearer {token_of(north)}"}
        rest = stack.enter_context(httpx.Client(base_url=address, headers=headers, timeout=60))
        for _ in range(2):
            made_session = rest.post("/api/sessions", json={"cwd": str(work)}).json()["id"]
            rest.post(f"/api/sessions/{made_session}/prompt", json={"text": "say hi"})
        words = (address, code, CHROMIUM, str(SCREENS))
        browser = stack.enter_context(Browser(*words, script="fleet.mjs"))
        seen = browser.step("seen")
        all_clean(seen["pages"])
        shown = {one["name"]: one["facts"] for one in seen["nodes"]}
        assert set(shown) == {"north", "south"}
        assert shown["north"]["Sessions"] == "2" and shown["south"]["Sessions"] == "0"
        assert shown["south"]["Labels"] == "gpu" and shown["north"]["Lag"].endswith("events")
        assert daemons["south"].stop() == 0
        browser.go_on()
        left = browser.step("changed")["nodes"]
        assert [one["name"] for one in left if one["state"] == "ready"] == ["north"]
        assert browser.step("over")["troubles"] == []
