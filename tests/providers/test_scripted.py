import asyncio
import json
from pathlib import Path

import pytest
from tests.providers.parts import read, request, user

from dragoman.engine.content import Message, ToolCall, Usage
from dragoman.engine.faults import BadInput
from dragoman.engine.ports import ModelRetry, ModelStop, ModelText, ModelUsage
from dragoman.providers.registry import ModelRegistry
from dragoman.testing.script import (
    Scripted,
    broken_call,
    call,
    call_with,
    fail,
    hang,
    retry,
    say,
    think,
    turn,
    wait,
)


async def test_each_call_takes_the_next_turn_of_its_session() -> None:
    script = Scripted(["one", say("two"), [say("three "), "and more"]])
    said = [(await read(script.stream(request(script.model, session=s)))).text for s in "aabab"]
    assert said == ["one", "two", "one", "three and more", "two"]


async def test_deltas_are_even_and_whole() -> None:
    script = Scripted([say("abcdefghij", deltas=3), say("two words here")], loop=True)
    first = await read(script.stream(request(script.model)))
    assert [p.text for p in first.parts if isinstance(p, ModelText)] == ["abc", "def", "ghij"]
    second = await read(script.stream(request(script.model)))
    words = [p.text for p in second.parts if isinstance(p, ModelText)]
    assert words == ["two", " words", " here"]
    assert (await read(script.stream(request(script.model)))).text == "abcdefghij"


async def test_calls_thoughts_and_stops() -> None:
    script = Scripted(
        [
            turn(think("hm", "sig"), call("read", path="a"), call_with("ls", {}, id="x")),
            turn(broken_call("read", '{"pa'), stop="length", usage=Usage(7, 3)),
        ]
    )
    seen = await read(script.stream(request(script.model)))
    assert seen.calls == {"call_1": ("read", '{"path":"a"}'), "x": ("ls", "{}")}
    assert seen.thought == "hm" and seen.stop == "tool_use"
    seen = await read(script.stream(request(script.model)))
    assert seen.calls["call_1"] == ("read", '{"pa')
    assert seen.parts[-2:] == [ModelUsage(Usage(7, 3)), ModelStop("length")]


async def test_ids_do_not_repeat_those_of_the_history() -> None:
    script = Scripted([call("ls")])
    before = Message("assistant", (ToolCall("call_1", "ls", {}), ToolCall("call_2", "ls", {})))
    seen = await read(script.stream(request(script.model, user("hi"), before)))
    assert list(seen.calls) == ["call_3"]


async def test_failures_come_where_they_stand() -> None:
    script = Scripted([fail("auth"), turn(say("half"), fail("network", "cut"))])
    first = await read(script.stream(request(script.model)))
    assert first.failure is not None and first.failure.kind == "auth" and first.parts == []
    second = await read(script.stream(request(script.model)))
    assert second.failure is not None and second.failure.message == "cut"
    assert second.text == "half"


async def test_the_end_of_the_script_is_a_failure() -> None:
    script = Scripted([])
    seen = await read(script.stream(request(script.model)))
    assert seen.failure is not None and "only 0 turns" in seen.failure.message


async def test_retry_and_wait() -> None:
    script = Scripted([turn(wait(0.001), retry(1, 0.001, "busy"), "ok")])
    seen = await read(script.stream(request(script.model)))
    assert ModelRetry(1, 0.001, "busy") in seen.parts and seen.text == "ok"


async def test_hang_until_release() -> None:
    script = Scripted([turn("before", hang(), " after")])
    task = asyncio.create_task(read(script.stream(request(script.model))))
    async with asyncio.timeout(60):
        await script.hanging.wait()
        assert not task.done()
        script.release()
        assert (await task).text == "before after"


async def test_hang_until_cancelled() -> None:
    script = Scripted([hang()])
    task = asyncio.create_task(read(script.stream(request(script.model))))
    async with asyncio.timeout(60):
        await script.hanging.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert script.aborted == 1


async def test_resume_goes_on_behind_the_history() -> None:
    script = Scripted(["one", "two"], resume=True)
    history = (user("a"), Message("assistant", ()), user("b"))
    assert (await read(script.stream(request(script.model, *history)))).text == "two"


TURNS = {
    "loop": True,
    "model": {"context_window": 1000, "price_input": 2.0},
    "turns": [
        "plain",
        {
            "parts": [
                {"type": "say", "text": "hi", "deltas": 2, "delay": 0.001},
                {"type": "call", "name": "read", "args": {"path": "x"}, "fragments": 4},
            ],
            "usage": {"input": 5},
        },
    ],
}
TOML = """
loop = true
[model]
context_window = 1000
price_input = 2.0
[[turns]]
parts = [{type = "say", text = "plain"}]
[[turns]]
usage = {input = 5}
parts = [
  {type = "say", text = "hi", deltas = 2, delay = 0.001},
  {type = "call", name = "read", args = {path = "x"}, fragments = 4},
]
"""


@pytest.mark.parametrize(("name", "text"), [("s.json", json.dumps(TURNS)), ("s.toml", TOML)])
async def test_a_file_is_a_model(tmp_path: Path, name: str, text: str) -> None:
    file = tmp_path / name
    file.write_text(text)
    registry = ModelRegistry(env={})
    provider, model = registry.resolve(f"scripted/{file}")
    assert (model.context_window, model.price_input) == (1000, 2.0)
    assert registry.resolve(f"scripted/{file}")[0] is provider
    assert (await read(provider.stream(request(model)))).text == "plain"
    seen = await read(provider.stream(request(model)))
    assert list(seen.calls.values()) == [("read", '{"path":"x"}')]
    assert seen.usage == Usage(5)
    assert (await read(provider.stream(request(model)))).text == "plain"
    await registry.close()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "not valid"),
        ('{"turns":[{"parts":[{"type":"sing"}]}]}', "sing"),
        ('{"turn":[]}', "turn"),
        ('{"turns":[],"model":{"context_window":"big"}}', "context_window"),
    ],
)
def test_a_bad_file_says_what_is_wrong(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "s.json"
    file.write_text(text)
    with pytest.raises(BadInput, match=says):
        ModelRegistry(env={}).resolve(f"scripted/{file}")


def test_a_missing_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot read the script"):
        ModelRegistry(env={}).resolve(f"scripted/{tmp_path}/none.json")
