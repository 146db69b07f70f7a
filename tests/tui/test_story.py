"""`story`: events of a session become pieces, streamed or told again, and never twice."""

from typing import Any

from dragoman.engine import events as ev
from dragoman.engine.ask import Ask
from dragoman.engine.content import (
    Detail,
    Diff,
    Message,
    PlanEntry,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
)
from dragoman.engine.events import Event, Who
from dragoman.tui.piece import SUMMARY
from dragoman.tui.story import Story, noted


class Told:
    """Feeds a story; kept events are numbered."""

    def __init__(self) -> None:
        self.story = Story()
        self.story.me = "me"
        self._seq = 0

    def kept(self, *bodies: Any) -> None:
        for body in bodies:
            self._seq += 1
            self.story.take(Event("s", 1_000 + self._seq, body, self._seq, self._seq))

    def passing(self, *bodies: Any) -> None:
        for body in bodies:
            self.story.take(Event("s", 2_000, body))
        self.story.gather()

    def pieces(self) -> list[tuple[str, str, str]]:
        return [(piece.kind, piece.text, piece.outcome) for piece in self.story.pieces]


BEGAN = ev.TurnBegan("t1", (Text("do it"),), Who("acp", name="phone"))


def test_story_text_that_was_streamed_is_not_told_twice() -> None:
    told = Told()
    told.kept(BEGAN)
    told.passing(ev.StepBegan("t1", 1), ev.TextDelta("t1", "hel"), ev.TextDelta("t1", "lo"))
    assert told.pieces() == [("you", "do it", ""), ("said", "hello", "")]
    assert told.story.waits == "writing"
    told.kept(ev.Spoke("t1", 1, (Text("hello"),), "end_turn", Usage(3, 2), 0.5, "p/m"))
    assert told.pieces() == [("you", "do it", ""), ("said", "hello", "")]
    assert (told.story.cost, told.story.model) == (0.5, "p/m")
    told.kept(ev.TurnEnded("t1", "completed", "end_turn"))
    assert told.story.turn == "" and told.story.pieces[0].name == "phone (acp)"


def test_story_knows_what_was_sent_until_it_is_heard() -> None:
    told = Told()
    told.kept(
        BEGAN, ev.Queued("t2", (Text("next"),)), ev.Queued("s1", (Text("also"),), steers=True)
    )
    told.kept(ev.Queued("t3", (Text("never"),)))
    assert list(told.story.queued) == ["t2", "s1", "t3"]
    told.kept(ev.Steered("t1", (Text("also"),), queued="s1"), ev.Dropped("t3", "taken back"))
    assert list(told.story.queued) == ["t2"]
    told.kept(ev.Steered("t1", (Text("from elsewhere"),)))
    told.kept(ev.TurnEnded("t1", "completed", "end_turn"), ev.TurnBegan("t2", (Text("next"),)))
    assert not told.story.queued


def test_story_says_what_was_missed_of_a_stream() -> None:
    told = Told()
    told.kept(BEGAN)
    told.passing(ev.StepBegan("t1", 1), ev.TextDelta("t1", "he"))
    told.kept(ev.Spoke("t1", 1, (Thinking("hm"), Text("hello")), "end_turn"))
    assert told.pieces()[1:] == [("thought", "hm", "done"), ("said", "hello", "")]


def test_story_forgets_a_draft_that_will_be_told_again() -> None:
    told = Told()
    told.kept(BEGAN)
    told.passing(ev.ThoughtDelta("t1", "hm"), ev.TextDelta("t1", "half"))
    told.story.drop_draft()
    assert told.pieces() == [("you", "do it", "")] and told.story.waits == ""


def test_story_follows_a_call_from_its_draft_to_its_end() -> None:
    told = Told()
    told.kept(BEGAN)
    told.passing(ev.CallDrafted("t1", "c1", "bash"))
    assert told.story.waits == "the model to write a call of bash"
    told.kept(
        ev.Spoke("t1", 1, (ToolCall("c1", "bash", {"command": "ls"}),), "tool_use"),
        ev.CallStarted("t1", "c1", "bash", {"command": "ls -l"}),
    )
    told.passing(ev.Progress("t1", "c1", "a\n"), ev.Progress("t1", "nobody", "lost"))
    call = told.story.pieces[-1]
    assert (call.text, call.outcome, call.args) == ("a\n", "running", {"command": "ls -l"})
    detail = Detail(diffs=(Diff("f", None, "x"),))
    told.kept(ev.CallEnded("t1", "c1", "bash", "done", (Text("bad"),), True, detail))
    assert (call.text, call.outcome, call.diffs) == ("bad", "failed", detail.diffs)


def test_story_waits_for_all_calls_that_run_side_by_side() -> None:
    told = Told()
    calls = tuple(ToolCall(f"c{n}", name, {}) for n, name in enumerate(["task", "task", "read"]))
    told.kept(BEGAN, ev.Spoke("t1", 1, calls, "tool_use"))
    seen = []
    for call in calls:
        told.kept(ev.CallStarted("t1", call.id, call.name, {}))
        seen.append(told.story.waits)
    told.kept(ev.Asked(Ask("a1", "s", "question", "Which?", 1)))
    told.kept(ev.Asked(Ask("a2", "s", "question", "Which?", 1)))
    told.kept(ev.CallEnded("t1", "c1", "task", "done"), ev.Settled("a1", "allow"))
    seen.append(told.story.waits)
    told.kept(ev.Settled("a2", "allow"))
    for id in ("c2", "c0"):
        seen.append(told.story.waits)
        told.kept(ev.CallEnded("t1", id, "x", "done"))
    assert [*seen, told.story.waits] == [
        "task", "task ×2", "task and 2 more", "your answer", "task and 1 more", "task", "the model",
    ]  # fmt: skip


def test_story_calls_that_never_ended_are_cancelled_with_their_turn() -> None:
    told = Told()
    told.kept(BEGAN, ev.Spoke("t1", 1, (ToolCall("c1", "bash", None, "{broken"),), "tool_use"))
    assert told.story.pieces[-1].args == {"": "{broken"}
    told.kept(ev.TurnEnded("t1", "cancelled", "aborted", cause="client"))
    assert told.pieces()[1:] == [("call", "", "cancelled"), ("ended", "client", "")]


def test_story_a_question_is_open_until_somebody_answers() -> None:
    told = Told()
    ask = Ask("a1", "s", "question", "Which?", 1, choices=("x",))
    told.kept(ev.Asked(ask))
    assert told.story.asks == {"a1": ask} and told.story.waits == "your answer"
    told.kept(ev.Settled("a1", "answer", Who("x", name="me"), text="x"))
    assert told.story.asks == {} and told.pieces()[-1][1] == "Which? → x"
    told.kept(ev.Asked(ask), ev.Settled("a1", "deny_always", Who("x", name="bob"), "never"))
    assert told.pieces()[-1][1] == "deny always by bob (x): never"
    told.kept(ev.Asked(ask), ev.Settled("a1", "allow", Who("x", name="me")))
    assert len(told.story.pieces) == 2  # our own plain yes is no news


def test_story_has_one_plan_per_turn() -> None:
    told = Told()
    told.kept(BEGAN, ev.Planned((PlanEntry("one"),)), ev.Planned((PlanEntry("two"),)))
    assert [piece.kind for piece in told.story.pieces] == ["you", "plan"]
    assert told.story.pieces[1].plan[0].content == "two"
    told.kept(ev.TurnBegan("t2", (Text("more"),)), ev.Planned((PlanEntry("three"),)))
    assert [piece.kind for piece in told.story.pieces] == ["you", "plan", "you", "plan"]


def test_story_of_a_fork_begins_with_what_was_said() -> None:
    told = Told()
    call = ToolCall("c", "read", {"path": "a"})
    told.kept(
        ev.Seeded(
            "parent-0123",
            (
                Message("user", (Text("hi"),)),
                Message("assistant", (Text("yes"), call)),
                Message("tool", (ToolResult("c", (Text("no file"),), True),)),
            ),
        )
    )
    assert told.pieces() == [
        ("you", "hi", ""),
        ("said", "yes", ""),
        ("call", "no file", "failed"),
        ("note", "continues parent-0 from here", ""),
    ]


def test_story_marks_the_first_piece_that_changed() -> None:
    told = Told()
    told.kept(BEGAN, ev.Cleared(), ev.ModelSet("p/m"))
    assert told.story.dirty == 0
    told.story.dirty = None
    told.story.touched(told.story.pieces[1])
    assert told.story.dirty == 1
    told.story.prepend([told.story.put(told.story.pieces[0])] * 2)
    assert told.story.dirty == 3


def test_story_facts_around_the_pieces() -> None:
    told = Told()
    told.kept(ev.Opened("a", "/", "p/m", "full", title="T"), ev.ModeSet("plan"))
    told.kept(ev.Renamed("U"), ev.ReasoningSet(""), ev.Compacted("sum", 2, cost=0.25))
    told.passing(ev.Presence((Who("x"),)), ev.Lagged(3), ev.Deleted())
    story = told.story
    assert (story.mode, story.cost, len(story.present)) == ("plan", 0.25, 1)
    assert story.pieces[-1].text == "this session was deleted"


def test_story_knows_when_the_history_is_summarised() -> None:
    told = Told()
    story = told.story
    spoke = ev.Spoke("t", 1, (Text("a"),), "end_turn", Usage(input=900))

    def told_of(state: Any) -> ev.Compacting:
        return ev.Compacting("t", "c", state)

    told.kept(BEGAN, spoke, ev.TurnEnded("t", "completed", "end_turn"))
    assert story.usage.context == 900
    for end in (told_of("failed"), told_of("cancelled"), ev.Compacted("sum", 2)):
        told.passing(told_of("began"))
        assert story.summary_at and not story.turn
        told.passing(told_of("more"))
        (told.kept if isinstance(end, ev.Compacted) else told.passing)(end)
        assert not story.summary_at
    assert story.usage.context == 0  # what is in the context now, nobody has counted
    told.kept(BEGAN, spoke)
    told.passing(told_of("began"))
    assert story.waits == SUMMARY and not story.summary_at
    told.kept(ev.Compacted("sum", 2), ev.Cleared())
    assert story.waits == "the model" and story.usage.context == 0
    told.kept(ev.TurnEnded("t", "completed", "end_turn"))
    told.passing(told_of("began"))
    story.drop_draft()  # the connection broke off
    assert not story.summary_at


def test_story_noted_does_not_say_its_title_twice() -> None:
    assert noted(ev.Noted("info", "MCP", "mcp server x is back")) == "mcp server x is back"
    assert noted(ev.Noted("info", "Note", "text")) == "Note: text"
    assert noted(ev.Noted("info", "It is so.", "text")) == "It is so. text"
    assert noted(ev.Noted("info", "Alone")) == "Alone"
    assert noted(ev.Noted("info", "Alone")) == "Alone"
