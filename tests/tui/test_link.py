"""The terminal's way to the daemon: `link`, `desk`, `plain`, with a host that answers by heart."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dragoman.client.problems import ConnectionGone, NotRunning
from dragoman.engine import events as ev
from dragoman.engine.ask import Ask, Scope
from dragoman.engine.content import Text, ToolCall, Usage
from dragoman.engine.events import Event, Who
from dragoman.engine.faults import NothingRunning, UnknownSession
from dragoman.engine.info import SessionInfo
from dragoman.tui import link as links
from dragoman.tui.begin import Wish
from dragoman.tui.desk import ShownSession
from dragoman.tui.link import ScreenLink
from dragoman.tui.plain import PlainScreen

WISH = Wish("/work", agent="a")


def info(id: str = "s1", last: int = 0) -> SessionInfo:
    return SessionInfo(
        id=id, agent="a", cwd="/there", model="p/m", mode="full", status="idle", title="T",
        created_at=1, updated_at=1, last_seq=last, last_usage=Usage(5),
    )  # fmt: skip


def event(seq: int, body: Any) -> Event:
    return Event("s1", seq, body, seq, seq)


class Host:
    """A session with a log; what is done to it is noted."""

    def __init__(self, events: list[Event]) -> None:
        self.events = events
        self.done: list[Any] = []
        self.fails: Exception | None = None

    async def session(self, id: str) -> Any:
        ask = Ask("a1", id, "tool", "bash", 1)
        facts = info(id, len(self.events))
        return SimpleNamespace(session=facts, present=(), asks=[ask], queued=1)

    async def history(self, id: str, after: int, limit: int) -> AsyncIterator[Event]:
        for one in self.events[after : after + limit]:
            yield one

    async def open(self, **given: Any) -> SessionInfo:
        self.done.append(("open", given["agent"], given["cwd"]))
        return info("new")

    async def submit(self, session: str, content: Any, *, key: str) -> None:
        if self.fails is not None:
            raise self.fails
        self.done.append(("submit", session, content))

    async def steer(self, session: str, text: str) -> None:
        raise NothingRunning("no")

    async def cancel(self, session: str) -> None:
        self.done.append(("cancel", session))

    async def newest(self, cwd: str) -> Any:
        return None

    async def list(self, **query: Any) -> Any:
        return [info("abc1"), info("abd2")]

    async def answer(self, id: str, verdict: str, **more: str) -> None:
        self.done.append((id, verdict, *more.values()))


class Link:
    """A connection that is there; the following never ends by itself."""

    name = "terminal x"

    def __init__(self, host: Host) -> None:
        self.host = host
        self.following: list[tuple[str, int]] = []
        self.take: Callable[[Event], None] = lambda event: None

    async def ready(self) -> Host:
        return self.host

    def want(self) -> None:
        self.host.done.append(("want",))

    async def answered(self, work: Any) -> Any:
        return await work

    async def follow(self, id: str, since: int, take: Any, begin: Any) -> None:
        self.following.append((id, since))
        self.take = take
        await asyncio.Event().wait()


def log(turns: int, each: int) -> list[Event]:
    made: list[Event] = []
    for turn in range(turns):
        made.append(event(len(made) + 1, ev.TurnBegan(f"t{turn}", (Text(f"prompt {turn}"),))))
        for _ in range(each - 1):
            made.append(event(len(made) + 1, ev.Noted("info", f"note {len(made)}")))
    return made


# --- desk ---


async def test_desk_reads_the_end_first_and_no_turn_in_two() -> None:
    host = Host(log(4, 300))
    desk: Any = ShownSession(Link(host), WISH, lambda: None)
    await desk.open("s1")
    await asyncio.sleep(0)
    first = desk.story.pieces[0]
    assert first.kind == "you" and first.text == "prompt 3"
    assert desk.link.following == [("s1", 1_200)] and list(desk.story.asks) == ["a1"]
    assert desk.cwd == "/there"
    before = await desk.older()
    assert before and desk.story.pieces[0].text.startswith("prompt")
    while await desk.older():
        pass
    assert desk.story.pieces[0].text == "prompt 0" and len(desk.story.pieces) == 1_200
    desk.leave()
    assert desk.session == "" and desk.cwd == "/work" and desk.story.pieces == []


async def test_desk_begins_a_session_with_the_first_prompt_only() -> None:
    host = Host([])
    desk: Any = ShownSession(Link(host), WISH, lambda: None)
    assert await desk.interrupt() is False
    await asyncio.gather(desk.send((Text("one"),)), desk.send((Text("two"),)))
    assert [done[0] for done in host.done] == ["want", "open", "submit", "want", "submit"]
    assert desk.session == "new" and desk.waiting == 2
    host.fails = ConnectionGone("gone")
    with pytest.raises(ConnectionGone):
        await desk.send((Text("three"),))
    assert desk.waiting == 2  # what was not taken does not wait
    assert await desk.steer("x") is False and await desk.interrupt() is True
    desk.leave()


async def test_desk_counts_a_prompt_until_its_turn_begins() -> None:
    desk: Any = ShownSession(Link(Host([])), WISH, lambda: None)
    await desk.send((Text("one"),))
    await asyncio.sleep(0)
    desk.link.take(event(1, ev.TurnBegan("t", (Text("one"),), key=desk._keys[0])))
    assert desk.waiting == 0 and desk.story.pieces[-1].text == "one"
    desk.leave()


async def test_desk_says_why_a_session_is_not_followed_any_more() -> None:
    class Lost(Link):
        async def follow(self, id: str, since: int, take: Any, begin: Any) -> None:
            raise UnknownSession(id)

    drawn = asyncio.Event()
    desk: Any = ShownSession(Lost(Host([])), WISH, drawn.set)  # type: ignore[arg-type]
    await desk.open("s1")
    await asyncio.wait_for(drawn.wait(), 60)
    last = desk.story.pieces[-1]
    assert (last.kind, last.name) == ("note", "error")
    assert last.text == f"This session is not followed any more: {UnknownSession('s1')}"
    desk.leave()


async def test_desk_says_that_a_mistake_of_ours_ended_the_following() -> None:
    class Broken(Link):
        async def follow(self, id: str, since: int, take: Any, begin: Any) -> None:
            raise KeyError("oops")

    told: list[dict[str, Any]] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda loop, context: told.append(context))
    drawn = asyncio.Event()
    desk: Any = ShownSession(Broken(Host([])), WISH, drawn.set)  # type: ignore[arg-type]
    await desk.open("s1")
    await asyncio.wait_for(drawn.wait(), 60)
    last = desk.story.pieces[-1]
    assert (last.kind, last.name) == ("note", "error") and "KeyError: 'oops'" in last.text
    assert isinstance(told[0]["exception"], KeyError)
    desk.leave()


async def test_desk_finds_a_session_by_its_beginning() -> None:
    desk: Any = ShownSession(Link(Host([])), WISH, lambda: None)
    assert await desk.find("abc") == "abc1"
    assert await desk.find("ab") == "ab"  # not clear: the host says what is wrong
    assert await desk.newest() == ""


# --- link ---


class Connection:
    """One connection that ends when it is told to."""

    def __init__(self) -> None:
        self.over = asyncio.Event()

    async def __aenter__(self) -> "Connection":
        return self

    async def __aexit__(self, *_: object) -> None:
        self.over.set()

    async def notices(self) -> AsyncIterator[Any]:
        await self.over.wait()
        return
        yield


async def test_link_starts_a_daemon_where_none_is_and_comes_back(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    there = [NotRunning("none"), Connection(), Connection()]
    told: list[str] = []
    started: list[Any] = []

    def connect(path: str, name: str) -> Any:
        found = there[0]
        if isinstance(found, Exception):
            raise found
        return there.pop(0)

    def launch(config_dir: str | None) -> Any:
        started.append(config_dir)
        there.pop(0)
        return SimpleNamespace(poll=lambda: None)

    monkeypatch.setattr(links, "connect", connect)
    monkeypatch.setattr(links, "launch", launch)
    link = ScreenLink(str(tmp_path), lambda state, words: told.append(state))
    with pytest.raises(ConnectionGone):
        _ = link.host
    keeper = asyncio.create_task(link.keep())
    first: Any = await link.ready()
    assert told == ["starting", "up"] and started == [str(tmp_path)] and id(link.host) == id(first)
    first.over.set()
    async with asyncio.timeout(60):
        while "down" not in told:  # noqa: ASYNC110 - told is a list
            await asyncio.sleep(0.001)
    assert await link.ready() is not first and told == ["starting", "up", "down", "up"]
    keeper.cancel()
    await asyncio.wait({keeper})


@pytest.mark.parametrize("socket_left", [False, True], ids=["stopped", "killed"])
async def test_link_starts_what_was_stopped_only_when_somebody_needs_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, socket_left: bool
) -> None:
    """One that was killed leaves its socket behind, and is started again at once."""
    monkeypatch.setattr(links, "_PATIENCE", 0.0)
    there: list[Connection] = [Connection()]
    said: asyncio.Queue[str] = asyncio.Queue()

    def connect(path: str, name: str) -> Any:
        if not there:
            raise NotRunning("none")
        return there.pop()

    def launch(config_dir: str | None) -> Any:
        there.append(Connection())
        return SimpleNamespace(poll=lambda: None)

    monkeypatch.setattr(links, "connect", connect)
    monkeypatch.setattr(links, "launch", launch)
    link = ScreenLink(str(tmp_path), lambda state, words: said.put_nowait(state))
    if socket_left:
        Path(link.path).parent.mkdir(parents=True, exist_ok=True)
        Path(link.path).touch()
    keeper = asyncio.create_task(link.keep())
    first: Any = await link.ready()
    first.over.set()
    async with asyncio.timeout(60):
        assert [await said.get(), await said.get()] == ["up", "down"]
        if not socket_left:
            assert await said.get() == "stopped"
            await asyncio.sleep(0.05)  # it goes on looking, and starts nothing
            assert said.empty() and not there
            link.want()
        assert [await said.get(), await said.get()] == ["starting", "up"]
    keeper.cancel()
    await asyncio.wait({keeper})


async def test_link_says_why_a_daemon_does_not_start(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A real one, whose configuration cannot be read."""
    for name in [name for name in os.environ if name.startswith("DRAGOMAN_")]:
        monkeypatch.delenv(name)
    file = tmp_path / "config.toml"
    file.write_text("[broken\n")
    said: asyncio.Queue[tuple[str, str]] = asyncio.Queue()
    link = ScreenLink(str(tmp_path), lambda state, words: said.put_nowait((state, words)))
    keeper = asyncio.create_task(link.keep())
    async with asyncio.timeout(60):
        assert (await said.get())[0] == "starting"
        state, words = await said.get()
    assert state == "trouble" and words.startswith(f"the daemon does not start: {file}:1: ")
    keeper.cancel()
    await asyncio.wait({keeper})


async def test_link_says_why_a_daemon_cannot_be_started_and_tries_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A file where the data belong: the terminal tried once, and waited for ever."""
    for name in [name for name in os.environ if name.startswith("DRAGOMAN_")]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(links, "_AGAIN", 0.0)
    data = tmp_path / "data"
    data.write_text("not a folder")
    said: asyncio.Queue[tuple[str, str]] = asyncio.Queue()
    link = ScreenLink(str(tmp_path), lambda state, words: said.put_nowait((state, words)))
    keeper = asyncio.create_task(link.keep())
    async with asyncio.timeout(60):
        for _ in range(2):
            assert (await said.get())[0] == "starting"
            state, words = await said.get()
            assert state == "trouble" and f"{data}: " in words
            assert words.endswith("See: dragoman doctor")
    keeper.cancel()
    await asyncio.wait({keeper})


async def test_link_tells_no_words_of_an_earlier_daemon_for_those_of_one_that_ends_silently(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As on a disk that is full: what it says is kept nowhere."""
    for name in [name for name in os.environ if name.startswith("DRAGOMAN_")]:
        monkeypatch.delenv(name)
    log = tmp_path / "data" / "daemon.out"
    log.parent.mkdir()
    log.write_text("dragoman: a reason of last year\n")
    monkeypatch.setattr(links, "launch", lambda _: SimpleNamespace(poll=lambda: 1))
    said: asyncio.Queue[tuple[str, str]] = asyncio.Queue()
    link = ScreenLink(str(tmp_path), lambda state, words: said.put_nowait((state, words)))
    keeper = asyncio.create_task(link.keep())
    async with asyncio.timeout(60):
        assert (await said.get())[0] == "starting"
        state, words = await said.get()
    assert state == "trouble" and str(log) in words and "last year" not in words
    assert words.endswith("To read why: dragoman daemon")
    keeper.cancel()
    await asyncio.wait({keeper})


async def test_link_says_when_an_answer_is_late_and_when_it_has_come(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(links, "_LATE", 0.01)
    told: list[str] = []
    missed = asyncio.Event()

    def tell(state: str, words: str) -> None:
        told.append(state)
        missed.set()

    link = ScreenLink(str(tmp_path), tell)
    link._host = SimpleNamespace()  # type: ignore[assignment]
    answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    asking = asyncio.create_task(link.answered(answer))
    async with asyncio.timeout(60):
        await missed.wait()
        answer.set_result("yes")
        assert await asking == "yes" and told == ["late", "answers"]
        told.clear()
        missed.clear()
        lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        asking = asyncio.create_task(link.answered(lost))
        await missed.wait()
        lost.set_exception(ConnectionGone("gone"))
        with pytest.raises(ConnectionGone):
            await asking
    assert told == ["late"]  # the loss is told by whoever keeps the connection


class Stream:
    """A stream of events that breaks."""

    def __init__(self, *events: Event) -> None:
        self.events = list(events)

    async def __aenter__(self) -> "Stream":
        return self

    async def __aexit__(self, *_: object) -> None:
        return None

    def __aiter__(self) -> "Stream":
        return self

    async def __anext__(self) -> Event:
        if not self.events:
            raise ConnectionGone("cut")
        return self.events.pop(0)


async def test_link_follows_from_where_it_was_cut(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setattr(links, "_FIRST_PAUSE", 0.0)
    asked: list[int] = []
    streams = [
        Stream(event(1, ev.Noted("info", "a")), Event("s1", 1, ev.TextDelta("t", "x"))),
        Stream(event(2, ev.Noted("info", "b"))),
    ]

    def attach(id: str, since: int) -> Stream:
        asked.append(since)
        if not streams:
            raise NothingRunning("over")
        return streams.pop(0)

    link = ScreenLink(str(tmp_path), lambda state, words: None)
    link._host = SimpleNamespace(attach=attach)  # type: ignore[assignment]
    seen: list[Event] = []
    begun: list[None] = []
    with pytest.raises(NothingRunning):
        await link.follow("s1", 0, seen.append, lambda: begun.append(None))
    assert asked == [0, 1, 2] and [one.seq for one in seen] == [1, 0, 2] and len(begun) == 2


# --- plain ---


@pytest.fixture
async def plain(tmp_path: Any) -> Any:
    made = PlainScreen(Wish(str(tmp_path), str(tmp_path)))
    host = Host([])
    made.link = made.desk.link = Link(host)  # type: ignore[assignment]
    yield made
    made.desk.leave()


SCOPED = Ask(
    "q", "s1", "tool", "bash", 1, tool="bash", args={"command": "ls"}, digest="d",
    scopes=(Scope("exact", "exact", "this command", lasts=("session", "project")),),
)  # fmt: skip


@pytest.mark.parametrize(
    ("said", "given"),
    [
        ("y", ("q", "allow", "d")),
        ("No", ("q", "deny", "d", "")),
        ("not now", ("q", "deny", "d", "not now")),
        ("a1", ("q", "allow_always", "d", "exact", "session")),
        ("A 2", ("q", "allow_always", "d", "exact", "project")),
        ("a", ("q", "deny", "d", "a")),
        ("a²", ("q", "deny", "d", "a²")),
    ],
)
async def test_plain_answers_a_tool_by_a_letter_or_words(
    plain: Any, said: str, given: tuple[str, ...]
) -> None:
    plain._question(SCOPED)
    plain._invited = "q"  # `answer:` stands there
    assert await plain.typed(said)
    assert plain.link.host.done == [given] and plain._asks == {}


@pytest.mark.parametrize("said", ["a0", "a3", "a99999999999"])
async def test_plain_a_number_that_is_not_there_answers_nothing(
    plain: Any, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    plain._question(SCOPED)
    plain._invited = "q"
    await plain.typed(said)
    assert plain.link.host.done == [] and list(plain._asks) == ["q"]
    assert "nothing was answered" in capsys.readouterr().out


@pytest.mark.parametrize(("said", "text"), [("2", "blue"), ("3", "3"), ("²", "²"), ("x", "x")])
async def test_plain_answers_a_question_by_number_or_words(
    plain: Any, said: str, text: str
) -> None:
    plain._question(Ask("q", "s1", "question", "Which?", 1, choices=("red", "blue")))
    plain._invited = "q"
    await plain.typed(said)
    assert plain.link.host.done == [("q", "answer", "", text)]


async def test_plain_says_every_line_once_beginning_with_who(
    plain: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    for body in (
        ev.TurnBegan("t", (Text("hi"),), Who("acp", name="phone")),
        ev.TextDelta("t", "one "),
        ev.TextDelta("t", "two\x1b"),
        ev.Spoke("t", 1, (ToolCall("c", "bash", {"command": "ls"}),), "tool_use"),
        ev.CallEnded("t", "c", "bash", "done", is_error=True),
        ev.TurnEnded("t", "failed", "error", error="no key"),
    ):
        plain.take(event(1, body))
    assert capsys.readouterr().out.splitlines() == [
        "phone: hi",
        "agent: one two\ufffd",
        "tool: bash ls",
        "tool: bash failed",
        "turn failed: no key",
    ]


async def test_plain_commands(plain: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert await plain.typed("  ") and await plain.typed("/help") and await plain.typed("/stop")
    assert "nothing runs" in capsys.readouterr().out
    assert await plain.typed("/sessions")
    assert "abc1, idle: T" in capsys.readouterr().out
    assert await plain.typed("say it")
    assert plain.link.host.done[-1][0] == "submit"
    assert await plain.typed("/quit") is False
