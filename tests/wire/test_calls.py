"""Requests of ours: each gets its own answer, once, or says why not."""

import asyncio
import json
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from dragoman.wire.calls import CallFailed, LinkLost, Outbound, TooManyCalls
from dragoman.wire.jsonrpc import Response


def outbound(**more: Any) -> tuple[Outbound, list[dict[str, Any]]]:
    sent: list[dict[str, Any]] = []
    return Outbound(lambda data: sent.append(json.loads(data)), **more), sent


def answer(id: Any, **more: Any) -> Response:
    return msgspec.convert({"id": id, **more}, Response)


async def test_answers_find_their_requests_in_any_order() -> None:
    calls, sent = outbound()
    first, one = calls.begin("a", {"x": 1})
    second, two = calls.begin("b")
    assert [(line["id"], line["method"]) for line in sent] == [(first, "a"), (second, "b")]
    assert sent[0]["params"] == {"x": 1} and "params" not in sent[1]
    assert calls.settle(answer(second, result=Raw(b"2"))) and calls.settle(
        answer(first, result=Raw(b"1"))
    )
    assert (bytes(await one), bytes(await two)) == (b"1", b"2")
    await asyncio.sleep(0)
    assert calls.pending == 0


@pytest.mark.parametrize("id", [None, True, "zc-out-9", "0", 0, 1.5])
async def test_what_nobody_waits_for_is_ignored(id: Any) -> None:
    calls, _ = outbound()
    _, future = calls.begin("a")
    assert calls.settle(answer(id, result=Raw(b"1"))) is False
    assert not future.done() and calls.pending == 1
    future.cancel()


async def test_a_number_is_as_good_as_its_text() -> None:
    calls, _ = outbound(prefix="")
    key, future = calls.begin("a")
    assert key == "0" and calls.settle(answer(0, result=Raw(b"7")))
    assert bytes(await future) == b"7"


async def test_a_second_answer_changes_nothing() -> None:
    calls, _ = outbound()
    key, future = calls.begin("a")
    assert calls.settle(answer(key, result=Raw(b"1")))
    assert calls.settle(answer(key, result=Raw(b"2"))) is False
    assert bytes(await future) == b"1"
    assert calls.settle(answer(key, result=Raw(b"3"))) is False


async def test_an_error_is_raised_with_what_it_carries() -> None:
    calls, _ = outbound()
    key, future = calls.begin("a")
    calls.settle(answer(key, error={"code": -5, "message": "no", "data": Raw(b'{"why":1}')}))
    with pytest.raises(CallFailed, match=r"no \(-5\)") as caught:
        await future
    assert (caught.value.code, bytes(caught.value.data or b"")) == (-5, b'{"why":1}')
    key, future = calls.begin("a")
    calls.settle(answer(key, error={"code": 1, "message": "m"}))
    with pytest.raises(CallFailed) as caught:
        await future
    assert caught.value.data is None


async def test_a_lost_connection_tells_all_who_wait_and_refuses_more() -> None:
    calls, sent = outbound()
    waiting = [calls.begin("a")[1] for _ in range(3)]
    calls.lose()
    for future in waiting:
        with pytest.raises(LinkLost, match="went away"):
            await future
    with pytest.raises(LinkLost, match="closed"):
        calls.begin("a")
    await asyncio.sleep(0)
    assert len(sent) == 3 and calls.pending == 0


async def test_there_is_a_bound_and_room_again_after_an_answer() -> None:
    calls, sent = outbound(most=2)
    key, first = calls.begin("a")
    _, second = calls.begin("a")
    with pytest.raises(TooManyCalls, match="2 requests"):
        calls.begin("a")
    assert len(sent) == 2
    calls.settle(answer(key, result=Raw(b"1")))
    await first
    await asyncio.sleep(0)  # its callback makes the room
    calls.begin("a")[1].cancel()
    second.cancel()


async def test_time_runs_out_and_the_late_answer_is_ignored() -> None:
    calls, sent = outbound()
    with pytest.raises(TimeoutError):
        await calls.call("slow", within=0)
    assert calls.pending == 0
    assert calls.settle(answer(sent[0]["id"], result=Raw(b"1"))) is False


async def test_a_notification_has_no_id() -> None:
    calls, sent = outbound()
    calls.notify("told", [1])
    assert sent == [{"jsonrpc": "2.0", "method": "told", "params": [1]}] and calls.pending == 0
