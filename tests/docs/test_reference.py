"""The reference is made from the code: everything that is there is in it."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("reference")
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        import make_reference
    finally:
        sys.path.pop(0)
    make_reference.main(folder)
    return {page.stem: page.read_text() for page in folder.glob("*.md")}


def test_every_command_is_in_it(pages: dict[str, str]) -> None:
    from dragoman.cli import table

    for command in table.commands():
        assert f"## dragoman {command.name}\n" in pages["commands"]


def test_every_key_is_in_it(pages: dict[str, str]) -> None:
    from dragoman.settings.model import Settings

    for name in Settings.__struct_fields__:
        assert f"`{name}." in pages["configuration"] or f"`{name}`" in pages["configuration"], name


@pytest.mark.parametrize("dialect", ["acp", "humanlayer", "openclawos", "zeroclaw", "zot"])
def test_every_method_is_in_it_and_most_with_an_example(
    pages: dict[str, str], dialect: str
) -> None:
    from importlib import import_module

    where = "verbs" if dialect == "zot" else "hear"
    verbs = import_module(f"dragoman.dialects.{dialect}.{where}").TABLE.verbs
    text = pages[dialect]
    assert all(f"## `{method}`" in text for method in verbs)
    assert text.count("C> ") >= 5
    talks = len(list((ROOT / "tests" / "transcripts" / dialect).rglob("*.talk")))
    assert pages[f"{dialect}-transcripts"].count("\n## ") == talks


def test_every_route_is_in_it(pages: dict[str, str]) -> None:
    from dragoman.gateway.routes import all_routes

    for route in all_routes():
        assert route.hidden or f"`{route.method} {route.path}`" in pages["rest"]
