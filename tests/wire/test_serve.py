"""The shell: exactly one answer to each request, in the order that its verb has."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from dragoman.wire.jsonrpc import Invalid, Reader, Request, Response, Rules, error
from dragoman.wire.link import Blob, Party, Peer
from dragoman.wire.serve import Call, Pause, Shell
from dragoman.wire.verbs import After, Cancelled, Crowded, Table, Verb, reader


class Number(msgspec.Struct):
    n: int = 0


class Meant(Exception):
    """A failure that a verb raises on purpose."""


class Wire:
    """A link that keeps what is sent."""

    peer = Peer("test", "memory")
    buffered = 0

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.closed = False
        self.paused = False
        self.resumed: list[Callable[[], None]] = []

    def send(self, message: bytes) -> None:
        self.sent.append(message)

    def send_blob(self, blob: Blob) -> None:
        self.sent += blob.messages

    def on_resume(self, callback: Callable[[], None]) -> None:
        self.resumed.append(callback)

    def close(self) -> None:
        self.closed = True

    abort = eof = close

    def heard(self) -> list[Any]:
        """What was sent since the last time."""
        said, self.sent = [json.loads(line) for line in self.sent], []
        return said


class Speaker(Party):
    """A party with the plainest answers."""

    link: Wire

    def __init__(self, table: Table) -> None:
        self.link = Wire()
        self.troubles: list[str] = []
        self.responses: list[Response] = []
        self.rests = 0
        self.gate: BaseException | None = None
        self.is_prepared = True
        self.preparing = asyncio.Event()
        self.shell = Shell(table, self)

    def failure(self, verb: Verb | None, id: Any, problem: BaseException) -> bytes:
        if "untellable" in str(problem):
            raise LookupError("no words for it")
        return error(id, -1, f"{type(problem).__name__}: {problem}")

    def trouble(self, verb: Verb | None, problem: BaseException) -> None:
        self.troubles.append(f"{type(problem).__name__}: {problem}")

    def rested(self) -> None:
        self.rests += 1

    def refuses(self, verb: Verb | None, request: Request) -> BaseException | None:
        return None if verb is None else self.gate

    def invalid(self, message: Invalid) -> bytes:
        return message.reply()

    def responded(self, response: Response) -> None:
        self.responses.append(response)

    def is_ready(self) -> bool:
        return self.is_prepared

    async def prepare(self) -> None:
        if not self.is_prepared:
            await self.preparing.wait()
            self.is_prepared = True


def ask(method: str, id: Any = 1, params: Any = msgspec.UNSET) -> bytes:
    made: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
    if id is not msgspec.UNSET:
        made["id"] = id
    if params is not msgspec.UNSET:
        made["params"] = params
    return json.dumps(made).encode()


def table(verbs: dict[str, Verb], **rules: Any) -> Table:
    return Table(verbs, read=Reader(Rules()).read, expected=(Meant,), **rules)


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def broken(conn: Any, params: Any) -> Any:
    raise ZeroDivisionError("of ours")


async def broken_later(conn: Any, params: Any) -> Any:
    raise ZeroDivisionError("of ours, later")


def meant(conn: Any, params: Any) -> Any:
    raise Meant("no")


ODD: list[tuple[str, Verb, str]] = [
    ("raises", Verb(broken), "ZeroDivisionError: of ours"),
    ("raises later", Verb(broken_later), "ZeroDivisionError: of ours, later"),
    ("refuses", Verb(meant), "Meant: no"),
    ("cannot be written", Verb(lambda conn, _: object()), "TypeError"),
    ("cannot be read", Verb(broken, read=lambda raw: {}["gone"]), "KeyError"),  # type: ignore[index]
    ("is too deep", Verb(broken, read=lambda raw: deeper(0)), "BadParams: nested too deeply"),
    ("wants a number", Verb(broken, read=reader(Number)), "BadParams"),
    ("is direct and raises", Verb(broken, direct=True), "ZeroDivisionError: of ours"),
    ("is serial and raises", Verb(broken_later, order="serial"), "ZeroDivisionError"),
    ("is pooled and raises", Verb(broken_later, order="pool"), "ZeroDivisionError"),
    ("is serial, plain and raises", Verb(broken, order="serial"), "ZeroDivisionError"),
]


def deeper(level: int) -> int:
    return deeper(level + 1)


@pytest.mark.parametrize(("name", "verb", "told"), ODD, ids=[row[0] for row in ODD])
async def test_whatever_a_verb_does_there_is_one_answer(name: str, verb: Verb, told: str) -> None:
    party = Speaker(table({"x": verb}))
    party.shell.hear([ask("x", 7, {"n": "seven"})])
    await settle()
    (said,) = party.link.heard()
    assert said["id"] == 7 and said["error"]["message"].startswith(told)
    expected = told.startswith(("Meant", "BadParams"))
    assert bool(party.troubles) is not expected
    assert party.shell.working == 0 and not party.shell.tasks


@pytest.mark.parametrize("verb", [row[1] for row in ODD], ids=[row[0] for row in ODD])
async def test_a_notification_gets_none(verb: Verb) -> None:
    party = Speaker(table({"x": verb}))
    party.shell.hear([ask("x", msgspec.UNSET, {"n": "seven"})])
    await settle()
    assert party.link.heard() == [] and party.shell.working == 0


async def test_a_failure_that_cannot_be_told_is_answered_all_the_same() -> None:
    def run(conn: Any, _: Any) -> Any:
        raise Meant("untellable")

    party = Speaker(table({"x": Verb(run)}))
    party.shell.hear([ask("x")])
    (said,) = party.link.heard()
    assert said["error"]["message"] == "RuntimeError: Meant"
    assert party.troubles == ["LookupError: no words for it"]


async def test_a_line_that_breaks_the_reader_is_answered_and_the_others_heard() -> None:
    good = Reader(Rules()).read

    def read(lines: list[bytes]) -> Any:
        if any(b"bad" in line for line in lines):
            raise RuntimeError("the reader broke")
        return good(lines)

    party = Speaker(Table({"x": Verb(lambda conn, _: "fine")}, read=read, expected=()))
    party.shell.hear([ask("x", 1), ask("bad", 2), ask("x", 3)])
    said = party.link.heard()
    assert [one.get("id") for one in said] == [None, 1, 3]
    assert said[0]["error"]["message"] == "RuntimeError: the reader broke"


async def test_unknown_methods_and_gates() -> None:
    party = Speaker(table({"x": Verb(lambda conn, _: 1)}, gated=True))
    party.gate = Meant("first say hello")
    party.shell.hear([ask("x"), ask("y", 2), ask("x", msgspec.UNSET)])
    assert [one["error"]["message"] for one in party.link.heard()] == [
        "Meant: first say hello",
        "UnknownMethod: y",
    ]


async def test_quick_answers_equal_the_slow_ones() -> None:
    made = 0

    def quick(conn: Any) -> bytes:
        nonlocal made
        made += 1
        return b'{"jsonrpc":"2.0","result":{"percent":"5%%"},"id":%d}'

    slow = Verb(lambda conn, _: {"percent": "5%"})
    fast = Verb(lambda conn, _: {"percent": "5%"}, quick=quick)
    ids = [1, 2, "a", 3, 2**70, None, -4, 1.5, msgspec.UNSET, 5]
    lines = [ask("x", id) for id in ids] + [ask("x", 9, {}), ask("x", 9, {"n": 1}), b"{}"]
    answers = []
    for verb in (slow, fast):
        party = Speaker(table({"x": verb}))
        party.shell.hear(lines)
        answers.append(party.link.sent)
    assert answers[0] == answers[1]
    assert 0 < made < len(lines)


async def test_a_quick_answer_that_is_not_at_hand_takes_the_slow_way() -> None:
    party = Speaker(table({"x": Verb(lambda conn, _: "slow", quick=lambda conn: None)}))
    party.shell.hear([ask("x"), ask("x", 2)])
    assert [one["result"] for one in party.link.heard()] == ["slow", "slow"]


async def test_free_coroutines_overtake_each_other() -> None:
    gates = {1: asyncio.Event(), 2: asyncio.Event()}

    async def run(conn: Any, params: Number) -> int:
        await gates[params.n].wait()
        return params.n

    party = Speaker(table({"x": Verb(run, read=reader(Number))}))
    party.shell.hear([ask("x", 1, {"n": 1}), ask("x", 2, {"n": 2})])
    await settle()
    gates[2].set()
    await settle()
    assert [one["id"] for one in party.link.heard()] == [2]
    gates[1].set()
    await settle()
    assert [one["id"] for one in party.link.heard()] == [1]


async def test_what_is_free_is_bounded() -> None:
    never = asyncio.Event()

    async def run(conn: Any, _: None) -> None:
        await never.wait()

    party = Speaker(table({"x": Verb(run)}, at_once=2))
    party.shell.hear([ask("x", n) for n in range(3)])
    (said,) = party.link.heard()
    assert said == {"jsonrpc": "2.0", "error": {"code": -1, "message": "Crowded: 2"}, "id": 2}
    never.set()
    await settle()
    assert len(party.link.heard()) == 2


async def test_a_pool_works_on_so_many_at_once_and_lets_the_others_wait() -> None:
    running = most = 0
    go = asyncio.Event()

    async def run(conn: Any, _: None) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await go.wait()
        running -= 1

    party = Speaker(table({"x": Verb(run, order="pool")}, pool=3, waiting=4))
    party.shell.hear([ask("x", n) for n in range(9)])
    await settle()
    assert [one["error"]["message"] for one in party.link.heard()] == ["Crowded: 4"] * 2
    assert most == 3
    go.set()
    await settle()
    await settle()
    assert sorted(one["id"] for one in party.link.heard()) == list(range(7))
    assert most == 3 and party.shell.working == 0


async def test_a_strict_table_answers_everything_in_order() -> None:
    go = asyncio.Event()

    async def slow(conn: Any, _: None) -> str:
        await go.wait()
        return "slow"

    verbs = {
        "slow": Verb(slow, order="serial"),
        "bad": Verb(broken, order="serial"),
        "bad later": Verb(broken_later, order="serial"),
        "now": Verb(lambda conn, _: "now", order="serial", quick=lambda conn: b'{"id":%d}'),
    }
    party = Speaker(table(verbs, strict=True))
    batch = b"[" + ask("now", 4) + b"," + ask("slow", 5) + b"]"
    lines = [ask("slow", 1), ask("now", 2), ask("nothing", 3), b"{", batch, ask("now", 6)]
    lines += [ask("bad later", 7), ask("bad", 8), ask("now", 9), ask("bad later", 10), b"}"]
    party.shell.hear(lines)
    await settle()
    assert party.link.heard() == []
    go.set()
    await settle()
    said = party.link.heard()
    ids = [[item["id"] for item in one] if isinstance(one, list) else one["id"] for one in said]
    assert ids == [1, 2, 3, None, [4, 5], 6, 7, 8, 9, 10, None]
    party.shell.hear([ask("now", 11)])
    assert party.link.heard() == [{"id": 11}]


async def test_a_strict_connection_that_is_too_full_ends() -> None:
    async def run(conn: Any, _: None) -> None:
        await asyncio.Event().wait()

    party = Speaker(table({"x": Verb(run, order="serial")}, strict=True, waiting=2))
    party.shell.hear([ask("x", n) for n in range(9)])
    (said,) = party.link.heard()
    assert said["error"]["message"] == "Crowded: 2" and party.link.closed
    party.shell.lose(cancel=True)
    await settle()


async def test_requests_of_a_lane_wait_until_the_party_is_ready() -> None:
    party = Speaker(table({"x": Verb(lambda conn, _: 1, order="serial")}, prepares=True))
    party.is_prepared = False
    party.shell.hear([ask("x", 1), ask("x", 2)])
    await settle()
    assert party.link.heard() == []
    party.preparing.set()
    await settle()
    assert [one["id"] for one in party.link.heard()] == [1, 2]


async def test_a_direct_verb_answers_when_it_likes_and_only_once() -> None:
    calls: list[Call] = []
    party = Speaker(table({"x": Verb(lambda call, _: calls.append(call), direct=True)}))
    party.shell.hear([ask("x")])
    party.shell.end()
    assert party.rests == 0 and party.shell.working == 1
    calls[0].reply("one")
    calls[0].reply("two")
    calls[0].fail(Meant("three"))
    calls[0].say(b"{}")
    assert [one["result"] for one in party.link.heard()] == ["one"]
    assert party.rests == 1 and party.shell.working == 0


async def test_what_follows_a_result_is_done_after_it_was_sent() -> None:
    seen: list[int] = []

    async def run(conn: Any, _: None) -> After:
        return After("result", lambda: seen.append(len(conn.link.sent)))

    party = Speaker(table({"x": Verb(run)}))
    party.shell.hear([ask("x")])
    await settle()
    assert seen == [1]


@pytest.mark.parametrize("begun", [False, True])
async def test_a_cancelled_request_is_answered(begun: bool) -> None:
    async def run(conn: Any, _: None) -> None:
        await asyncio.Event().wait()

    party = Speaker(table({"x": Verb(run)}))
    party.shell.hear([ask("x", 1), ask("x", "1")])
    if begun:
        await settle()
    party.shell.cancel(1)
    await settle()
    (said,) = party.link.heard()
    assert said["id"] == 1 and said["error"]["message"].startswith(Cancelled.__name__)
    assert len(party.shell.tasks_of("1")) == 1
    party.shell.lose(cancel=True)
    await settle()
    assert not party.shell.tasks


async def test_the_end_of_input_waits_for_answers() -> None:
    go = asyncio.Event()

    async def run(conn: Any, _: None) -> None:
        await go.wait()

    party = Speaker(table({"x": Verb(run)}))
    party.shell.hear([ask("x")])
    party.shell.end()
    await settle()
    assert party.rests == 0
    go.set()
    await settle()
    assert party.rests == 1 and len(party.link.heard()) == 1


async def test_nothing_is_begun_after_stop() -> None:
    begun: list[int] = []

    async def run(conn: Any, params: Number) -> None:
        begun.append(params.n)
        if params.n == 1:
            conn.shell.stop()

    party = Speaker(table({"x": Verb(run, read=reader(Number), order="serial")}))
    party.shell.hear([ask("x", n, {"n": n}) for n in (1, 2, 3)])
    await settle()
    assert begun == [1] and party.shell.working == 0


async def test_responses_reach_the_party() -> None:
    party = Speaker(table({}))
    party.shell.hear([b'{"jsonrpc":"2.0","id":"zc-out-0","result":1}'])
    assert [one.id for one in party.responses] == ["zc-out-0"]


async def test_crowded_and_cancelled_are_expected() -> None:
    party = Speaker(table({}))
    for problem in (Crowded(1), Cancelled()):
        party.shell.fail(None, 1, problem, party.link.send)
    assert party.troubles == []


def test_a_pause_asks_its_link_once() -> None:
    link = Wire()
    told: list[bool] = []
    pause = Pause(link, lambda: told.append(True))  # type: ignore[arg-type]
    assert not pause() and not link.resumed
    link.paused = True
    assert pause() and pause() and len(link.resumed) == 1
    link.paused = False
    link.resumed[0]()
    assert told == [True]
    link.paused = True
    assert pause() and len(link.resumed) == 2
