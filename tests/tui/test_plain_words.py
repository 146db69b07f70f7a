"""What an agent says in `--plain` is there in the end, whatever of the stream was lost."""

from pathlib import Path

import pytest
from tests.tui.stage import Recorder, StagedLink

from dragoman.engine import events as ev
from dragoman.engine.content import Text
from dragoman.tui.begin import Wish
from dragoman.tui.plain import PlainScreen


@pytest.mark.parametrize(
    ("streamed", "shown"),
    [
        (["one ", "two"], "agent: one two\n"),
        ([], "agent: one two\n"),  # the client was too late for all of it
        (["one "], "agent: one two\n"),
        (["two"], "agent: two\nagent: one two\n"),  # its beginning was lost: once more, whole
    ],
)
def test_no_word_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], streamed: list[str], shown: str
) -> None:
    screen = PlainScreen(Wish(str(tmp_path)))
    screen.link = screen.desk.link = StagedLink(Recorder())
    for _ in range(2):  # and nothing of one message is taken for the next one's
        for text in streamed:
            screen.take(ev.Event("s", 1, ev.TextDelta("t", text, 1), 1, 1))
        spoke = ev.Spoke("t", 1, (Text("one two"),), "end_turn")
        screen.take(ev.Event("s", 1, spoke, 1, 1))
        assert capsys.readouterr().out == shown


def test_output_is_read_without_its_colours(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    screen = PlainScreen(Wish(str(tmp_path)))
    screen.take(ev.Event("s", 1, ev.Progress("t", "c", "\x1b[31mred\x1b[0m\r\n"), 1, 1))
    assert capsys.readouterr().out == "output: red\n"
