"""TOML as files of the configuration hold it: whatever is wrong is told in one way."""

import sys
from pathlib import Path

import pytest

from dragoman.engine.faults import BadInput
from dragoman.settings import toml
from dragoman.settings.load import BadSettings, load, read_text
from dragoman.settings.write import put, read_valid

DEEP = {
    "lists": "x = " + "[" * 60 + "]" * 60,
    "tables": "x = " + "{a = " * 60 + "1" + "}" * 60,
    "dots": ".".join("abcdefghij" * 6) + " = 1",
    "headers": "[" + ".".join("ab" * 30) + "]\nx = 1",
    "headers of lists": "[[" + ".".join("ab" * 30) + "]]\nx = 1",
    "for any parser": "x = " + "[" * 100_000,
}
DIGITS = "x = " + "9" * (sys.get_int_max_str_digits() + 1)


def test_what_is_well_formed_is_read() -> None:
    assert toml.parse("") == {}
    assert toml.parse('[a.b]\nc = [1, {d = "e"}]') == {"a": {"b": {"c": [1, {"d": "e"}]}}}
    nested = "x = " + "[" * 39 + "]" * 39
    assert toml.parse(nested)["x"] is not None


@pytest.mark.parametrize("name", DEEP)
def test_what_nests_too_deeply_is_refused(name: str) -> None:
    with pytest.raises(toml.NotToml, match="nested|nvalid|expected|Expected|Unclosed|Cannot"):
        toml.parse(DEEP[name])


@pytest.mark.parametrize("text", ["x", "x = ", "x = 1\nx = 2", "[a]\n[a]", "\x00", DIGITS])
def test_what_is_wrong_is_told_in_one_way(text: str) -> None:
    with pytest.raises(toml.NotToml) as told:
        toml.parse(text)
    assert str(told.value).strip()


def test_values_are_deep_by_what_is_inside_of_them() -> None:
    assert not toml.is_deep("x") and not toml.is_deep([[], {}, [1]])
    value: list[object] = []
    for _ in range(100_000):  # no recursion: nothing so deep can be shown either
        value = [value]
    assert toml.is_deep(value) and toml.is_deep({"a": value})


@pytest.mark.parametrize("text", [*DEEP.values(), DIGITS])
def test_files_with_such_values_are_refused_and_left_as_they_are(text: str, tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(text)
    with pytest.raises(BadSettings) as told:
        load(str(file), {})
    assert str(file) in str(told.value)
    with pytest.raises(BadSettings, match="left as it is"):
        read_valid(str(file))
    assert file.read_text() == text
    with pytest.raises(toml.NotToml):
        put(text, ("log", "level"), "debug")


def test_a_value_that_nests_too_deeply_is_not_set() -> None:
    value: dict[str, object] = {}
    for _ in range(5_000):
        value = {"a": value}
    with pytest.raises(BadInput, match="nested too deeply"):
        put("", ("openclawos", "apps", "a", "config"), value)


def test_a_link_that_leads_nowhere_is_no_empty_file(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    assert read_text(str(file)) == ""
    file.symlink_to(tmp_path / "gone.toml")
    with pytest.raises(BadSettings, match=r"gone\.toml, which is not there"):
        read_text(str(file))
