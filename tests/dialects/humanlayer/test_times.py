"""Moments that clients name, also those that no calendar has."""

from datetime import datetime

import pytest
from tests.dialects.humanlayer.desk import Client, make

from dragoman.dialects.humanlayer.times import LAST, later, precise, seconds


def test_times_in_both_precisions() -> None:
    assert precise(1_700_000_000_120) == "2023-11-14T22:13:20.12Z"
    assert precise(1_700_000_000_000) == seconds(1_700_000_000_999) == "2023-11-14T22:13:20Z"
    assert precise(10**30) == "9999-12-31T23:59:59.999Z" and seconds(10**30) == seconds(LAST)
    assert (later(5, 6), later(5, 10**30)) == (11, LAST)


@pytest.mark.parametrize("timeout", [300_000_000_000_000, 2**63 - 1, 10**20])
async def test_a_timeout_beyond_the_calendar_leaves_every_list_readable(timeout: int) -> None:
    _, desk = make(["done"] * 2)
    client = Client(desk)
    skip = {"dangerously_skip_permissions": True}
    first = await client.call(
        "launchSession", query="x", dangerously_skip_permissions_timeout=timeout, **skip
    )
    second = (await client.call("launchSession", query="y"))["session_id"]
    await client.call(
        "updateSessionSettings", session_id=second, **skip,
        dangerously_skip_permissions_timeout_ms=timeout,
    )  # fmt: skip
    rows = (await client.call("listSessions"))["sessions"]
    assert {one["id"] for one in rows} == {first["session_id"], second}
    for row in rows:
        state = (await client.call("getSessionState", session_id=row["id"]))["session"]
        assert state["dangerously_skip_permissions_expires_at"].startswith("9999-12-31")
    await desk.close()


@pytest.mark.parametrize(
    ("ms", "said"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (1_700_000_000_000, "2023-11-14T22:13:20Z"),
        (1_700_000_000_120, "2023-11-14T22:13:20.12Z"),
        (1_700_000_000_007, "2023-11-14T22:13:20.007Z"),
    ],
)
def test_only_what_is_there_is_written(ms: int, said: str) -> None:
    assert precise(ms) == said
    assert seconds(ms) == said[:19] + "Z"
    assert datetime.fromisoformat(said).timestamp() == ms / 1000
