"""What the system tells of this process."""

import builtins
from typing import Any

import pytest

from dragoman.observe.process import resident


def test_process_memory_is_told_or_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert resident() > 1_000_000

    def none(*words: Any, **more: Any) -> Any:
        raise FileNotFoundError

    monkeypatch.setattr(builtins, "open", none)
    assert resident() == 0
