"""What nodes say to each other comes back as it was said."""

from typing import Any

import pytest
from tests.store.making import make_answer, make_ask

from dragoman.engine.content import Image, Text
from dragoman.engine.events import Renamed, Who
from dragoman.engine.faults import AlreadySettled, BadInput, Busy, Fault, UnknownSession
from dragoman.engine.refusal import fault_of, refusal_of
from dragoman.fleet import words

WHO = Who("acp", name="ann")
SAID: tuple[Any, ...] = (
    words.Prompt("t1", (Text("Größe"), Image("image/png", b"hi")), WHO, "k", {"a": [1]}, 3, 0.5),
    words.Prompt("t1", (), None, "", None, 0, None, compacts=True),
    words.Steer((Text("left"),), WHO),
    words.Cancel("t1", "client", True),
    words.Retract("k"),
    words.Answer("q1", "allow", WHO, "c", "t", "session", "1h", "d"),
    words.Question(make_ask("q1", "s1")),
    words.Configure((Renamed("Blue"),)),
    words.Equip([{"name": "x", "command": "y", "args": ["z"]}]),
    words.Undo(None, WHO),
    words.Checkpoints(),
    words.Delete(None),
)  # fmt: skip


@pytest.mark.parametrize("said", SAID, ids=lambda said: type(said).__name__)
def test_a_command_is_heard_as_it_was_said(said: words.Command) -> None:
    assert words.command_of(words.encode(said)) == said
    assert words.kind_of(said) == type(said).__name__.lower()


def test_there_is_a_case_for_every_command() -> None:
    assert {type(one) for one in SAID} == set(words.Command.__args__)


@pytest.mark.parametrize(
    "fault",
    [
        Busy("Session busy: queue full (3 pending requests)", "Wait.", limit=3),
        UnknownSession("s1"),
        BadInput("No.", "Write more."),
        AlreadySettled("Ann was quicker.", by=WHO),
    ],
    ids=lambda fault: type(fault).__name__,
)
def test_a_fault_is_raised_as_it_was_raised_there(fault: Fault) -> None:
    result = words.result_of(words.encode(words.Result(refusal=refusal_of(fault))))
    assert result.refusal is not None
    raised = fault_of(result.refusal)
    assert type(raised) is type(fault)
    assert (raised.code, str(raised), raised.hint) == (fault.code, str(fault), fault.hint)
    assert raised.data == fault.data


def test_what_cannot_be_written_down_of_a_fault_is_left_out() -> None:
    fault = Busy("No.", "Wait.", limit=3, task=object())
    assert refusal_of(fault).data == {"limit": 3}


def test_an_effect_without_a_word_is_a_result() -> None:
    settled = words.Result(7, settled=make_answer("q1"))
    assert words.result_of(words.encode(settled)) == settled
    assert words.result_of(None) == words.Result()  # its owner died before it could say so
