"""What a process tells of itself, where it has nothing to tell."""

import pytest

from dragoman.engine.facts import Facts


def test_a_bare_process_has_nothing_and_answers_all_the_same() -> None:
    bare = Facts()
    assert list(bare.mcp()) == [] and list(bare.without_key()) == [] and bare.connected_apps() == []
    assert bare.gateway is None and bare.taps is None and bare.version == ""
    assert bare.addresses == {} and bare.addresses is not Facts().addresses


def test_a_misspelled_fact_is_refused() -> None:
    with pytest.raises(AttributeError):
        Facts().verison = "1"  # type: ignore[attr-defined]
