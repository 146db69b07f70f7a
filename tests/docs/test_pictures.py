"""What the README shows is what happens: its example runs, its pictures come from real runs."""

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parent.parent.parent
PICTURES = sorted((ROOT / "docs" / "pictures").glob("*.svg"))


def run(*words: str) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if "API_KEY" not in name}
    return subprocess.run(
        [sys.executable, *words], env=env, cwd=ROOT, capture_output=True, text=True, timeout=60
    )


def test_five_clients_together() -> None:
    done = run("examples/together.py")
    assert done.returncode == 0, done.stderr
    rows = [row.split() for row in done.stdout.splitlines() if " → " in row or " ← " in row]
    assert {row[0] for row in rows} == {"acp", "zeroclaw", "zot", "humanlayer", "openclawos"}
    assert "colour.txt says: violet" in done.stdout
    picture = (ROOT / "docs" / "pictures" / "together.svg").read_text()
    shown = "".join(ElementTree.fromstring(picture).itertext())
    # Between connections the order may differ by a hair; what is said does not.
    for row in done.stdout.split("\n"):
        if row.strip():
            assert row in shown, f"make pictures: {row}"


@pytest.mark.parametrize("path", PICTURES, ids=lambda path: path.stem)
def test_pictures_are_pictures_of_text(path: Path) -> None:
    tree = ElementTree.fromstring(path.read_text())
    assert tree.tag.endswith("svg") and tree.get("aria-label")
    assert not [
        one for one in tree.iter() if one.tag.endswith(("script", "image", "foreignObject"))
    ]


def test_a_terminal_is_drawn(tmp_path: Path) -> None:
    output = tmp_path / "a.svg"
    script = "import sys; a = input('name: '); print('\\x1b[1;31mhi', a, '\\x1b[0m<b> ' + 'x' * 30)"
    done = run(
        "scripts/terminal_svg.py", "--output", str(output), "--columns", "20",
        "--answer", "name: =Ann & Bob", "--", sys.executable, "-c", script,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    picture = output.read_text()
    text = "".join(ElementTree.fromstring(picture).itertext())
    assert "name: Ann & Bob" in text and "<b>" in text and "\x1b" not in text
    assert 'fill="#ff7b72" font-weight="600"' in picture


def test_what_is_drawn_anew_is_drawn_once(tmp_path: Path) -> None:
    """An answer is written as it streams, and again as Markdown when it is whole."""
    output = tmp_path / "a.svg"
    program = tmp_path / "p.py"
    said = r"`a\r\x1b[J*one*\ntwo `" + "y" * 25 + r"`\n\r\x1b[3A\x1b[Jone\ntwo\n"
    program.write_text(f'print("{said}end")')
    words = ("--output", str(output), "--columns", "20", "--", sys.executable, str(program))
    done = run("scripts/terminal_svg.py", *words)
    assert done.returncode == 0, done.stderr
    tree = ElementTree.parse(output)
    rows = ["".join(row.itertext()) for row in tree.iter("{http://www.w3.org/2000/svg}text")]
    assert rows[-3:] == ["one", "two", "end"] and "yyy" not in "".join(rows)


def test_a_run_that_fails_makes_no_picture(tmp_path: Path) -> None:
    output = tmp_path / "a.svg"
    words = ("scripts/terminal_svg.py", "--output", str(output), "--")
    assert run(*words, sys.executable, "-c", "raise SystemExit(3)").returncode == 1
    assert not output.exists()
