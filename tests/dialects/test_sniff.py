"""Which protocol a first line belongs to. The rule is docs/protocols/any.md."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from dragoman.dialects.humanlayer import METHODS as HUMANLAYER
from dragoman.dialects.sniff import AnyHearer, which
from dragoman.transports.memory import Client
from dragoman.wire.link import Hearer, Link

PAGE = Path(__file__).parent.parent.parent / "docs" / "protocols" / "any.md"
EXAMPLE = re.compile(r"^\| `(\{.*\}|\[.*\])` \| (\w+) \|", re.MULTILINE)


def test_the_page_has_examples() -> None:
    assert len(EXAMPLE.findall(PAGE.read_text())) >= 12


@pytest.mark.parametrize(("line", "name"), EXAMPLE.findall(PAGE.read_text()))
def test_every_example_of_the_page_is_true(line: str, name: str) -> None:
    assert which(line.encode()) == name


@pytest.mark.parametrize("method", sorted(HUMANLAYER))
def test_the_methods_of_humanlayer_are_its_own(method: str) -> None:
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method})
    assert which(line.encode()) == "humanlayer"
    assert f"`{method}`" in PAGE.read_text()


@pytest.mark.parametrize(
    "line",
    [b"", b"x", b"5", b"null", b"[]", b'"a"', b"\xff", b'{"id":1}', b'{"method":5}', b"[" * 9000],
)
def test_what_is_no_message_goes_to_the_one_that_answers_everything(line: bytes) -> None:
    assert which(line) == "zeroclaw"


class Noting:
    """A hearer that notes what it is given."""

    max_line = 20
    limit_counts_newline = False
    max_pending = 0

    def __init__(self, name: str, notes: list[Any]) -> None:
        self.name = name
        self.notes = notes
        notes.append(name)

    def hear(self, lines: list[bytes]) -> None:
        self.notes += lines

    def overlong(self, size: int) -> None:
        self.notes.append(("overlong", size))

    def ended(self) -> None:
        self.notes.append("ended")

    def lost(self) -> None:
        self.notes.append("lost")


def client(notes: list[Any]) -> Client:
    def opener(name: str) -> Any:
        def open(link: Link) -> Hearer:
            return Noting(name, notes)

        return open

    return Client(lambda link: AnyHearer(link, opener, 1000))


async def test_the_chosen_protocols_own_limit_holds_from_the_first_line() -> None:
    notes: list[Any] = []
    end = client(notes)
    end.send(b'{"type":"ping"}', b'{"type":"' + b"x" * 100 + b'"}', b'{"type":"b"}')
    assert notes == ["zot", b'{"type":"ping"}', ("overlong", 111), b'{"type":"b"}']


async def test_blank_lines_decide_nothing() -> None:
    notes: list[Any] = []
    end = client(notes)
    for line in (b"", b"\r", b"  ", b"\t"):
        end.feed(line + b"\n")
    assert notes == []
    end.feed(b'\n \n{"type":"ping"}\n\n')
    assert notes[:2] == ["zot", b'{"type":"ping"}']


async def test_a_client_that_says_nothing_is_let_go() -> None:
    notes: list[Any] = []
    end = client(notes)
    end.end()
    with pytest.raises(EOFError):
        await end.receive()
    assert notes == []
