"""The examples of the guide are programs that work."""

import re
from pathlib import Path

from dragoman.apps import App, Block

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "apps.md"


def snippets() -> list[str]:
    return re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)


async def test_the_first_app(monkeypatch):
    monkeypatch.setattr(App, "run", lambda self: None)
    code = snippets()[0]
    assert len([line for line in code.splitlines() if line.strip()]) < 30
    names: dict = {}
    exec(compile(code, "guide", "exec"), names)  # noqa: S102 - our own guide
    assert names["app"].manifest()["capabilities"]["tools"] == {"provides": ["weather"]}
    assert await names["weather"]("Rome", 2) == "Sunny in Rome for 2 days."


async def test_the_rules():
    names: dict = {"app": App("@me/rules")}
    exec(compile(snippets()[2], "guide", "exec"), names)  # noqa: S102 - our own guide
    said = await names["guard"]({"params": {"command": "rm -rf /"}}, {})
    assert said == Block("not on this machine")
    assert await names["guard"]({"params": {}}, {}) is None
    assert await names["polish"]({"content": "my password"}, {}) == {"content": "my ***"}
