"""What the doctor says of programs that agents and servers are."""

from pathlib import Path

import pytest

from dragoman.host.doctor import Row, examine
from dragoman.settings.places import places

ENTRY = {
    "agents": '[agents.other]\nbackend = "acp"\ncommand = "{}"\n',
    "mcp": '[mcp.other]\ncommand = "{}"\npass_env = ["NOT_SET_ANYWHERE"]\n',
}


def rows(folder: Path, kind: str, program: str) -> list[Row]:
    (folder / "config.toml").write_text(ENTRY[kind].format(program))
    found = examine(places({}, str(folder)), {})
    return [row for row in found if row.category == kind and row.message.startswith("other")]


@pytest.mark.parametrize("kind", ENTRY)
def test_one_word_about_a_program_that_cannot_be_run(kind: str, tmp_path: Path) -> None:
    """Not that it is an error, and beside it that all is well."""
    plain = tmp_path / "plain"
    plain.write_text("no program")
    for program, said in (
        ("no-such-program", "is not on PATH"),
        (str(tmp_path / "nothing"), "does not exist"),
        (str(plain), "cannot be run"),
    ):
        (row,) = rows(tmp_path, kind, program)
        assert row.severity == "error" and row.message == f"other: {program} {said}"


def test_a_program_that_is_there_is_told_with_the_keys_that_it_gets(tmp_path: Path) -> None:
    assert [row.severity for row in rows(tmp_path, "agents", "/bin/sh")] == ["ok", "ok"]
    assert [row.severity for row in rows(tmp_path, "mcp", "/bin/sh")] == ["warn"]
