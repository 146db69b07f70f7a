"""The example package, installed as anybody would install it."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent.parent.parent / "examples" / "dialects" / "pi"


@pytest.fixture(scope="session")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder on the path that has the package and its entry point."""
    place = tmp_path_factory.mktemp("installed")
    words = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation"]
    words += ["--no-index", "--disable-pip-version-check", "--target", str(place), str(PACKAGE)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    sys.path.insert(0, str(place))
    yield place
    sys.path.remove(str(place))
