"""What a release carries beside the code."""

import json
import os
import subprocess
import sys
from pathlib import Path

from dragoman.cli import table
from dragoman.cli.manual import manual
from dragoman.cli.parse import Command

ROOT = Path(__file__).parent.parent.parent


def test_the_manual_page_names_every_command_and_flag() -> None:
    page = manual(table.declared())

    def look(command: Command) -> None:
        shown = f"dragoman {command.full_name}".replace("-", r"\-")
        assert f".SS {shown}" in page
        for flag in command.all_flags():
            assert rf"\-\-{flag.name}".replace("-", r"\-").replace(r"\\-", r"\-") in page
        for sub in command.subs:
            look(sub)

    for command in table.declared():
        look(command)
    assert not [row for row in page.splitlines() if row.startswith("'")]


def test_text_that_looks_like_a_command_of_man_stays_text() -> None:
    hostile = Command(
        "x", "say .SH and \\fB", group="G", example="dragoman x", text=".so /etc/passwd\n'br\nend"
    )
    rows = manual([hostile]).splitlines()
    assert not [row for row in rows if row.startswith((".so", "'br"))]
    assert any(r"\efB" in row for row in rows)


def test_the_list_of_parts_is_what_an_install_brings() -> None:
    made = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "sbom.py")],
        capture_output=True, text=True, check=True, env={**os.environ, "PYTHONWARNINGS": ""},
    ).stdout  # fmt: skip
    found = json.loads(made)
    names = {one["name"] for one in found["components"]}
    assert {"msgspec", "httptools", "textual", "tree-sitter"} <= names
    assert not {"pytest", "ruff", "mypy", "dragoman"} & names
    refs = {one["bom-ref"] for one in found["components"]}
    refs.add(found["metadata"]["component"]["bom-ref"])
    for row in found["dependencies"]:
        assert row["ref"] in refs and set(row["dependsOn"]) <= refs


def test_a_release_can_be_tried(tmp_path: Path) -> None:
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        from release import write
    finally:
        sys.path.pop(0)
    home = tmp_path / "src" / "dragoman"
    home.mkdir(parents=True)
    (home / "__init__.py").write_text('__version__ = "0.1.0"\n')
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## 0.1.0 — unreleased\n\n- one\n")
    write(tmp_path, "2.3.4")
    assert '"2.3.4"' in (home / "__init__.py").read_text()
    assert "## 2.3.4 — 20" in (tmp_path / "CHANGELOG.md").read_text()
