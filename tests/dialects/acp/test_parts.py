"""Parts of this dialect by themselves: `attach`, `desk`, `hear`, `hello`, `options`, `own`,
`prompts`, `shapes`, `speak`, `verbs.account`, `verbs.care`, `verbs.handshake`.
"""

import json
from base64 import b64encode
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from tests.dialects.acp.talking import Talker

from dragoman.dialects.acp import hello, options
from dragoman.dialects.acp.attach import Attachment, Running
from dragoman.dialects.acp.commands import run_own
from dragoman.dialects.acp.desk import Desk
from dragoman.dialects.acp.faults import LoggedOut, UnsupportedVersion
from dragoman.dialects.acp.hear import AcpHearer, _fault
from dragoman.dialects.acp.prompts import _place, read_prompt
from dragoman.dialects.acp.quirks import Manner, quirks_of
from dragoman.dialects.acp.shapes import (
    Authenticate,
    Connection,
    ForSession,
    Initialize,
    NewSession,
    Nothing,
    OldSession,
    Settings,
    SetTitle,
    client_side,
    whole_path,
)
from dragoman.dialects.acp.speak import (
    Speaker,
    _rough,
    compacting,
    short_title,
    stamp,
    state_of,
    stop_of,
)
from dragoman.dialects.acp.verbs import account, care, handshake
from dragoman.engine import events as ev
from dragoman.engine.content import Image, Message, PlanEntry, Text, Thinking, ToolCall
from dragoman.engine.events import Event, Who
from dragoman.engine.faults import BadInput, StoreFailed, TooMany, UnknownSession, WrongState
from dragoman.engine.host import OpenSpec
from dragoman.engine.traits import Waiver
from dragoman.testing.host import host_of, memory_door
from dragoman.testing.script import Scripted, hang
from dragoman.wire.verbs import BadParams, Cancelled, Crowded, UnknownMethod


def desk_of(*script: Any, **settings: Any) -> Desk:
    return Desk(memory_door(Scripted(list(script))), Settings(**settings))


async def session_of(
    *script: Any, cwd: str = "/", **settings: Any
) -> tuple[Talker, AcpHearer, str]:
    """A client with a session."""
    talker = Talker(desk_of(*script, **settings))
    hearer: AcpHearer = talker.end.pump.hearer
    await talker.greet()
    made = await talker.call("session/new", {"cwd": cwd, "mcpServers": []})
    return talker, hearer, made["sessionId"]


def kept(attachment: Attachment) -> list[bytes]:
    """The lines that an attachment sends from now on."""
    sent: list[bytes] = []
    link: Any = SimpleNamespace(send_blob=lambda blob: sent.extend(blob.messages))
    attachment._link = link
    return sent


# --- shapes ---


def test_shapes_a_sessions_id_in_both_spellings() -> None:
    assert ForSession("a", "b").session_id == "a" and ForSession(None, "b").session_id == "b"
    for wrong in (ForSession(), ForSession(""), ForSession(5)):
        with pytest.raises(BadInput):
            _ = wrong.session_id
    with pytest.raises(BadInput, match="NUL"):
        whole_path("a\0b", "cwd")


def test_shapes_the_first_spelling_that_is_there_decides() -> None:
    assert NewSession(agent_alias=5, agent="x").alias == "" and NewSession(agent=" x ").alias == "x"
    assert NewSession(workspace_dir="/w").directory == "/w" and NewSession().directory == ""
    for wrong in ("", 5):
        with pytest.raises(BadInput, match="must be a path"):
            _ = NewSession(cwd=wrong).directory


@pytest.mark.parametrize("given", [None, 5, [], {"fs": 1, "session": [], "elicitation": None}])
def test_shapes_what_is_not_understood_is_not_offered(given: Any) -> None:
    assert client_side(given) == client_side({})


def test_shapes_capabilities_are_exactly_as_written() -> None:
    can = client_side(
        {
            "fs": {"readTextFile": True, "writeTextFile": 1}, "terminal": True,
            "elicitation": {"form": {}}, "session": {"configOptions": {"boolean": {}}},
        }
    )  # fmt: skip
    assert can.read_files and not can.write_files and can.terminals and can.forms and can.booleans


# --- prompts ---


def prompt(value: Any, **how: Any) -> Any:
    return read_prompt(msgspec.Raw(json.dumps(value).encode()), **{"vision": True, **how})


def test_prompts_of_every_kind() -> None:
    png, gif = b"\x89PNG\r\n\x1a\n-", b"GIF89a-"
    parts = [
        {"type": "text", "text": "look"},
        {"resource": {"uri": "file:///a%20b#L3:5", "text": "body"}},
        {"type": "resource_link", "uri": "file:///x", "name": "x.py"},
        {"type": "image", "data": b64encode(png).decode(), "mimeType": 5},
        {
            "type": "resource",
            "resource": {"blob": b64encode(gif).decode(), "mimeType": "image/gif"},
        },
    ]
    text, first, second = prompt(parts)
    assert text.text == "look\n\n/a b:3-5:\nbody\n\n[x.py](/x)"
    assert (first, second) == (Image("image/png", png), Image("image/gif", gif))
    assert prompt("plain") == (Text("plain"),)


@pytest.mark.parametrize(
    ("value", "how", "why"),
    [
        ("x", {"strict": True}, "a string or an array"),
        ([{"text": "x"}], {"strict": True}, "an object with a type"),
        ([], {}, "at least one text part"),
        ([5], {}, "must be an object"),
        ([{"type": "audio"}], {}, "'audio' is not supported"),
        ([{"type": "image", "data": "x"}], {"vision": False}, "cannot see images"),
        ([{"type": "image", "data": "%"}], {}, "is not base64"),
        ([{"type": "image", "data": "A" * 14_000_000}], {}, "larger than 10 MiB"),
        ([{"type": "text", "text": 5}], {}, r"prompt\[0\].text must be a string"),
        ([{"type": "resource"}], {}, "must be an object"),
        ([{"type": "resource", "resource": {}}], {}, "neither text nor blob"),
        ([{"type": "resource", "resource": {"blob": "/w=="}}], {}, "cannot be read as text"),
    ],
)
def test_prompts_that_cannot_be_used(value: Any, how: Any, why: str) -> None:
    with pytest.raises(BadInput, match=why):
        prompt(value, **how)
    with pytest.raises(BadInput, match="Missing required"):
        read_prompt(msgspec.Raw(), vision=True)


@pytest.mark.parametrize(
    ("uri", "place"),
    [
        ("http://x/y", "http://x/y"),
        ("file://localhost/a?symbol=Page#L10-L20", "/a:10-20 (symbol Page)"),
        ("FILE:///a#L7C3", "/a:7"),
        ("file:///a#anchor", "/a"),
        ("file:///a#L5:5", "/a:5"),
    ],
)
def test_prompts_places_of_files(uri: str, place: str) -> None:
    assert _place(uri) == place


# --- hello ---


@pytest.mark.parametrize(
    ("params", "second"),
    [
        ({"protocolVersion": 2, "info": {}}, True),
        ({"protocolVersion": 2}, False),
        ({"protocolVersion": True, "info": {}}, False),
        ({"protocolVersion": 70_000, "info": {}}, False),
        (None, False),
    ],
)
def test_hello_version_2_only_beyond_doubt(params: Any, second: bool) -> None:
    assert hello.wants_second(params) is second


def test_hello_says_what_works_here() -> None:
    kept = hello.hello(
        keeps=True, model="p/m", vision=True, max_sessions=5, timeout=3600.0, version="1"
    )
    assert kept["agentCapabilities"]["loadSession"] is True
    assert kept["_meta"]["dragoman"]["sessionTimeoutSecs"] == 3600
    passing = hello.hello(
        keeps=False, model="", vision=False, max_sessions=5, timeout=0.5, version="1", more=True
    )
    can = passing["agentCapabilities"]["sessionCapabilities"]
    assert "resume" not in can and "fork" in can
    assert "defaultModel" not in passing["_meta"]["dragoman"]
    assert hello.is_info({"name": "x", "version": "1"}) and not hello.is_info({"name": "x"})
    first: Any = hello.login_method({"auth": {"terminal": True}})
    second: Any = hello.login_method({"_meta": {"terminal-auth": True}}, second=True)
    assert first["id"] == second["methodId"] == "login"
    assert hello.login_method({"auth": 5}) is None and hello.login_method(None) is None


# --- speak ---


def speaker(**more: Any) -> Speaker:
    door = more.pop("door", None) or memory_door(Scripted([]))
    parent = more.pop("parent", "")
    manner = {"plans": False, "booleans": False, **more}
    return Speaker(door, "s1", Manner(quirks_of(""), **manner), parent)


def spoken(one: Speaker, body: Any, seq: int = 1) -> list[Any]:
    found = one.speak([Event("s1", 1_500, body, seq, seq)]) or []
    lines = [
        line for said in found for blob in (said.blob, said.live) if blob for line in blob.messages
    ]
    return [json.loads(line)["params"]["update"] for line in lines]


def test_speak_tells_each_fact_in_the_protocols_words() -> None:
    one = speaker()
    (delta,) = spoken(one, ev.TextDelta("t", 'a"\ud800', 2))
    assert delta["content"]["text"] == 'a"\ufffd'
    (plan,) = spoken(one, ev.Planned((PlanEntry("x"),)))
    assert plan["sessionUpdate"] == "plan"
    (new,) = spoken(speaker(plans=True), ev.Planned((PlanEntry("x"),)))
    assert new["plan"]["planId"] == "main"
    (call,) = spoken(one, ev.Spoke("t", 1, (ToolCall("c", "bash", None, "{"),), "tool_use"))
    assert call["rawInput"] == {"raw": "{"} and call["status"] == "pending"
    (note,) = spoken(one, ev.Noted("warning", "", "text"))
    assert note == {
        "sessionUpdate": "notice", "severity": "warning", "title": "Note", "description": "text",
    }  # fmt: skip
    assert spoken(one, ev.Noted("info", "x", data={"source": "client"})) == []
    (title,) = spoken(one, ev.Renamed("T"))
    assert title["updatedAt"] == "1970-01-01T00:00:01.500Z"
    assert spoken(one, ev.Archived(True)) == []


def test_speak_only_the_rest_of_a_message_that_was_streamed() -> None:
    one = speaker()
    body = ev.Spoke("t", 1, (Thinking("hmm"), Text("hello")), "aborted")
    whole = [json.loads(line)["params"]["update"] for line in one.rest(body, 0, 0)]
    assert [update["content"]["text"] for update in whole] == ["hmm", "hello"]
    rest = [json.loads(line)["params"]["update"] for line in one.rest(body, 2, 3)]
    assert [update["content"]["text"] for update in rest] == ["llo"]
    assert rest[0]["_meta"] == {"dragoman": {"cut": True}}
    assert one.rest(body, 5, 3) == []


@pytest.mark.parametrize(
    ("body", "stop"),
    [
        (ev.TurnEnded("t", "cancelled", "aborted"), "cancelled"),
        (ev.TurnEnded("t", "completed", "length"), "max_tokens"),
        (ev.TurnEnded("t", "failed", "max_steps"), "max_turn_requests"),
        (ev.TurnEnded("t", "failed", "end_turn", error="no\nkey"), "error"),
    ],
)
def test_speak_why_a_turn_ended(body: ev.TurnEnded, stop: str) -> None:
    found = stop_of(body)
    assert found["stopReason"] == stop
    if stop == "error":
        assert found["error"]["message"] == "no key"


def test_speak_small_words() -> None:
    assert short_title("a\n b") == "a b" and len(short_title("word " * 99)) <= 80
    assert stamp(1) == "1970-01-01T00:00:00.001Z"
    assert state_of(None) == {"state": "idle"}
    busy: Any = SimpleNamespace(busy=True, asks={"q": 1})
    assert state_of(busy) == {"state": "requires_action"}
    assert compacting(ev.Compacting("t", "c", "failed", "why"))["error"] == "why"
    assert compacting(ev.Compacting("t", "c", "began"))["status"] == "in_progress"
    assert _rough([Message("user", (Text("x" * 40), ToolCall("c", "t", None, "y" * 40)))]) == 20


# --- options ---


async def test_options_are_listed_and_set() -> None:
    door = memory_door(Scripted([]))
    info = await door.open(OpenSpec(cwd="/"))
    listed = {one["id"]: one for one in options.options(door, info, booleans=True)}
    assert set(listed) == {"mode", "model", "auto_accept_edits"}  # this model does not think
    renamed = options.options(door, info, booleans=True, second=True)
    assert {one.pop("configId"): {"id": "", **one} for one in renamed} == {
        name: {**one, "id": ""} for name, one in listed.items()
    }
    await options.set_option(door, info, "auto_accept_edits", True, None)
    assert Waiver.of((await door.info(info.id)).extra).tools == ("write", "edit")
    await options.set_option(door, info, "mode", "plan", None)
    assert (await door.info(info.id)).mode == "plan"
    assert options.modes(info)["availableModes"][0]["id"] == "readonly"
    for option, value, why in (
        ("auto_accept_edits", "yes", "true or false"),
        ("mode", 5, "one of the option's values"),
        ("thought_level", "high", "Unknown configuration option"),
        ("odd", "x", "Unknown configuration option"),
    ):
        with pytest.raises(BadInput, match=why):
            await options.set_option(door, info, option, value, None)


# --- desk ---


async def test_desk_counts_places_and_says_when_there_are_none() -> None:
    desk = desk_of(max_sessions=1)
    desk.reserve()
    with pytest.raises(TooMany, match="Maximum session limit reached .1."):
        desk.reserve()
    desk.release()
    talker, hearer, id = await session_of(max_sessions=1)
    hearer.desk.reserve(id)  # the same session again takes no place
    hearer.desk.release()
    assert (await talker.refused("session/new", {"cwd": "/", "mcpServers": []}))["code"]
    await hearer.desk.close()


async def test_desk_knows_whether_somebody_is_logged_in() -> None:
    desk = desk_of()
    desk.require_login()
    desk.logged_out = True
    with pytest.raises(LoggedOut):
        desk.require_login()
    desk.door.facts.logged_in = lambda: ["openai"]
    desk.require_login()  # somebody logged in meanwhile, maybe in a terminal
    assert desk.logged_out is False and desk.accounts() == ["openai"]


async def test_desk_lets_go_of_what_was_not_used_for_long() -> None:
    talker, hearer, id = await session_of(session_timeout_secs=3600)
    attachment = hearer.attached[id]
    attachment.last_used = -10_000.0
    attachment.running = Running(1)
    await hearer.desk._sweep()
    assert id in hearer.attached  # it works
    attachment.running = None
    attachment.last_used = -10_000.0
    await hearer.desk._sweep()
    assert hearer.attached == {} and hearer.door.live(id) is None
    await hearer.desk.close()


async def test_desk_lets_go_of_the_others_when_one_cannot_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    talker, hearer, id = await session_of(session_timeout_secs=3600)
    other = await talker.new()
    for attachment in hearer.attached.values():
        attachment.last_used = -10_000.0
    close = hearer.door.close

    async def full(session: str, cause: str) -> None:
        if session == id:
            raise StoreFailed("no disk")
        await close(session, cause)

    monkeypatch.setattr(hearer.door, "close", full)
    await hearer.desk._sweep()
    assert hearer.attached == {} and hearer.door.live(other) is None
    monkeypatch.undo()
    await hearer.desk.close()


# --- hear ---


@pytest.mark.parametrize(
    ("problem", "text"),
    [
        (UnknownMethod("x" * 500), "Method not found: xxx"),
        (Cancelled(), "Request cancelled"),
        (BadParams("n"), "Invalid params: n"),
        (Crowded(9), "9 requests of this connection"),
        (KeyError("k"), "Internal error: KeyError"),
    ],
)
async def test_hear_every_failure_is_one_line(problem: BaseException, text: str) -> None:
    _, hearer, _ = await session_of()
    error = json.loads(hearer.failure(None, 1, problem))["error"]
    assert error["message"].startswith(text) and "\n" not in error["message"]
    assert len(error["message"]) <= 300 and (isinstance(problem, UnknownMethod) or _fault(problem))


async def test_hear_takes_in_what_somebody_else_answered() -> None:
    desk = desk_of()
    talker = Talker(desk)
    hearer: AcpHearer = talker.end.pump.hearer
    hearer.met(b"{")
    assert not hearer.greeted
    hearer.met(b'{"protocolVersion":1,"clientInfo":{"name":"ed"}}')
    assert hearer.greeted and hearer.who.name == "ed"
    with pytest.raises(UnknownSession):
        hearer.active("nope")
    assert hearer.child("nope") is None and hearer.not_a_child("x") == "x"


# --- attach ---


async def test_attach_sends_only_what_is_new_of_a_step_told_again() -> None:
    _, hearer, id = await session_of()
    attachment: Attachment = hearer.attached[id]
    sent = kept(attachment)
    one = attachment.speaker
    step = ev.StepBegan("t", 1)

    def tell(*bodies: Any) -> None:
        attachment.deliver(one.speak([Event(id, 1, body) for body in bodies]) or [])

    tell(step, ev.TextDelta("t", "hel", 1))
    tell(step, ev.TextDelta("t", "hello", 1))  # to a reader that fell behind
    texts = [json.loads(line)["params"]["update"]["content"]["text"] for line in sent]
    assert texts == ["hel", "lo"]
    tell(ev.Spoke("t", 1, (Text("hello!"),), "end_turn"))
    assert json.loads(sent[-1])["params"]["update"]["content"]["text"] == "!"


async def test_attach_shows_trouble_with_the_next_turn_and_progress_now_and_then() -> None:
    _, hearer, id = await session_of()
    attachment = hearer.attached[id]
    sent = kept(attachment)
    for number in range(20):
        attachment._on_noted(ev.Noted("warning", f"n{number}"))
    attachment._on_noted(ev.Noted("info", "no trouble"))
    assert len(attachment.notes) == 16
    attachment._on_began(ev.TurnBegan("t", ()))
    assert len(sent) == 16 and attachment.notes == []
    sent.clear()
    attachment._on_progress(ev.Progress("t", "c", "one"))
    attachment._on_progress(ev.Progress("t", "c", "two"))
    assert len(sent) == 1 and b'"in_progress"' in sent[0]
    assert attachment.take_back("nobody") is False


# --- own ---


async def test_own_commands_say_what_they_did() -> None:
    talker, hearer, id = await session_of("hi")
    attachment = hearer.attached[id]
    said = kept(attachment)
    for name, words, text in (
        ("status", "", f"Session: {id}"),
        ("model", "", "The model is scripted/test."),
        ("model", "no/such", "unknown model"),
        ("clear", "", "was cleared"),
        ("compact", "", "could not be compacted"),
    ):
        assert text in await run_own(attachment, Running(1), name, words)
    assert sum(b"agent_message_chunk" in line for line in said) >= 5


# --- verbs.account ---


async def test_account_is_what_login_left() -> None:
    desk = desk_of()
    conn: Any = SimpleNamespace(desk=desk, door=desk.door)
    assert account.status(conn, Nothing())["state"] == "not_required"
    with pytest.raises(BadInput, match="Unknown authentication method: key"):
        account.authenticate(conn, Authenticate("key"))
    assert account.authenticate(conn, Authenticate("login")) == {}
    forgotten: list[bool] = []

    async def forget() -> None:
        forgotten.append(True)

    desk.door.facts.log_out = forget
    await account.logout(conn, Nothing())
    assert forgotten and account.status(conn, Nothing())["state"] == "unauthenticated"
    with pytest.raises(LoggedOut):
        account.authenticate(conn, Authenticate("login"))
    desk.door.facts.logged_in = lambda: ["openai"]
    assert account.status(conn, Nothing())["accounts"] == [{"label": "openai"}]


# --- verbs.care ---


async def test_care_of_sessions_that_are_only_kept() -> None:
    talker, hearer, id = await session_of("hi")
    other = (await hearer.door.open(OpenSpec(cwd="/"))).id
    await hearer.door.close(other)
    assert await care.status(hearer, ForSession(other)) == {"status": "saved"}
    assert await care.set_title(hearer, SetTitle(other, title=" a\n b ")) == {"title": "a b"}
    assert hearer.door.live(other) is None  # as it was
    assert await care.archive(hearer, ForSession(other)) == {}
    assert (await hearer.door.info(other)).archived
    await care.unarchive(hearer, ForSession(other))
    assert not (await hearer.door.info(other)).archived
    assert (await care.status(hearer, ForSession(id)))["status"] == "open"
    await care.archive(hearer, ForSession(id))
    assert id not in hearer.attached
    for title in ("", "  ", 5):
        with pytest.raises(BadInput, match="not empty"):
            await care.set_title(hearer, SetTitle(other, title=title))
    with pytest.raises(BadInput, match="must be a path"):
        await care.fork(hearer, OldSession(other, cwd=5))
    assert hearer.desk.opening == 0


async def test_care_a_session_that_works_for_another_is_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, hearer, id = await session_of()
    child: Any = SimpleNamespace(id="kid", shown=True, leave=lambda: None)
    hearer.attached[id].children["kid"] = child
    with pytest.raises(WrongState, match="works for another one"):
        await care.archive(hearer, ForSession("kid"))
    assert hearer.seen("kid") is child
    hearer.attached[id].part_from(child)
    assert hearer.child("kid") is None


# --- verbs.handshake ---


@pytest.mark.parametrize(
    ("params", "second"),
    [
        (Initialize(), False),
        (Initialize(protocol_version="old"), False),
        (Initialize(protocol_version=2, info={"name": "x", "version": "1"}), True),
        (Initialize(protocol_version=9, info={"name": "x"}), True),
        (Initialize(protocol_version=9), False),
        (Initialize(protocol_version=1, info={}), False),
    ],
)
def test_handshake_chooses_the_version(params: Initialize, second: bool) -> None:
    conn: Any = SimpleNamespace(desk=SimpleNamespace(settings=Settings()))
    assert handshake._chosen(conn, params) is second
    off: Any = SimpleNamespace(desk=SimpleNamespace(settings=Settings(version_2=False)))
    assert handshake._chosen(off, params) is False


@pytest.mark.parametrize(
    ("params", "kind"),
    [
        (Initialize(protocol_version=2), BadInput),
        (Initialize(protocol_version=70_000), BadInput),
        (Initialize(protocol_version="2", info={}), BadInput),
        (Initialize(protocol_version=0, info={}), UnsupportedVersion),
    ],
)
def test_handshake_holds_clients_of_version_2_to_its_rules(params: Any, kind: type) -> None:
    conn: Any = SimpleNamespace(desk=SimpleNamespace(settings=Settings()))
    with pytest.raises(kind):
        handshake._chosen(conn, params)


async def test_handshake_a_name_of_our_own_programs_is_kept() -> None:
    hearer = Talker(desk_of()).end.pump.hearer
    handshake.name_connection(hearer, Connection("n" * 99, True))
    handshake.name_connection(hearer, Connection("other"))
    assert hearer.steady == "own:" + "n" * 64 and hearer.places is False


# --- verbs.care: options ---


async def test_option_verbs_want_a_session_and_a_value(tmp_path: Path) -> None:
    talker, hearer, id = await session_of(cwd=str(tmp_path))
    assert await talker.call("session/set_mode", {"sessionId": id, "mode_id": "plan"}) == {}
    for method, params, why in (
        ("session/set_mode", {"sessionId": id}, "modeId"),
        ("session/set_mode", {"sessionId": "nope", "modeId": "plan"}, "nope"),
        ("session/set_config_option",
         {"sessionId": id, "configId": "mode", "type": "id", "value": 5},
         "one of the option's values"),
        ("session/set_config_option",
         {"sessionId": id, "configId": "x", "type": "boolean", "value": "y"}, "true or false"),
    ):  # fmt: skip
        assert why in (await talker.refused(method, params))["message"]
    set_to = {"sessionId": id, "configId": "mode", "value": "full"}
    found = await talker.call("session/set_config_option", set_to)
    assert found["configOptions"][0]["currentValue"] == "full"
    assert care.set_mode.__name__ == "set_mode"
    await host_of(hearer.door).stop(0.1)


async def test_hear_a_turn_is_stopped_by_the_request_that_it_answers() -> None:
    talker, hearer, id = await session_of(hang())
    asked = talker.ask(
        "session/prompt", {"sessionId": id, "prompt": [{"type": "text", "text": "x"}]}
    )
    await hearer.door.begun(id)
    hearer.cancel_request("unknown")
    hearer.cancel_request(asked)
    assert (await talker.reply(asked))["result"]["stopReason"] == "cancelled"
    assert hearer.who == Who("acp", "memory", hearer.who.name, hearer.who.id)
