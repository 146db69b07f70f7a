import asyncio
import json
import time
from typing import Any

import pytest
from tests.providers.parts import Seen, read, request, user
from tests.timed import promised

from dragoman.engine.content import Image, Message, Text, ToolCall, ToolResult
from dragoman.engine.faults import ProviderFailed
from dragoman.engine.ports import ModelStop, ModelText, ToolSpec
from dragoman.providers import leaflet
from dragoman.providers.demo import MODEL, Demo
from dragoman.providers.phrases import parse

NAMES = ("read", "write", "edit", "bash", "ls", "glob", "grep", "ask_user", "plan")
TOOLS = tuple(ToolSpec(name, name, {"type": "object"}) for name in NAMES)


async def say(*messages: Message, tools: tuple[ToolSpec, ...] = TOOLS, **more: Any) -> Seen:
    return await read(Demo().stream(request(MODEL, *messages, tools=tools, **more)))


async def talk(text: str, *results: ToolResult) -> list[Seen]:
    """A whole turn: each step's calls get the next results."""
    history = [user(text)]
    seen: list[Seen] = []
    given = list(results)
    while True:
        one = await say(*history)
        seen.append(one)
        if not one.calls:
            return seen
        calls = [ToolCall(i, n, json.loads(raw)) for i, (n, raw) in one.calls.items()]
        history.append(Message("assistant", (Text(one.text), *calls)))
        answers = []
        for call in calls:
            result = given.pop(0) if given else ToolResult("", (Text("fine"),))
            answers.append(ToolResult(call.id, result.content, result.is_error, call.name))
        history.append(Message("tool", tuple(answers)))


@pytest.mark.parametrize(
    ("text", "tool", "args"),
    [
        ("list the files", "ls", {"path": "."}),
        ("ls", "ls", {"path": "."}),
        ("ls src", "ls", {"path": "src"}),
        ("what is in docs?", "ls", {"path": "docs"}),
        ("Please list the files in src.", "ls", {"path": "src"}),
        ("read README.md", "read", {"path": "README.md"}),
        ("read a.py from line 10 for 5 lines", "read", {"path": "a.py", "offset": 10, "limit": 5}),
        ('read "my file.txt"', "read", {"path": "my file.txt"}),
        ('write "a\\nb" to n.txt', "write", {"path": "n.txt", "content": "a\nb"}),
        ("write hello world to n.txt", "write", {"path": "n.txt", "content": "hello world"}),
        ("create a file x.txt with 'abc'", "write", {"path": "x.txt", "content": "abc"}),
        (
            "edit n.txt replace hello with goodbye",
            "edit",
            {"path": "n.txt", "edits": [{"oldText": "hello", "newText": "goodbye"}]},
        ),
        (
            'replace "a b" with "c d" in n.txt',
            "edit",
            {"path": "n.txt", "edits": [{"oldText": "a b", "newText": "c d"}]},
        ),
        ("run echo hi && ls", "bash", {"command": "echo hi && ls"}),
        ("run `make test`", "bash", {"command": "make test"}),
        ("$ if true; then ls; fi", "bash", {"command": "if true; then ls; fi"}),
        ("search TODO in src", "grep", {"pattern": "TODO", "path": "src"}),
        ("grep 'a b'", "grep", {"pattern": "a b"}),
        ("find *.py", "glob", {"pattern": "*.py"}),
        ("find files named *.md in docs", "glob", {"pattern": "*.md", "path": "docs"}),
        (
            "ask me which colour: red, green or blue",
            "ask_user",
            {"question": "which colour?", "choices": ["red", "green", "blue"]},
        ),
        ("ask me", "ask_user", {"question": "What shall I do next?"}),
    ],
)
async def test_a_request_becomes_a_call(text: str, tool: str, args: dict[str, Any]) -> None:
    seen = await say(user(text))
    [(name, raw)] = seen.calls.values()
    assert (name, json.loads(raw)) == (tool, args)
    assert seen.stop == "tool_use" and leaflet.CONNECT not in seen.text
    assert seen.kinds().count("ModelCallArgs") >= 4  # in fragments


async def test_a_plan_has_entries() -> None:
    seen = await say(user("plan: read the notes, write a summary"))
    [(name, raw)] = seen.calls.values()
    assert name == "plan"
    assert json.loads(raw)["entries"] == [
        {"content": "read the notes", "priority": "medium", "status": "in_progress"},
        {"content": "write a summary", "priority": "medium", "status": "pending"},
    ]


async def test_several_commands_are_several_steps() -> None:
    seen = await talk("say hi then read a.txt then also run ls then count to 3")
    assert [[n for n, _ in one.calls.values()] for one in seen] == [["read"], ["bash"], []]
    assert seen[0].text.startswith("hi\n\n")
    assert seen[2].text.startswith("1 2 3\n\n")


async def test_also_joins_calls_into_one_step() -> None:
    seen = await talk("read a.txt also read b.txt")
    assert [raw for _, raw in seen[0].calls.values()] == ['{"path":"a.txt"}', '{"path":"b.txt"}']
    assert len(seen) == 2


async def test_the_end_tells_what_the_tool_said_and_how_to_go_on() -> None:
    seen = await talk("read a.txt", ToolResult("", (Text("one\ntwo"),)))
    assert "`read` said:\none\ntwo" in seen[1].text
    assert seen[1].text.splitlines()[-1] == leaflet.CONNECT
    assert seen[1].stop == "end_turn"


async def test_long_output_is_cut() -> None:
    text = "\n".join(f"line {n}" for n in range(500))
    seen = await talk("read a.txt", ToolResult("", (Text(text), Image("image/png", b""))))
    assert len(seen[1].text) < 1_500


async def test_a_failed_tool_ends_the_chain() -> None:
    seen = await talk("read a.txt then run ls", ToolResult("", (Text("no such file"),), True))
    assert len(seen) == 2
    assert "did not work: no such file" in seen[1].text and "left out" in seen[1].text


async def test_an_answer_is_repeated() -> None:
    seen = await talk("ask me which colour", ToolResult("", (Text("green"),)))
    assert "You answered: green" in seen[1].text


async def test_a_tool_that_is_not_there_is_named() -> None:
    seen = await say(user("run ls then list"), tools=TOOLS[:1])
    assert seen.calls == {} and "no `bash` tool" in seen.text and "no `ls` tool" in seen.text


async def test_shell_is_bash() -> None:
    seen = await say(user("run ls"), tools=(ToolSpec("shell", "", {}),))
    assert [name for name, _ in seen.calls.values()] == ["shell"]


async def test_ids_are_new_in_every_step() -> None:
    seen = await talk("ls then ls then ls also ls")
    ids = [call_id for one in seen for call_id in one.calls]
    assert len(ids) == len(set(ids)) == 4


async def test_thinking_is_streamed() -> None:
    seen = await say(user("think about the weather"))
    assert "the weather" in seen.thought and seen.usage.reasoning > 0
    assert seen.stop == "end_turn"


async def test_say() -> None:
    seen = await say(user('say "hello, then!"'))
    assert seen.text == f"hello, then!\n\n{leaflet.CONNECT}"


async def test_fail() -> None:
    assert (await say(user("fail"))).failure is not None
    seen = await say(user("fail with overloaded"))
    assert isinstance(seen.failure, ProviderFailed) and seen.failure.kind == "overloaded"


async def test_long_is_many_deltas() -> None:
    seen = await say(user("long 5000"))
    assert seen.kinds().count("ModelText") == 5000
    assert seen.text == "word " * 5000


@promised(2.0)
async def test_counting_slowly_is_paced(within: float) -> None:
    began = time.perf_counter()
    seen = await say(user("count slowly to 4"))
    assert seen.text.startswith("1 2 3 4") and 0.45 < time.perf_counter() - began < within


@promised(0.1)
async def test_counting_slowly_can_be_stopped(within: float) -> None:
    task = asyncio.create_task(say(user("count slowly to 1000")))
    await asyncio.sleep(0.05)
    task.cancel()
    began = time.perf_counter()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.perf_counter() - began < within


async def test_a_pace_of_ones_own_holds_for_slow_counting_too() -> None:
    began = time.perf_counter()
    asked = request(MODEL, user("count slowly to 800"), tools=TOOLS)
    assert (await read(Demo(0.001).stream(asked))).text.startswith("1 2 3 ")
    assert time.perf_counter() - began < 60  # two minutes by its own


async def test_how_to_connect_a_model_is_told_once_in_a_session() -> None:
    first = await say(user("say hello"))
    assert first.text == f"hello\n\n{leaflet.CONNECT}"
    history = [user("say hello"), Message("assistant", (Text(first.text),))]
    assert (await say(*history, user("say bye"))).text == "bye"
    assert leaflet.CONNECT not in (await say(*history, user("what is dragoman?"))).text
    called = Message("assistant", (Text("I will."), ToolCall("c", "ls", {"path": "."})))
    listed = Message("tool", (ToolResult("c", (Text("a.txt"),), False, "ls"),))
    told = await say(*history, user("list the files"), called, listed)
    assert told.text == "`ls` said:\na.txt"


@pytest.mark.parametrize(
    ("question", "says"),
    [
        ("What is Dragoman?", "local agent host"),
        ("which protocols do you speak?", "humanlayer"),
        ("How do I connect a model?", "provider/model"),
        ("how can I use claude here", "ANTHROPIC_API_KEY"),
        ("how do approvals work?", "supervised"),
        ("Which commands are there?", "dragoman run"),
        ("what tools do you have?", "ask_user"),
    ],
)
async def test_questions_are_answered_from_the_leaflet(question: str, says: str) -> None:
    seen = await say(user(question))
    assert says in seen.text and seen.calls == {}
    assert seen.text.endswith(leaflet.CONNECT)


@pytest.mark.parametrize("text", ["hello", "", "write me a poem", "x" * 100_000, "что?"])
async def test_anything_else_says_what_it_can(text: str) -> None:
    seen = await say(user(text))
    assert "no language model" in seen.text and seen.text.endswith(leaflet.CONNECT)


async def test_a_picture_is_acknowledged() -> None:
    seen = await say(Message("user", (Text("hello"), Image("image/png", b"x"))))
    assert "cannot look" in seen.text


async def test_no_message_at_all() -> None:
    seen = await read(Demo().stream(request(MODEL, Message("assistant", ()), tools=TOOLS)))
    assert seen.stop == "end_turn"


async def test_a_digest_is_short_and_honest() -> None:
    talked = "--- user ---\nread a.txt\n\n--- assistant ---\nI will.\n\n--- user ---\nthanks"
    text = f"<conversation>\n{talked}\n</conversation>"
    seen = await say(user(text), tools=(), system="You summarise a conversation")
    assert "does not understand" in seen.text and "asked: read a.txt" in seen.text
    assert leaflet.CONNECT not in seen.text and seen.calls == {}


async def test_usage_is_plausible_and_free() -> None:
    seen = await say(user("say " + "word " * 400))
    assert 450 < seen.usage.input < 550 and 450 < seen.usage.output < 600
    assert MODEL.cost(seen.usage) == 0.0


async def test_text_comes_word_by_word() -> None:
    seen = await say(user("say one two three"))
    words = [part.text for part in seen.parts if isinstance(part, ModelText)]
    assert words[:3] == ["one", " two", " three"]
    assert isinstance(seen.parts[-1], ModelStop)


def test_joiners_in_quotes_belong_to_the_text() -> None:
    steps = parse('write "now then run" to a.txt then run ls')
    assert [[command.verb for command in step] for step in steps] == [["write"], ["run"]]
    assert steps[0][0].args["content"] == "now then run"


def test_matching_is_bounded() -> None:
    began = time.process_time()
    parse("write " + "a to " * 700)
    parse("edit " + "x " * 1_900)
    parse("\n".join(["read " + "b" * 3_000] * 20))
    parse("find " + '"' * 3_900)
    assert time.process_time() - began < 10
