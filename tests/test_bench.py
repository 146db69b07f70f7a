"""The figures' own arithmetic, and that a measure leaves every process where it was."""

import os
import subprocess
import sys

import pytest
from bench.parts.picture import hundred
from bench.parts.rows import compared, held_to
from bench.place import on_one_core
from bench.run import Gathering


def test_the_best_round_counts_on_both_sides():
    row = compared("a", "b", [3.0, 2.0], "Go", [4.0, 5.0], "us", "<= 1.0")
    assert (row.ratio, row.held) == (0.5, True)
    assert (row.value, row.reference) == ("2.00 us", "Go 4.00")
    assert row.spread == "2.00-3.00 / 4.00-5.00"


def test_of_rates_the_highest_counts():
    row = compared("a", "b", [3.0, 2.0], "Go", [4.0, 5.0], "per s", ">= 0.7")
    assert (row.ratio, row.held) == (0.6, False)


def test_medians_where_asked_for():
    row = compared("a", "b", [1.0, 2.0, 9.0], "Go", [4.0, 4.0, 4.0], "KB", pick="median")
    assert (row.ratio, row.held) == (0.5, None)


def test_an_absolute_limit():
    assert held_to("a", "b", [3.0, 2.0], "ms", "<= 2.5").held is True
    assert held_to("a", "b", [3.0, 2.0], "ms", "<= 2.5", worst=True).held is False


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity on this platform")
def test_servers_go_home_after_a_measure():
    server = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        here, there = os.sched_getaffinity(0), os.sched_getaffinity(server.pid)
        with pytest.raises(RuntimeError), on_one_core(server.pid):
            assert os.sched_getaffinity(0) == os.sched_getaffinity(server.pid)
            assert len(os.sched_getaffinity(0)) == 1
            raise RuntimeError("a measure that fails")
        assert os.sched_getaffinity(0) == here
        assert os.sched_getaffinity(server.pid) == there
    finally:
        server.communicate(b"\n", timeout=60)


def test_the_picture_of_a_hundred_sessions_shows_both_sides():
    name = "anthropic delta, 100 sessions, a delta every 20 ms, TLS"
    rows = [
        compared("model", name, [40.0], "Go net/http", [160.0], "us cpu", "<= 0.8", digits=1),
        compared("model", "memory of 100 streaming sessions", [70.0], "100 Go processes",
                 [900.0], "MB", "<= 0.2", digits=0),
    ]  # fmt: skip
    others = [held_to("model", "an empty turn", [1.2], "ms cpu", "<= 1.5")]
    drawn = hundred(others + rows)
    for words in ("CPU, anthropic, TLS", "dragoman 20 % of a core", "Go 80 % of a core",
                  "dragoman 70 MB", "Go 900 MB"):  # fmt: skip
        assert words in drawn
    assert hundred(others) == ""


def test_a_measure_that_breaks_costs_the_others_nothing(capsys):
    found = Gathering("streams,store")
    row = held_to("streams", "b", [3.0], "ms")

    def breaks():
        raise TimeoutError("nobody answered")

    found.take("streams", breaks)
    found.take("streams", lambda: [row])
    found.take("store", lambda: ([row], ["a note"]))
    found.take("model", breaks)  # not asked for
    assert found.rows == [row, row] and found.broken == ["streams"]
    assert found.notes == ["streams: broke, so figures are missing: nobody answered", "a note"]
    assert "TimeoutError" in capsys.readouterr().err
    assert found.wants("model", "store") and not found.wants("model")
