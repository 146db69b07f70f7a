"""Descriptors: ours, those of packages, and what is derived from them."""

import random
import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dragoman.daemon.guests import Guests
from dragoman.dialects.descriptor import OURS, Dialect, Registry, entries, load
from dragoman.engine.faults import BadInput
from dragoman.host.desks import Desks
from dragoman.settings import places
from dragoman.settings.model import Settings
from dragoman.settings.refer import doubts
from dragoman.testing.host import memory_door
from dragoman.testing.script import Scripted
from dragoman.transports.memory import Client

ROOT = Path(__file__).parent.parent.parent


def package(
    place: Path, name: str, entry: str, code: str, *, group: str = "dragoman.dialects"
) -> None:
    """Install a package of one module, as far as Python can tell."""
    info = place / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "entry_points.txt").write_text(f"[console_scripts]\nx = y:z\n\n[{group}]\n{entry}\n")
    (place / f"{name}.py").write_text(code)


GOOD = """
from dragoman.dialects.descriptor import Dialect
DIALECT = Dialect("{name}", "a test", desk="{name}:Desk", socket="{name}.sock",
                  first_line=lambda message: 3 if message.get("speaks") == "{name}" else 0,
                  refusal=lambda text: {{"no": text}})
class Desk:
    def __init__(self, door, settings):
        self.door, self.settings = door, settings
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("name", OURS)
def test_ours_are_complete(name: str) -> None:
    found = Registry([]).find(name)
    assert found is not None and found.name == name and found.package == "dragoman"
    assert (ROOT / found.doc).is_file()
    assert load(found.desk).__name__ == "Desk"
    assert "many" in str(found.refusal("too many"))


@pytest.mark.parametrize("name", OURS)
def test_a_descriptor_loads_nothing_of_its_dialect(name: str) -> None:
    code = (
        f"import sys, dragoman.dialects.{name}\n"
        "print([m for m in sys.modules if m in ('msgspec', 'asyncio', 'typing', 'dragoman.wire')])"
    )
    words = [sys.executable, "-S", "-c", f"import sys; sys.path = {sys.path!r}\n{code}"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.stdout == "[]\n", done.stderr


def test_the_methods_of_humanlayer_are_those_of_its_table() -> None:
    from dragoman.dialects.humanlayer import METHODS
    from dragoman.dialects.humanlayer.verbs import VERBS

    assert set(VERBS) == METHODS


def test_packages_are_found_and_the_broken_ones_named(place: Path) -> None:
    package(place, "good", "good = good:DIALECT", GOOD.format(name="good"))
    package(place, "bad", "bad = bad:DIALECT", "1 / 0")
    package(place, "thief", "acp = thief:DIALECT", GOOD.format(name="acp"))
    package(place, "liar", "liar = liar:DIALECT", GOOD.format(name="other"))
    package(place, "thing", "thing = thing:DIALECT", "DIALECT = 5")
    package(place, "away", "away = nowhere:DIALECT", "")
    package(place, "other", "other = other:DIALECT", GOOD.format(name="other"), group="else")
    found = Registry([str(place)])
    assert [one.name for one in found.all()] == [*OURS, "good"]
    good = found.find("good")
    assert good is not None and good.package == "good"
    assert [text.partition(":")[0] for text in found.problems] == [
        "away", "bad", "liar", "thief", "thing",
    ]  # fmt: skip
    acp = found.find("acp")
    assert acp is not None and acp.package == "dragoman"


def test_of_two_packages_of_one_name_the_first_on_the_path_counts(tmp_path: Path) -> None:
    for number in (1, 2):
        package(tmp_path / str(number), "twin", f"twin = twin{number}:D", "")
    path = [str(tmp_path / "1"), str(tmp_path / "2"), str(tmp_path / "none")]
    assert list(entries(path)) == [("twin", "twin", "twin1:D")]


def test_entry_points_are_read_as_they_are_written(tmp_path: Path) -> None:
    text = "# x = y:z\n; a = b:c\n  one=a.b:C  \ntwo = d:e [extra]\n\n[other]\nthree = f:g"
    package(tmp_path, "many", text, "")
    assert list(entries([str(tmp_path)])) == [("many", "one", "a.b:C"), ("many", "two", "d:e")]


def test_ours_are_found_without_looking_at_packages(place: Path) -> None:
    package(place, "bad", "bad = bad:DIALECT", "1 / 0")
    found = Registry([str(place)])
    for name in OURS:
        found.find(name)
    assert found.problems == []


def test_the_surest_dialect_has_the_line(place: Path) -> None:
    package(place, "sure", "sure = sure:DIALECT", GOOD.format(name="sure"))
    raising = GOOD.format(name="rash").replace("lambda message: 3 if", "lambda message: 1 / 0 if")
    package(place, "rash", "rash = rash:DIALECT", raising)
    found = Registry([str(place)])
    assert found.which({"type": "x", "speaks": "sure"}) == "sure"
    assert found.which({"type": "x"}) == "zot"
    assert found.which([{"speaks": "sure"}]) == "sure"
    assert found.which({"speaks": "rash"}) == "zeroclaw"
    assert any("ZeroDivisionError" in text for text in found.problems)


@pytest.mark.parametrize("name", ["", "Has Upper", "a-b", "9x", "a/b", "../x", "ä"])
def test_names_are_plain(name: str) -> None:
    with pytest.raises(ValueError, match="name"):
        Dialect(name, "", desk="", first_line=lambda message: 0)
    with pytest.raises(ValueError, match="socket"):
        Dialect("x", "", desk="", first_line=lambda message: 0, socket="../x.sock")


def test_addresses_come_from_descriptors(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package(place, "good", "good = good:DIALECT", GOOD.format(name="good"))
    monkeypatch.setattr(places, "REGISTRY", Registry([str(place)]))
    where = places.Places("/c", "/d", True)
    found = places.endpoints({}, where, "linux")
    assert found["good"] == "/d/good.sock" and list(found)[-2:] == ["any", "good"]
    given = places.endpoint("good", {"DRAGOMAN_GOOD_SOCKET": "/e/x"}, where, "linux")
    assert given == "/e/x"
    with pytest.raises(BadInput, match="no endpoint 'zot'"):
        places.endpoint("zot", {}, where)


def test_settings_that_no_dialect_has_are_told(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = GOOD.format(name="known").replace("socket=", 'settings="known:Given", socket=')
    code += "\nimport msgspec\nclass Given(msgspec.Struct):\n    size: int = 3\n"
    package(place, "known", "known = known:DIALECT", code)
    monkeypatch.setattr("dragoman.dialects.descriptor.REGISTRY", Registry([str(place)]))
    given = {
        "dialects": {"known": {"size": 1, "sise": 2}, "knwon": {}},
        "listen": {"more": {"x": "y"}},
    }
    told = {".".join(path): said for path, said in doubts(msgspec.convert(given, Settings))}
    assert told == {
        "dialects.knwon": "dialects.knwon is for a dialect that no installed package brings "
        "(did you mean known?); there are: known. It is ignored.",
        "listen.more.x": "listen.more.x is for a dialect that no installed package brings; "
        "there are: known. It is ignored.",
        "dialects.known.sise": "dialects.known.sise is no setting of this dialect "
        "(did you mean size?); there are: size. It is ignored.",
    }


async def test_desks_are_made_by_descriptors(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = GOOD.format(name="tuned").replace("socket=", 'settings="tuned:Given", socket=')
    code += "\nimport msgspec\nclass Given(msgspec.Struct):\n    size: int = 3\n"
    package(place, "tuned", "tuned = tuned:DIALECT", code)
    monkeypatch.setattr("dragoman.host.desks.REGISTRY", Registry([str(place)]))
    door = memory_door(Scripted([]))
    assert Desks(door, Settings()).desk("tuned").settings.size == 3
    desks = Desks(door, Settings(dialects={"tuned": {"size": 9}}))
    assert desks.desk("tuned").settings.size == 9
    desks.apply(
        Settings(dialects={"tuned": {"size": 9}}), Settings(dialects={"tuned": {"size": 4}})
    )
    assert desks.desk("tuned").settings.size == 4
    with pytest.raises(BadInput, match="dialects.tuned: Expected `int`"):
        Desks(door, Settings(dialects={"tuned": {"size": "x"}})).desk("tuned")
    with pytest.raises(BadInput, match="no dialect 'nobody'"):
        desks.desk("nobody")


@pytest.mark.parametrize(
    ("name", "part"),
    [("zeroclaw", '"jsonrpc"'), ("acp", '"jsonrpc"'), ("humanlayer", '"jsonrpc"'),
     ("openclawos", "TOO_MANY_CLIENTS"), ("zot", '"success":false'), ("any", '"jsonrpc"')],
)  # fmt: skip
async def test_who_may_not_stay_is_told_in_his_own_protocol(name: str, part: str) -> None:
    guests = Guests(0, lambda link: None)
    opened: Any = guests.counting(lambda link: pytest.fail("it was let in"), name)
    client = Client(opened)
    line = (await client.receive()).decode()
    assert part in line and "limits.max_clients" in line


@pytest.mark.parametrize("seed", range(5))
def test_entry_points_are_those_that_the_library_finds(tmp_path: Path, seed: int) -> None:
    """Random files, read by us and by `importlib.metadata`."""
    chance = random.Random(seed)
    for number in range(12):
        folder = tmp_path / f"pack{number}-1.{number}.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: pack{number}\n")
        lines = []
        for _ in range(chance.randrange(5)):
            group = chance.choice(["dragoman.dialects", "console_scripts", "dragoman.dialects.x"])
            lines.append(f"[{group}]")
            for _ in range(chance.randrange(3)):
                name = f"d{chance.randrange(1000)}"
                space, extra = chance.choice(["", " "]), chance.choice(["", " [more]", "[more]"])
                lines.append(f"{name}{space}={space}mod.{name}:DIALECT{extra}")
            lines += chance.sample(["", "# a = b:c", "   "], 1)
        if chance.randrange(6):
            (folder / "entry_points.txt").write_text("\n".join(lines))
    found = sorted((package, name, where) for package, name, where in entries([str(tmp_path)]))
    read = sorted(
        (one.name, point.name, f"{point.module}:{point.attr}")
        for one in distributions(path=[str(tmp_path)])
        for point in one.entry_points
        if point.group == "dragoman.dialects"
    )
    assert found == read and (found or seed)
