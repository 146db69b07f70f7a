"""A home for each test of the terminal."""

from collections.abc import Iterator

import pytest
from tests.tui.panes import Home


@pytest.fixture
def home() -> Iterator[Home]:
    made = Home()
    yield made
    made.close()
