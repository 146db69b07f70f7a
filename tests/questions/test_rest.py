"""Whole questions over REST: shown, opened, answered about what was seen; rules listed."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.gateway.making import serving
from tests.questions.asking import Asking

NASTY = "echo \u202etxt \x1b[2J\u200b"


async def test_a_short_question_is_whole_in_the_list(tmp_path: Path) -> None:
    at = await Asking(tmp_path).open()
    async with serving(door=at.door) as served, served.client() as client:
        await at.go(("bash", {"command": NASTY}))
        await at.asked()
        (row,) = (await client.get("/api/approvals")).json()
        assert row["ask"]["args"] == {"command": NASTY} and "left_out" not in row
        shown = [one["text"] for one in row["parts"] if one["kind"] == "command"]
        assert shown == ["echo <U+202E>txt <ESC>[2J<U+200B>"]
        url = f"/api/approvals/{row['ask']['id']}"
        wrong = await client.post(url, json={"verdict": "allow", "digest": "0" * 32})
        assert wrong.status_code == 409 and wrong.json()["error"]["code"] == "changed"
        body = {"verdict": "allow_always", "scope": "everything"}
        assert (await client.post(url, json=body)).status_code == 400
        body = {"verdict": "allow_always", "scope": "exact", "lasts": "project"}
        done = await client.post(url, json={**body, "digest": row["ask"]["digest"]})
        settled = done.json()["settled"]
        assert settled["scope"].startswith("this exact command: echo <U+202E>txt")
        (rule,) = (await client.get("/api/rules")).json()
        assert rule["id"] == settled["rule"] and rule["by"]["dialect"] == "rest"
        gone = await client.delete(f"/api/rules/{rule['id']}")
        assert gone.status_code == 200 and (await client.get("/api/rules")).json() == []
        gone = await client.delete(f"/api/rules/{rule['id']}")
        assert gone.status_code == 404 and gone.json()["error"]["code"] == "unknown_rule"


@pytest.mark.parametrize("kind", ["command", "diff"])
async def test_a_long_question_must_be_opened(tmp_path: Path, kind: str) -> None:
    (tmp_path / "a").write_text("".join(f"lost {n}\n" for n in range(300_000)))
    call: tuple[str, dict[str, Any]] = ("bash", {"command": "echo " + "x" * 39_990 + "END"})
    if kind == "diff":
        call = ("write", {"path": "a", "content": "END"})
    at = await Asking(tmp_path).open()
    async with serving(door=at.door) as served, served.client() as client:
        work = await at.go(call)
        ask = await at.asked()
        (row,) = (await client.get("/api/approvals")).json()
        assert row["left_out"] > 10_000 and "digest" not in row["ask"]
        assert "args" not in row["ask"] and "more characters" in row["parts"][0]["text"]
        url = f"/api/approvals/{ask.id}"
        blind = await client.post(url, json={"verdict": "allow"})
        assert blind.status_code == 400 and "leaves out" in blind.json()["error"]["message"]
        blind = await client.post(url, json={"verdict": "allow_always"})
        assert blind.status_code == 400 and list(await at.door.rules()) == []
        whole = (await client.get(url)).json()
        text = "\n".join(one["text"] for one in whole["parts"])
        assert "END" in text and (kind == "command" or text.count("-lost ") == 300_000)
        body = {"verdict": "allow", "digest": whole["ask"]["digest"]}
        assert (await client.post(url, json=body)).status_code == 200
        async with asyncio.timeout(60):
            await work.done


async def test_no_is_taken_without_opening(tmp_path: Path) -> None:
    at = await Asking(tmp_path).open()
    async with serving(door=at.door) as served, served.client() as client:
        work = await at.go(("bash", {"command": "echo " + "x" * 40_000}))
        ask = await at.asked()
        done = await client.post(f"/api/approvals/{ask.id}", json={"verdict": "deny"})
        assert done.status_code == 200
        await work.done
