"""Open questions: who may answer, what is remembered, and what becomes of them at the end."""

import asyncio
from typing import Any

import pytest
from tests.engine.tape import ME, Tape
from tests.engine.timers import LONG, Timers

from dragoman.engine import asks as asks_module
from dragoman.engine import events as ev
from dragoman.engine import rules
from dragoman.engine.ask import Ask, AskReply, Rule, Scope
from dragoman.engine.content import Text, ToolCall
from dragoman.engine.door import Door
from dragoman.engine.faults import AlreadySettled, BadInput, StoreFailed, TooMany, UnknownAsk
from dragoman.engine.host import OpenSpec
from dragoman.engine.ports import Judgement, Outcome, Reach, ToolEnv
from dragoman.testing.host import EchoTool, host_of, memory_door
from dragoman.testing.script import Scripted, call


async def asked(door: Door, prompts: int = 1) -> tuple[str, Tape, Ask]:
    """A session whose turn waits for a human."""
    info = await door.open(OpenSpec(cwd="/"), ME)
    tape = Tape()
    await door.watch(info.id, ME, tape, lambda said: None)
    await door.prompt(info.id, (Text("go"),), ME)
    return info.id, tape, (await tape.until(ev.Asked)).body.ask


async def test_an_answer_that_comes_second_is_told_who_was_first() -> None:
    door = memory_door(Scripted([call("echo", text="x"), "ok"]), [EchoTool()])
    sid, _, ask = await asked(door)
    asks = host_of(door).live[sid].asks
    first, second = await asyncio.gather(
        asks.answer(AskReply(ask.id, "allow", ME)),
        asks.answer(AskReply(ask.id, "deny", ME)),
        return_exceptions=True,
    )
    assert isinstance(first, ev.Settled) and first.verdict == "allow"
    assert isinstance(second, AlreadySettled)


async def test_an_answer_that_is_settled_long_ago_is_found_in_the_store() -> None:
    """The live state forgets old answers; the rows do not."""
    door = memory_door(Scripted([call("echo", text="x"), "ok"]), [EchoTool()])
    sid, _, ask = await asked(door)
    session = host_of(door).live[sid]
    await session.asks.answer(AskReply(ask.id, "allow", ME))
    session.state.settled = {}
    with pytest.raises(AlreadySettled):
        await session.asks.answer(AskReply(ask.id, "allow", ME))
    with pytest.raises(UnknownAsk):
        await session.asks.answer(AskReply("ask_nobody", "allow", ME))


async def test_a_timer_of_a_question_ends_with_its_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is let go expires nothing any more: it waits in the store."""
    timers = Timers(monkeypatch)
    door = memory_door(Scripted([call("echo", text="x")]), [EchoTool()], approval_timeout=LONG)
    sid, _, ask = await asked(door)
    await asyncio.wait_for(timers.arranged.wait(), 60)
    host = host_of(door)
    await host.stop()
    timers.come_due()
    for _ in range(20):
        await asyncio.sleep(0)
    row = await door.ask(ask.id)
    assert row.settled is None
    assert sid not in host.live


async def test_a_question_that_nobody_answers_expires_and_the_turn_goes_on() -> None:
    door = memory_door(
        Scripted([call("echo", text="x"), "ok"]), [EchoTool()], approval_timeout=0.02
    )
    sid, tape, ask = await asked(door)
    settled = (await tape.until(ev.Settled)).body
    assert (settled.ask_id, settled.verdict) == (ask.id, "expired")
    assert (await tape.until(ev.CallEnded)).body.outcome == "denied"
    await door.idle(sid)
    assert (await door.info(sid)).status == "idle"


async def test_a_question_expires_also_when_that_could_not_be_kept_at_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(asks_module, "AGAIN_SECONDS", 0.01)
    door = memory_door(
        Scripted([call("echo", text="x"), "ok"]), [EchoTool()], approval_timeout=0.02
    )
    store = host_of(door).store
    post, full = store.post, [StoreFailed("no disk"), StoreFailed("no disk")]

    def posted(batch: Any, **more: Any) -> Any:
        if batch.settled and full:
            refused: asyncio.Future[int] = asyncio.get_running_loop().create_future()
            refused.set_exception(full.pop())
            return refused
        return post(batch, **more)

    monkeypatch.setattr(store, "post", posted)
    sid, tape, _ = await asked(door)
    assert (await tape.until(ev.Settled)).body.verdict == "expired" and not full
    await door.idle(sid)


async def test_only_an_answer_for_always_has_a_scope() -> None:
    door = memory_door(Scripted([call("echo", text="x"), "ok"]), [EchoTool()])
    _, _, ask = await asked(door)
    with pytest.raises(BadInput, match="not remembered"):
        await door.answer(ask.id, "allow", ME, scope="exact")
    with pytest.raises(BadInput, match="not remembered"):
        await door.answer(ask.id, "deny", ME, lasts="session")
    assert [row.ask.id for row in await door.asks()] == [ask.id]
    assert (await door.answer(ask.id, "allow_always", ME, scope="exact")).rule
    assert [rule.kind for rule in await door.rules()] == ["exact"]


async def test_a_turn_goes_on_when_its_answer_is_stored_and_the_rule_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    door = memory_door(Scripted([call("echo", text="x"), "ok"]), [EchoTool()])
    sid, tape, ask = await asked(door)

    async def full(self: rules.Rules, rule: Rule) -> None:
        raise StoreFailed("The disk is full.")

    monkeypatch.setattr(rules.Rules, "keep", full)
    with pytest.raises(StoreFailed):
        await door.answer(ask.id, "allow_always", ME)
    assert (await tape.until(ev.TurnEnded)).body.outcome == "completed"
    assert [one.outcome for one in tape.of(ev.CallEnded)] == ["done"]
    await door.idle(sid)


async def test_no_more_answers_are_remembered_than_there_is_room_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rules, "_MOST", 1)
    script = Scripted([call("echo", text="x"), "ok", call("echo", text="y"), "ok"])
    door = memory_door(script, [EchoTool()])
    sid, tape, ask = await asked(door)
    await door.answer(ask.id, "allow_always", ME, scope="exact")
    await door.idle(sid)
    tape.events.clear()
    await door.prompt(sid, (Text("again"),), ME)
    second = (await tape.until(ev.Asked)).body.ask
    with pytest.raises(TooMany, match="Withdraw some"):
        await door.answer(second.id, "allow_always", ME)
    await door.remove_rule((await door.rules())[0].id)
    assert (await door.answer(second.id, "allow_always", ME)).rule


class Asking(EchoTool):
    """A tool that puts the question it is given to a human."""

    async def run(self, args: dict[str, Any], env: ToolEnv) -> Outcome:
        answer = await env.ask(str(args["text"]))
        return Outcome((Text(answer.text),))


async def test_a_tool_that_asks_nothing_is_told_so() -> None:
    door = memory_door(Scripted([call("echo", text="  "), "ok"]), [Asking()], mode="full")
    info = await door.open(OpenSpec(cwd="/"), ME)
    await (await door.prompt(info.id, (Text("go"),), ME)).done
    result = (await door.messages(info.id))[2].content[0]
    assert result.is_error and "The question is empty." in result.content[0].text  # type: ignore[union-attr]


def question(**more: Any) -> Ask:
    return Ask("a", "s", "tool", "t", 1, tool="edit", **more)


def test_what_an_answer_may_be_remembered_for() -> None:
    whole = Scope("exact", "exact", "just this", lasts=("session",))
    with pytest.raises(BadInput, match="cannot be remembered"):
        rules.chosen(question(), "", "")
    with pytest.raises(BadInput, match="for 'agent'"):
        rules.chosen(question(scopes=(whole,)), "exact", "agent")
    with pytest.raises(BadInput, match="no time"):
        rules.chosen(question(scopes=(whole,)), "exact", "ever")
    assert rules.chosen(question(scopes=(whole,)), "", "") == (whole, "session")
    # A refusal may always be about the whole tool, also where nothing could be allowed for ever.
    scope, _ = rules.refusing(question(firm=True), "", "")
    assert (scope.kind, scope.words) == ("tool", "this tool: edit")


FILE = Rule("r1", "file", "edit", "w", "agent", "default", path="/a/b", access="write", deny=True)
FOLDER = Rule("r2", "folder", "edit", "w", "agent", "default", path="/a", access="read", deny=True)
PREFIX = Rule("r3", "prefix", "bash", "w", "agent", "default", argv=("git", "push"), deny=True)
TOOL = Rule("r4", "tool", "bash", "w", "agent", "default", deny=True)
ODD = Rule("r5", "exact", "bash", "w", "agent", "default", path="/a", access="read", args="?")
EDIT = ToolCall("c", "edit", {})
BASH = ToolCall("c", "bash", {"command": "x"})


@pytest.mark.parametrize(
    ("rule", "tool", "judgement", "covers"),
    [
        (FILE, EDIT, Judgement("ask", files=("/a/b",)), True),
        (FILE, EDIT, Judgement("ask", files=("/a/bc",)), False),
        (FILE, EDIT, Judgement("ask", files=("/a/b",), access="read"), False),
        (FILE, BASH, Judgement("ask", reach=(Reach("/a/b", True),)), True),
        (FILE, BASH, Judgement("ask", reach=(Reach("/a/b"),)), False),
        (FOLDER, EDIT, Judgement("ask", files=("/a/x/y",), access="read"), True),
        (FOLDER, EDIT, Judgement("ask", files=("/a",), access="read"), True),
        (FOLDER, EDIT, Judgement("ask", files=("/ab",), access="read"), False),
        (PREFIX, BASH, Judgement("ask", commands=(("ls",), ("git", "push", "-f"))), True),
        (PREFIX, BASH, Judgement("ask", commands=(("git", "pull"),)), False),
        (PREFIX, EDIT, Judgement("ask", commands=(("git", "push"),)), False),
        (TOOL, BASH, Judgement("ask"), True),
        (TOOL, EDIT, Judgement("ask"), False),
    ],
)
def test_a_refusal_counts_when_it_covers_a_part(
    rule: Rule, tool: ToolCall, judgement: Judgement, covers: bool
) -> None:
    assert rules._covers_some(rule, tool, judgement, rules.hash_of(tool.args)) is covers


def test_only_rules_about_places_hold_for_places() -> None:
    assert not rules._holds(ODD, ("/a", "read"))
