"""What is said of keys that only one's own shell has."""

from dragoman.client.keys import only_here

VARIABLES = {"anthropic": ("ANTHROPIC_API_KEY",), "google": ("GEMINI_API_KEY", "GOOGLE_API_KEY")}


def test_without_a_key_here_nothing_is_said() -> None:
    assert only_here(VARIABLES, {}) == ""
    assert only_here(VARIABLES, {"ANTHROPIC_API_KEY": "", "OTHER": "x"}) == ""
    assert only_here({}, {"ANTHROPIC_API_KEY": "x"}) == ""


def test_a_provider_is_named_by_any_of_its_variables_and_no_key_is_told() -> None:
    said = only_here(VARIABLES, {"GOOGLE_API_KEY": "hush", "ANTHROPIC_API_KEY": "hush"})
    assert "a key for anthropic, google, not the daemon" in said and "hush" not in said
    assert "dragoman login anthropic." in said
    assert said.endswith("dragoman stop && dragoman daemon --background")


def test_the_advice_is_for_the_same_installation() -> None:
    said = only_here(VARIABLES, {"GEMINI_API_KEY": "x"}, "/home/me/my place")
    assert "dragoman login google --config-dir '/home/me/my place'" in said
    assert said.count("--config-dir '/home/me/my place'") == 3
