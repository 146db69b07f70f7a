"""Files that people write for agents."""

from pathlib import Path

import pytest

from dragoman.agents.prompt import personality
from dragoman.agents.skills import find_skills
from dragoman.engine.faults import BadInput
from dragoman.host.writings import LONGEST, Writings


def test_what_is_written_is_what_agents_read(tmp_path: Path) -> None:
    writings = Writings(str(tmp_path))
    assert writings.read_about("a", "SOUL.md") is None
    writings.write_about("a", "SOUL.md", "Kind.")
    assert ("SOUL.md", 5) in writings.about("a") and ("USER.md", None) in writings.about("a")
    assert personality(str(tmp_path), "a") == ["# SOUL\n\nKind."]
    assert (tmp_path / "agents" / "a" / "SOUL.md").stat().st_mode & 0o777 == 0o600
    writings.write_skill("tidy", {"name": "tidy", "description": "a\nb: c"}, "Do it.")
    assert writings.skills() == ["tidy"]
    assert writings.read_skill("tidy") == ({"name": "tidy", "description": "a b: c"}, "Do it.")
    found = find_skills(str(tmp_path), str(tmp_path)).found["tidy"]
    assert found.description == "a b: c"
    writings.delete_skill("tidy")
    assert writings.skills() == []


def test_a_link_is_not_followed_when_a_skill_goes(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "SKILL.md").write_text("x")
    (tmp_path / "skills").mkdir()
    (tmp_path / "skills" / "linked").symlink_to(other)
    Writings(str(tmp_path)).delete_skill("linked")
    assert (other / "SKILL.md").exists() and not (tmp_path / "skills" / "linked").exists()


@pytest.mark.parametrize("name", ["", "..", ".", "a/b", "/etc", "a\0", "a b", "x" * 65, "-a", "ä"])
def test_names_that_lead_elsewhere(tmp_path: Path, name: str) -> None:
    writings = Writings(str(tmp_path))
    for wrong in (
        lambda: writings.read_skill(name),
        lambda: writings.write_skill(name, {}, ""),
        lambda: writings.delete_skill(name),
        lambda: writings.write_about("a", name, ""),
        lambda: writings.read_about("../a", "SOUL.md"),
        lambda: writings.write_about("a", "SOUL.md", "x" * (LONGEST + 1)),
        lambda: writings.write_skill("a", {}, "x" * 300_000),
    ):
        with pytest.raises(BadInput):
            wrong()
    assert not list(tmp_path.iterdir())
