"""Errors of the wire come back as the host's own faults."""

from typing import Any

import pytest

from dragoman.client.problems import fault_of, no_text, not_running
from dragoman.engine import faults


@pytest.mark.parametrize(
    ("error", "kind", "message", "hint"),
    [
        ({"code": 1, "message": "m"}, faults.Fault, "m", ""),
        (
            {
                "code": 1,
                "message": "m",
                "data": {"code": "bad_input", "message": "better", "hint": "h"},
            },
            faults.BadInput,
            "better",
            "h",
        ),
        (
            {"code": 1, "data": {"code": "unknown_session"}},
            faults.UnknownSession,
            "The host refused.",
            "",
        ),
        ({"data": {"code": "from the future"}}, faults.Fault, "The host refused.", ""),
        ({"message": "m", "data": [1]}, faults.Fault, "m", ""),
        ({"message": "m", "data": {"code": "already_settled"}}, faults.AlreadySettled, "m", ""),
    ],
)
def test_each_has_its_class(
    error: dict[str, Any], kind: type[faults.Fault], message: str, hint: str
) -> None:
    found = fault_of(error)
    assert type(found) is kind and (found.message, found.hint) == (message, hint)
    assert found.data["code"] == error.get("code")


def test_nobody_listens() -> None:
    assert "/x.sock (refused)" in not_running("/x.sock", "refused").message
    assert not_running("/x.sock").hint == "Start it with: dragoman daemon --background"


def test_words_that_are_no_text_are_shown_safely() -> None:
    with pytest.raises(UnicodeEncodeError) as caught:
        '{"a":"caf\udce9 x"}'.encode()
    assert no_text(caught.value).message == r"This is no UTF-8 text: caf\udce9 x."
