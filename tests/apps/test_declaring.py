"""Apps without a kernel: what they declare and do (`app`, `channel`, `declare`, `work`)."""

import asyncio
from typing import Any

import msgspec
import pytest

from dragoman.apps.app import App
from dragoman.apps.channel import Message
from dragoman.apps.declare import Declared
from dragoman.apps.work import (
    Block,
    Invocation,
    Offered,
    OfferedMethod,
    OfferedProvider,
    OfferedRoute,
    OfferedTool,
    Request,
    intercept,
    run,
)


class Kernel:
    """Keeps what an app sends; what it is asked is answered by `answers`."""

    def __init__(self, **answers: Any) -> None:
        self.sent: list[Any] = []
        self.answers = answers

    async def request(self, method: str, params: Any, *, timeout: float = 0) -> Any:
        self.sent.append((method, params))
        return self.answers.get(method.replace(".", "_"), {})

    def send(self, method: str, params: Any) -> None:
        if "huge" in str(params):
            raise ValueError("the message is too large")
        self.sent.append((method, params))

    async def close(self) -> None:
        self.sent.append("closed")


@pytest.fixture
def app() -> Any:
    made: Any = App("@me/weather", name="Weather")
    made._kernel = Kernel(agent_queue={"runId": 5}, message_dispatch={"queued": 0})
    return made


def kernel_of(app: Any) -> Any:
    """What stands in for the kernel; `sent` is what it was told."""
    return app._kernel


def tell(app: Any, name: str, payload: Any) -> None:
    """An event of the kernel."""
    app._event(name, payload)


def chunk(app: Any, watch: str, value: Any, last: bool) -> None:
    """A piece of a stream that the app follows."""
    app._chunk(watch, value, last)


async def done(app: Any) -> None:
    """Wait for what the app does of its own accord."""
    await asyncio.gather(*app._tasks.values())


# --- declare ---


def test_declare_makes_a_manifest_of_what_was_decorated(app: Any) -> None:
    @app.tool(kind="fetch")
    def weather(city: str, call: Invocation) -> str:
        """Tell the weather."""
        return city

    app.method("m.x")(lambda params: params)
    app.route("/a", public=True)(lambda request: "")
    app.channel("telegram")
    app.intercept("before_tool_call")(lambda data, context: None)
    app.observe("agent_end")(lambda data, context: None)
    can = app.manifest()["capabilities"]
    assert can["tools"] == {"provides": ["weather"]} and can["channels"] == {
        "provides": ["telegram"]
    }
    assert can["gateway"] == {"methods": ["m.x"], "httpRoutes": ["/a"]}
    assert can["hooks"] == {
        "subscribes": ["agent_end", "message_sending"], "intercepts": ["before_tool_call"],
    }  # fmt: skip
    offered = app._offered["tool", "weather"].config
    assert offered["description"] == "Tell the weather."
    assert list(offered["parameters"]["properties"]) == ["city"]  # the call is not the model's


def test_declare_refuses_a_decorator_without_parentheses() -> None:
    with pytest.raises(TypeError, match="parentheses"):
        Declared("x", "", "", "").tool(lambda: None)


def test_declare_the_same_channel_is_one(app: Any) -> None:
    assert app.channel("a") is app.channel("a") and app.name == "Weather"


def test_app_needs_an_id(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENCLAWOS_APP_ID", raising=False)
    with pytest.raises(ValueError, match="needs an id"):
        App()
    monkeypatch.setenv("OPENCLAWOS_APP_ID", "@env/app")
    assert App().id == "@env/app"


# --- channel ---


async def test_channel_hands_in_what_somebody_wrote(app: Any) -> None:
    assert await app.channel("tg").received("42", "hello", topic="x") == "5"
    assert kernel_of(app).sent[-1] == (
        "agent.queue",
        {
            "sessionKey": "tg:42",
            "text": "hello",
            "metadata": {"channelId": "tg", "from": "42", "topic": "x"},
        },
    )


async def test_app_without_a_connection_says_so() -> None:
    with pytest.raises(ConnectionError, match="not connected"):
        await App("@a/b").config("x")


async def test_app_asks_in_the_protocols_words(app: Any) -> None:
    assert await app.dispatch("k", "t", a=1) is False
    kernel_of(app).answers |= {"config_get": {"value": 1}, "session_list": {"sessions": []}}
    assert await app.config("a.b") == 1 and await app.sessions(agent="x") == []
    assert kernel_of(app).sent[-1] == ("session.list", {"filter": {"agent": "x"}})


# --- app ---


async def test_app_delivers_in_turn_after_its_own_interceptors(app: Any) -> None:
    got: list[Message] = []
    channel = app.channel("tg")
    channel.deliver(lambda message: keep(got, message))
    app.intercept("message_sending")(lambda data, context: {"content": data["content"] + "!"})
    for text in ("one", "two"):
        data = {"channelId": "tg", "target": "42", "content": text}
        tell(app, "hook:message_sending", {"eventId": "e", "data": data})
    await done(app)
    assert [one.text for one in got] == ["one!", "two!"] and got[0].target == "42"


async def keep(into: list[Any], value: Any) -> None:
    await asyncio.sleep(0)
    into.append(value)


async def test_app_does_not_deliver_what_it_blocks_itself(app: Any) -> None:
    got: list[Message] = []
    app.channel("tg").deliver(lambda message: keep(got, message))
    app.intercept("message_sending")(lambda data, context: Block("no"))
    tell(app, "hook:message_sending", {"data": {"channelId": "tg", "content": "x"}})
    await done(app)
    assert got == []


async def test_app_answers_an_interception_and_forgets_the_rest_of_a_broken_lane(
    app: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    app.intercept("before_tool_call")(lambda data, context: {"params": {}})
    seen: list[Any] = []

    @app.observe("agent_end")
    def observe(data: Any, context: Any) -> None:
        seen.append(data)
        if len(seen) == 1:
            raise ValueError("first breaks")

    tell(app, "hook:before_tool_call", {"eventId": "e1", "data": {"a": 1}})
    tell(app, "hook:agent_end", {"data": {"n": 1}})
    tell(app, "hook:agent_end", {"data": {"n": 2}})
    tell(app, "hook:unknown", {"data": None, "context": None})
    await done(app)
    assert ("hook.result", {"eventId": "e1", "result": {"params": {}}}) in kernel_of(app).sent
    assert seen == [{"n": 1}, {"n": 2}] and "first breaks" in capsys.readouterr().err


async def test_app_says_when_a_result_is_too_large(app: Any) -> None:
    app._sender("e1")("huge")
    assert kernel_of(app).sent == [
        (
            "hook.result",
            {"eventId": "e1", "result": {"error": {"message": "the message is too large"}}},
        )
    ]


async def test_app_tells_changes_of_the_configuration(app: Any) -> None:
    told: list[Any] = []
    app._watched["watch-0"] = lambda path, old, new: told.append((path, old, new))
    chunk(app, "watch-0", {"path": "a", "oldValue": 1, "newValue": 2}, False)
    chunk(app, "watch-0", None, True)
    chunk(app, "other", {"path": "b"}, False)
    await done(app)
    assert told == [("a", 1, 2)]


async def test_app_cancels_a_call_that_nobody_waits_for(app: Any) -> None:
    begun = asyncio.Event()

    @app.tool()
    async def slow() -> str:
        begun.set()
        await asyncio.Event().wait()
        return ""

    tell(app, "capability:invoke", {"eventId": "e1", "type": "tool", "name": "slow"})
    await begun.wait()
    (task,) = app._tasks.values()
    tell(app, "capability:cancel", {"eventId": "e1"})
    with pytest.raises(asyncio.CancelledError):
        await task
    assert app._tasks == {}


async def test_app_holds_what_follows_in_a_lane_that_has_just_ended(app: Any) -> None:
    over: list[int] = []

    @app.observe("agent_end")
    async def observe(data: Any, context: Any) -> None:
        if data["n"] == 2:
            await asyncio.sleep(0)  # it goes on when the end of the lane is told
        over.append(data["n"])

    tell(app, "hook:agent_end", {"data": {"n": 1}})
    await asyncio.sleep(0)
    assert over == [1]  # the lane has ended, and nobody was told so far
    tell(app, "hook:agent_end", {"data": {"n": 2}})
    await asyncio.sleep(0)
    await done(app)
    assert over == [1, 2]


# --- work ---


@pytest.mark.parametrize(
    ("result", "answer"),
    [
        ("text", {"content": "text"}),
        (None, {"content": ""}),
        ({"n": 1}, {"content": '{"n":1}'}),
        ({"content": "as it is", "more": 1}, {"content": "as it is", "more": 1}),
        ({"error": {"message": "x"}}, {"error": {"message": "x"}}),
    ],
)
async def test_work_a_tools_result_becomes_content(result: Any, answer: Any) -> None:
    offered = OfferedTool("t", lambda **given: result, {})
    assert await offered.serve({"params": None}, lambda said: None) == answer


async def test_work_gives_the_call_to_those_who_want_it() -> None:
    said: list[Any] = []

    def tool(x: int, call: Invocation) -> str:
        call.progress("half")
        return f"{x} for {call.session} by {call.name}"

    payload = {"name": "t", "params": {"x": 1}, "context": {"sessionKey": "k"}}
    assert await OfferedTool("t", tool, {}).serve(payload, said.append) == {
        "content": "1 for k by t"
    }
    assert said == [{"done": False, "progress": "half"}]


async def test_work_that_fails_is_answered_and_reported(
    capsys: pytest.CaptureFixture[str],
) -> None:
    said: list[Any] = []
    await run(OfferedMethod("m", lambda params: 1 / 0, {}), {}, said.append)
    await run(Offered("x", lambda: None, {}), {}, said.append)
    assert said[0] == {"error": {"message": "ZeroDivisionError: division by zero"}}
    assert "is not called" in said[1]["error"]["message"]
    assert "gateway_method m failed" in capsys.readouterr().err


async def test_work_routes_take_requests_and_give_bodies() -> None:
    offered = OfferedRoute("/a", lambda request: request.json(), {})
    given = {"params": {"method": "POST", "body": '"x"'}}
    assert await offered.serve(given, lambda said: None) == {"status": 200, "body": "x"}
    with pytest.raises(msgspec.DecodeError):
        Request(body="{").json()


async def test_work_providers_stream_texts_and_parts() -> None:
    async def model(asked: Any) -> Any:
        yield "a"
        yield {"usage": {"input": 1}}

    said: list[Any] = []
    assert await OfferedProvider("p", model, {}).serve({}, said.append) == {"done": True}
    assert said == [{"text": "a", "done": False}, {"usage": {"input": 1}, "done": False}]


async def test_work_interceptors_see_what_those_before_changed() -> None:
    async def first(data: Any, context: Any) -> Any:
        return {"a": data["a"] + 1}

    async def second(data: Any, context: Any) -> Any:
        return {"b": data["a"]}

    async def no(data: Any, context: Any) -> Any:
        return Block("because")

    async def broken(data: Any, context: Any) -> Any:
        raise ValueError("x")

    assert await intercept([first, second], {"a": 1}, {}) == {"result": {"a": 2, "b": 2}}
    assert await intercept([first, no, second], {"a": 1}, {}) == {
        "result": {"block": True, "blockReason": "because"}
    }
    assert (await intercept([broken], {}, {}))["result"]["error"]["message"] == "ValueError: x"
    assert await intercept([], {}, {}) == {}
