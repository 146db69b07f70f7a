"""Skills, slash commands and personality: files that people write for their agents."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
from tests.engine.tape import ME, Tape

from dragoman.agents.commands import find_commands
from dragoman.agents.markdown import split, upward
from dragoman.agents.prompt import personality
from dragoman.agents.skills import find_skills, listing
from dragoman.engine import events as ev
from dragoman.engine.content import Text, text_of
from dragoman.engine.host import OpenSpec
from dragoman.host.compose import compose
from dragoman.testing.script import Scripted, call


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def skill(folder: Path, name: str, description: str = "", body: str = "Do it.") -> None:
    facts = f"---\nname: {name}\ndescription: {description}\n---\n" if description else ""
    write(folder / name / "SKILL.md", facts + body)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home, a configuration, and a project with a folder in it."""
    for name in ("home", "config", "project/sub"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path


def found(place: Path) -> dict[str, str]:
    skills = find_skills(str(place / "project/sub"), str(place / "config"))
    return {name: one.description for name, one in skills.found.items()}


def test_they_are_found_in_all_places_and_the_nearest_counts(place: Path) -> None:
    skill(place / "project/sub/.dragoman/skills", "near", "the near one")
    skill(place / "project/.agents/skills", "near", "hidden by it")
    skill(place / "project/.agents/skills", "agents", "of the project")
    skill(place / "project/.claude/skills", "claude", "of the project, too")
    skill(place / "config/skills", "config", "of the user")
    skill(place / "home/.agents/skills", "home-agents", "of the user")
    skill(place / "home/.claude/skills", "home-claude", "of the user")
    skill(place / "home/.claude/skills", "claude", "hidden by the project")
    assert found(place) == {
        "near": "the near one", "agents": "of the project", "claude": "of the project, too",
        "config": "of the user", "home-agents": "of the user", "home-claude": "of the user",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "name", "description", "noted"),
    [
        ("# Just a title\n\nwords", "folder", "Just a title", ""),
        ("---\ndescription: 'quoted: yes'\n---\nx", "folder", "quoted: yes", ""),
        ("---\ndescription: >\n  two\n  lines\n---\nx", "folder", "two lines", ""),
        ("---\nname: other\ndescription: d\nmetadata:\n  a: b\n---\nx", "other", "d", ""),
        ("---\nname: [bad\ndescription: d\n---\nx", "folder", "d", "unusable name"),
        ("---\nno colon here\ndescription: d\n---\nx", "folder", "d", "no fact"),
        ("---\ndescription: never closed\nx", "folder", "---", "not closed"),
        ("\ufeff---\r\ndescription: windows\r\n---\r\nx", "folder", "windows", ""),
        ("", "folder", "folder", ""),
        ("---\ndescription: " + "y" * 5000 + "\n---\n", "folder", "y" * 1024, ""),
    ],
)
def test_odd_files_are_borne_with_a_note(place, text, name, description, noted) -> None:
    write(place / "project/.agents/skills/folder/SKILL.md", text)
    skills = find_skills(str(place / "project"))
    (one,) = skills.found.values()
    assert (one.name, one.description[:1024]) == (name, description)
    assert noted in " ".join(skills.notes) and bool(skills.notes) is bool(noted)


@pytest.mark.parametrize("text", ["just words", "---\nname: ü ü\n---\nx"])
def test_a_skill_without_a_usable_name_is_told_once_with_what_to_do(place, text) -> None:
    write(place / "project/.agents/skills/mit Platz ü/SKILL.md", text)
    skills = find_skills(str(place / "project"))
    (note,) = skills.notes
    assert not skills.found and "left out" in note and "rename the folder" in note


def test_what_cannot_be_read_or_is_too_much(place: Path) -> None:
    folder = place / "project/.agents/skills"
    (folder / "dir/SKILL.md").mkdir(parents=True)
    os.mkfifo(folder / "fifo")
    (folder / "gone").mkdir()
    (folder / "gone/SKILL.md").symlink_to("/does/not/exist")
    for n in range(230):
        skill(folder, f"s{n}", "x" * 500)
    skills = find_skills(str(place / "project"))
    assert len(skills.found) == 200 and "More than 200" in skills.notes[-1]
    text = listing(tuple(skills.found.values()))
    assert len(text) < 25_000 and "more, not shown" in text


@pytest.mark.root
def test_folders_of_other_users_are_not_looked_at(place, monkeypatch) -> None:
    skill(place / "project/.agents/skills", "mine", "mine")
    skill(place / ".agents/skills", "theirs", "a stranger's")
    os.chown(place, 12345, 12345)
    assert "theirs" not in found(place) and "mine" in found(place)
    assert str(place) not in list(upward(str(place / "project")))


def test_commands(place: Path) -> None:
    write(place / "project/.dragoman/commands/deploy.md", "---\nargument-hint: where\n---\nTo $1!")
    write(place / "project/.claude/commands/git/tidy.md", "Tidy $ARGUMENTS up.")
    write(place / "config/commands/mine.md", "# Mine\n\nwords")
    skill(place / "project/.agents/skills", "review", "Review it", "Look well.")
    commands = find_commands(str(place / "project/sub"), str(place / "config"))
    assert sorted(commands) == ["deploy", "git:tidy", "mine", "review"]
    assert (
        commands["deploy"].filled("prod now") == "To prod!" and commands["deploy"].hint == "where"
    )
    assert commands["git:tidy"].filled("all of it") == "Tidy all of it up."
    assert commands["mine"].filled("and this") == "# Mine\n\nwords\n\nand this"
    assert commands["review"].filled("") == "Look well."


def test_personality(place: Path) -> None:
    write(place / "config/agents/coder/SOUL.md", "Be kind.")
    write(place / "config/agents/coder/IDENTITY.md", "You are Ada.")
    write(place / "config/agents/coder/USER.md", "x" * 50_000)
    write(place / "config/secret/SOUL.md", "no")
    parts = personality(str(place / "config"), "coder")
    assert parts[:2] == ["# IDENTITY\n\nYou are Ada.", "# SOUL\n\nBe kind."]
    assert len(parts[2]) < 21_000
    for odd in ("../secret", "", ".", "a/b", "nobody"):
        assert personality(str(place / "config"), odd) == []


def test_facts_at_the_top() -> None:
    assert split("no facts")[1:] == ("no facts", "")
    assert split("---\na: 1\nb: |\n  x\n  y\n---\n\nbody\n")[0] == {"a": "1", "b": "x\ny"}


# --- in a session ---


async def session(place: Path, script: Scripted, who: Any = ME) -> Any:
    write(place / "config/config.toml", '[agents.coder]\nmodel = "script/m"\n')
    host = await compose(config_dir=str(place / "config"))
    host.models.offer("script", script)
    info = await host.door.open(OpenSpec(cwd=str(place / "project/sub")), who)
    tape = Tape()
    await host.door.watch(info.id, ME, tape, lambda said: None)
    return host, info.id, tape


async def say(host: Any, sid: str, text: str) -> Any:
    async with asyncio.timeout(60):
        return await (await host.door.prompt(sid, (Text(text),), ME)).done


@pytest.mark.parametrize("dialect", ["zeroclaw", "acp"])
async def test_a_session_is_told_of_skills_and_loads_one(place: Path, dialect: str) -> None:
    skill(place / "home/.agents/skills", "review", "How we review.", "Look at the tests first.")
    write(place / "home/.agents/skills/review/list.md", "the long list")
    write(place / "home/.agents/skills/bad/SKILL.md", "---\nbad\n---\n# Bad")
    write(place / "config/agents/coder/SOUL.md", "Be kind.")
    path = str(place / "home/.agents/skills/review/list.md")
    script = Scripted([call("skill", name="review"), call("read", path=path), "done", "again"])
    host, sid, tape = await session(place, script, ev.Who(dialect, id="x"))
    try:
        assert (await say(host, sid, "review it")).text == "done"  # nobody was asked
        system = script.requests[0].system
        assert "- review: How we review." in system and "Be kind." in system
        loaded, listed = (text_of(e.content) for e in tape.of(ev.CallEnded))
        assert "Look at the tests first." in loaded and "- list.md" in loaded
        assert "the long list" in listed  # its files may be read although they lie outside
        await say(host, sid, "again")
        notes = [note.text for note in tape.of(ev.Noted)]
        assert len(notes) == 1 and "no fact" in notes[0]  # told once
    finally:
        await host.close()


async def test_an_unknown_skill_and_no_skill_at_all(place: Path) -> None:
    script = Scripted([call("skill", name="nope"), "done"])
    host, sid, tape = await session(place, script)
    try:
        await say(host, sid, "x")
        assert "skill" not in {tool.name for tool in script.requests[0].tools}
        assert "# Skills" not in script.requests[0].system
        result = text_of(tape.of(ev.CallEnded)[0].content)
        assert "unknown tool" in result
    finally:
        await host.close()


async def test_a_command_works_in_every_protocol(place: Path) -> None:
    write(place / "project/.dragoman/commands/deploy.md", "Deploy to $ARGUMENTS.")
    script = Scripted(["a", "b"])
    host, sid, _ = await session(place, script)
    try:
        await say(host, sid, "/deploy the moon")
        await say(host, sid, "/etc/hosts is broken")
        said = [text_of(request.messages[-1].content) for request in script.requests]
        assert said == ["Deploy to the moon.", "/etc/hosts is broken"]
    finally:
        await host.close()
