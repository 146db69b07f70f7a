"""Entries of tables by name: added, removed, renamed, the rest of the file untouched."""

from pathlib import Path

import pytest

from dragoman.engine.faults import BadInput
from dragoman.settings.entries import maps, renamed, sections, with_entry, without_entry

TEXT = """# mine
[agents.a]  # first
model = "p/m" # keep
risk_profile = "r"
api_key = "secret"

[acp]
default_agent = "a"

[risk_profiles.r]
mode = "full"

[providers.p]
base_url = "http://localhost:1"
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "config.toml"
    path.write_text(TEXT)
    return str(path)


def test_the_tables_that_hold_entries() -> None:
    names = [name for name, _ in maps()]
    assert {"agents", "providers", "mcp"} <= {*names} and "limits" not in names
    assert [name for name, _, by_name in sections() if by_name] == names
    assert all(text for _, text, _ in sections())


def test_an_entry_is_added_and_removed(file: str) -> None:
    more = with_entry(file, "agents", "b")
    assert more.startswith("# mine\n[agents.a]  # first\n") and "[agents.b]" in more
    Path(file).write_text(more)
    assert "[agents.b]" not in without_entry(file, "agents", "b")
    Path(file).write_text("")
    assert with_entry(file, "mcp", "files").strip() == "[mcp.files]"


def test_what_refers_to_an_entry_goes_with_it(file: str) -> None:
    text, notes = renamed(file, "agents", "a", "b")
    assert 'default_agent = "b"' in text and 'api_key = "secret"' in text and "# keep" in text
    assert notes == ["acp.default_agent is b now"]
    text, notes = renamed(file, "risk_profiles", "r", "s")
    assert 'risk_profile = "s"' in text and "[risk_profiles.s]" in text and len(notes) == 1
    text, notes = renamed(file, "providers", "p", "q")
    assert notes == ["agents.a.model is q/m now"]


@pytest.mark.parametrize(
    ("table", "key"),
    [("agents", "a"), ("agents", ""), ("agents", "x\ny"), ("agents", "x" * 101), ("limits", "x"),
     ("nothing", "x"), ("agents.a", "x"), ("", "x"), ("agents.", "x")],
)  # fmt: skip
def test_what_cannot_be_added(file: str, table: str, key: str) -> None:
    with pytest.raises(BadInput):
        with_entry(file, table, key)
    with pytest.raises(BadInput):
        without_entry(file, table, f"{key}?" if key == "a" else key)
    with pytest.raises(BadInput):
        renamed(file, table, "a" if key != "a" else "nobody", key)
