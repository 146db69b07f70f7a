"""What a release carries beside the code."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

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


def test_a_release_is_written_down_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    from release import beside, digest, write

    home = tmp_path / "src" / "dragoman"
    shutil.copytree(ROOT / "packaging", tmp_path / "packaging")
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "sbom.py", tmp_path / "scripts")
    shutil.copy(ROOT / "constraints-hashes.txt", tmp_path)
    home.mkdir(parents=True)
    (home / "__init__.py").write_text('__version__ = "0.1.0"\n')
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## 0.1.0 — unreleased\n\n- one\n")
    write(tmp_path, "2.3.4")
    assert '"2.3.4"' in (home / "__init__.py").read_text()
    assert "## 2.3.4 — 20" in (tmp_path / "CHANGELOG.md").read_text()
    debian = (tmp_path / "packaging" / "debian" / "changelog").read_text()
    assert debian.startswith("dragoman (2.3.4-1) ") and "dragoman (0.1.0-1) " in debian
    source = tmp_path / "dragoman-2.3.4.tar.gz"
    source.write_bytes(b"the source")
    beside(tmp_path, "2.3.4", [tmp_path / "dragoman-2.3.4-py3-none-any.whl", source], tmp_path)
    formula = (tmp_path / "dragoman.rb").read_text()
    assert "dragoman-2.3.4.tar.gz" in formula and digest(source) in formula
    parts = json.loads((tmp_path / "dragoman-2.3.4.cdx.json").read_text())
    ours = parts["metadata"]["component"]
    assert ours["version"] == "2.3.4" and ours["bom-ref"] == "pkg:pypi/dragoman@2.3.4"
    assert any(row["ref"] == ours["bom-ref"] and row["dependsOn"] for row in parts["dependencies"])


def test_the_source_carries_every_page_of_the_project() -> None:
    """What the Makefile and the documents name is in the source of a release, too."""
    carried = tomllib.loads((ROOT / "pyproject.toml").read_text())
    carried = carried["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    pages = {path.name for path in ROOT.iterdir() if path.suffix in (".md", ".txt", ".ini")}
    assert pages <= set(carried), pages - set(carried)
