"""What others do while a page of the dashboard is open, in a real browser."""

import json
from pathlib import Path

import httpx
from tests.browser.test_dashboard import CHROMIUM, Browser
from tests.browser.test_dashboard import pytestmark as marks
from tests.browser.test_rooms import token_of
from tests.daemon.running import Daemon

pytestmark = marks


def test_a_page_follows_what_happens_elsewhere(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    with Daemon(tmp_path, config="[gateway]\nport = 0\n", gateway=True) as daemon:
        daemon.wait_ready()
        address = json.loads((daemon.data / "gateway.json").read_text())["address"]
        code = daemon.said.decode().split("pair with the code ")[1].split()[0]
        headers = {"authorization": f"Bearer {token_of(daemon)}"}
        with (
            Browser(address, code, CHROMIUM, script="elsewhere.mjs") as browser,
            httpx.Client(base_url=address, headers=headers, timeout=60) as rest,
        ):

            def begin(title: str) -> str:
                made = rest.post("/api/sessions", json={"cwd": str(work), "title": title})
                id: str = made.json()["id"]
                return id

            one, other = begin("One"), begin("Other")
            browser.go_on(f"{one} {other}")
            browser.step("pressed")
            for id in (other, one):
                rest.patch(f"/api/sessions/{id}", json={"title": "Again"})
            browser.go_on()
            assert browser.step("moved")["focus"] == "Clients"

            browser.step("listing")
            begin("Late")
            say = {"text": "run echo hi", "wait": False}
            rest.post(f"/api/sessions/{begin('Asks')}/prompt", json=say)
            browser.go_on()
            browser.step("listed")

            for step in ("reading", "asleep"):
                browser.step(step)
                rest.post(f"/api/sessions/{one}/prompt", json={"text": "echo yes"})
                browser.go_on()
            assert browser.step("timed")["turns"] == 2

            browser.step("looking")
            rest.delete(f"/api/sessions/{one}")
            browser.go_on()
            browser.step("gone")
            rest.delete(f"/api/sessions/{other}")
            browser.go_on()
            assert browser.step("locked")["asked"] == 0
            browser.step("revoked")
            for token in rest.get("/api/tokens").json():
                if token["kind"] == "browser":
                    rest.delete(f"/api/tokens/{token['id']}")
            browser.go_on()
            shut = browser.step("shut")
            assert shut["live"] == "away" and shut["asked"] <= 2
            troubles = browser.step("over")["troubles"]
            assert [one for one in troubles if "status of 503" not in one] == []
