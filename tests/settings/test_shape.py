"""Keys of the configuration: their types, their meaning, what they take."""

import ast
from pathlib import Path

import pytest

from dragoman.settings import shape
from dragoman.settings.shape import ROOT, Key, UnknownKey


def leaves(key: Key = ROOT) -> list[Key]:
    found: list[Key] = []
    for name, below in (key.fields or {}).items():
        here = below._replace(path=(*key.path, name))
        if here.leaf:
            found.append(here)
        elif here.fields is not None:
            found += leaves(here)
        else:
            found += leaves(shape.key_below(here, "x")._replace(path=(*here.path, "x")))
    return found


@pytest.mark.parametrize("key", leaves(), ids=lambda key: ".".join(key.path))
def test_every_key_is_explained_and_its_default_fits(key: Key) -> None:
    assert key.doc.endswith("."), "a key needs one sentence"
    assert shape.allowed(key.kind)
    if key.default is None:
        assert key.optional
    else:
        assert shape.problem(key.kind, key.default) == ""
    assert shape.key(key.path).kind == key.kind


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("acp.max_sessions", ("acp", "max_sessions")),
        ('models."openai/gpt-4.1".vision', ("models", "openai/gpt-4.1", "vision")),
        ("models.'a.b'", ("models", "a.b")),
        ("models.openai/gpt-5.vision", ("models", "openai/gpt-5", "vision")),
    ],
)
def test_dotted_keys_are_split_and_joined(text: str, path: tuple[str, ...]) -> None:
    assert shape.split(text) == path
    assert shape.split(shape.join(path)) == path


@pytest.mark.parametrize("text", ["", ".", "a.", ".a", "a..b", 'a."b', 'a."b"c'])
def test_what_is_no_key_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a key"):
        shape.split(text)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        (("acp", "max_sesions"), "unknown key acp.max_sesions; did you mean acp.max_sessions?"),
        (("gatway",), "unknown key gatway; did you mean gateway?"),
        (("acp", "max_sessions", "x"), "unknown key acp.max_sessions.x"),
        (("agents", "a", "modl"), "unknown key agents.a.modl; did you mean agents.a.model?"),
    ],
)
def test_an_unknown_key_suggests_the_nearest(path: tuple[str, ...], said: str) -> None:
    with pytest.raises(UnknownKey) as caught:
        shape.key(path)
    assert str(caught.value) == said


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("acp.max_sessions", "a whole number, 1 or more"),
        ("acp.error_codes", 'one of "zeroclaw", "acp"'),
        ("agents.x.auto_compact", "a number from 0 to 1"),
        ("gateway.port", "a whole number from 0 to 65535"),
        ("gateway.enabled", "true or false"),
        ("agents.x.tools", "a list of texts"),
        ("agents.x.append_system_prompt", "a text or a list of texts"),
        ("openclawos.hook_timeouts", "a table whose values are each a whole number, 1 or more"),
        ("channels", "a table"),
    ],
)
def test_what_is_allowed_is_said_in_words(path: str, said: str) -> None:
    assert shape.allowed(shape.key(shape.split(path)).kind) == said


@pytest.mark.parametrize(
    ("path", "text", "value"),
    [
        ("acp.max_sessions", " 5 ", 5),
        ("acp.max_sessions", "1_000", 1000),
        ("acp.max_sessions", "five", "five"),
        ("gateway.enabled", "off", False),
        ("gateway.enabled", "YES", True),
        ("gateway.enabled", "maybe", "maybe"),
        ("agents.x.tools", "read, write", ["read", "write"]),
        ("agents.x.tools", '["a,b"]', ["a,b"]),
        ("agents.x.append_system_prompt", "one, text", "one, text"),
        ("agents.x.append_system_prompt", '["a"]', ["a"]),
        ("agents.x.env", '{ A = "1" }', {"A": "1"}),
        ("agents.x.env", '{"A": "1"}', {"A": "1"}),
        ("agents.x.model", "5", "5"),
        ("agents.x.auto_compact", "0.5", 0.5),
    ],
)
def test_values_given_as_text_are_read_by_type(path: str, text: str, value: object) -> None:
    assert shape.read(shape.key(shape.split(path)).kind, text) == value


def names_read() -> set[str]:
    """Names that the code reads as attributes or mentions as texts, but for where keys are made."""
    found: set[str] = set()
    for path in (Path(shape.__file__).parent.parent).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute):
                found.add(node.attr)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value)
    return found


def test_every_key_is_read_somewhere() -> None:
    read = names_read()
    unread = [".".join(key.path) for key in leaves() if key.path[-1] not in {*read, "x"}]
    assert not unread, f"these can be set, and nothing happens: {unread}"


@pytest.mark.parametrize(
    ("hooks", "said"),
    [
        ([{"on": "tool_executing", "run": "x"}, {"on": "tool_exec", "run": "x"}],
         'on of number 2 must be one of "'),
        ([{"on": "tool_executing"}], "number 1 needs run"),
        ([{"on": "tool_executing", "run": "x", "tool": ["bash"]}],
         "number 1 has tool, which is none of on,"),
        ([{"on": "tool_executing", "run": ""}], "run of number 1 must be a text that is not empty"),
        ([{"on": "tool_executing", "run": "x", "timeout_secs": 9999}],
         "hooks has a table that does not fit: timeout_secs of number 1 must be a number above 0,"
         " 600 at most"),
        ([3], "number 1 is none"),
        (3, "must be a list of tables"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_list_of_tables_is_told(hooks: object, said: str) -> None:
    (found,) = shape.check({"hooks": hooks})
    assert found.fatal and said in found.text and "$[" not in found.text
