"""A session's time, children, fleet and itself as a file."""

from types import SimpleNamespace

from tests.gateway.making import serving

from dragoman.engine import events as ev
from dragoman.engine.ask import Ask
from dragoman.engine.content import Text, Usage
from dragoman.engine.events import Event
from dragoman.engine.host import OpenSpec
from dragoman.gateway.routes import fleet, story
from dragoman.gateway.timeline import Timeline


def told(*rows):
    return [Event("s", 1000 + at, body, seq) for seq, (at, body) in enumerate(rows, 1)]


def test_time_goes_to_models_tools_and_waits():
    ask = Ask("a1", "s", "approval", "Run?", at=30, tool="bash", call_id="c1")
    line = Timeline(5)
    line.take(told(
        (0, ev.TurnBegan("t1", (Text("count\nall files"),))),
        (20, ev.Spoke("t1", 1, (), "tool_use", Usage(10, 2, 3), 0.5, "x/y")),
        (30, ev.Asked(ask)),
        (130, ev.Settled("a1", "allow")),
        (131, ev.CallStarted("t1", "c1", "bash")),
        (181, ev.CallEnded("t1", "c1", "bash", "done")),
        (200, ev.Spoke("t1", 2, (), "end_turn", Usage(20, 4), 0.25)),
        (201, ev.TurnEnded("t1", "completed", "end_turn")),
        (300, ev.TurnBegan("t2", (Text("more"),))),
        (310, ev.CallStarted("t2", "c2", "grep")),
    ))  # fmt: skip
    line.close()
    first, second = line.turns
    assert first.title == "count all files" and first.seq == 1 and first.outcome == "completed"
    assert [(bar.kind, bar.began - 1000, (bar.ended or 0) - 1000) for bar in first.bars] == [
        ("model", 0, 20), ("wait", 30, 130), ("tool", 131, 181), ("model", 181, 200),
    ]  # fmt: skip
    assert first.cost == 0.75 and first.tokens_in == 33 and first.tokens_out == 6
    assert second.ended is None and second.bars[0].ended is None
    totals = line.totals()
    assert (totals.model, totals.wait, totals.tools) == (39, 100, {"bash": 50})
    assert totals.turns == 2 and totals.calls == 2


async def test_the_timeline_is_paged_backwards_and_the_session_is_a_file():
    async with serving([f"answer {n}" for n in range(7)]) as served, served.client() as client:
        assert len(story.ROUTES) == 8
        made = (await client.post("/api/sessions", json={})).json()["id"]
        for number in range(7):
            await client.post(f"/api/sessions/{made}/prompt", json={"text": f"<b>ask</b> {number}"})
        at = f"/api/sessions/{made}"
        page = (await client.get(f"{at}/timeline?limit=3&totals=true")).json()
        assert [turn["title"][-1] for turn in page["turns"]] == ["4", "5", "6"] and page["more"]
        assert page["totals"]["turns"] == 7
        before = page["turns"][0]["seq"]
        page = (await client.get(f"{at}/timeline?limit=10&before={before}")).json()
        assert [turn["title"][-1] for turn in page["turns"]] == ["0", "1", "2", "3"]
        assert not page.get("more")
        child = await served.door.open(OpenSpec(parent=made))
        children = (await client.get(f"{at}/children")).json()
        assert [one["id"] for one in children] == [child.id]
        html = await client.get(f"{at}/export?format=html")
        assert "attachment" in html.headers["content-disposition"]
        assert "sandbox" in html.headers["content-security-policy"]
        assert "&lt;b&gt;ask" in html.text and "<b>ask" not in html.text
        assert "answer 6" in (await client.get(f"{at}/export?format=markdown")).text
        assert (await client.get(f"{at}/export?format=json")).json()["session"]["id"] == made
        assert (await client.get(f"{at}/export?format=pdf")).status_code == 400
        for path in ("checkpoints", "changes"):  # memory keeps none, and says so
            assert "checkpoints" in (await client.get(f"{at}/{path}")).text
        assert (await client.get("/api/sessions/none/timeline")).status_code == 404


async def test_nodes_are_told_where_there_is_a_fleet():
    async with serving() as served, served.client() as client:
        assert len(fleet.ROUTES) == 1
        assert (await client.get("/api/fleet")).json() == {"joined": False, "nodes": []}

        async def nodes():
            facts = {"running": 2, "live": 5, "lag": 3, "degraded": False}
            row = {"name": "a", "alive": True, "draining": False, "sessions": 5, "silent": 0.5,
                   "version": "1", "labels": ["gpu"]}  # fmt: skip
            gone = SimpleNamespace(**{**row, "name": "b", "alive": False}, facts=facts)
            return [SimpleNamespace(**row, facts=facts), gone]

        served.door.facts.fleet = nodes
        shown = (await client.get("/api/fleet")).json()
        assert shown["joined"] and shown["nodes"][0]["running"] == 2
        assert shown["nodes"][1]["running"] == 0
        assert (await client.get("/api/status")).json()["fleet"]
