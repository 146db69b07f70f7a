"""A configuration of every version is read by the newest, with every key that it had."""

import shutil
from pathlib import Path

import pytest

from dragoman import __version__
from dragoman.settings import retired
from dragoman.settings.load import load

KEPT = sorted((Path(__file__).parent / "released").glob("config-*.toml"))
OURS = f"config-{'.'.join(__version__.split('.')[:2])}.toml"


def test_one_of_this_version_is_kept() -> None:
    assert OURS in [file.name for file in KEPT], "python scripts/keep_store.py"


@pytest.mark.parametrize("file", KEPT, ids=lambda file: file.stem)
def test_it_is_read_without_a_problem(file: Path, tmp_path: Path) -> None:
    """Nothing of it is unknown; what is to go says when."""
    copy = tmp_path / "config.toml"
    shutil.copy(file, copy)
    copy.chmod(0o600)
    loaded = load(str(copy), {})
    dates = [str(one.until) for one in retired.RETIRED]
    strange = [row for row in loaded.warnings if not any(date in row for date in dates)]
    assert not strange and loaded.settings.agents["text"].max_steps is not None
