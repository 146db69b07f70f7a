"""What single clients need, by their names and by what they say they can do."""

import pytest

from dragoman.dialects.acp.commands import OWN, all_commands, listed
from dragoman.dialects.acp.faults import DOCUMENT, ECOSYSTEM
from dragoman.dialects.acp.quirks import Quirks, codes_of, quirks_of
from dragoman.engine.ports.commands import Command


@pytest.mark.parametrize("name", ["zed", "Zed", " zed ", "Zed Preview", "ZED"])
def test_a_client_is_known_however_it_writes_its_name(name: str) -> None:
    found = quirks_of(name)
    assert found.real_call_ids and codes_of(found, "zeroclaw") is ECOSYSTEM


def test_who_is_not_known_gets_what_is_configured() -> None:
    assert quirks_of("nobody") == quirks_of("") == Quirks()
    assert codes_of(Quirks(), "acp") is ECOSYSTEM and codes_of(Quirks(), "zeroclaw") is DOCUMENT


def test_what_a_client_says_it_can_do_tells_what_it_was_made_with() -> None:
    assert quirks_of("new", {"fs": {}}).object_output
    assert quirks_of("new", {"terminal": True}).object_output
    assert not quirks_of("new", {}).object_output and quirks_of("new", {}).message_ids
    assert not quirks_of("new", None).message_ids
    assert quirks_of("zeroclaw-tui", {"fs": {}}) == Quirks()
    toad = quirks_of("toad", {"fs": {}})
    assert toad.closed_updates and toad.object_output and not toad.message_ids


def test_commands_are_shown_as_each_version_wants_them() -> None:
    kept = {
        "review": Command("review", "Look at it", "what"),
        "clear": Command("clear", "something else"),
    }
    commands = all_commands(kept)
    first, second = listed(commands), listed(commands, second=True)
    names = [one["name"] for one in first]
    assert names[: len(OWN)] == [one.name for one in OWN] and names[-1] == "review"
    assert names.count("clear") == 1  # a file does not hide one of ours
    assert first[-1]["input"] == {"hint": "what"} and "type" not in first[-1]
    assert second[-1]["input"] == {"type": "text", "hint": "what"}
    assert {one["type"] for one in second} == {"command"}
    assert "input" not in first[0]
