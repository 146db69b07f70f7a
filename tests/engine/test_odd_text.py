"""Text that is no valid Unicode must not break a session."""

from dragoman.engine import events as ev
from dragoman.engine.content import Text


def test_lone_surrogates_are_mended_when_an_event_is_kept() -> None:
    body = ev.CallEnded("t", "c", "x", "done", (Text("a\ud800b 😀"),))
    kept = ev.decode_body(ev.encode_body(body))
    assert isinstance(kept, ev.CallEnded)
    assert kept.content == (Text("a\ufffdb 😀"),)
