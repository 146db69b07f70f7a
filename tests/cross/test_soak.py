"""The soak's judgement, and a short soak; `make soak` goes on for longer."""

from pathlib import Path

import pytest
from tests.cross.soak import LEAST_TURNS, MOST_SLOPE, WARM_UP, Look, Soak, settled, slope, verdict


def grown(per_thousand: float, noise: float = 0.0, turns: int = 12_000) -> list[Look]:
    return [
        Look(at, 40 + per_thousand * at / 1_000 + (noise if at % 200 else -noise))
        for at in range(100, turns, 100)
    ]


@pytest.mark.parametrize("noise", [0.0, 1.5])
def test_growth_is_found_and_noise_is_not_taken_for_it(noise: float) -> None:
    assert slope(grown(4.6, noise)) == pytest.approx(4.6, abs=0.2)
    assert "grows by" in verdict(grown(4.6, noise))[1]
    assert "grows by" in verdict(grown(0.5, noise))[1]
    assert verdict(grown(0.0, noise))[1] == verdict(grown(-2.0, noise))[1] == ""


@pytest.mark.parametrize("leaks", [False, True])
def test_what_waits_for_a_slow_client_is_no_growth(leaks: bool) -> None:
    late = grown(0.5 if leaks else 0.0)
    late[-1] = late[-1]._replace(megabytes=late[-1].megabytes + 16)
    late[-3] = late[-3]._replace(megabytes=late[-3].megabytes + 16)
    assert slope(settled(late)) > MOST_SLOPE
    assert ("grows by 0.50" in verdict(late)[1]) is leaks


def test_the_warm_up_does_not_count() -> None:
    warm = [Look(at, min(30 + at / 200, 60)) for at in range(100, 16_000, 100)]
    assert slope(warm) > 1 and verdict(warm)[1] == ""
    assert settled(warm)[0].turns >= 7_900


def test_descriptors_that_stay_open_are_found() -> None:
    held = [look._replace(descriptors=40 + look.turns // 100) for look in grown(0.0)]
    assert "descriptors more" in verdict(held)[1]
    assert verdict([look._replace(descriptors=40 + look.turns % 7) for look in grown(0.0)])[1] == ""


def test_few_turns_are_not_judged() -> None:
    assert "too few" in verdict(grown(0.0, turns=WARM_UP + LEAST_TURNS))[1]
    assert "too few" in verdict([])[1]


@pytest.mark.slow
async def test_a_short_soak_holds_a_daemon_within_bounds(tmp_path: Path) -> None:
    """So few turns tell nothing of a slope; but one that keeps every turn would show."""
    soak = Soak(tmp_path)
    looks = await soak.run(lambda: soak.turns >= 500)
    assert soak.turns >= 500 and len(looks) >= 5
    assert looks[-1].megabytes - looks[1].megabytes < 12
