"""What a release carries beside the code."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tomllib
from email.message import Message
from pathlib import Path

import pytest

from dragoman.cli import table
from dragoman.cli.manual import manual
from dragoman.cli.parse import Command

ROOT = Path(__file__).parent.parent.parent


def test_the_manual_page_names_every_command_and_flag() -> None:
    page = manual(table.commands())

    def look(command: Command) -> None:
        shown = f"dragoman {command.full_name}".replace("-", r"\-")
        assert f".SS {shown}" in page
        for flag in command.all_flags():
            assert rf"\-\-{flag.name}".replace("-", r"\-").replace(r"\\-", r"\-") in page
        for sub in command.subs:
            look(sub)

    for command in table.commands():
        look(command)
    assert not [row for row in page.splitlines() if row.startswith("'")]


def test_text_that_looks_like_a_command_of_man_stays_text() -> None:
    hostile = Command("x", "say .SH and \\fB", text=".so /etc/passwd\n'br\nend")
    hostile.group = "G"
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
    assert {"linkify-it-py", "mdit-py-plugins"} <= names  # by an extra of another part
    assert not {"pytest", "ruff", "mypy", "dragoman"} & names
    for one in found["components"]:
        assert one["version"] and one["licenses"], one["name"]
    refs = {one["bom-ref"] for one in found["components"]}
    refs.add(found["metadata"]["component"]["bom-ref"])
    for row in found["dependencies"]:
        assert row["ref"] in refs and set(row["dependsOn"]) <= refs


def test_a_licence_is_found_however_a_part_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    from sbom import licenses

    def found(*fields: tuple[str, str]) -> list[dict[str, object]]:
        about = Message()
        for name, value in fields:
            about[name] = value
        made: list[dict[str, object]] = licenses("x", about)
        return made

    mit = ("Classifier", "License :: OSI Approved :: MIT License")
    apache = ("Classifier", "License :: OSI Approved :: Apache Software License")
    both = [{"license": {"id": "Apache-2.0"}}, {"license": {"id": "MIT"}}]
    assert found(("License-Expression", "MIT OR ISC"), mit) == [{"expression": "MIT OR ISC"}]
    assert found(mit) == [{"license": {"id": "MIT"}}]
    assert found(("License", "MIT License"), mit, apache) == both
    assert found(("License", "Some Own Terms")) == [{"license": {"name": "Some Own Terms"}}]
    for text in ("", "Copyright\n\nPermission is granted"):
        with pytest.raises(SystemExit, match="x names no licence"):
            found(("License", text))


def test_an_install_is_compared_with_the_list_of_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    import sbom

    rows = [{"name": name, "version": sbom.version(name)} for name in sbom.parts()]
    assert sbom.differences(rows) == []
    rows = [{"name": "Some_Thing", "version": "1"}, *(r for r in rows if r["name"] != "msgspec")]
    assert [row.split()[0] for row in sbom.differences(rows)] == ["some-thing", "msgspec"]


def test_a_release_is_written_down_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    from release import write

    home = tmp_path / "src" / "dragoman"
    shutil.copytree(ROOT / "packaging", tmp_path / "packaging")
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "sbom.py", tmp_path / "scripts")
    shutil.copy(ROOT / "constraints-hashes.txt", tmp_path)
    home.mkdir(parents=True)
    (home / "__init__.py").write_text('__version__ = "0.1.0"\n')
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## 0.1.0 — unreleased\n\n- one\n")
    shutil.copytree(ROOT / "docs" / "registry", tmp_path / "docs" / "registry")
    write(tmp_path, "2.3.4")
    entry = json.loads((tmp_path / "docs" / "registry" / "agent.json").read_text())
    assert entry["version"] == "2.3.4"
    assert entry["distribution"]["uvx"]["package"] == "dragoman==2.3.4"
    assert '"2.3.4"' in (home / "__init__.py").read_text()
    assert "## 2.3.4 — 20" in (tmp_path / "CHANGELOG.md").read_text()
    debian = (tmp_path / "packaging" / "debian" / "changelog").read_text()
    assert debian.startswith("dragoman (2.3.4-1) ") and "dragoman (0.1.0-1) " in debian
    made = subprocess.run(
        [sys.executable, str(tmp_path / "scripts" / "sbom.py"), "--version", "2.3.4"],
        capture_output=True, text=True, check=True, env={**os.environ, "PYTHONWARNINGS": ""},
    ).stdout  # fmt: skip
    parts = json.loads(made)
    ours = parts["metadata"]["component"]
    assert ours["version"] == "2.3.4" and ours["bom-ref"] == "pkg:pypi/dragoman@2.3.4"
    assert any(row["ref"] == ours["bom-ref"] and row["dependsOn"] for row in parts["dependencies"])


PAGE = """<a href="/files/{0}-{1}-py3-none-any.whl#sha256={2}">a wheel</a>
<a href="https://files.example/{0}-0.0.1.tar.gz#sha256={3}">an older one</a>
<a href="../../files/{0}-{1}.tar.gz#sha256={4}">the source</a>"""


def test_the_formula_of_a_release_leaves_nothing_to_be_filled_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    import formula
    from make_hashes import pins

    wanted = pins((ROOT / "constraints.txt").read_text())

    def page(name: str) -> tuple[str, str]:
        text = PAGE.format(name.replace("-", "_"), wanted[name], "a" * 64, "b" * 64, "c" * 64)
        return f"https://index.example/simple/{name}/", text

    names = ["msgspec", "tree-sitter-bash"]
    blocks = formula.resources(names, page)
    assert blocks.count("resource ") == 2 and "b" * 64 not in blocks and "a" * 64 not in blocks
    version = wanted["tree-sitter-bash"]
    assert f'"https://index.example/files/tree_sitter_bash-{version}.tar.gz"' in blocks
    source = tmp_path / "dragoman-2.3.4.tar.gz"
    source.write_bytes(b"the source")
    ours = (ROOT / "packaging" / "homebrew" / "dragoman.rb").read_text()
    made = formula.fill(ours, source, "https://dragoman.example/releases/", blocks)
    assert 'homepage "https://dragoman.example/releases"' in made
    assert 'url "https://dragoman.example/releases/dragoman-2.3.4.tar.gz"' in made
    assert hashlib.sha256(b"the source").hexdigest() in made
    assert "example.org" not in made and "0" * 64 not in made and blocks in made
    with pytest.raises(SystemExit, match="no source of msgspec"):
        formula.resources(["msgspec"], lambda name: ("https://index.example/", ""))


def test_the_source_carries_every_page_of_the_project() -> None:
    """What the Makefile and the documents name is in the source of a release, too."""
    carried = tomllib.loads((ROOT / "pyproject.toml").read_text())
    carried = carried["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    pages = {path.name for path in ROOT.iterdir() if path.suffix in (".md", ".txt", ".ini")}
    assert pages <= set(carried), pages - set(carried)
    kept = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if kept.returncode == 0:  # tests read some of it: .ci/run
        tops = {row.partition("/")[0] for row in kept.stdout.splitlines() if "/" in row}
        assert tops <= set(carried), tops - set(carried)
