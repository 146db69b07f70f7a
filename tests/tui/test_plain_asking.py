"""Questions in `--plain`: one at a time, and a line that was on its way answers none."""

import asyncio
from pathlib import Path

import pytest
from tests.tui.stage import Recorder, StagedLink, ask

from dragoman.client.problems import ConnectionGone
from dragoman.engine import events as ev
from dragoman.engine.ask import Who
from dragoman.tui import plain
from dragoman.tui.begin import Wish
from dragoman.tui.plain import PlainScreen


def _screen(folder: Path) -> tuple[PlainScreen, Recorder]:
    made, host = PlainScreen(Wish(str(folder))), Recorder()
    made.link = made.desk.link = StagedLink(host)
    made.desk.session = "s"
    return made, host


def _tell(screen: PlainScreen, *bodies: ev.Body) -> None:
    for body in bodies:
        screen.take(ev.Event("s", 1, body, 1, 1))


@pytest.fixture(autouse=True)
def _quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain, "_LOOK", 0.05)


async def _read(screen: PlainScreen) -> None:
    """Until the question says how it is answered."""
    for _ in range(6_000):
        if screen._invited:
            return
        await asyncio.sleep(0.01)
    raise AssertionError("nobody was asked for an answer")


async def test_a_line_that_came_with_the_question_answers_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    screen, host = _screen(tmp_path)
    _tell(screen, ev.Asked(ask(1)))
    assert await screen.typed("y")
    assert not host.of("answer") and "it came too soon: y" in capsys.readouterr().out
    await _read(screen)
    assert await screen.typed("y")
    assert [args[:2] for args, _ in host.of("answer")] == [("ask_1", "allow")]


async def test_an_answer_for_a_question_that_is_gone_does_not_answer_the_next(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    screen, host = _screen(tmp_path)
    _tell(screen, ev.Asked(ask(1)), ev.Asked(ask(2, "rm -rf precious")))
    said = capsys.readouterr().out
    assert said.count("question: ") == 1 and "another question waits: Run command 2?" in said
    _tell(screen, ev.Settled("ask_1", "deny", Who("acp", "", "an editor")))
    assert "question: Run command 2?" in capsys.readouterr().out
    assert await screen.typed("y")
    assert not host.of("answer")
    await _read(screen)
    host.refuse = ConnectionGone("gone")
    with pytest.raises(ConnectionGone):
        await screen.typed("n")
    host.refuse = None
    await _read(screen)
    assert await screen.typed("n")
    assert [args[:2] for args, _ in host.of("answer")] == [("ask_2", "deny")] * 2


async def test_what_hides_in_a_question_or_a_name_is_written_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    screen, _ = _screen(tmp_path)
    _tell(screen, ev.Asked(ask(1, "echo a\u202eb\x1b[2J")))
    _tell(screen, ev.CallEnded("t1", "c", "na\x1bme", "done", ()))
    said = capsys.readouterr().out
    assert "a<U+202E>b<ESC>[2J" in said and "\x1b" not in said
