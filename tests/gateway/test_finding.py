"""Finding sessions, folders and files; what was spent today; what a list leaves out."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.gateway.making import serving

from dragoman.engine.content import Text
from dragoman.engine.deltas import weight_of
from dragoman.engine.events import Who
from dragoman.engine.host import OpenSpec
from dragoman.gateway import places
from dragoman.gateway.routes import finding
from dragoman.gateway.spending import Spending


async def test_sessions_are_found_counted_and_paged(tmp_path: Path):
    async with serving(["aye"]) as served, served.client() as client:
        assert len(finding.ROUTES) == 5
        (tmp_path / "meadow").mkdir()
        ids = []
        for place, word in ((tmp_path, "harbour"), (tmp_path / "meadow", "ships")):
            made = await client.post("/api/sessions", json={"cwd": str(place)})
            ids.append(made.json()["id"])
            await client.post(
                f"/api/sessions/{ids[-1]}/prompt", json={"text": f"look at boats, {word}"}
            )
        found = (await client.get("/api/search", params={"text": "harbour"})).json()
        assert [one["id"] for one in found["sessions"]] == [ids[0]] and not found["more"]
        found = (await client.get("/api/search", params={"text": "boats meadow"})).json()
        assert [one["id"] for one in found["sessions"]] == [ids[1]]
        pages = [
            (await client.get("/api/search", params={"text": "boats", "limit": 1, "offset": n}))
            .json() for n in (0, 1)
        ]  # fmt: skip
        assert [page["more"] for page in pages] == [True, False]
        assert {page["sessions"][0]["id"] for page in pages} == set(ids)
        listed = (await client.get("/api/sessions?limit=1&brief=true&counted=true")).json()
        assert listed["total"] == 2 and len(listed["sessions"]) == 1
        assert listed["sessions"][0]["result"] == ""
        totals = (await client.get("/api/overview")).json()
        assert totals["sessions"] == 2 and totals["archived"] == 0
        assert sum(row["calls"] for row in totals["today"]) == 2
        folders = (await client.get("/api/folders", params={"text": f"{tmp_path}/me"})).json()
        assert folders["folders"] == [str(tmp_path / "meadow")]
        assert set(folders["recent"]) == {str(tmp_path), str(tmp_path / "meadow")}
        names = [one["name"] for one in (await client.get("/api/commands")).json()]
        assert names[:2] == ["undo", "redo"]
        refused = await client.get("/api/files", params={"cwd": "here"})
        assert refused.status_code == 400
        async with served.stranger() as stranger:
            for path in ("search", "overview", "folders", "files", "commands"):
                assert (await stranger.get(f"/api/{path}")).status_code == 401


def test_files_are_found_by_their_letters_and_links_lead_nowhere(tmp_path: Path):
    for name in ("src/parse.py", "src/deep/parser_test.py", "node_modules/parse.js", "notes.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path / "loop").symlink_to(tmp_path)
    assert places.files(str(tmp_path), "parse") == ["src/parse.py", "src/deep/parser_test.py"]
    assert places.files(str(tmp_path), "sdt") == ["src/deep/parser_test.py"]
    assert "notes.md" in places.files(str(tmp_path), "")
    assert places.files(str(tmp_path / "nothing"), "") == []
    assert places.folders(f"{tmp_path}/s") == [str(tmp_path / "src")]
    assert places.folders("relative/path") == [] and places.folders("/nowhere/at/all/x") == []


async def test_what_was_spent_today_is_added_up_once_and_by_model():
    async with serving(["one", "two"]) as served, served.client() as client:
        made = (await client.post("/api/sessions", json={})).json()["id"]
        spending = Spending(served.door)
        assert await spending.today() == []
        await client.post(f"/api/sessions/{made}/prompt", json={"text": "a"})
        first = await spending.today()
        await client.post(f"/api/sessions/{made}/prompt", json={"text": "b"})
        second = await spending.today()
        info = await served.door.info(made)
        assert sum(row.calls for row in first) == 1 and sum(row.calls for row in second) == 2
        assert sum(row.tokens_out for row in second) == info.usage.output
        assert [row.model for row in second] == [info.model]
        assert await spending.today() == second
        await served.door.delete(made)  # it was paid all the same
        assert sum(row.calls for row in await spending.today()) == 2


async def test_what_was_spent_is_read_in_pages_of_bounded_size(monkeypatch: pytest.MonkeyPatch):
    """A page is in memory as a whole, and an event may be as long as an answer."""
    async with serving(["x" * 600_000] * 30) as served:
        session = await served.door.open(OpenSpec(cwd="/"), Who("test"))
        for _ in range(30):
            work = await served.door.prompt(session.id, (Text("go"),), Who("test"))
            await work.done
        pages, read_all = [], served.door.read_all

        async def reading(after: int, limit: int) -> Any:
            page = await read_all(after, limit)
            if limit > 1:
                pages.append(sum(map(weight_of, page)))
            return page

        monkeypatch.setattr(served.door, "read_all", reading)
        (row,) = await Spending(served.door).today()
        assert row.calls == 30
        assert len(pages) > 4 and max(pages) < 16_000_000 < sum(pages)


async def test_what_was_spent_is_counted_also_when_who_asked_leaves_midway(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with serving(["one"]) as served, served.client() as client:
        made = (await client.post("/api/sessions", json={})).json()["id"]
        await client.post(f"/api/sessions/{made}/prompt", json={"text": "a"})
        spending, looking = Spending(served.door), asyncio.Event()

        async def never(session: str) -> None:
            looking.set()
            await asyncio.Event().wait()

        with monkeypatch.context() as patched:
            patched.setattr(served.door, "info", never)
            asked = asyncio.ensure_future(spending.today())
            await asyncio.wait_for(looking.wait(), 60)
            asked.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asked
        assert sum(row.calls for row in await spending.today()) == 1
