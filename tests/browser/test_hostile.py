"""What models, tools, files and titles say is shown and does nothing."""
# ruff: noqa: E501

import asyncio
import json
import sqlite3
from pathlib import Path

import httpx
import pytest
from tests.browser.test_crowd import entry
from tests.browser.test_dashboard import CHROMIUM, Browser
from tests.browser.test_dashboard import pytestmark as marks
from tests.browser.test_rooms import token_of
from tests.daemon.running import Daemon
from tests.store.making import make_info

from dragoman.engine import events as ev
from dragoman.engine.content import Detail, Diff, PlanEntry, Text, Thinking, ToolCall
from dragoman.markup.html import render
from dragoman.store import changes
from dragoman.store.rows import pack
from dragoman.store.sqlite import SqliteStore

pytestmark = [*marks[:2], pytest.mark.timeout(1200), pytest.mark.slow]
E = "http://evil.invalid/"
DOES = "window.pwned=1"
PAYLOADS = [
    f"<script>{DOES}</script>", f"<ScRiPt>{DOES}</sCrIpT>", f"<script src={E}x.js></script>",
    f"<img src=x onerror={DOES}>", f"<img src={E}p.png>", f'"><img src=x onerror={DOES}>',
    f"'><svg onload={DOES}>", f"<svg><script>{DOES}</script></svg>", f"<svg/onload={DOES}>",
    f"<svg><animate onbegin={DOES} attributeName=x dur=1s>", f"<math href=javascript:{DOES}>x",
    f"<iframe src=javascript:{DOES}></iframe>", f'<iframe srcdoc="<script>{DOES}</script>">',
    f"<iframe src={E}></iframe>", f"<object data=javascript:{DOES}>", f"<embed src={E}x.swf>",
    f"<body onload={DOES}>", f"<input autofocus onfocus={DOES}>", f"<details open ontoggle={DOES}>",
    f"<video><source onerror={DOES}>", f"<audio src=x onerror={DOES}>", f"<marquee onstart={DOES}>",
    f"<select autofocus onfocus={DOES}>", f"<textarea autofocus onfocus={DOES}>",
    f"<a href=javascript:{DOES}>x</a>", f"<a href=' javascript:{DOES}'>x</a>",
    f"<form action={E}><button>go</button></form>", f"<button formaction=javascript:{DOES}>x",
    f"<base href={E}>", f"<link rel=stylesheet href={E}x.css>", f"<meta http-equiv=refresh content=0;{E}>",
    f"<style>@import '{E}x.css';</style>", f"<style>body{{background:url({E}x)}}</style>",
    f"<div style=background:url({E}x)>x</div>", "<template><img src=x onerror=alert(1)></template>",
    f"<noscript><p title=\"</noscript><img src=x onerror={DOES}>\">", f"<!--><img src=x onerror={DOES}>-->",
    f"<xmp><p title=\"</xmp><img src=x onerror={DOES}>\">", f"]]><script>{DOES}</script>",
    f"</textarea><script>{DOES}</script>", f"</title><script>{DOES}</script>",
    f"</script><script>{DOES}</script>", f"<x onclick={DOES} style=position:fixed;inset:0>x</x>",
    f"[x](javascript:{DOES})", f"[x](JaVaScRiPt:{DOES})", f"[x](java\nscript:{DOES})",
    f"[x](&#106;avascript:{DOES})", f"[x](\x01javascript:{DOES})", f"[x](vbscript:{DOES})",
    f"[x](data:text/html,<script>{DOES}</script>)", "[x](file:///etc/passwd)", f"![x]({E}pixel.gif)",
    f"![x](javascript:{DOES})", f"![x](x \"onerror={DOES}\")", f"<javascript:{DOES}>",
    f"[x]: javascript:{DOES}\n[x]", f'[x]({E} "t\\" onmouseover=\\"{DOES}")', f"[x][{DOES}](javascript:1)",
    f"```\"><img src=x onerror={DOES}>\ncode\n```", f"```html\n<script>{DOES}</script>\n```",
    f"`<img src=x onerror={DOES}>`", f"| a |\n|---|\n| <img src=x onerror={DOES}> |",
    f"- [ ] <img src=x onerror={DOES}>", f"~~<script>{DOES}</script>~~", f"# <svg onload={DOES}>",
    f"> <iframe src={E}>", f"&lt;script&gt;{DOES}&lt;/script&gt;", f"\u202e<script>{DOES}</script>",
    f"\x1b]8;;javascript:{DOES}\x07x\x1b]8;;\x07", f"{{{{constructor.constructor('{DOES}')()}}}}",
    f"${{{DOES}}}", f"javascript:{DOES}", f"<a ping={E} href={E}>x</a>", "\ufeff<plaintext>",
    f"<img srcset='{E}a 1x'>", f"<input type=image src={E}x>", f"<table background={E}x>",
    f"<a href=\"x\" target=\"_top\" onclick={DOES}>x", "A" * 20_000, "\u0000\ufffe\ud7ff",
]  # fmt: skip


def fill(path: Path, cwd: str) -> str:
    made = sqlite3.connect(path, isolation_level=None)
    bodies: list[ev.Kept] = [ev.Opened("default", cwd, "demo/demo", "supervised")]
    for number, text in enumerate(PAYLOADS):
        turn, call = f"t{number}", f"c{number}"
        detail = Detail((Diff(f"{cwd}/{text}", text, f"{text}\nmore"),), exit_code=1)
        bodies += [
            ev.TurnBegan(turn, (Text(text),)),
            ev.Spoke(turn, 1, (Thinking(text), Text(text), ToolCall(call, text[:60], {text: text, "command": text})), "tool_use", error=text),
            ev.CallStarted(turn, call, text[:60], {"command": text}),
            ev.CallEnded(turn, call, text[:60], "failed", (Text(text),), True, detail),
            ev.Planned((PlanEntry(text),)),
            ev.Noted("error", text, text),
            ev.TurnEnded(turn, "failed", "error", text, text),
        ]  # fmt: skip
    entries = [entry(seq, body) for seq, body in enumerate(bodies, 1)]
    place = len(entries)
    made.execute("BEGIN")
    for number, text in enumerate(PAYLOADS, 2):
        info = make_info(f"h{number}", at=number, title=text, cwd=f"/x/{text}", agent=text[:100],
                         model=text[:100], error=text, query=text)  # fmt: skip
        changes.Create(info, "me")(made)
    info = make_info("bad", at=10**6, title=PAYLOADS[3], query=PAYLOADS[0], cwd=cwd,
                     agent="default", last_seq=place, error=PAYLOADS[5])  # fmt: skip
    num = len(PAYLOADS) + 1
    changes.Create(info, "me")(made)
    seq = 0
    for count, at, kind, body in pack(entries):
        seq += count
        made.execute(changes.INSERT_EVENT, (seq, num, seq, at, kind, body))
    made.execute("UPDATE counters SET value = ? WHERE name = 'gseq'", (place,))
    made.execute("UPDATE sessions SET owner = NULL")
    made.execute("COMMIT")
    made.close()
    return "bad"


async def _begin(path: Path) -> None:
    await SqliteStore(path).close()


def test_there_are_enough_of_them() -> None:
    assert len(set(PAYLOADS)) >= 60


@pytest.mark.parametrize("text", PAYLOADS)
def test_markdown_leaves_nothing_that_acts(text: str) -> None:
    from html.parser import HTMLParser

    class Look(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            assert tag not in ("script", "iframe", "img", "style", "form", "svg", "object", "base")
            for name, value in attrs:
                assert not name.startswith("on") and name not in ("style", "src", "srcset", "ping")
                if name == "href":
                    assert (value or "").startswith(("http://", "https://", "mailto:"))

    Look().feed(render(text))


def test_nothing_hostile_does_anything(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    names = {text.replace("/", "_").replace("\0", "")[:80] for text in PAYLOADS}
    names = {f"f{name}" for name in names}
    maker = tmp_path / "make.py"
    maker.write_text(f"for name in {sorted(names)!r}: open(name, 'w').write(name + chr(10))")
    store = tmp_path / "data" / "sessions.db"
    store.parent.mkdir()
    asyncio.run(_begin(store))
    session = fill(store, str(work))
    config = '[gateway]\nport = 0\n[agents.default]\nmode = "full"\n'
    with Daemon(tmp_path, config=config, gateway=True) as daemon:
        daemon.wait_ready()
        address = json.loads((daemon.data / "gateway.json").read_text())["address"]
        code = daemon.said.decode().split("pair with the code ")[1].split()[0]
        headers = {"authorization": f"Bearer {token_of(daemon)}"}
        with httpx.Client(base_url=address, headers=headers, timeout=60) as rest:
            (work / "make.py").write_text(maker.read_text())
            body = {"cwd": str(work), "mode": "full"}
            worker = rest.post("/api/sessions", json=body).json()["id"]
            rest.post(f"/api/sessions/{worker}/prompt", json={"text": "run python3 make.py"})
            asker = rest.post("/api/sessions", json={**body, "mode": "supervised"}).json()["id"]
            rest.patch(f"/api/sessions/{asker}", json={"title": PAYLOADS[3]})
            text = f"run echo '{PAYLOADS[0]}' {PAYLOADS[5]}"
            rest.post(f"/api/sessions/{asker}/prompt", json={"text": text, "wait": False})
            export = rest.get(f"/api/sessions/{session}/export?format=html").text
            assert "<script" not in export and "onerror=window" not in _tags(export)
        with Browser(address, code, CHROMIUM, session, worker, script="hostile.mjs") as browser:
            seen = browser.step("seen")
            for page in seen["seen"]:
                assert page["wrong"] == [] and page["pwned"] is None, page
            assert PAYLOADS[0] in seen["shown"]  # it is shown, as it was said
            assert len(seen["files"]) >= 60
            assert browser.step("over")["troubles"] == []


def _tags(html: str) -> str:
    """What stands inside of tags."""
    import re

    return " ".join(re.findall(r"<[^>]*>", html))
