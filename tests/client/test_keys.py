"""Keys that this shell has and the daemon has not."""

from dragoman.client.keys import only_here

VARIABLES = {"anthropic": ["ANTHROPIC_API_KEY"], "google": ["GEMINI_API_KEY", "GOOGLE_API_KEY"]}


def test_nothing_is_said_without_a_key_here() -> None:
    assert only_here(VARIABLES, {}) == only_here({}, {"ANTHROPIC_API_KEY": "x"}) == ""
    assert only_here(VARIABLES, {"GEMINI_API_KEY": "", "OTHER": "x"}) == ""


def test_every_provider_is_named_and_never_its_key() -> None:
    told = only_here(VARIABLES, {"GOOGLE_API_KEY": "hidden-1", "ANTHROPIC_API_KEY": "hidden-2"})
    assert "a key for anthropic, google," in told and "hidden" not in told
    assert "dragoman login anthropic." in told


def test_both_ways_out_name_the_place_that_was_given() -> None:
    told = only_here(VARIABLES, {"GEMINI_API_KEY": "x"}, "/home/a b/c")
    assert "dragoman login google --config-dir '/home/a b/c'." in told
    assert told.endswith(
        "dragoman stop --config-dir '/home/a b/c' && "
        "dragoman daemon --background --config-dir '/home/a b/c'"
    )
