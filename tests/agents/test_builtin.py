"""The built-in agent's odd cases: instructions that are no files, compaction, calls of one id."""

import os

import pytest
from tests.engine.tape import ME, Tape

from dragoman.agents.prompt import context_files
from dragoman.engine import events as ev
from dragoman.engine.content import Text, ToolCall, ToolResult
from dragoman.engine.host import OpenSpec
from dragoman.engine.ports import Outcome
from dragoman.testing.host import EchoTool, memory_door
from dragoman.testing.script import Scripted, broken_call, call, call_with, say, think, turn

GO = (Text("go"),)


@pytest.mark.timeout(60)
def test_instructions_that_cannot_be_read_are_passed_over(tmp_path):
    (tmp_path / "AGENTS.md").write_text("the outer rules")
    inner = tmp_path / "a"
    inner.mkdir()
    os.mkfifo(inner / "AGENTS.md")  # would wait for ever
    loop = inner / "b"
    loop.mkdir()
    (loop / "AGENTS.md").symlink_to("AGENTS.md")
    deep = loop / "c"
    deep.mkdir()
    (deep / "AGENTS.md").write_bytes(b"caf\xe9")
    found = context_files(str(deep))
    assert len([text for text in found if str(tmp_path) in text]) == 2
    assert "the outer rules" in found[-2] and "caf" in found[-1]


async def test_a_compaction_summarises_every_result_that_it_does_not_keep():
    """Results whose calls go into the summary must go with them."""

    class Tool(EchoTool):
        async def run(self, args, env):
            return Outcome((Text(f"THE ANSWER IS {args['n']}"),))

    tool = Tool("look", "read")
    script = Scripted(["hello", call("look", n=42), call("look", n=43), "done", "summary"])
    door = memory_door(script, [tool])
    sid = (await door.open(OpenSpec(cwd="/"), ME)).id
    await (await door.prompt(sid, GO, ME)).done
    await (await door.prompt(sid, GO, ME)).done
    roles = [m.role for m in await door.messages(sid)]
    assert roles[-4:] == ["tool", "assistant", "tool", "assistant"]
    await (await door.compact(sid, ME)).done
    kept = await door.messages(sid)
    asked = script.requests[-1].messages[0].content[0].text
    shown = asked + "".join(str(m) for m in kept)
    assert "THE ANSWER IS 42" in shown
    assert kept[1].role == "assistant"


async def test_two_calls_of_one_id_are_two_calls():
    tool = EchoTool("look", "read")
    script = Scripted(
        [
            [call_with("look", {"text": "a"}, id="c"), call_with("look", {"text": "b"}, id="c")],
            "done",
        ]
    )
    door = memory_door(script, [tool])
    sid = (await door.open(OpenSpec(cwd="/"), ME)).id
    tape = Tape()
    await door.watch(sid, ME, tape, lambda said: None)
    done = await (await door.prompt(sid, GO, ME)).done
    assert done.outcome == "completed"
    assert tool.ran == [{"text": "a"}, {"text": "b"}]
    messages = await door.messages(sid)
    calls = [b.id for m in messages for b in m.content if isinstance(b, ToolCall)]
    results = [b.call_id for m in messages for b in m.content if isinstance(b, ToolResult)]
    assert len(set(calls)) == 2 and calls == results
    assert len(tape.of(ev.CallEnded)) == 2


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (turn(stop="refusal"), "The model refused to answer."),
        (turn("I would rather not.", stop="refusal"), "The model refused to answer."),
        (turn("and then the", stop="length"), "The answer is cut."),
        (turn(), "The model ended without a word."),
        (turn(say(" \n")), "The model ended without a word."),
        (turn(think("hm")), "The model ended without a word."),
        (turn("all is well"), ""),
    ],
)
async def test_an_answer_that_is_not_whole_says_so(answer, told):
    """Whoever reads along takes silence for an answer, and a part for the whole, otherwise."""
    door = memory_door(Scripted([call("look"), answer]), [EchoTool("look", "read")])
    sid = (await door.open(OpenSpec(cwd="/"), ME)).id
    tape = Tape()
    await door.watch(sid, ME, tape, lambda said: None)
    done = await (await door.prompt(sid, GO, ME)).done
    assert done.outcome == "completed"
    assert [note.title for note in tape.of(ev.Noted)] == ([told] if told else [])


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        ('{"path": "a", "content": "' + 99 * "x", ("after 125 characters", "xxx\n", "write less")),
        ("{", ("breaks off after 1 character",)),
        ("[1, 2]", ("but a list: [1, 2]",)),
        ("null", ("but null",)),
        ('{"a": 1}{"b": 2}', ("trailing characters", '{"b": 2}')),
        (
            '{"ä": "' + 900 * "x" + '\\q", "b": "' + 900 * "y" + '"}',
            ("invalid escape character in string", 'xxx\\q", "b"'),
        ),
        ('{"a":' + "[" * 5000, ("recursion",)),
        ('{"a":' + "[" * 400 + "]" * 400 + "}", ("nested too deep",)),
    ],
)
async def test_a_call_that_cannot_be_read_hears_what_is_wrong_with_it(raw, told):
    tool = EchoTool("look", "read")
    script = Scripted([broken_call("look", raw), "done"])
    door = memory_door(script, [tool])
    sid = (await door.open(OpenSpec(cwd="/"), ME)).id
    await (await door.prompt(sid, GO, ME)).done
    (result,) = (b for m in await door.messages(sid) for b in m.content if m.role == "tool")
    said = result.content[0].text
    assert not tool.ran and result.is_error and said.startswith("invalid args: ")
    assert all(words in said for words in told) and len(said) < 400, said
