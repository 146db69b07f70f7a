"""The dashboard's files: only what is there, with a policy, and not sent twice."""

import json
import shutil
import subprocess
from importlib.resources import as_file, files
from typing import Any

import pytest

from dragoman.engine.visible import visible
from dragoman.gateway.http import Refusal
from dragoman.gateway.static import POLICY, Static


class Asked:
    def __init__(self, method: str = "GET", parts: tuple[str, ...] = ("",), **headers: str) -> None:
        self.method, self.parts = method, parts
        self._headers = {name.replace("_", "-"): value for name, value in headers.items()}

    def header(self, name: str) -> str:
        return self._headers.get(name, "")


@pytest.fixture(scope="module")
def static() -> Static:
    return Static("/base")


def ask(static: Static, *parts: str, **more: Any) -> Any:
    return static.answer(Asked(parts=parts, **more), parts)  # type: ignore[arg-type]


def test_every_file_is_served_with_its_type(static: Static) -> None:
    root = files("dragoman.gateway").joinpath("static")
    names = [one.name for one in root.iterdir() if one.is_file()]
    assert any(name.endswith(".js") for name in names)
    for name in names:
        found = ask(static, "static", name)
        assert found.status == 200 and found.headers["content-security-policy"] == POLICY


@pytest.mark.parametrize("page", ["", "sessions", "approvals", "login"])
def test_pages_are_one_document_that_knows_its_prefix(static: Static, page: str) -> None:
    found = ask(static, page)
    assert found.status == 200 and b"/base/" in found.body and b"{{base}}" not in found.body


def test_what_the_browser_has_is_not_sent_again(static: Static) -> None:
    tag = ask(static, "").headers["etag"]
    again = ask(static, "", if_none_match=tag)
    assert (again.status, again.body, again.headers["etag"]) == (304, b"", tag)
    assert ask(static, "", if_none_match='"old"').status == 200


@pytest.mark.parametrize(
    "parts",
    [
        ("nope",),
        ("static", "../http.py"),
        ("static", "nope.js"),
        ("static",),
        ("static", "a", "b"),
        ("static", "__init__.py"),
    ],
)
def test_nothing_else_is_there(static: Static, parts: tuple[str, ...]) -> None:
    found = ask(static, *parts)
    assert found.status == 404 and b"nothing at this address" in found.body


def test_only_looking_is_allowed(static: Static) -> None:
    with pytest.raises(Refusal) as caught:
        ask(static, "", method="POST")
    assert caught.value.status == 405
    assert ask(static, "", method="HEAD").status == 200


@pytest.mark.parametrize(
    ("asked", "page"),
    [
        (Asked(accept="text/html,*/*", parts=("x",)), True),
        (Asked(accept="*/*"), False),
        (Asked("POST", accept="text/html"), False),
        (Asked(accept="text/html", parts=("api",)), False),
    ],
)
def test_a_page_says_so_to_people_only(static: Static, asked: Any, page: bool) -> None:
    assert static.asked_by_browser(asked) is page


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_titles_show_all_they_hold() -> None:
    """As the command line writes it: an override does not turn the text, an escape is no box."""
    title = "a\u202eb\x1b[31m\x07\x7f\x9b"
    with as_file(files("dragoman.gateway") / "static" / "dom.js") as path:
        script = (
            f"import {{ titleOf }} from {json.dumps(path.as_uri())};"
            f"console.log(titleOf({{ title: {json.dumps(title)} }}))"
        )
        words = ["node", "--input-type=module", "-e", script]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == visible(title) + "\n"
