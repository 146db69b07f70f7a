"""Schedules over HTTP."""

from tests.gateway.making import serving

from dragoman.gateway.routes import schedules
from dragoman.schedules.timetable import Timetable


async def test_a_schedule_is_added_run_and_removed():
    async with serving() as served, served.client() as client:
        assert len(schedules.ROUTES) == 5
        refused = await client.get("/api/schedules")
        assert refused.status_code == 400 and "keeps no schedules" in refused.text
        table = Timetable(served.gate.door)

        async def given():
            return table

        served.gate.door.facts.schedules = given
        wrong = await client.post("/api/schedules", json={"prompt": "go", "every": "soon"})
        assert wrong.status_code == 400 and "no interval" in wrong.text
        made = await client.post("/api/schedules", json={"prompt": "go", "every": "5m"})
        assert made.status_code == 201, made.text
        at = f"/api/schedules/{made.json()['id']}"
        assert [job["id"] for job in (await client.get("/api/schedules")).json()] == [
            made.json()["id"]
        ]
        ran = (await client.post(f"{at}/run")).json()
        assert ran["number"] == 1 and ran["finished_at"]
        assert [run["number"] for run in (await client.get(f"{at}/runs")).json()] == [1]
        assert (await client.delete(at)).status_code == 200
        assert (await client.get("/api/schedules")).json() == []
        async with served.stranger() as stranger:
            assert (await stranger.get("/api/schedules")).status_code == 401
