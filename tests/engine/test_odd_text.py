"""Text that is no valid Unicode must not break a session."""

import json

from dragoman.dialects.acp.speak2 import Speaker2
from dragoman.dialects.zot import frames
from dragoman.engine import events as ev
from dragoman.engine.content import Text
from dragoman.gateway import views
from dragoman.testing.host import memory_door
from dragoman.testing.script import Scripted
from dragoman.wire import codec


def test_lone_surrogates_are_mended_when_an_event_is_kept() -> None:
    body = ev.CallEnded("t", "c", "x", "done", (Text("a\ud800b 😀"),))
    kept = ev.decode_body(ev.encode_body(body))
    assert isinstance(kept, ev.CallEnded)
    assert kept.content == (Text("a\ufffdb 😀"),)


def test_bytes_that_are_no_text_pass_through_every_shape() -> None:
    """What a command prints stands in `Progress` as lone surrogates, and everybody can tell it."""
    event = ev.Event("s", 1, ev.Progress("t", "c", "a\udcffb"))
    lines = [
        views.encode(event),
        codec.encode(event.body),
        frames.frame({"id": "c", "text": "a\udcffb", "type": "tool_progress"}),
    ]
    for line in lines:
        assert "a\ufffdb" in str(json.loads(line))
    said = Speaker2(memory_door(Scripted([])), "s").speak([event])
    assert said is not None and said[0].blob is not None
    assert "a\ufffdb" in str(json.loads(said[0].blob.messages[0]))
