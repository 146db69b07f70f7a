"""What holds state shows none of it: its words end up in logs."""

import re
from functools import partial
from pathlib import Path

from dragoman.gateway.http import Request
from dragoman.holding import Holder

SRC = Path(__file__).parent.parent / "src" / "dragoman"


class Door(Holder):
    key: str
    tries: int = 0

    def open(self) -> None: ...


def test_no_field_is_shown_however_it_is_named() -> None:
    door = Door("sk-secret")
    for shown in (repr(door), str(door), repr(door.open), repr(partial(door.open)), repr([door])):
        assert "sk-secret" not in shown and "Door" in shown


def test_two_with_equal_fields_are_two() -> None:
    one, other = Door("a"), Door("a")
    assert one != other and len({one, other}) == 2
    one.tries += 1
    assert (one.tries, other.tries) == (1, 0)


def test_a_request_shows_no_token() -> None:
    request = Request("GET", "/", {"authorization": "Bearer tok_secret"})
    assert request.header("authorization") == "Bearer tok_secret"
    assert "tok_secret" not in repr(request)


def test_every_record_that_changes_is_one() -> None:
    """A struct that is compared by itself alone holds state: it has the base that shows nothing."""
    found = [
        f"{path.relative_to(SRC)}: {line}"
        for path in sorted(SRC.rglob("*.py"))
        for line in path.read_text("utf-8").splitlines()
        if re.match(r"class \w+\(.*Struct.*eq=False", line) and path.name != "holding.py"
    ]
    assert not found, f"use dragoman.holding.Holder: {found}"
