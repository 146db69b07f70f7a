"""The example of the guide loads as it stands."""

import re
from pathlib import Path

from dragoman.settings import profiles
from dragoman.settings.load import load

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "configuration.md"


def test_the_example_loads_without_a_word(tmp_path: Path) -> None:
    example, *_ = re.findall(r"```toml\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    file = tmp_path / "config.toml"
    file.write_text(example)
    loaded = load(str(file), {})
    assert loaded.warnings == ()
    assert profiles.default_alias(loaded.settings) == "coder"
    assert profiles.profile(loaded.settings, "local").mode == "readonly"
    assert profiles.profile(loaded.settings, "other").command == ("other-agent", "--acp")
    assert profiles.model_ref(loaded.settings, "local") == "ollama/qwen3"
