"""A short fire in every run of the tests; `make fire` burns longer."""

from pathlib import Path

import pytest
from tests.cross.fire.check import check
from tests.cross.fire.play import Fire


@pytest.mark.timeout(180)
@pytest.mark.parametrize("seed", [759407491, pytest.param(800052, marks=pytest.mark.slow)])
async def test_nothing_that_was_acknowledged_is_lost(
    seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder: Path = tmp_path_factory.mktemp("f")
    fire = Fire(folder, seed)
    ashes = await fire.burn(6.0)
    assert fire.trace.promises and fire.trace.frames
    assert not check(fire.trace, ashes), f"seed {seed}"
