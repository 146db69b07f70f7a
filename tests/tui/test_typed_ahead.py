"""Keys that are typed faster than the terminal works: each does what it was meant for."""

import asyncio
import time
from pathlib import Path

import msgspec
import pytest
from tests.timed import promised
from tests.tui.stage import Stage, ask, until
from textual.events import Key

from dragoman.client.problems import ConnectionGone
from dragoman.engine import events as ev
from dragoman.engine.ask import Change
from dragoman.engine.faults import BadInput
from dragoman.tui import commands, question
from dragoman.tui.choices import Choice

_SOON = 0.001
_LONG = 60.0


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setattr(question, "_LOOK", _SOON)
    return Stage(str(tmp_path))


def _verdicts(stage: Stage) -> list[tuple[str, str]]:
    return [(str(args[0]), str(args[1])) for args, _ in stage.host.of("answer")]


async def test_what_is_typed_after_enter_stays_when_the_command_is_refused(stage: Stage) -> None:
    stage.desk.session = ""
    async with stage.run_test() as pilot:
        for key in ("/", "u", "n", "d", "o", "enter", "h", "e", "y"):
            stage.editor.post_message(_key(key))  # all are waiting before the first is taken
        await until(pilot, lambda: "There is no session yet" in stage.shown())
        assert stage.editor.text == "hey"


async def test_a_refused_command_stands_in_the_editor_and_opens_no_list(stage: Stage) -> None:
    stage.desk.session = ""
    async with stage.run_test() as pilot:
        await pilot.press(*"/undo", "enter")
        await until(pilot, lambda: "There is no session yet" in stage.shown())
        assert stage.editor.text == "/undo" and not stage.editor.choosing


async def test_the_past_is_walked_over_a_command_that_stands_in_it(stage: Stage) -> None:
    stage.editor.past.said[:] = ["first", "/undo", "third"]  # type: ignore[union-attr]
    stage.editor.past.reset()  # type: ignore[union-attr]
    async with stage.run_test() as pilot:
        for wanted in ("third", "/undo", "first"):
            await pilot.press("up")
            await pilot.pause()
            assert stage.editor.text == wanted


async def test_enter_takes_what_is_typed_not_what_the_list_still_shows(stage: Stage) -> None:
    async with stage.run_test() as pilot:
        await pilot.press(*"/mod")
        await until(pilot, lambda: stage.editor.choosing)
        assert stage.writing.choices.chosen == "model"
        for key in ("e", "enter"):
            stage.editor.post_message(_key(key))
        await until(pilot, lambda: stage.writing._offer)
        assert stage.writing._offer == "mode"


async def test_a_list_that_comes_late_does_not_take_the_enter_of_the_next_prompt(
    stage: Stage,
) -> None:
    async with stage.run_test() as pilot:
        await pilot.press(*"hello")
        stage.writing.offer("undo", [Choice("t1", "a.txt")])
        await pilot.press("enter")
        await until(pilot, lambda: stage.host.of("submit"))
        assert not stage.host.of("undo")


async def test_keys_after_a_list_was_opened_close_it_before_enter(stage: Stage) -> None:
    async with stage.run_test() as pilot:
        stage.writing.offer("undo", [Choice("t1", "a.txt")], "enter goes back")
        for key in ("h", "i", "enter"):
            stage.editor.post_message(_key(key))
        await until(pilot, lambda: stage.host.of("submit"))
        assert not stage.host.of("undo") and stage.editor.placeholder == ""


class SlowStage(Stage):
    """The session that was asked for is there when the test says so; or not."""

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.desk.session = ""
        self.there = asyncio.Event()
        self.wrong = False

    async def _begin(self) -> None:
        await self.there.wait()
        if self.wrong:
            raise BadInput("There is no such session.")
        self.desk.session = "found"


@pytest.fixture
def slow(stage: Stage) -> SlowStage:
    return SlowStage(stage.wish.cwd)


async def test_what_is_typed_before_the_session_is_open_goes_there(slow: SlowStage) -> None:
    async with slow.run_test() as pilot:
        await pilot.press(*"one", "enter", *"/clear", "enter", *"/thinking", "enter")
        await until(pilot, lambda: slow.view.look.open_thoughts)  # that needs no session
        assert not slow.host.calls
        slow.there.set()
        await until(pilot, lambda: slow.host.of("submit") and slow.host.of("clear"))
        assert slow.host.of("submit")[0][0][0] == slow.host.of("clear")[0][0][0] == "found"
        assert not slow.host.of("open")


async def test_what_was_meant_for_a_session_that_there_is_not_stands_in_the_editor_again(
    slow: SlowStage,
) -> None:
    slow.wrong = True
    async with slow.run_test() as pilot:
        await pilot.press(*"one", "enter")
        await until(pilot, lambda: not slow.editor.text)
        slow.there.set()
        await until(pilot, lambda: slow.editor.text == "one")
        assert "no such session" in slow.shown() and not slow.host.calls
        slow.host.refuse = BadInput("Not today.")
        await pilot.press("enter")  # now it is known what that means
        await until(pilot, lambda: slow.host.of("open"))


async def test_the_terminal_can_be_left_before_a_session_is_open(slow: SlowStage) -> None:
    async with slow.run_test() as pilot:
        await pilot.press(*"/quit", "enter")
        await until(pilot, lambda: not slow.is_running)


async def test_a_mistake_of_ours_is_told_and_the_terminal_goes_on(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def oops() -> None:
        raise ValueError("two of them")

    async with stage.run_test() as pilot:
        monkeypatch.setattr(type(stage), "is_headless", False)
        stage.job(oops())
        await until(pilot, lambda: "ValueError: two of them" in stage.shown())
        await pilot.press(*"hello", "enter")
        await until(pilot, lambda: stage.host.of("submit"))


async def test_what_is_attached_while_a_prompt_is_sent_goes_with_the_next(stage: Stage) -> None:
    async with stage.run_test() as pilot:
        stage.writing.attach_file(__file__)
        stage.host.gate.clear()
        await pilot.press(*"one", "enter")
        await until(pilot, lambda: stage.host.of("submit"))
        stage.writing.attach_file(commands.__file__)
        stage.host.gate.set()
        await pilot.pause()
        assert [name for name, _ in stage.writing.bag.things] == ["commands.py"]
        stage.host.refuse = BadInput("too large")
        await pilot.press(*"two", "enter")
        await until(pilot, lambda: "too large" in stage.shown())
        assert [name for name, _ in stage.writing.bag.things] == ["commands.py"]
        assert stage.editor.text == "two"


async def test_a_second_key_does_not_answer_the_question_that_comes_next(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with stage.run_test() as pilot:
        stage.tell(ev.Asked(ask(1)), ev.Asked(ask(2)))
        await until(pilot, lambda: " y  yes" in stage.shown() and stage.question.has_focus)
        monkeypatch.setattr(question, "_LOOK", _LONG)
        await pilot.press("y", "y", "y")
        await until(pilot, lambda: "Run command 2" in stage.shown())
        await pilot.press("y", "a", "1", "w")
        assert _verdicts(stage) == [("ask_1", "allow")] and stage.question.has_focus
        monkeypatch.setattr(question, "_LOOK", _SOON)
        await pilot.press("y")  # still too early
        await until(pilot, lambda: " y  yes" in stage.shown())
        await pilot.press("n")
        await until(pilot, lambda: len(stage.host.of("answer")) == 2)
        assert _verdicts(stage) == [("ask_1", "allow"), ("ask_2", "deny")]


async def test_a_key_for_a_question_that_was_answered_elsewhere_answers_no_other(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with stage.run_test() as pilot:
        stage.tell(ev.Asked(ask(1)), ev.Asked(ask(2, "rm -rf precious")))
        await until(pilot, lambda: " y  yes" in stage.shown() and stage.question.has_focus)
        monkeypatch.setattr(question, "_LOOK", _LONG)
        stage.tell(ev.Settled("ask_1", "deny", None))
        assert stage.question.ask is not None and stage.question.ask.id == "ask_2"
        await pilot.press("y", "a", "1")
        assert not stage.host.of("answer") and stage.editor.text == ""


async def test_who_begins_to_write_as_a_question_comes_up_writes_a_prompt(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(question, "_LOOK", _LONG)
    async with stage.run_test() as pilot:
        stage.tell(ev.Asked(ask(1)))
        await until(pilot, lambda: stage.question.has_focus)
        for key in "yes!":
            stage.post_message(_key(key))  # all are waiting before the first is taken
        await until(pilot, lambda: len(stage.editor.text) == 4)
        assert not stage.host.of("answer")
        assert stage.editor.text == "yes!" and stage.editor.has_focus


async def test_who_types_right_after_enter_answers_nothing_and_gets_the_keys_later(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.tui.asking._TYPING", 0.3)
    async with stage.run_test() as pilot:
        await pilot.press(*"go", "enter", "y", "backspace")
        stage.tell(ev.Asked(ask(1)))
        assert not stage.question.has_focus
        await until(pilot, lambda: "(ctrl+n)" in stage.shown())
        await until(pilot, lambda: stage.question.has_focus)
        assert not stage.host.of("answer")


async def test_an_answer_that_did_not_arrive_can_be_given_again(stage: Stage) -> None:
    async with stage.run_test() as pilot:
        stage.tell(ev.Asked(ask(1)))
        await until(pilot, lambda: " y  yes" in stage.shown() and stage.question.has_focus)
        stage.host.refuse = ConnectionGone("The daemon went away.")
        await pilot.press("y")
        await until(pilot, lambda: "The daemon went away" in stage.shown())
        assert "ask_1" in stage.desk.story.asks
        stage.host.refuse = None
        await until(pilot, lambda: " y  yes" in stage.shown())
        await pilot.press("y")
        await until(pilot, lambda: not stage.desk.story.asks)
        assert len(stage.host.of("answer")) == 2


async def test_words_that_come_in_one_burst_with_their_key_are_all_heard(stage: Stage) -> None:
    """As over a slow line: the editor has no focus yet when they arrive."""
    async with stage.run_test() as pilot:
        stage.tell(ev.Asked(ask(1)))
        await until(pilot, lambda: " w  no" in stage.shown() and stage.question.has_focus)
        for letter in "wyn":
            stage.question.post_message(Key(letter, letter))
        stage.question.post_message(Key("enter", "\r"))
        await until(pilot, lambda: stage.host.of("answer"))
        assert _verdicts(stage) == [("ask_1", "deny")]
        assert "'yn'" in str(stage.host.of("answer")[0])


async def test_words_for_a_question_that_is_gone_are_kept_and_no_prompt(stage: Stage) -> None:
    async with stage.run_test() as pilot:
        stage.tell(ev.Asked(ask(1)))
        await until(pilot, lambda: " w  no" in stage.shown() and stage.question.has_focus)
        await pilot.press("w")
        await until(pilot, lambda: stage.editor.has_focus)
        await pilot.press(*"not that")
        stage.tell(ev.Settled("ask_1", "deny", None))
        await pilot.press("enter")
        await pilot.pause()
        assert stage.editor.text == "not that"
        assert not stage.host.of("submit") and not stage.host.of("answer")


@promised(3)  # of processor time; five when all rows were painted
async def test_a_change_of_twelve_thousand_lines_is_drawn_at_once_and_read_to_its_end(
    stage: Stage, within: float
) -> None:
    old = "\n".join(f"line {n}" for n in range(6_000))
    asked = msgspec.structs.replace(ask(1), changes=(Change("x", old, old.replace("l", "L")),))
    async with stage.run_test(size=(100, 40)) as pilot:
        began = time.process_time()
        stage.tell(ev.Asked(asked))
        await until(pilot, lambda: "more lines, read on" in stage.shown())
        assert time.process_time() - began < within
        await until(pilot, lambda: stage.question.has_focus)
        await pilot.press("y", "a")
        assert not stage.question.read and not stage.host.of("answer")
        stage.question._scroll.scroll_end(animate=False, immediate=True)
        await pilot.press("up", "down")
        await until(pilot, lambda: " y  yes" in stage.shown())
        await pilot.press("y")
        await until(pilot, lambda: stage.host.of("answer"))


def _key(key: str) -> Key:
    return Key(key if len(key) > 1 else _NAMES.get(key, key), key if len(key) == 1 else None)


_NAMES = {"/": "slash", "!": "exclamation_mark"}
