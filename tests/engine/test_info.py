"""What is told of a session without its history."""

import pytest

from dragoman.engine.info import SessionInfo, begun_by_somebody


@pytest.mark.parametrize(
    ("origin", "parent", "own"),
    [
        ("dragoman", None, True),
        ("zeroclaw", None, True),
        ("dragoman", "p", True),  # a fork is somebody's, too
        ("", None, True),
        ("schedule", None, False),
        ("task", "p", False),
    ],
)
def test_schedules_and_sub_agents_hold_no_conversations(
    origin: str, parent: str | None, own: bool
) -> None:
    info = SessionInfo("s", "a", "/", "m", "supervised", "idle", 0, 0, origin=origin, parent=parent)
    assert begun_by_somebody(info) is own
