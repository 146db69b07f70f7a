"""The player of talks itself: what it accepts, and how it tells what went wrong."""

import json

import pytest

from dragoman.testing.host import memory_door
from dragoman.testing.play import Stage, play
from dragoman.testing.talk import TalkError, differ, read


class Echo:
    """Says back what it hears; `{"twice": x}` twice, `{"bye": 1}` ends the connection."""

    max_line = 1024
    max_pending = 1024
    limit_counts_newline = False

    def __init__(self, link):
        self.link = link

    def hear(self, lines):
        for line in lines:
            value = json.loads(line)
            self.link.send(line)
            if "twice" in value:
                self.link.send(line)
            if "bye" in value:
                self.link.close()

    def overlong(self, size):
        self.link.send(b'"too long"')

    def ended(self):
        self.link.send(b'"the end"')
        self.link.close()

    def lost(self):
        pass


async def start(setup):
    return Stage(memory_door(setup.script), Echo, ('{"probe": 1}', {"probe": 1}))


async def run(tmp_path, text, transport="memory"):
    path = tmp_path / "a.talk"
    path.write_text("# a talk\n" + text)
    await play(read(path), start, transport, tmp_path)


GOOD = """
C> {"a": 1, "id": "x1"}
S> {"a": "<int>", "id": "<id:it>"}
C> {"again": "<id:it>"}
S> {"again": "x1"}
C> {"twice": 1}
S* {"twice": 1}
C> {"b": [1, 2, 3], "c": null}
S? {"never": 1}
S> {"b": [1, "<more>"], "...": "<more>"}
! raw {"x": 1}\\r\\n{"y": 2}\\n
{
S> {"y": 2}
S> {"x": 1}
}
C> {"exact":1}
S= {"exact":1}
! silence
! as another
C> {"bye": 1}
S> {"bye": 1}
! closed
! as the client
! eof
S> "the end"
! closed
"""


@pytest.mark.parametrize("transport", ["memory", "unix", "stdio"])
async def test_a_good_talk_passes_on_every_transport(transport, tmp_path):
    await run(tmp_path, GOOD, transport)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('C> {"a": 1}\nS> {"a": 2}', "a.talk:3 over memory: at $.a: expected 2, got 1"),
        ('C> {"a": 1}\nS> {"b": 1}', "'b' is missing"),
        ('C> {"a": 1, "b": 1}\nS> {"a": 1}', "'b' not expected"),
        ('C> {"a": true}\nS> {"a": 1}', "expected 1, got true"),
        ('C> {"a": "x"}\nS> {"a": "<re:y+>"}', "does not match y+"),
        ('C> {"twice": 1}\nS> {"twice": 1}\n! silence', "expected silence, got"),
        ('C> {"a": 1}\nS? {"b": 1}\n! silence', "expected silence, got"),
        ('C> {"a": 1}\n! closed', "expected the end of the connection"),
        ('C> {"bye": 1}\nS> {"bye": 1}\nS> {"more": 1}', "the server ended the connection"),
        ('C> {"a": "<id:nobody>"}', "nothing was remembered as 'nobody'"),
        ('C> {"a": 1}\n{\nS> {"b": 1}\n}', "not one of the group"),
        ("! dance", "there is no direction 'dance'"),
    ],
)
async def test_a_talk_that_goes_another_way_says_where(text, told, tmp_path):
    with pytest.raises(TalkError) as caught:
        await run(tmp_path, text)
    assert told in str(caught.value)


@pytest.mark.parametrize("text", ["X> {}", "S> {broken", "{\nS> {}", "{\nC> {}\n}"])
def test_a_file_that_cannot_be_read_says_which_line(text, tmp_path):
    path = tmp_path / "b.talk"
    path.write_text("# b\n" + text)
    with pytest.raises(TalkError, match=r"b.talk:\d"):
        read(path)


def test_a_name_is_only_remembered_when_the_whole_line_fits():
    names: dict = {}
    assert differ({"id": "<id:x>", "n": 1}, {"id": "q", "n": 1}, names) == ""
    assert names == {"x": "q"}
    assert "expected" in differ("<id:x>", "r", names)
    assert differ("<time>", "2026-04-19T11:30:00.5+03:30", {}) == ""
