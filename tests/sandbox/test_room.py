"""Finding out whether a command can have a room of its own."""

import os
from typing import Any

import pytest

from dragoman.sandbox import room

pytestmark = pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="not Linux")


@pytest.mark.parametrize("name", ["possible", "networks"])
def test_whatever_goes_wrong_in_the_child_ends_there(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    us = os.getpid()

    def fails(*words: Any) -> None:
        raise LookupError("unknown encoding")

    monkeypatch.setattr(room, name, getattr(room, name).__wrapped__)  # as at first
    monkeypatch.setattr(room, "_separate", fails)
    monkeypatch.setattr(room, "own_network", fails)
    try:
        found = room.possible(None) if name == "possible" else room.networks()
    finally:
        if os.getpid() != us:  # a second one of us came out: nobody waits for it
            os._exit(0)
    assert not found
