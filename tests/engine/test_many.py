"""How many there are of something, in words."""

import ast
import re
from pathlib import Path

import pytest

import dragoman
from dragoman.engine.visible import many

SOURCE = Path(dragoman.__file__).parent
BY_HAND = re.compile(r"""=== 1 \? "" : "s"|== 1 else ["'][a-z]+s["']|["']s["'] if """)

NOUNS = (
    "apps|calls|commands|entries|events|files|items|jobs|lines|matches|messages|"
    "models|nodes|pictures|requests|results|rows|sessions|steps|tools|turns"
)
FIXED = re.compile(rf" (?:more characters|(?:more )?(?:{NOUNS}))\b| [a-z]+\(s\)")
FIXED_JS = re.compile(rf"\$\{{(?![A-Z]+\}})[^}}]+\}} (?:{NOUNS})\b")
STRANGERS = ("http/", "transports/", "wire/")  # that may not know `many`
NEVER_ONE = {  # only said of more than one, a limit of many, or no number
    ("dialects/acp/hear.py", "problem"),
    ("dialects/humanlayer/hear.py", "problem"),
    ("dialects/zeroclaw/hear.py", "problem"),
    ("engine/question.py", "verb"),
    ("dialects/zeroclaw/attachments.py", "len(files)"),
    ("client/problems.py", "len(found)"),
    ("checkpoints/looking.py", "limits.files"),
    ("markup/document.py", "lines"),
}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((0, "line"), "0 lines"),
        ((1, "line"), "1 line"),
        ((1200, "line"), "1,200 lines"),
        ((2, "entry", "entries"), "2 entries"),
        ((1, "entry", "entries"), "1 entry"),
    ],
)
def test_one_and_many(words: tuple[int, str], said: str) -> None:
    assert many(*words) == said


def test_nobody_makes_a_plural_by_hand() -> None:
    """But for the dashboard's function; ours is in the engine."""
    found = []
    for folder in ("cli", "tui", "gateway"):
        for file in sorted((SOURCE / folder).rglob("*")):
            if file.suffix in (".py", ".js"):
                lines = file.read_text().splitlines()
                found += [(file.name, line.strip()) for line in lines if BY_HAND.search(line)]
    assert [name for name, _ in found] == ["dom.js"]


def fixed_plurals(source: str) -> list[str]:
    """The numbers in f-strings that a plural follows, whatever they are.

    Limits that are constants are none, nor is a whole ("3 of 5 files").
    """
    found = []
    for made in ast.walk(ast.parse(source)):
        if not isinstance(made, ast.JoinedStr):
            continue
        before = ""
        for value, then in zip(made.values, made.values[1:], strict=False):
            if isinstance(value, ast.Constant):
                before = str(value.value)
            elif isinstance(value, ast.FormattedValue) and isinstance(then, ast.Constant):
                number = ast.unparse(value.value)
                is_whole = before.endswith(" of ")
                if FIXED.match(str(then.value)) and not number.isupper() and not is_whole:
                    found.append(number)
    return found


def test_fixed_plurals_are_found() -> None:
    assert fixed_plurals('f"({len(rows)} messages)"') == ["len(rows)"]
    assert fixed_plurals('f"Forgot {n:,} entries."') == ["n"]
    assert fixed_plurals('f"{n} picture(s)"') == ["n"]
    assert not fixed_plurals('f"{MOST} files; {n} of {m} files; {many(n, word)} live"')
    assert FIXED_JS.search("`(${body.messages.length} messages)`")
    assert not FIXED_JS.search("`At most ${MOST} files`")


def test_no_plural_is_fixed() -> None:
    found = set()
    for file in sorted(SOURCE.rglob("*.py")):
        name = file.relative_to(SOURCE).as_posix()
        if name.startswith(STRANGERS):
            continue
        found |= {(name, number) for number in fixed_plurals(file.read_text())}
    assert found == NEVER_ONE
    for file in sorted((SOURCE / "gateway/static").rglob("*.js")):
        assert not FIXED_JS.findall(file.read_text()), file.name
