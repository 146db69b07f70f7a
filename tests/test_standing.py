"""What stands where a file or a folder should be is named, with the way out that fits."""

import os
import socket
from pathlib import Path

import pytest

from dragoman.standing import in_place_of_file, in_place_of_folder


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    """A folder with one of everything."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "plain").write_text("")
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(tmp_path / "socket"))
    for name, to in {
        "gone": "nowhere/at/all", "through": "plain/x", "self": "self", "one": "two", "two": "one",
        "to_gone": "gone", "to_plain": "plain", "to_folder": "folder",
    }.items():  # fmt: skip
        (tmp_path / name).symlink_to(to)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "says", "mend"),
    [
        ("folder", "/folder is a directory", "Move it away"),
        ("to_folder", "/to_folder is a directory", "Move it away"),
        ("pipe", "/pipe is a pipe, no regular file", "Move it away"),
        ("socket", "/socket is no regular file", "Move it away"),
        ("gone", "is a link to nowhere/at/all, which is not there", "remove the link"),
        ("to_gone", "is a link to gone, which is not there", "remove the link"),
        ("through", "is a link to plain/x, which is not there", "remove the link"),
        ("self", "/self is a link that leads to itself", "Remove it"),
        ("two", "/two is a link that leads to itself", "Remove it"),
        ("plain/x", "/plain is no directory but a file", "Move it away"),
        ("plain/x/y", "/plain is no directory but a file", "Move it away"),
        ("pipe/x", "/pipe is no directory but a pipe", "Move it away"),
        ("gone/x/y", "/gone is a link to nowhere/at/all, which is not there", "remove the link"),
        ("self/x", "/self is a link that leads to itself", "Remove it"),
    ],
)
def test_in_place_of_a_file(odd: Path, name: str, says: str, mend: str) -> None:
    found = in_place_of_file(str(odd / name))
    assert found is not None and says in found[0] and mend in found[1]


@pytest.mark.parametrize(
    "name", ["plain", "to_plain", "new", "folder/new", "new/deep/x", "to_folder/x"]
)
def test_nothing_is_in_the_way_of_a_file(odd: Path, name: str) -> None:
    assert in_place_of_file(str(odd / name)) is None


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("plain", "/plain is no directory but a file"),
        ("to_plain/deep/x", "/to_plain is no directory but a file"),
        ("gone", "which is not there"),
        ("one/x", "/one is a link that leads to itself"),
    ],
)
def test_in_place_of_a_folder(odd: Path, name: str, says: str) -> None:
    found = in_place_of_folder(str(odd / name))
    assert found is not None and says in found[0]


@pytest.mark.parametrize("name", ["folder", "to_folder", "new", "new/deep", "to_folder/new"])
def test_nothing_is_in_the_way_of_a_folder(odd: Path, name: str) -> None:
    assert in_place_of_folder(str(odd / name)) is None
