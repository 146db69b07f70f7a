"""Apps written with `dragoman.apps`, on a real socket."""

import asyncio
import io
from typing import Literal

import pytest
from tests.dialects.openclawos.talking import Config, Talker, desk_of, manifest

from dragoman.apps import App, Block, Invocation, KernelError, Message, Request
from dragoman.apps.declare import parameters_of
from dragoman.apps.kernel import socket_path
from dragoman.engine.content import Text
from dragoman.engine.events import Who
from dragoman.engine.host import OpenSpec
from dragoman.engine.ports import ModelRequest, ModelText
from dragoman.testing.host import EchoTool
from dragoman.testing.script import call
from dragoman.transports import unix

ME = Who("test", id="me")


class Running:
    """A kernel on a socket and the apps that run on it."""

    def __init__(self, folder, desk):
        self.path = str(folder / "kernel.sock")
        self.desk = desk
        self.tasks = []
        self.listener = None

    async def start(self, *apps):
        if self.listener is None:
            self.listener = await unix.listen(self.path, self.desk.hearer)
        for app in apps:
            self.tasks.append((app, asyncio.ensure_future(app.serve())))
            ready = asyncio.ensure_future(app.ready.wait())
            await asyncio.wait(
                {self.tasks[-1][1], ready}, return_when="FIRST_COMPLETED", timeout=60
            )
            ready.cancel()
            if self.tasks[-1][1].done():
                self.tasks[-1][1].result()
            assert app.ready.is_set()

    async def stop(self):
        for app, task in self.tasks:
            app.stop()
            await asyncio.wait({task}, timeout=60)
        await self.desk.close()
        if self.listener is not None:
            await self.listener.close()


@pytest.fixture
async def kernel(tmp_path):
    made = []

    def make(*given, **more):
        running = Running(tmp_path, desk_of(*given, **more))
        made.append(running)
        return running

    yield make
    for running in made:
        await running.stop()


def test_an_app_needs_an_id(monkeypatch):
    with pytest.raises(ValueError):
        App()
    monkeypatch.setenv("OPENCLAWOS_APP_ID", "@a/b")
    assert App().id == "@a/b"


def test_parameters_from_a_signature():
    def tool(a: str, b: int = 5, c: list[float] | None = None, d: Literal["x", "y"] = "x",
             e: dict[str, int] | str = "", call: Invocation | None = None): ...  # fmt: skip

    assert parameters_of(tool, frozenset({"call"})) == {
        "type": "object",
        "properties": {
            "a": {"type": "string"},
            "b": {"type": "integer", "default": 5},
            "c": {"type": "array", "items": {"type": "number"}},
            "d": {"enum": ["x", "y"], "default": "x"},
            "e": {"anyOf": [{"type": "object"}, {"type": "string"}], "default": ""},
        },
        "required": ["a"],
    }


async def test_tools_methods_routes_and_providers(kernel):
    running = kernel()
    app = App("@a/a", socket=running.path)

    @app.tool()
    async def weather(city: str, call: Invocation) -> str:
        "The weather of a city."
        call.progress("looking")
        return f"sunny in {city}, says {call.session}"

    @app.tool("broken")
    def broken() -> str:
        raise RuntimeError("no weather today")

    @app.tool("huge")
    def huge() -> str:
        return "x" * 300_000

    @app.method("a.double")
    def double(params):
        return params * 2

    @app.route("/hook")
    async def hook(request: Request):
        return {"status": 201, "body": {"got": request.json()}}

    @app.provider("mine", ["small"])
    async def think(asked):
        yield "one "
        yield {"text": asked["model"]}

    other = App("@b/b", socket=running.path)
    await running.start(app, other)
    offers = running.desk.door.offers
    tool = offers.find("tool", "weather").tool
    assert tool.spec.description == "The weather of a city."
    assert tool.spec.schema["required"] == ["city"]

    class Env:
        agent, session, turn, call_id, cwd = "default", "s1", "t", "c", "/"
        said = []

        def progress(self, text):
            self.said.append(text)

    env = Env()
    assert (await tool.run({"city": "Rome"}, env)).content == (Text("sunny in Rome, says s1"),)
    assert env.said == ["looking"]
    failed = await offers.find("tool", "broken").tool.run({}, env)
    assert failed.is_error and "no weather today" in failed.content[0].text
    large = await offers.find("tool", "huge").tool.run({}, env)
    assert large.is_error and "larger than" in large.content[0].text
    assert await other.call("a.double", 21) == 42
    with pytest.raises(KernelError) as error:
        await other.call("nope")
    assert error.value.code == "NOT_FOUND"
    answer = await offers.find("http_route", "/hook").call(
        {"method": "POST", "path": "/hook", "query": {}, "headers": {}, "body": b'{"x":1}'}
    )
    assert answer["status"] == 201 and answer["body"] == '{"got":{"x":1}}'
    offer = offers.find("provider", "mine")
    request = ModelRequest(offer.config["models"][0], "", ())
    said = [p.text async for p in offer.provider.stream(request) if isinstance(p, ModelText)]
    assert said == ["one ", "small"]


async def test_a_cancelled_call_ends_in_the_app(kernel):
    running = kernel()
    app = App("@a/a", socket=running.path)
    begun, ended = asyncio.Event(), asyncio.Event()

    @app.method("slow")
    async def slow(params):
        begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    await running.start(app)
    task = asyncio.ensure_future(running.desk.door.offers.find("gateway_method", "slow").call({}))
    async with asyncio.timeout(60):
        await begun.wait()
        task.cancel()
        await ended.wait()


async def test_a_channel_brings_in_and_sends_out_in_order(kernel):
    running = kernel(["first", "second"])
    app = App("@a/a", socket=running.path)
    chat = app.channel("chat")
    sent = asyncio.Queue()

    @chat.deliver
    async def deliver(message: Message):
        await asyncio.sleep(0.02 if message.text == "first" else 0)
        sent.put_nowait(message)

    await running.start(app)
    await chat.received("room", "hello", sender="ann", thread=7)
    await chat.received("room", "more", sender="ann", thread=8)
    async with asyncio.timeout(60):
        first, second = await sent.get(), await sent.get()
    assert (first.text, second.text) == ("first", "second")
    assert first.target == "room" and first.session == "chat:room"
    assert first.metadata == {"channelId": "chat", "from": "ann", "thread": 7}
    assert await app.dispatch("chat:room", "by the way")
    async with asyncio.timeout(60):
        assert (await sent.get()).text == "by the way"
    assert (await app.session("chat:room"))["channelId"] == "chat"  # type: ignore[index]
    assert [s["key"] for s in await app.sessions(channelId="chat")] == ["chat:room"]


async def test_hooks(kernel):
    tool = EchoTool()
    running = kernel([call("echo", text="rm -rf"), "my password"], [tool], mode="full")
    app = App("@a/a", socket=running.path)
    seen = asyncio.Queue()

    @app.observe("agent_completed")
    def completed(data, context):
        seen.put_nowait(data["outcome"])

    @app.intercept("tool_executing")
    async def guard(data, context):
        return Block("not here") if "rm" in data["params"]["text"] else None

    @app.intercept("message_sending")
    async def hide(data, context):
        return {"content": data["content"].replace("password", "***")}

    @app.intercept("message_sending")
    async def shout(data, context):
        return {"content": data["content"].upper()}

    await running.start(app)
    door = running.desk.door
    info = await door.open(OpenSpec(cwd="/"), ME)
    finished = await (await door.prompt(info.id, (Text("go"),), ME)).done
    assert finished.text == "MY ***" and tool.ran == []
    assert "Blocked: not here" in str(await door.messages(info.id))
    async with asyncio.timeout(60):
        assert await seen.get() == "completed"


@pytest.mark.parametrize("closed", [False, True])
async def test_an_interceptor_that_breaks_is_reported_at_once(kernel, closed, capsys):
    tool = EchoTool()
    running = kernel([call("echo", text="x"), "done"], [tool], mode="full")
    hooks = running.desk.door.hooks
    hooks.timeout = 60
    hooks.fail_closed = frozenset({"tool_executing"} if closed else ())
    app = App("@a/a", socket=running.path)

    @app.intercept("tool_executing")
    async def guard(data, context):
        raise KeyError("oops")

    await running.start(app)
    door = running.desk.door
    info = await door.open(OpenSpec(cwd="/"), ME)
    async with asyncio.timeout(60):
        await (await door.prompt(info.id, (Text("go"),), ME)).done
    assert bool(tool.ran) is not closed
    assert "oops" in capsys.readouterr().err


async def test_configuration(kernel):
    running = kernel(config={"a": {"b": 5}})
    app = App("@a/a", socket=running.path)
    seen = asyncio.Queue()

    @app.watch("a")
    def changed(path, old, new):
        seen.put_nowait((path, old, new))

    await running.start(app)
    assert await app.config("a.b") == 5
    config = running.desk.door.config
    assert isinstance(config, Config)
    config.change("a.b", 5, 6)
    async with asyncio.timeout(60):
        assert await seen.get() == ("a.b", 5, 6)


async def test_an_app_comes_back_after_a_lost_connection(kernel):
    running = kernel()
    app = App("@a/a", socket=running.path)

    @app.method("who")
    def who(params):
        return "me"

    await running.start(app)
    app.ready.clear()
    running.desk.apps["@a/a"].conn.link.abort()
    async with asyncio.timeout(60):
        await app.ready.wait()
    assert await app.call("who") == "me"


async def test_of_two_with_one_id_one_ends_and_says_why(kernel):
    running = kernel()
    await running.start()
    two = [asyncio.ensure_future(App("@a/a", socket=running.path).serve()) for _ in range(2)]
    try:
        done, left = await asyncio.wait(two, timeout=60, return_when="FIRST_COMPLETED")
        (one,), (other,) = done, left
        with pytest.raises(ConnectionError, match="another program of this id"):
            one.result()
        assert not other.done()
    finally:
        for task in two:
            task.cancel()
        await asyncio.gather(*two, return_exceptions=True)


async def test_an_app_that_is_denied_ends(kernel):
    running = kernel()
    await running.start()
    owner = Talker(running.desk)
    given = manifest("@o/o", tools={"provides": ["t"]})
    await owner.call("app.register", {"manifest": given})
    await owner.call("capability.register", {"type": "tool", "config": {"name": "t"}})
    app = App("@a/a", socket=running.path)

    @app.tool("t")
    def t() -> str:
        return ""

    with pytest.raises(KernelError, match="already registered"):
        await asyncio.wait_for(app.serve(), 60)


async def test_without_a_kernel_it_gives_up(tmp_path):
    app = App("@a/a", socket=str(tmp_path / "none.sock"), give_up=0.1)
    with pytest.raises(ConnectionError, match=r"no kernel at .*: No such file.*dragoman daemon"):
        await asyncio.wait_for(app.serve(), 60)


def test_where_the_kernel_is_looked_for(tmp_path, monkeypatch):
    ours, theirs = tmp_path / "data" / "kernel.sock", tmp_path / "run" / "openclawos/kernel.sock"
    monkeypatch.setenv("DRAGOMAN_DATA_DIR", str(ours.parent))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    theirs.parent.mkdir(parents=True)
    theirs.touch()
    assert socket_path() == str(theirs)
    ours.parent.mkdir()
    ours.touch()
    assert socket_path() == str(ours)
    monkeypatch.setenv("DRAGOMAN_KERNEL_SOCKET", "/moved")
    assert socket_path() == "/moved"
    monkeypatch.setenv("OPENCLAWOS_KERNEL_SOCKET", "/named")
    assert socket_path() == "/named" and socket_path("/given") == "/given"


class Heard(io.StringIO):
    """What is printed, and an event for when something is."""

    def __init__(self):
        super().__init__()
        self.came = asyncio.Event()

    def write(self, text):
        self.came.set()
        return super().write(text)


async def test_it_says_once_where_it_waits(kernel, monkeypatch):
    running = kernel()
    app = App("@test/early", socket=running.path)
    monkeypatch.setattr("sys.stderr", heard := Heard())
    task = asyncio.ensure_future(app.serve())
    async with asyncio.timeout(60):
        await heard.came.wait()
        await running.start()
        await app.ready.wait()
        app.stop()
        await task
    assert heard.getvalue() == f"waiting for the kernel at {running.path}\n"
