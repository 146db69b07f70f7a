"""The guides say what is so: their programs run, their links lead somewhere, flags exist."""

import errno
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path

import pytest
from tests.cli.living import WITHIN, Living
from tests.daemon.running import Line

from dragoman.cli import table
from dragoman.cli.parse import parse
from dragoman.settings import shape

ROOT = Path(__file__).parent.parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
MINE = [ROOT / "README.md"] + [
    ROOT / "docs" / "guides" / f"{name}.md" for name in ("editors", "humanlayer", "zot", "clients")
]


def blocks(page: Path, kind: str) -> list[str]:
    return re.findall(rf"^ *```{kind}\n(.*?)^ *```", page.read_text(), re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def living(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Living]:
    made = Living(tmp_path_factory.mktemp("g"))
    made.start()
    yield made
    made.stop()


PROGRAMS = blocks(ROOT / "docs" / "guides" / "clients.md", "python")
SAYS = ["completed", "while nobody looked", "asked: hello", "."]


def test_every_program_is_here() -> None:
    assert len(PROGRAMS) == len(SAYS)


@pytest.mark.parametrize("number", range(len(SAYS)))
def test_the_programs_of_the_guide_run(living: Living, tmp_path: Path, number: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAMS[number]],
        env=living.env,
        cwd=tmp_path,  # not the daemon's
        capture_output=True,
        text=True,
        timeout=WITHIN,
    )
    assert done.returncode == 0 and SAYS[number] in done.stdout, done.stderr
    assert not list(living.work.iterdir())
    if number == 0:
        assert (tmp_path / "hello.txt").read_text().strip() == "hello"


def test_the_lines_of_the_guide_are_answered(living: Living, tmp_path: Path) -> None:
    (block,) = blocks(ROOT / "docs" / "guides" / "clients.md", "json")
    with Line(living.socket) as line:
        made = line.ask("dragoman/open", {"cwd": str(tmp_path)})["session"]
    lines = [json.loads(row.replace("…", made["id"])) for row in block.strip().splitlines()]
    with Line(living.socket, init=None) as line:
        for message in lines:
            line.send(message)
        for message in lines:
            answer = line.answer(message["id"])
            assert "result" in answer, answer
        told = [one["params"]["event"]["type"] for one in line.seen]
        assert {"turn_began", "text_delta", "turn_ended"} <= set(told)


def commands(block: str) -> Iterator[list[str]]:
    """Every call of `dragoman` in a block of shell."""
    for row in block.splitlines():
        lexer = shlex.shlex(row, posix=True, punctuation_chars="|&;()<>{}")
        lexer.whitespace_split = True
        words: list[str] = []
        for word in [*lexer, ";"]:
            if set(word) <= set("|&;()<>{}"):
                if words and Path(words[0]).name == "dragoman":
                    yield words
                words = []
            elif words or not (re.fullmatch(r"\w+=.*", word) or word == "$"):
                words.append(word)


@pytest.mark.parametrize("page", MINE, ids=lambda page: page.name)
def test_commands_in_the_pages_are_understood(page: Path) -> None:
    found = 0
    for block in blocks(page, "sh"):
        for words in commands(block):
            if words[1:2] in ([], ["--help"]):
                continue
            top = next((one for one in table.commands() if one.name == words[1]), None)
            assert top is not None, words
            if not top.raw:
                parse(top, words[2:])
            found += 1
    assert found or page.name in ("clients.md",)


_KEY = re.compile(r"`(?:dragoman config \w+ )?([a-z_]+(?:\.[a-z0-9_]+)+)(?: [^`\n]*)?`")
_NO_KEY = (".sock", ".db", ".json", "gateway.push")  # files, and a name of the log


_USED = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs/guides").glob("*.md")]


@pytest.mark.parametrize("page", _USED, ids=lambda page: page.name)
def test_keys_that_the_pages_name_can_be_set(page: Path) -> None:
    for name in _KEY.findall(page.read_text()):
        path = shape.split(name)
        if path[0] in (shape.ROOT.fields or ()) and not name.endswith(_NO_KEY):
            shape.key(path)  # raises UnknownKey


def test_settings_that_stand_in_a_row_can_be_set() -> None:
    text = (ROOT / "docs/models.md").read_text().partition("Settings of a provider: ")[2]
    names = re.findall(r"`(\w+)`", text.partition(".")[0])
    assert len(names) > 5
    for name in names:
        shape.key(("providers", "mine", name))  # raises UnknownKey


FOLDERS = ("docs", "packaging", "examples", "src", ".github")


def written() -> list[Path]:
    """Every page of the project, wherever it lies."""
    below = (page for name in FOLDERS for page in (ROOT / name).rglob("*.md"))
    return sorted([*ROOT.glob("*.md"), *below])


def anchors(page: Path) -> set[str]:
    """Where a link into a page may lead: its headings, as they are spelled in addresses."""
    text = re.sub(r"(?ms)^ *```.*?^ *```", "", page.read_text())
    heads = (
        re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", one) for one in re.findall(r"(?m)^#+ (.+)$", text)
    )
    return {re.sub(r"[^\w\- ]", "", one.lower()).strip().replace(" ", "-") for one in heads}


@pytest.mark.parametrize("page", written(), ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.DOTALL)
    found = re.findall(r"\]\(([^)\s]+)[^)]*\)", text) + re.findall(r'(?:src|href)="([^"]+)"', text)
    for target in found:
        if target.startswith(("http://", "https://", "mailto:")):
            continue
        file, _, anchor = target.partition("#")
        there = page.parent / file if file else page
        assert there.exists(), f"{page}: {target}"
        assert not anchor or anchor in anchors(there), f"{page}: {target}"


OURS = re.compile(
    r"(?<![\w/])(?:docs|scripts|examples)/[\w/-]+\.(?:md|py|sh|json|svg)|decision 0\d{3}"
)


def test_what_code_and_pages_name_is_there() -> None:
    """Paths of ours, and numbers of decisions, in code, comments, scripts and pages."""
    numbers = {path.name[:4] for path in (ROOT / "docs" / "decisions").glob("0*.md")}
    code = (page for name in ("src", "scripts") for page in (ROOT / name).rglob("*.[ps]*[yh]"))
    for page in [*written(), *code, ROOT / "Makefile", ROOT / ".ci" / "run"]:
        for name in OURS.findall(page.read_text()):
            if name.startswith("decision "):
                assert name.removeprefix("decision ") in numbers, f"{page}: {name}"
            else:
                assert (ROOT / name).exists() or (page.parent / name).exists(), f"{page}: {name}"


def test_json_in_the_guides_is_json() -> None:
    for page in MINE:
        for block in blocks(page, "json"):
            try:
                json.loads(block)
            except ValueError:
                for row in block.strip().splitlines():
                    json.loads(row)


def test_the_scripts_of_the_zot_guide_say_something(living: Living) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "dragoman", "rpc", "--provider", "demo"],
        input='{"id":"1","type":"prompt","message":"run echo hi"}\n',
        env=living.env,
        cwd=living.work,
        capture_output=True,
        text=True,
        timeout=WITHIN,
    )
    kinds = [json.loads(row)["type"] for row in done.stdout.splitlines()]
    assert kinds[0] == "response" and kinds[-1] == "done"


@pytest.mark.parametrize("folder", ["guides", "protocols"])
def test_the_readme_leads_to_every_page(folder: str) -> None:
    text = (ROOT / "README.md").read_text()
    pages = sorted(
        page.name for page in (ROOT / "docs" / folder).glob("*.md") if page.name != "index.md"
    )
    assert pages and not [one for one in pages if f"](docs/{folder}/{one})" not in text]


def test_the_architecture_names_the_folders_that_there_are() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text().partition("## Folders")[2]
    rows = [row.split("|")[1] for row in text.splitlines() if row.startswith("| `")]
    named = {name.partition("/")[0] for row in rows for name in re.findall(r"`([^`]+)`", row)}
    source = ROOT / "src" / "dragoman"
    assert named == {one.parent.name for one in source.glob("*/__init__.py")}


def test_every_body_of_curl_says_what_it_is() -> None:
    for page in PAGES:
        for block in blocks(page, "sh"):
            for command in block.replace("\\\n", " ").splitlines():
                if "curl" in command and " -d " in command and "/api/" in command:
                    assert "application/json" in command, f"{page}: {command}"


def test_messages_that_the_page_of_troubleshooting_quotes_are_said() -> None:
    """By the program, or by the system; `…` stands for what differs."""
    page = (ROOT / "docs" / "troubleshooting.md").read_text()
    said = "\n".join(one.read_text() for one in (ROOT / "src" / "dragoman").rglob("*.py"))
    said = re.sub(r'"\s+f?"', "", said)  # sentences that go on in the next line
    said += "\n".join(map(os.strerror, errno.errorcode))
    said += "\n".join(str(code.value) for code in HTTPStatus)
    quoted = [
        text
        for bold in re.findall(r"\*\*(.+?)\*\*", page, re.S)
        for text in re.findall('"(.+?)"', bold)
    ]
    parts = [part.strip(" :") for text in quoted for part in " ".join(text.split()).split("…")]
    assert len(quoted) > 8
    assert not [part for part in parts if part not in said]
