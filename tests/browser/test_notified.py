"""Questions reach somebody whose dashboard changes its page, sleeps or is hidden."""

import json
from pathlib import Path

import httpx
from tests.browser.test_dashboard import CHROMIUM, Browser
from tests.browser.test_dashboard import pytestmark as marks
from tests.browser.test_rooms import token_of
from tests.daemon.running import Daemon

pytestmark = marks


def test_a_question_is_told_of_whatever_the_page_does(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    with Daemon(tmp_path, config="[gateway]\nport = 0\n", gateway=True) as daemon:
        daemon.wait_ready()
        address = json.loads((daemon.data / "gateway.json").read_text())["address"]
        code = daemon.said.decode().split("pair with the code ")[1].split()[0]
        headers = {"authorization": f"Bearer {token_of(daemon)}"}
        with (
            Browser(address, code, CHROMIUM, script="notified.mjs") as browser,
            httpx.Client(base_url=address, headers=headers, timeout=60) as rest,
        ):

            def ask(title: str) -> None:
                made = rest.post("/api/sessions", json={"cwd": str(work), "title": title})
                at = f"/api/sessions/{made.json()['id']}/prompt"
                rest.post(at, json={"text": "run echo hi", "wait": False})
                browser.go_on()

            browser.step("between")
            ask("First")
            assert browser.step("changed")["between"] == "1"
            ask("Second")
            browser.step("asleep")
            ask("Third")
            browser.step("awake")
            ask("Late")
            browser.step("watching")
            ask("Fourth")
            alone = browser.step("alone")
            assert "Fourth" in alone["first"][0], alone
            assert alone["quiet"] == ["asleep", 0]
            ask("Fifth")
            assert "Fifth" in browser.step("told")["later"][0]
            assert browser.step("seen")["live"] == "live"
            assert browser.step("over")["troubles"] == []
