"""What `dragoman run` prints and answers: `run.printing`, `run.terminal`, `run.showcase`."""

import argparse
import asyncio
import json
from typing import Any

import msgspec
import pytest

from dragoman.cli.run import printing, showcase, terminal
from dragoman.cli.run.printing import Ink, JsonLines, Prose, Screen, Spinner, cut
from dragoman.cli.run.terminal import Human
from dragoman.engine import events as ev
from dragoman.engine.ask import NOBODY, Ask
from dragoman.engine.content import PlanEntry, Text, ToolCall
from dragoman.engine.events import Event, Who
from dragoman.engine.faults import AlreadySettled, BadInput
from dragoman.engine.visible import harmless

Out = pytest.CaptureFixture[str]


def told(*bodies: Any) -> list[Event]:
    return [Event("s1", 5, body, number) for number, body in enumerate(bodies, 1)]


# --- printing ---


async def test_printing_the_answer_on_stdout_and_all_else_beside_it(capsys: Out) -> None:
    screen = Screen()
    screen.speak(
        told(
            ev.ThoughtDelta("t", "hm"),
            ev.TextDelta("t", "one"),
            ev.TextDelta("t", " two\x1b"),
            ev.Spoke("t", 1, (ToolCall("c", "bash", {"command": "ls"}),), "tool_use"),
            ev.CallStarted("t", "c", "bash", why="rule 1"),
            ev.Progress("t", "c", "a\nb"),
            ev.CallEnded("t", "c", "bash", "failed", (Text("x\nlast"),), True),
            ev.Planned((PlanEntry("p", status="completed"),)),
            ev.Settled("q", "allow", Who("acp", name="phone"), scope="ls"),
            ev.TurnEnded("t", "failed", "error", error="no key"),
        )
    )
    screen.end()
    out, err = capsys.readouterr()
    assert out == "one two\ufffd\n"
    assert err.splitlines() == [
        "hm", '▸ bash {"command":"ls"}', "  allowed by rule 1", "  a", "  b", "  last",
        "  [x] p", "  allow by phone over acp; remembered: ls", "failed: no key",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("streamed", "shown"),
    [((), "one two\n"), (("one ",), "one two\n"), (("two",), "two\none two\n")],
)
async def test_printing_what_of_the_stream_was_lost(
    capsys: Out, streamed: tuple[str, ...], shown: str
) -> None:
    screen = Screen()
    words = [ev.TextDelta("t", text) for text in streamed]
    screen.speak(told(*words, ev.Spoke("t", 1, (Text("one two"),), "end_turn")))
    screen.end()
    assert capsys.readouterr().out == shown


async def test_line_ends_of_two_characters_are_line_ends(capsys: Out) -> None:
    """Also where they are cut in the middle; after one alone comes what overwrites the line."""
    screen = Screen()
    parts = ("one\r\ntwo\r", "\nthr", "ee\r\nfo\rur\r", "\n", "last\r")
    screen.speak(told(*(ev.Progress("t", "c", part) for part in parts)))
    screen.speak(told(ev.CallEnded("t", "c", "bash", "done")))
    rows = ["  one", "  two", "  three", "  ur", "  last"]
    assert capsys.readouterr().err.splitlines() == rows
    screen.speak(told(ev.CallEnded("t", "d", "read", "done", (Text("a\r\nb\r\n"),))))
    assert capsys.readouterr().err.splitlines() == ["  a", "  b"]
    screen.speak(told(*(ev.TextDelta("t", part) for part in ("x\r", "\ny", "\r\n", "z\rz"))))
    screen.speak(told(ev.Spoke("t", 1, (Text("x\r\ny\r\nz\rz"),), "end_turn")))
    screen.end()
    assert capsys.readouterr().out == "x\ny\nz\ufffdz\n"


async def test_output_is_shown_without_its_colours_and_steers_nothing(capsys: Out) -> None:
    screen = Screen()
    painted = "\x1b[31mred\x1b[0m\n10%\r\x1b[K20%\n\x1b]0;title\x07plain\n\x1b7\x9b2J\x08odd\n"
    screen.speak(told(ev.Progress("t", "c", painted)))
    screen.speak(told(ev.CallEnded("t", "c", "bash", "done")))
    rows = ["  red", "  20%", "  plain", "  <U+FFFD>7<U+FFFD>2J<U+FFFD>odd"]
    assert capsys.readouterr().err.splitlines() == rows
    screen.speak(told(ev.CallEnded("t", "d", "other", "done", (Text("\x1b[1mbold\x1b[m"),))))
    assert capsys.readouterr().err.splitlines() == ["  bold"]


async def test_printing_says_why_a_command_did_not_end_by_itself(capsys: Out) -> None:
    screen = Screen()
    text = "$ sleep 9\n\n[timed out after 1s; it was ended]\n[exit -1]  Took 1.0s"
    screen.speak(told(ev.Progress("t", "c", "so far\n")))
    screen.speak(told(ev.CallEnded("t", "c", "bash", "done", (Text(text),), is_error=True)))
    said = capsys.readouterr().err.splitlines()
    assert said == ["  so far", "  [timed out after 1s; it was ended]"]


async def test_printing_bounds_what_a_command_says(capsys: Out) -> None:
    screen = Screen()
    screen.speak(told(ev.Progress("t", "c", "x\n" * 250)))
    screen.speak(told(ev.CallEnded("t", "c", "bash", "done")))
    assert "… 50 more lines" in capsys.readouterr().err
    screen.speak(told(ev.CallEnded("t", "d", "read", "done", (Text("l\n" * 20),))))
    assert "… 12 more lines" in capsys.readouterr().err


async def test_the_spinner_waits_for_all_calls_that_run(capsys: Out) -> None:
    screen = Screen()
    started = (ev.CallStarted("t", "a", "bash"), ev.CallStarted("t", "b", "bash"))
    screen.speak(told(*started))
    assert screen._spinner.waits == "bash ×2"
    screen.speak(told(ev.Asked(Ask("q", "s", "question", "Which?", 1))))
    assert screen._spinner.waits == "an answer"
    screen.speak(told(ev.Settled("q", "allow"), ev.CallEnded("t", "a", "bash", "done")))
    assert screen._spinner.waits == "bash"
    screen.speak(told(ev.CallEnded("t", "b", "bash", "done")))
    assert screen._spinner.waits == "the model"


async def test_printing_says_how_a_turn_was_stopped(capsys: Out) -> None:
    screen = Screen()
    screen.stopped = True
    screen.speak(
        told(
            ev.Settled("q", "cancelled"),  # with the turn, whose end is told
            ev.TurnEnded("t", "cancelled", "aborted"),
            ev.TurnEnded("t", "interrupted", "aborted", cause="shutdown"),
        )
    )
    assert capsys.readouterr().err.splitlines() == [
        "cancelled", "interrupted: the daemon was stopped",
    ]  # fmt: skip


def test_printing_json_lines(capsys: Out) -> None:
    JsonLines().speak(told(ev.Renamed("T"), ev.TextDelta("t", "x")))
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == {"session": "s1", "seq": 1, "at": 5, "type": "renamed", "title": "T"}


def test_printing_small_words(monkeypatch: pytest.MonkeyPatch) -> None:
    assert cut("a\n b", 9) == "a b" and cut("x" * 20, 5) == "xxxx…"
    assert harmless("a\tb\r\x1b") == "a\tb\ufffd\ufffd"

    class Terminal:
        def isatty(self) -> bool:
            return True

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert Ink(Terminal())("x", "1") == "\x1b[1mx\x1b[0m"
    monkeypatch.setattr("sys.stderr", Terminal())
    assert Spinner()._on
    for dumb in ("dumb", ""):
        monkeypatch.setenv("TERM", dumb)
        assert Ink(Terminal())("x", "1") == "x" and not Spinner()._on


def test_printing_takes_back_what_stands_on_the_screen(capsys: Out) -> None:
    prose = Prose()
    assert prose._take_back(80, 24) is True and capsys.readouterr().out == ""
    prose._raw = "x" * 200 + "\nmore"
    assert prose._take_back(80, 24) is True
    assert capsys.readouterr().out == "\r\x1b[3A\x1b[J"
    assert prose._take_back(80, 4) is False  # its beginning has left the screen
    assert printing._LIVE_LINES == 200


# --- terminal ---


class Seat:
    def __init__(self, problem: Exception | None = None) -> None:
        self.given: list[Any] = []
        self.cancelled = 0
        self.problem = problem
        self.done = asyncio.Event()

    async def answer(self, ask: Ask, decided: Any) -> None:
        self.given.append((ask.id, decided.verdict, decided.text, decided.comment))
        self.done.set()
        if self.problem is not None:
            raise self.problem

    def cancel(self) -> None:
        self.cancelled += 1


TOOL = Ask("q", "s", "tool", "Run it", 1, tool="bash", args={"command": "ls"})
CHOICE = Ask("q", "s", "question", "Which?", 1, choices=("red", "blue"))
FREE = Ask("q", "s", "question", "What?", 1)


@pytest.mark.parametrize(
    ("rule", "ask", "given"),
    [
        ("all", TOOL, ("q", "allow", "", "")),
        ("none", TOOL, ("q", "deny", "", "")),
        ("nobody", TOOL, ("q", "deny", "", NOBODY)),
        ("all", CHOICE, ("q", "answer", "red", "")),
        ("none", CHOICE, ("q", "cancelled", "", "")),
        ("all", FREE, ("q", "cancelled", "", "")),
    ],
)
async def test_terminal_answers_by_the_rule_where_nobody_sits(
    rule: str, ask: Ask, given: Any, capsys: Out
) -> None:
    seat = Seat()
    human = Human(seat, rule, JsonLines())
    answers = asyncio.create_task(human.answer_all())
    human.speak(told(ev.Asked(ask)))
    await asyncio.wait_for(seat.done.wait(), 60)
    answers.cancel()
    assert seat.given == [given]


async def test_terminal_knows_why_the_model_stopped(capsys: Out) -> None:
    human = Human(Seat(), "all", JsonLines())
    human.speak(told(ev.TurnEnded("t", "completed", "refusal")))
    assert human.ended == "refusal"


async def test_terminal_what_was_settled_meanwhile_is_not_answered(capsys: Out) -> None:
    seat = Seat(AlreadySettled("phone was faster"))
    human = Human(seat, "all", JsonLines())
    later = msgspec.structs.replace(CHOICE, id="q2")
    human.speak(told(ev.Asked(TOOL), ev.Settled("q", "deny"), ev.Asked(later)))
    answers = asyncio.create_task(human.answer_all())
    await asyncio.wait_for(seat.done.wait(), 60)
    await asyncio.sleep(0)
    answers.cancel()
    assert seat.given == [("q2", "answer", "red", "")]
    assert "phone was faster" in capsys.readouterr().err


async def test_terminal_an_output_that_nobody_takes_cancels_once() -> None:
    class Broken(JsonLines):
        def speak(self, events: Any) -> None:
            raise BrokenPipeError("closed")

    seat = Seat()
    human = Human(seat, "all", Broken())
    human.speak(told(ev.Renamed("x")))
    human.speak(told(ev.Renamed("y")))
    assert seat.cancelled == 1 and isinstance(human.unread, BrokenPipeError)
    human.stop()
    assert seat.cancelled == 2


def test_terminal_needs_a_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "_standard_input", lambda *, patient: "  ")
    args = argparse.Namespace(prompt=[], demo=False)
    with pytest.raises(BadInput, match="There is no prompt"):
        terminal.main(args)


def test_terminal_takes_what_is_piped_in_as_context_or_as_the_prompt(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    wishes: list[Any] = []

    async def one_turn(wish: Any, *, as_json: bool, rule: str) -> int:
        wishes.append((wish.content, rule))
        return 0

    monkeypatch.setattr(terminal, "_standard_input", lambda *, patient: "piped")
    monkeypatch.setattr(terminal, "one_turn", one_turn)
    monkeypatch.setattr(terminal, "run", asyncio.run)
    usual = {"image": [], "approve": None, "cwd": str(tmp_path), "config_dir": None, "agent": None,
             "model": None, "mode": None, "session": None, "continue": False, "worktree": False,
             "json": False}  # fmt: skip
    assert terminal.main(argparse.Namespace(prompt=["say", "it"], **usual)) == 0
    assert terminal.main(argparse.Namespace(prompt=[], **usual)) == 0
    (content, rule), (alone, _) = wishes
    assert content[0] == Text("say it") and "piped" in content[1].text and rule == "nobody"
    assert alone == (Text("piped"),)


# --- showcase ---


def test_showcase_runs_the_demo_in_a_folder_of_its_own(
    monkeypatch: pytest.MonkeyPatch, capsys: Out
) -> None:
    seen: list[Any] = []

    async def one_turn(wish: Any, *, as_json: bool, rule: str) -> int:
        with open(f"{wish.cwd}/colours.txt") as file:
            seen.append((file.read(), rule))
        return 3

    monkeypatch.setattr(terminal, "one_turn", one_turn)
    monkeypatch.setattr(showcase, "run", asyncio.run)
    monkeypatch.setenv("DRAGOMAN_agents__default__model", "kept")
    assert showcase.show() == 3
    assert seen == [("red\nblue\n", "all")] and "Next:" in capsys.readouterr().out
