"""Questions away from the desk, on a phone or as a notification, hide and cut nothing unsaid."""

import asyncio
from typing import Any

import msgspec
import pytest
from tests.gateway.making import serving
from tests.gateway.test_push import Phone

from dragoman.engine.ask import Ask, Change
from dragoman.engine.host import OpenSpec

HIDDEN = "\x1b\r\x08\u202e\u200b\u00a0\U000e0041"
BIG = "".join(f"line {n} of what is lost\n" for n in range(120_000))
CASES: dict[str, tuple[dict[str, Any], tuple[Change, ...], str]] = {
    "long": ({"command": "echo " + "x" * 39_980 + " END"}, (), "x" * 39_980 + " END"),
    "large": ({"path": "/w/a"}, (Change("/w/a", BIG, "short"),), "line 119999 of what is lost"),
    "overwrite": ({"path": "/w/a"}, (Change("/w/a", "precious\n", "new\n"),), "-precious"),
    "escape": ({"path": "/w/a\x1b[2Jb"}, (Change("/w/a\x1b[2Jb", "", "x"),), "/w/a<ESC>[2Jb"),
    "override": ({"command": "rm \u202etxt.exe a\u200bb"}, (), "rm <U+202E>txt.exe a<U+200B>b"),
}


@pytest.mark.parametrize("case", CASES)
async def test_a_question_by_link_and_by_push(case: str) -> None:
    args, changes, expected = CASES[case]
    title = f"Approve \u202e{'t' * 900}\x1b]0;x\x07?"
    async with Phone() as phone, serving() as served, served.client() as client:
        joined = await client.post("/api/push", json=phone.subscription())
        assert joined.status_code == 204, joined.text
        info = await served.door.open(OpenSpec(title=f"my {HIDDEN} session"))
        ask = Ask(
            "ask_1", info.id, "tool", title, 1, tool="bash", args=args, changes=changes, digest="d1"
        )
        await served.door.put_ask(ask)
        async with asyncio.timeout(60):
            _, body = await phone.got.get()
        told = msgspec.json.decode(phone.read(body))
        said = told["title"] + told["body"]
        assert not set(HIDDEN) & set(said) and "more characters)" in told["body"]
        assert "<U+202E>" in told["title"] and len(told["body"]) <= 200
        link = told["path"].removeprefix("approve#")
        async with served.stranger() as stranger:
            seen = (await stranger.post("/api/links/look", json={"link": link})).json()
            approval = seen["approval"]
            shown = "\n".join(f"{part['label']}\n{part['text']}" for part in approval["parts"])
            assert expected in shown and "t" * 900 in approval["title"]
            assert not set(HIDDEN) & set(shown + approval["title"] + seen["title"] + seen["cwd"])
            blind = {"link": link, "verdict": "allow", "digest": ""}
            assert (await stranger.post("/api/links/answer", json=blind)).status_code == 400
            stale = {"link": link, "verdict": "allow", "digest": "d2"}
            assert (await stranger.post("/api/links/answer", json=stale)).status_code == 409
            good = {"link": link, "verdict": "allow", "digest": approval["ask"]["digest"]}
            assert (await stranger.post("/api/links/answer", json=good)).status_code == 200
