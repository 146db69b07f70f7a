"""One model call gathered (`reply`), and a long history made short (`compaction`)."""

from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

from dragoman.agents.compaction import KEEP, _flat, _within, summarise, too_much
from dragoman.agents.reply import Reply, streaming
from dragoman.engine.content import Image, Message, Text, Thinking, ToolCall, ToolResult, Usage
from dragoman.engine.faults import BadInput, ProviderFailed
from dragoman.engine.ports import (
    ModelCallArgs,
    ModelCallBegan,
    ModelCallEnded,
    ModelInfo,
    ModelOpened,
    ModelRetry,
    ModelStop,
    ModelText,
    ModelThought,
    ModelUsage,
)
from dragoman.testing.script import Scripted, fail


class Turn:
    """A turn that notes what it is told."""

    def __init__(self, *messages: Message) -> None:
        self.messages = list(messages)
        self.info = SimpleNamespace(id="s", cwd="/")
        self.log: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *words, **more: self.log.append((name, *words, *more.values()))

    async def compacted(self, summary: str, kept: int, usage: Usage, cost: float, **_: Any) -> None:
        self.log.append(("compacted", summary, kept, usage.output))


def gathered(*parts: Any, turn: Turn | None = None) -> Reply:
    reply = Reply(turn or Turn(), 1)
    for part in parts:
        reply.take(part)
    return reply


# --- reply ---


def test_reply_joins_pieces_and_keeps_thoughts_apart_at_their_signature() -> None:
    reply = gathered(
        ModelThought("a"), ModelThought("b", "sig"), ModelThought("c"), ModelText("x"),
        ModelText("y"), ModelThought("", "only"), ModelUsage(Usage(1, 2)), ModelStop("end_turn"),
    )  # fmt: skip
    assert reply.content() == (
        Thinking("ab", "sig"), Thinking("c"), Text("xy"), Thinking("", "only"),
    )  # fmt: skip
    assert (reply.usage, reply.stop) == (Usage(1, 2), "end_turn")


@pytest.mark.parametrize("raw", ["{", "[1]", "5", '"x"', "[" * 3_000, '{"a": "\\ud800"'])
def test_reply_arguments_that_are_no_object_are_kept_as_they_came(raw: str) -> None:
    reply = gathered(ModelCallBegan("c", "t"), ModelCallArgs("c", raw), ModelCallEnded("c"))
    assert reply.content() == (ToolCall("c", "t", None, raw),)
    assert reply.content(calls=False) == ()


def test_reply_gives_every_call_an_id_of_its_own() -> None:
    turn = Turn(Message("assistant", (ToolCall("c", "t", {}),)))
    reply = gathered(
        ModelCallBegan("c", "t"), ModelCallArgs("c", '{"n":'), ModelCallArgs("c", "1}"),
        ModelCallBegan("", "u"), ModelCallArgs("", "  "), turn=turn,
    )  # fmt: skip
    assert reply.content() == (ToolCall("c-2", "t", {"n": 1}), ToolCall("call", "u", {}))
    assert ("call_drafted", "c-2", "t") in turn.log


def test_reply_forgets_what_a_retry_makes_void() -> None:
    turn = Turn()
    reply = gathered(
        ModelOpened(), ModelText("lost"), ModelCallBegan("c", "t"), ModelRetry(1, 0.5, "cut"),
        ModelOpened(), ModelText("kept"), turn=turn,
    )  # fmt: skip
    assert reply.content() == (Text("kept"),)
    assert [words[0] for words in turn.log].count("stream_opened") == 1


async def test_reply_streaming_closes_the_stream_however_it_is_left() -> None:
    closed: list[bool] = []

    class Provider:
        async def stream(self, request: Any) -> AsyncIterator[Any]:
            try:
                yield ModelText("x")
                yield ModelText("y")
            finally:
                closed.append(True)

    with pytest.raises(ZeroDivisionError):
        async with streaming(Provider(), None) as parts:
            async for _ in parts:
                raise ZeroDivisionError
    assert closed == [True]


# --- compaction ---

MODEL = ModelInfo("p", "m", context_window=1_000, price_output=1.0)


def history(count: int) -> list[Message]:
    return [Message("user" if n % 2 == 0 else "assistant", (Text(f"word {n} " * 99),))
            for n in range(count)]  # fmt: skip


async def test_compaction_keeps_the_tail_and_no_result_without_its_call() -> None:
    turn = Turn(*history(6))
    turn.messages[-4] = Message("tool", (ToolResult("c", (Text("r"),)),))
    assert await summarise(turn, Scripted(["the sum"]), MODEL, automatic=False) == "the sum"
    assert turn.log[-1][:3] == ("compacted", "the sum", KEEP - 1)


@pytest.mark.parametrize("count", [0, KEEP])
async def test_compaction_of_next_to_nothing_is_refused(count: int) -> None:
    turn = Turn(*history(count))
    with pytest.raises(BadInput, match="nothing to compact"):
        await summarise(turn, Scripted([]), MODEL, automatic=True)
    assert turn.log == []


async def test_compaction_takes_less_when_the_window_is_smaller_than_told() -> None:
    script = Scripted([fail("context_full", "too long"), "sum"])
    turn = Turn(*history(60))
    assert await summarise(turn, script, MODEL, automatic=True) == "sum"
    first, second = (len(request.messages[0].content[0].text) for request in script.requests)
    assert second < first / 2


async def test_compaction_that_never_fits_says_so_in_our_words() -> None:
    turn = Turn(*history(9))
    with pytest.raises(ProviderFailed, match="does not fit") as found:
        await summarise(turn, Scripted([fail("context_full", "x")] * 9), MODEL, automatic=True)
    assert found.value.hint == too_much(found.value).hint and turn.log[-1][0] == "uncompacted"
    with pytest.raises(ProviderFailed, match="empty summary"):
        await summarise(Turn(*history(9)), Scripted(["  "]), MODEL, automatic=True)


def test_compaction_shows_the_summariser_beginning_and_end() -> None:
    said = "a" * 100 + "b" * 100
    assert _within(said, 200) == said
    assert _within(said, 40) == "a" * 10 + "\n\n[...]\n\n" + "b" * 30


def test_compaction_flattens_every_kind_of_block() -> None:
    flat = _flat(
        Message(
            "assistant",
            (
                Text("words"), Thinking("gone"), ToolCall("c", "t", {"a": 1}),
                ToolResult("c", (Text("x" * 9_000), Image("image/png", b"1")), True),
                Image("image/png", b"12"),
            ),
        )
    ).split("\n")  # fmt: skip
    assert flat[:3] == ["--- assistant ---", "words", '[tool_call t {"a":1}]']
    assert flat[3].startswith("[tool_result error] xxx") and len(flat[3]) < 4_100
    assert flat[4] == "[image: image/png, 2 bytes]"
