"""Old results make room before a history is compacted, and a full context is nobody's problem."""

from typing import Any

from tests.engine.tape import ME

from dragoman.agents.builtin import fitted, squeezed
from dragoman.engine.content import Image, Message, Text, ToolCall, ToolResult, text_of
from dragoman.engine.host import OpenSpec
from dragoman.engine.ports import Outcome
from dragoman.testing.host import EchoTool, memory_door
from dragoman.testing.script import Scripted, call, fail, say


def history(steps: int, size: int) -> list[Message]:
    made = [Message("user", (Text("go"),))]
    for n in range(steps):
        made.append(Message("assistant", (ToolCall(str(n), "read", {}),)))
        made.append(Message("tool", (ToolResult(str(n), (Text("x" * size),), name="read"),)))
    return made


def sizes(messages: Any) -> list[int]:
    return [len(m.content[0].content[0].text) for m in messages if m.role == "tool"]


def test_old_results_are_shortened_first_and_in_steps() -> None:
    messages = history(40, 10_000)
    assert fitted(messages, 10, 100_000) == tuple(messages)
    made = fitted(messages, 70_000, 100_000)
    short = [size < 1_000 for size in sizes(made)]
    assert 25 <= sum(short) <= 31 and short == sorted(short, reverse=True)
    longer = fitted([*messages, *history(1, 5)[1:]], 70_000, 100_000)
    assert longer[: len(messages)] == made  # the same beginning: caches hold
    first = made[2].content[0]
    assert isinstance(first, ToolResult) and first.name == "read" and first.call_id == "0"
    assert "call again if needed" in text_of(first.content)
    assert sizes(messages) == [10_000] * 40  # what is kept stays whole


def test_small_results_and_short_histories_are_left_alone() -> None:
    messages = history(3, 10_000)
    assert fitted(messages, 99_000, 100_000) == tuple(messages)
    messages = history(40, 100)
    assert fitted(messages, 99_000, 100_000) == tuple(messages)


def test_squeezing_takes_pictures_and_the_last_results_too() -> None:
    messages = history(2, 100_000)
    picture = ToolResult("p", (Image("image/png", b"x"),))
    messages[2] = Message("tool", (picture,))
    made = squeezed(messages)
    assert "left out" in text_of(made[2].content[0].content)  # type: ignore[union-attr]
    assert sizes(made)[-1] < 20_000


async def test_a_full_context_is_squeezed_and_told_in_our_words_then_the_providers() -> None:
    class Large(EchoTool):
        async def run(self, args: Any, env: Any) -> Outcome:
            return Outcome((Text("y" * 200_000),))

    full = fail("context_full", "prompt is too long: 9 tokens > 8")
    script = Scripted([call("look"), full, say("done")])
    door = memory_door(script, [Large("look", "read")], mode="full")
    session = (await door.open(OpenSpec(cwd="/"), ME)).id
    done = await (await door.prompt(session, (Text("go"),), ME)).done
    assert done.text == "done" and sizes(script.requests[-1].messages)[0] < 20_000
    script = Scripted([call("look"), full, full])
    door = memory_door(script, [Large("look", "read")], mode="full")
    session = (await door.open(OpenSpec(cwd="/"), ME)).id
    done = await (await door.prompt(session, (Text("go"),), ME)).done
    assert done.outcome == "failed" and "does not fit" in done.error
    assert "prompt is too long" in done.error  # we may have taken something else for it


def _large(size: int) -> EchoTool:
    class Large(EchoTool):
        async def run(self, args: Any, env: Any) -> Outcome:
            return Outcome((Text("y" * size),))

    return Large("look", "read")


async def test_a_summary_that_does_not_fit_either_is_asked_of_less() -> None:
    full = fail("context_full", "prompt is too long: 9 tokens > 8")
    script = Scripted(
        [*[call("look")] * 8, full, full, full, say("Wanted: all of it"), say("done")]
    )
    door = memory_door(script, [_large(4_000)], mode="full", auto_compact=0.9)
    session = (await door.open(OpenSpec(cwd="/"), ME)).id
    done = await (await door.prompt(session, (Text("go"),), ME)).done
    assert done.text == "done"
    asked = [len(text_of(one.messages[0].content)) for one in list(script.requests)[9:12]]
    assert asked[0] > 2 * asked[1] > 4 * asked[2]
    assert "Wanted: all of it" in str(script.requests[-1].messages)


async def test_when_no_summary_fits_squeezing_still_helps() -> None:
    full = fail("context_full", "prompt is too long: 9 tokens > 8")
    script = Scripted([*[call("look")] * 3, *[full] * 3, say("done")])
    door = memory_door(script, [_large(3_000)], mode="full", auto_compact=0.9)
    session = (await door.open(OpenSpec(cwd="/"), ME)).id
    done = await (await door.prompt(session, (Text("go"),), ME)).done
    assert done.text == "done"
    assert sizes(script.requests[-1].messages)[0] < 1_000


async def test_compacting_by_hand_says_it_in_our_words() -> None:
    full = fail("context_full", "prompt is too long: 9 tokens > 8")
    script = Scripted([*[call("look")] * 3, say("done"), *[full] * 20])
    door = memory_door(script, [_large(3_000)], mode="full", auto_compact=0.9)
    session = (await door.open(OpenSpec(cwd="/"), ME)).id
    await (await door.prompt(session, (Text("go"),), ME)).done
    done = await (await door.compact(session, ME)).done
    assert done.outcome == "failed" and "does not fit" in done.error


def test_squeezing_cuts_what_was_said_and_given_before() -> None:
    much = "z" * 50_000
    messages = [
        Message("user", (Text(much), Image("image/png", b"x"))),
        Message("assistant", (Text(much), ToolCall("1", "write", {"a": [{"content": much}]}))),
        Message("tool", (ToolResult("1", (Text("ok"),), name="write"),)),
        Message("user", (Text(much),)),
        Message("assistant", (Text(much), ToolCall("2", "write", {"content": much}))),
        Message("tool", (ToolResult("2", (Text("ok"),), name="write"),)),
    ]
    made = squeezed(messages)
    assert made[3:] == tuple(messages[3:])  # the last prompt and the last step stay whole
    assert len(str(made[:3])) < 5_000 and str(made[:3]).count("left out to make room") == 4
    first, second = made[1].content
    assert isinstance(second, ToolCall) and second.args is not None
    assert second.args["a"][0]["content"].startswith("zzz") and second.id == "1"
    ended = squeezed([*messages, Message("user", (Text("and now"),))])
    assert len(str(ended[3:5])) < 60_000  # the call of the last step stays


async def test_a_prompt_that_does_not_fit_keeps_nobody_from_going_on() -> None:
    full = fail("context_full", "prompt is too long: 9 tokens > 8")
    script = Scripted([full, full, full, say("here")])
    door = memory_door(script, [], mode="full")
    session = (await door.open(OpenSpec(cwd="/"), ME)).id
    done = await (await door.prompt(session, (Text("word " * 50_000),), ME)).done
    assert done.outcome == "failed" and "does not fit" in done.error
    done = await (await door.prompt(session, (Text("are you there?"),), ME)).done
    assert done.text == "here"
    sent = str(script.requests[-1].messages)
    assert len(sent) < 5_000 and "are you there?" in sent


async def test_a_model_that_gives_no_summary_goes_on_all_the_same() -> None:
    full = fail("context_full", "prompt is too long: 9 tokens > 8")
    script = Scripted([*[call("look")] * 8, full, say(""), say("done")])
    door = memory_door(script, [_large(4_000)], mode="full", auto_compact=0.9)
    session = (await door.open(OpenSpec(cwd="/"), ME)).id
    done = await (await door.prompt(session, (Text("go"),), ME)).done
    assert done.text == "done" and sizes(script.requests[-1].messages)[0] < 1_000
