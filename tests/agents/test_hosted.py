"""Other agents as child processes: their words, calls and questions become ours."""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.engine.tape import ME, Tape

from dragoman.engine import events as ev
from dragoman.engine.content import Image, Text, ToolCall, text_of
from dragoman.engine.faults import AlreadySettled
from dragoman.engine.host import OpenSpec
from dragoman.engine.shown import whole
from dragoman.host.compose import Composed

from .conftest import AGENT


class Talk:
    def __init__(self, host: Composed, session: str, tape: Tape) -> None:
        self.host, self.door, self.id, self.tape = host, host.door, session, tape

    async def prompt(self, *content: Any) -> Any:
        blocks = tuple(Text(one) if isinstance(one, str) else one for one in content)
        return await self.door.prompt(self.id, blocks, ME)

    async def say(self, *content: Any) -> Any:
        async with asyncio.timeout(60):
            return await (await self.prompt(*content)).done


async def talk(host: Composed, tmp_path: Path, **spec: Any) -> Talk:
    info = await host.door.open(OpenSpec(cwd=str(tmp_path / "work"), **spec), ME)
    tape = Tape()
    await host.door.watch(info.id, ME, tape, lambda said: None, exact=True)
    return Talk(host, info.id, tape)


async def test_words_thoughts_and_plans(hosts, tmp_path: Path) -> None:
    one = await talk(await hosts(), tmp_path)
    done = await one.say("think hard")
    assert (done.outcome, done.stop, done.text) == ("completed", "end_turn", "a b c")
    assert one.tape.text() == "a b c"
    assert [body.text for body in one.tape.of(ev.ThoughtDelta)] == ["hard"]
    assert [entry.content for entry in one.tape.of(ev.Planned)[0].entries] == ["one", "two"]
    assert (await one.door.info(one.id)).model == "hosted/other"
    done = await one.say("hello", Image("image/png", b"\x89PNG"))
    assert done.text == "you said: hello\n[image]"


async def test_its_calls_are_asked_about_and_kept_like_ours(hosts, tmp_path: Path) -> None:
    one = await talk(await hosts(), tmp_path)
    work = await one.prompt("tool a.txt")
    asked = (await one.tape.until(ev.Asked)).body.ask
    assert (asked.kind, asked.tool, asked.call_id) == ("tool", "edit", "call-1")
    assert "Touch a.txt" in asked.summary
    assert (await one.door.info(one.id)).status == "waiting_input"
    await one.door.answer(asked.id, "allow", ME)
    done = await work.done
    assert done.text == "Answered: yes." and (tmp_path / "work/a.txt").read_text() == "touched"
    kinds = [k for k in one.tape.kinds() if k not in ("TextDelta", "StepBegan", "StreamOpened")]
    assert kinds == [
        "TurnBegan", "StatusChanged", "ExtraSet", "CallDrafted", "CallArgs", "CallReady", "Spoke",
        "Asked", "StatusChanged", "Settled", "StatusChanged", "CallStarted", "CallEnded", "Spoke",
        "TurnEnded", "StatusChanged",
    ]  # fmt: skip
    ended = one.tape.of(ev.CallEnded)[0]
    assert (ended.outcome, text_of(ended.content)) == ("done", "touched a.txt")
    roles = [message.role for message in await one.door.messages(one.id)]
    assert roles == ["user", "assistant", "tool", "assistant"]


async def test_what_it_says_later_of_a_call_is_kept(hosts, tmp_path: Path) -> None:
    one = await talk(await hosts(), tmp_path, mode="full")
    assert (await one.say("refine hi")).outcome == "completed"
    said = [body.args for body in one.tape.of(ev.CallRefined)]
    assert said[0] == {"command": "ec"} and said[-1] == {"command": "echo hi"}
    for state in (await one.door.look(one.id), await one.host.door._host.rebuild(one.id)):
        calls = [b for m in state.messages for b in m.content if isinstance(b, ToolCall)]
        assert [c.args for c in calls] == [{"command": "echo hi"}]


async def test_no_is_no(hosts, tmp_path: Path) -> None:
    one = await talk(await hosts(), tmp_path)
    work = await one.prompt("tool a.txt")
    asked = (await one.tape.until(ev.Asked)).body.ask
    await one.door.answer(asked.id, "deny", ME, comment="not now")
    assert (await work.done).text == "Answered: no."
    assert not (tmp_path / "work/a.txt").exists()
    assert one.tape.of(ev.CallEnded)[0].outcome == "denied"


@pytest.mark.parametrize(
    ("mode", "said", "there"), [("full", "yes", True), ("readonly", "no", False)]
)
async def test_modes_answer_by_themselves(hosts, tmp_path, mode, said, there) -> None:
    one = await talk(await hosts(), tmp_path, mode=mode)
    assert (await one.say("tool a.txt")).text == f"Answered: {said}."
    assert one.tape.of(ev.Asked) == []
    assert (tmp_path / "work/a.txt").exists() is there


async def test_a_path_outside_is_refused_without_a_question(hosts, tmp_path: Path) -> None:
    one = await talk(await hosts(), tmp_path)
    done = await one.say(f"tool {tmp_path}/config/config.toml")
    assert done.text == "Answered: no." and one.tape.of(ev.Asked) == []


async def test_calls_side_by_side(hosts, tmp_path: Path) -> None:
    one = await talk(await hosts(), tmp_path)
    assert (await one.say("two")).text == "Both read."
    ended = [(e.call_id, e.outcome, text_of(e.content)) for e in one.tape.of(ev.CallEnded)]
    assert ended == [("a", "done", "read a"), ("b", "done", "read b")]


async def test_a_question_with_choices(hosts, tmp_path: Path) -> None:
    one = await talk(await hosts(), tmp_path)
    work = await one.prompt("choose red green")
    asked = (await one.tape.until(ev.Asked)).body.ask
    assert (asked.kind, asked.choices) == ("question", ("red", "green"))
    await one.door.answer(asked.id, "answer", ME, text="green")
    assert (await work.done).text == "green"


async def test_files_and_commands_through_us_stay_inside_and_are_asked_about(
    hosts, tmp_path: Path
) -> None:
    work, one = tmp_path / "work", await talk(await hosts(), tmp_path)
    (work / "in.txt").write_text("inside")
    (tmp_path / "out.txt").write_text("outside")
    assert (await one.say(f"read {work}/in.txt")).text == "inside"
    assert (await one.say(f"read {tmp_path}/out.txt")).text.startswith("refused")
    for prompt, told in ((f"write {work}/b.txt hello", "written"), ("run echo $((6*7))", "0: 42")):
        one.tape.events.clear()
        running = await one.prompt(prompt)
        asked = (await one.tape.until(ev.Asked)).body.ask
        await one.door.answer(asked.id, "allow", ME)
        assert (await running.done).text == told
    assert (work / "b.txt").read_text() == "hello"
    one.tape.events.clear()
    running = await one.prompt(f"write {tmp_path}/out.txt no")
    asked = (await one.tape.until(ev.Asked)).body.ask  # outside of the boundary: a question
    await one.door.answer(asked.id, "deny", ME)
    assert (await running.done).text.startswith("refused")
    assert (tmp_path / "out.txt").read_text() == "outside"


async def test_cancelling(hosts, tmp_path: Path) -> None:
    one = await talk(await hosts(), tmp_path)
    for prompt in ("wait", "deaf"):
        one.tape.events.clear()
        running = await one.prompt(prompt)
        await one.tape.until(ev.TextDelta)
        one.door.cancel(one.id)
        async with asyncio.timeout(60):
            done = await running.done
        assert (done.outcome, done.stop) == ("cancelled", "aborted")
    assert (await one.say("again")).text == "you said: again"


async def test_cancelling_a_question(hosts, tmp_path: Path) -> None:
    one = await talk(await hosts(), tmp_path)
    running = await one.prompt("tool a.txt")
    await one.tape.until(ev.Asked)
    one.door.cancel(one.id)
    assert (await running.done).outcome == "cancelled"
    assert (await one.door.asks(one.id)) == []
    assert one.tape.of(ev.CallEnded)[-1].outcome == "cancelled"


async def test_an_answer_that_is_not_whole_says_so(hosts, tmp_path: Path) -> None:
    one = await talk(await hosts(), tmp_path)
    for stop, kept in (("refusal", "refusal"), ("max_tokens", "length"), ("end_turn", "end_turn")):
        done = await one.say(f"stop {stop}")
        assert (done.outcome, done.stop) == ("completed", kept)
    told = [note.title for note in one.tape.of(ev.Noted)]
    assert told == ["The model refused to answer.", "The answer is cut."]


async def test_a_death_is_told_and_the_next_prompt_takes_the_conversation_up(
    hosts, tmp_path: Path
) -> None:
    one = await talk(await hosts(), tmp_path)
    assert (await one.say("first words")).outcome == "completed"
    done = await one.say("die")
    assert done.outcome == "failed"
    assert "ended with code 3" in done.error and "something went wrong" in done.error
    assert one.tape.of(ev.CallEnded)[-1].outcome == "unknown"
    done = await one.say("remembered")
    assert done.text == "first words"  # nothing of the replay is said again
    assert "long ago" not in one.tape.text()


async def test_a_restart_of_the_host(hosts, tmp_path: Path) -> None:
    first = await hosts()
    one = await talk(first, tmp_path)
    await one.say("first words")
    await first.close()
    second = await hosts()
    async with asyncio.timeout(60):
        done = await (await second.door.prompt(one.id, (Text("remembered"),), ME)).done
    assert done.text == "first words"


async def test_a_child_without_memory_is_told_what_was_said(hosts, tmp_path: Path) -> None:
    first = await hosts(args=[AGENT])
    one = await talk(first, tmp_path)
    await one.say("first words")
    await first.close()
    second = await hosts(args=[AGENT])
    async with asyncio.timeout(60):
        done = await (await second.door.prompt(one.id, (Text("hello"),), ME)).done
    assert "user: first words" in done.text and done.text.endswith("hello")


async def test_an_answer_after_a_restart_finds_nobody(hosts, tmp_path: Path) -> None:
    first = await hosts()
    one = await talk(first, tmp_path)
    await one.prompt("tool a.txt")
    asked = (await one.tape.until(ev.Asked)).body.ask
    await first.close()
    second = await hosts()
    await second.host.recover()
    tape = Tape()
    await second.door.watch(one.id, ME, tape, lambda said: None)
    await second.door.answer(asked.id, "allow", ME)
    ended = (await tape.until(ev.TurnEnded)).body
    assert ended.outcome == "failed" and "Send the prompt again" in ended.error
    assert tape.of(ev.CallEnded)[0].outcome == "cancelled"


@pytest.mark.parametrize(
    ("args", "said"),
    [(["-c", "import sys; sys.exit('no key')"], "no key"), (["-c", "print('hello')"], "code 0")],
)
async def test_programs_that_are_no_agents(hosts, tmp_path: Path, args, said) -> None:
    one = await talk(await hosts(args=args), tmp_path)
    done = await one.say("hi")
    assert done.outcome == "failed" and said in done.error


async def test_its_own_failure_is_told(hosts, tmp_path: Path) -> None:
    one = await talk(await hosts(), tmp_path)
    done = await one.say("fail")
    assert done.outcome == "failed" and "the model is on fire" in done.error
    assert (await one.say("still there?")).text == "you said: still there?"


async def test_it_is_given_our_servers(hosts, tmp_path: Path) -> None:
    more = '[mcp.tools]\ncommand = "/does/not/exist"\n[mcp.far]\nurl = "http://127.0.0.1:1/"\n'
    one = await talk(await hosts(more), tmp_path)
    assert (await one.say("servers")).text == "tools"  # it cannot do HTTP


async def test_the_child_ends_with_the_session(hosts, tmp_path: Path) -> None:
    host = await hosts()
    one = await talk(host, tmp_path)
    await one.say("hi")
    pid = host.roster.hosted._seats[one.id].child.pid
    assert (
        Path(f"/proc/{pid}").exists()
        and host.descendants.refuses(pid)
        and pid in host.descendants.branded
    )
    await one.door.close(one.id)
    assert not Path(f"/proc/{pid}").exists() and pid not in host.descendants.branded


async def test_we_host_ourselves(hosts, tmp_path: Path, monkeypatch) -> None:
    """`dragoman acp` as the child: an approval passes through both hosts."""
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "config.toml").write_text('[agents.default]\nmodel = "demo/demo"\n')
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    args = ["-m", "dragoman", "acp", "--config-dir", str(inner)]
    one = await talk(await hosts(args=args), tmp_path)
    running = await one.prompt("run echo from-the-inner-host")
    async with asyncio.timeout(60):
        asked = (await one.tape.until(ev.Asked)).body.ask
        assert "echo from-the-inner-host" in str(asked.args) + asked.summary
        await one.door.answer(asked.id, "allow", ME)
        done = await running.done
    assert done.outcome == "completed"
    ended = one.tape.of(ev.CallEnded)
    assert [e.outcome for e in ended] == ["done"]
    assert "from-the-inner-host" in text_of(ended[0].content)


async def test_a_question_of_its_own_shows_the_file_as_it_is(hosts, tmp_path: Path) -> None:
    """The agent draws a new file; there is one, and it changes while the human reads."""
    one = await talk(await hosts(), tmp_path)
    file = tmp_path / "work" / "a.txt"
    file.write_text("precious\n")
    running = await one.prompt(f"replace {file} mine")
    first = (await one.tape.until(ev.Asked)).body.ask
    assert [(c.old, c.new) for c in first.changes] == [("precious\n", "mine")]
    assert "replaces a file" in first.changes[0].note and "precious" in whole(first)
    file.write_text("more precious\n")
    await one.door.answer(first.id, "allow", ME, digest=first.digest)
    again = (await one.tape.until(ev.Asked, lambda e: e.body.ask.id != first.id)).body.ask
    assert again.digest != first.digest and "asked again" in again.reason
    assert [c.old for c in again.changes] == ["more precious\n"]
    with pytest.raises(AlreadySettled):  # the answer to the first was about the first
        await one.door.answer(first.id, "allow", ME)
    await one.door.answer(again.id, "allow", ME, digest=again.digest)
    async with asyncio.timeout(60):
        assert (await running.done).text == "Answered: yes."
