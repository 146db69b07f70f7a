"""The examples of the guides about agents load as they stand."""

import re
from pathlib import Path

import pytest

from dragoman.settings.load import load

GUIDES = Path(__file__).parents[2] / "docs" / "guides"


@pytest.mark.parametrize("name", ["hosted-agents", "mcp", "memory", "profiles", "sandbox"])
def test_the_examples_load_without_a_word(tmp_path: Path, name: str) -> None:
    text = (GUIDES / f"{name}.md").read_text(encoding="utf-8")
    examples = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    assert examples
    for example in examples:
        file = tmp_path / "config.toml"
        file.write_text(example)
        file.chmod(0o600)
        assert load(str(file), {}).warnings == ()
