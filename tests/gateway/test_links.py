"""Links that answer one question: whole, once, in time, and nothing else."""

import asyncio

import pytest
from tests.gateway.making import serving

from dragoman.engine.ask import Ask
from dragoman.engine.host import OpenSpec
from dragoman.gateway import links
from dragoman.gateway.routes import links as routes

LONG = "echo " + "x" * 40_000 + " END"


async def asking(served, id: str = "ask_1", command: str = LONG):
    info = await served.door.open(OpenSpec())
    args = {"command": command}
    ask = Ask(
        id, info.id, "approval", "Run a command", tool="bash", args=args, at=1, digest=f"d{id}"
    )
    await served.door.put_ask(ask)
    return info.id


async def link_of(client, id: str = "ask_1", **body):
    made = await client.post(f"/api/approvals/{id}/link", json=body)
    assert made.status_code == 201, made.text
    return made.json()


async def test_a_link_shows_everything_and_answers_once():
    async with serving() as served, served.client() as client, served.stranger() as phone:
        assert len(routes.ROUTES) == 3
        await asking(served)
        assert (await phone.post("/api/approvals/ask_1/link", json={})).status_code == 401
        made = await link_of(client)
        assert made["path"] == f"approve#{made['link']}"
        link = made["link"]
        seen = await phone.post("/api/links/look", json={"link": link})
        assert seen.status_code == 200 and "END" in seen.text
        assert LONG in seen.json()["approval"]["parts"][0]["text"]
        digest = seen.json()["approval"]["ask"]["digest"]
        blind = {"link": link, "verdict": "allow", "digest": ""}
        assert (await phone.post("/api/links/answer", json=blind)).status_code == 400
        other = {"link": link, "verdict": "allow", "digest": "0" * len(digest)}
        assert (await phone.post("/api/links/answer", json=other)).status_code == 409
        always = {"link": link, "verdict": "allow_always", "digest": digest}
        assert (await phone.post("/api/links/answer", json=always)).status_code == 400
        body = {"link": link, "verdict": "deny", "digest": digest}
        both = await asyncio.gather(*(phone.post("/api/links/answer", json=body) for _ in range(5)))
        assert sorted(one.status_code for one in both) == [200, 410, 410, 410, 410]
        assert (await phone.post("/api/links/look", json={"link": link})).status_code == 410
        row = await served.door.ask("ask_1")
        assert row.settled is not None and row.settled.verdict == "deny"


async def test_a_link_is_for_its_question_only_and_is_over_in_time(monkeypatch):
    async with serving() as served, served.client() as client, served.stranger() as phone:
        await asking(served, "ask_1", "ls")
        await asking(served, "ask_2", "rm -rf /")
        one = (await link_of(client, seconds=60))["link"]
        ask, until, once, sign = one.rsplit(".", 3)
        forged = [
            f"ask_2.{until}.{once}.{sign}", f"{ask}.{int(until) + 9}.{once}.{sign}",
            f"{ask}.{until}.x{once}.{sign}", f"{ask}.{until}.{once}.{'0' * 64}",
            f"none.{until}.{once}.{sign}", f"{ask}.{until}.{once}", "", "....", "é.1.é.é",
            "a" * 400, f"{ask}.-1.{once}.{sign}", f"{ask}.१२.{once}.{sign}",
        ]  # fmt: skip
        for text in forged:
            answer = await phone.post("/api/links/look", json={"link": text})
            assert answer.status_code == 403, text
        assert (await client.post("/api/approvals/none/link", json={})).status_code == 404
        now = links.time()
        monkeypatch.setattr(links, "time", lambda: now + 61)
        late = await phone.post("/api/links/look", json={"link": one})
        assert late.status_code == 410 and late.json()["error"]["code"] == "link_over"
        row = (await served.door.ask("ask_1")).ask
        body = {"link": one, "verdict": "allow", "digest": row.digest}
        assert (await phone.post("/api/links/answer", json=body)).status_code == 410


@pytest.mark.parametrize("seconds", [0, 9, links.LONGEST + 1])
async def test_a_link_lasts_neither_a_moment_nor_for_ever(seconds):
    async with serving() as served, served.client() as client:
        await asking(served)
        made = await client.post("/api/approvals/ask_1/link", json={"seconds": seconds})
        assert made.status_code == 400
