"""The cases of version 2, one test each and by their numbers.

1-11 negotiation, 12-22 turns, 23-35 tools, 36-45 cancelling and what waits, 46-53 resuming, 54-57
several clients, 58-74 the rest. Those of HTTP (71-73) are in tests/gateway/test_streamable.py, that
of the registry (74) in tests/docs/test_registry.py; the last test here counts them all.
"""

import asyncio
import base64
import re
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dragoman.dialects.acp.changes import diff_of
from dragoman.engine.ask import Ask
from dragoman.engine.content import Detail, Diff, Text
from dragoman.engine.door import Door
from dragoman.engine.facts import Facts
from dragoman.engine.ports import Outcome
from dragoman.engine.ports.tools import Stopped
from dragoman.store.sqlite import open_store
from dragoman.testing.host import MODEL, EchoTool, host_of, memory_door
from dragoman.testing.script import Scripted, call, fail, hang, think, turn

from .oracle import check_strictly
from .talking import JOIN, Talker, desk_of

INFO = {"name": "t", "version": "1"}
ROOT = Path(__file__).parents[2]


class Strict(Talker):
    check = staticmethod(check_strictly)


def fresh(door: Door | None = None, **settings: Any) -> Strict:
    return Strict(desk_of(door or memory_door(Scripted([])), **settings))


async def met(door: Door | None = None, **capabilities: Any) -> Strict:
    client = fresh(door)
    await client.greet2(**capabilities)
    return client


async def begun(door: Door | None = None, cwd: str = "/tmp") -> tuple[Strict, str]:
    client = await met(door)
    return client, await client.new2(cwd)


def blocks(text: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": text}]


def at(session: str, text: str = "hi") -> dict[str, Any]:
    return {"sessionId": session, "prompt": blocks(text)}


async def prompt(client: Talker, session: str, text: str = "hi") -> str:
    return (await client.call("session/prompt", at(session, text)))["messageId"]


async def heard(client: Talker, kind: str, **members: Any) -> dict[str, Any]:
    """The first update of this kind with these members, which may have come already."""
    while True:
        for update in client.updates():
            if update["sessionUpdate"] == kind and members.items() <= update.items():
                return update
        await client.next()


async def turned(client: Talker, session: str, text: str = "hi") -> dict[str, Any]:
    before = len(client.updates())
    await prompt(client, session, text)
    while not (ends := [u for u in client.updates()[before:] if u.get("state") == "idle"]):
        await client.next()
    return ends[0]


async def asked(client: Talker) -> dict[str, Any]:
    """The permission that is asked for first."""
    method = "session/request_permission"
    while not (found := [m for m in client.heard if m.get("method") == method]):
        await client.next()
    return found[-1]


async def until(met: Callable[[], bool]) -> None:
    """Give the others the loop until something is so."""
    for _ in range(100_000):
        if met():
            return
        await asyncio.sleep(0)
    raise TimeoutError


def states(client: Talker) -> list[str]:
    return [u["state"] for u in client.updates() if u["sessionUpdate"] == "state_update"]


def calls_of(client: Talker) -> list[dict[str, Any]]:
    return [u for u in client.updates() if u["sessionUpdate"] == "tool_call_update"]


YES = {"outcome": {"outcome": "selected", "optionId": "allow-once"}}


def answer(client: Talker, request: dict[str, Any], result: Any = YES) -> None:
    client.send({"jsonrpc": "2.0", "id": request["id"], "result": result})


# --- negotiation ---


async def test_case_01_version_0_is_not_spoken() -> None:
    client = fresh()
    error = await client.refused("initialize", {"protocolVersion": 0, "info": INFO})
    assert error["code"] == -32022 and error["data"] == {"requested": 0, "supported": [1, 2]}


async def test_case_02_version_1_has_its_own_shape() -> None:
    result = await fresh().greet("t")
    assert result["protocolVersion"] == 1 and "agentCapabilities" in result
    assert not {"capabilities", "info"} & set(result)


async def test_case_03_version_2_has_its_own_shape() -> None:
    result = await fresh().greet2()
    assert result["protocolVersion"] == 2 and result["info"]["version"]
    assert not {"agentCapabilities", "agentInfo"} & set(result)


async def test_case_04_later_ones_get_2() -> None:
    client = fresh()
    client.version = "v2"
    result = await client.call("initialize", {"protocolVersion": 65535, "info": INFO})
    assert result["protocolVersion"] == 2


async def test_case_05_a_word_is_no_version_and_may_be_mended() -> None:
    client = fresh()
    error = await client.refused("initialize", {"protocolVersion": "2", "info": INFO})
    assert error["code"] == -32602
    await client.greet2()
    await client.new2()


@pytest.mark.parametrize("info", [None, {}, {"name": "t"}, {"name": "", "version": ""}, "t"])
async def test_case_06_version_2_wants_to_know_who_asks(info: Any) -> None:
    client = fresh()
    params = {"protocolVersion": 2, "info": info}
    assert (await client.refused("initialize", params))["code"] == -32602


async def test_case_07_a_setting_turns_version_2_off() -> None:
    client = fresh(version_2=False)
    params = {"protocolVersion": 2, "info": INFO, "capabilities": {"auth": {"terminal": {}}}}
    result = await client.call("initialize", params)
    assert result["protocolVersion"] == 1 and result["authMethods"][0]["type"] == "terminal"
    assert (await client.call("session/list"))["sessions"] == []


@pytest.mark.parametrize("method", ["session/list", "session/set_config_option", "auth/status"])
async def test_case_08_nothing_new_before_initialize(method: str) -> None:
    client = fresh()
    client.tell(method)  # as a notification it is passed over
    for _ in range(2):
        assert (await client.refused(method))["code"] == -32600
    assert (await client.refused("initialize", {"protocolVersion": 2}))["code"] == -32602
    assert (await client.refused(method))["code"] == -32600  # nothing was agreed on
    await client.greet2()
    assert "result" in await client.reply(client.ask("session/list"))


async def test_case_08_the_older_family_need_not_greet() -> None:
    client = fresh(memory_door(Scripted(["yes"])))
    session = (await client.call("session/new", {}))["sessionId"]
    assert (await client.prompt(session, "hello"))["content"] == "yes"


async def test_case_09_initialize_may_be_repeated_until_something_else_is_asked() -> None:
    client = await met()
    await client.greet2()
    await client.new2()
    error = await client.refused("initialize", {"protocolVersion": 2, "info": INFO})
    assert error["code"] == -32600


@pytest.mark.parametrize("id", [None, 1.5])
async def test_case_10_a_null_is_no_id(id: Any) -> None:
    client = await met()
    client.send({"jsonrpc": "2.0", "id": id, "method": "session/list"})
    said = await client.next()
    assert said["id"] is None and said["error"]["code"] == -32600


@pytest.mark.parametrize("method", ["authenticate", "session/load", "session/set_mode", "logout"])
async def test_case_11_what_is_gone_is_unknown(method: str) -> None:
    assert (await (await met()).refused(method, {}))["code"] == -32601


# --- turns ---


async def test_case_12_a_prompt_is_answered_with_its_id_alone() -> None:
    client, session = await begun(memory_door(Scripted(["x"])))
    result = await client.call("session/prompt", at(session))
    assert set(result) == {"messageId"}
    user = await heard(client, "user_message")
    assert user["messageId"] == result["messageId"] and user["content"] == blocks("hi")


async def test_case_13_running_then_idle_once() -> None:
    client, session = await begun(memory_door(Scripted(["x"])))
    await turned(client, session)
    await client.silence()
    assert states(client) == ["running", "idle"]


async def test_case_14_nothing_of_a_turn_comes_after_idle() -> None:
    client, session = await begun(memory_door(Scripted([turn(think("hm"), "a b c " * 50)])))
    await turned(client, session)
    assert client.updates()[-1]["state"] == "idle"
    await client.silence()


async def test_case_15_chunks_have_ids_and_new_ones_after_a_tool() -> None:
    script = Scripted([turn(think("hm"), "before", call("echo", text="x")), "after"])
    client, session = await begun(memory_door(script, [EchoTool()], mode="full"))
    await turned(client, session)
    chunks = [u for u in client.updates() if u["sessionUpdate"].endswith("_chunk")]
    assert all(u["messageId"] for u in chunks)
    said = [u for u in chunks if u["sessionUpdate"] == "agent_message_chunk"]
    assert len({u["messageId"] for u in said}) == 2


async def test_case_16_two_prompts_have_two_ids() -> None:
    client, session = await begun(memory_door(Scripted(["x", "y"])))
    assert len({await prompt(client, session), await prompt(client, session)}) == 2


async def test_case_17_an_empty_prompt_is_none() -> None:
    client, session = await begun()
    params = {"sessionId": session, "prompt": []}
    assert (await client.refused("session/prompt", params))["code"] == -32602


async def test_case_18_unknown_blocks_are_refused() -> None:
    client, session = await begun()
    params = {"sessionId": session, "prompt": [*blocks("x"), {"type": "_x", "text": "y"}]}
    assert (await client.refused("session/prompt", params))["code"] == -32602
    await client.silence()


async def test_case_19_pictures_only_where_they_are_offered() -> None:
    door = memory_door(Scripted(["x"]))
    host_of(door).models.model = msgspec.structs.replace(MODEL, vision=False)  # type: ignore[attr-defined]
    client = fresh(door)
    hello = await client.greet2()
    assert "image" not in hello["capabilities"]["session"]["prompt"]
    picture = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
    params = {"sessionId": await client.new2(), "prompt": [picture]}
    assert (await client.refused("session/prompt", params))["code"] == -32602


async def test_case_20_a_failing_model_fails_no_prompt() -> None:
    client, session = await begun(memory_door(Scripted([fail("auth", "no model today")])))
    idle = await turned(client, session)
    assert idle["stopReason"] == "error" and "no model today" in idle["error"]["message"]


async def test_case_21_our_own_commands_live_like_prompts() -> None:
    client, session = await begun()
    assert (await turned(client, session, "/status"))["stopReason"] == "end_turn"
    assert states(client) == ["running", "idle"] and client.kinds()[0] == "user_message"


@pytest.mark.parametrize(
    ("method", "more"),
    [
        ("session/prompt", {"prompt": blocks("x")}),
        ("session/resume", {"cwd": "/tmp"}),
        ("session/set_config_option", {"configId": "mode", "type": "id", "value": "full"}),
        ("session/fork", {"cwd": "/tmp"}),
        ("session/set_title", {"title": "x"}),
        ("session/status", {}),
        ("session/archive", {}),
        ("tool_call/cancel", {"toolCallId": "x"}),
        ("terminal/cancel", {"terminalId": "x"}),
    ],
)
async def test_case_22_an_unknown_session_is_named(method: str, more: Any) -> None:
    error = await (await met()).refused(method, {"sessionId": "ghost", **more})
    assert error["code"] == -32002 and error["data"]["sessionId"] == "ghost"


# --- tools ---


async def test_case_23_a_call_begins_with_a_title() -> None:
    script = Scripted([call("echo", text="x"), "ok"])
    client, session = await begun(memory_door(script, [EchoTool()], mode="full"))
    await turned(client, session)
    first = calls_of(client)[0]
    assert first["title"] and first["status"] == "pending" and first["name"] == "echo"
    assert "tool_call" not in client.kinds()


async def test_case_24_a_permission_is_a_state() -> None:
    script = Scripted([call("echo", text="x"), "ok"])
    client, session = await begun(memory_door(script, [EchoTool()]))
    await prompt(client, session)
    request = await asked(client)
    await heard(client, "state_update", state="requires_action")
    answer(client, request)
    await heard(client, "state_update", state="idle")
    assert states(client) == ["running", "requires_action", "running", "idle"]


async def test_case_25_one_of_two_answers_is_not_enough() -> None:
    script = Scripted([call("echo", text="x"), "ok"])
    door = memory_door(script, [EchoTool()])
    client, session = await begun(door)
    await prompt(client, session)
    first = await asked(client)
    live = door.live(session)
    assert live is not None
    other = Ask("ask_2", session, "question", "And?", at=1, turn=live.turn, choices=("a", "b"))
    await door.put_ask(other)
    while len([m for m in client.heard if m.get("method") == first["method"]]) < 2:
        await client.next()
    second = [m for m in client.heard if m.get("method") == first["method"]][1]
    answer(client, second, {"outcome": {"outcome": "selected", "optionId": "choice-0"}})
    await until(lambda: "ask_2" not in live.asks)
    await client.reply(client.ask("_test/barrier"))
    assert states(client)[-1] == "requires_action"
    answer(client, first)
    await heard(client, "state_update", state="idle")


@pytest.mark.parametrize("given", ["never offered", "", None, 5, "allow-always:nothing:ever"])
async def test_case_26_an_option_that_was_not_offered_is_a_no(given: Any) -> None:
    tool = EchoTool()
    client, session = await begun(memory_door(Scripted([call("echo", text="x"), "ok"]), [tool]))
    await prompt(client, session)
    chosen = {"outcome": {"outcome": "selected", "optionId": given}}
    answer(client, await asked(client), chosen)
    await heard(client, "state_update", state="idle")
    assert tool.ran == []


@pytest.mark.parametrize("given", [{"outcome": "_later"}, {}, None, "selected", []])
async def test_case_27_an_outcome_that_is_not_known_is_a_no(given: Any) -> None:
    tool = EchoTool()
    client, session = await begun(memory_door(Scripted([call("echo", text="x"), "ok"]), [tool]))
    await prompt(client, session)
    answer(client, await asked(client), {"outcome": given})
    await heard(client, "state_update", state="idle")
    assert tool.ran == []


async def test_case_28_an_error_is_a_no() -> None:
    tool = EchoTool()
    client, session = await begun(memory_door(Scripted([call("echo", text="x"), "ok"]), [tool]))
    await prompt(client, session)
    trouble = {"code": -32603, "message": "no"}
    client.send({"jsonrpc": "2.0", "id": (await asked(client))["id"], "error": trouble})
    await heard(client, "state_update", state="idle")
    assert tool.ran == [] and calls_of(client)[-1]["status"] == "failed"


class Edits(EchoTool):
    """Says that it changed these files."""

    def __init__(self, *diffs: Diff) -> None:
        super().__init__("edit", "edit")
        self._diffs = diffs

    async def run(self, args: dict[str, Any], env: Any) -> Outcome:
        return Outcome((Text("done"),), detail=Detail(diffs=self._diffs))


async def test_case_29_an_edit_has_absolute_changes_and_a_patch_that_applies(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a b.txt"
    path.write_text("one\ntwo\nthree\n")
    tool = Edits(Diff(str(path), "one\ntwo\nthree\n", "one\n2\nthree\n"))
    script = Scripted([call("edit", path="a b.txt"), "ok"])
    client, session = await begun(memory_door(script, [tool], mode="full"), str(tmp_path))
    await turned(client, session)
    (diff,) = calls_of(client)[-1]["content"]
    assert diff["changes"] == [{"operation": "modify", "path": str(path), "fileType": "text"}]
    _apply(diff["patch"]["text"], tmp_path)
    assert path.read_text() == "one\n2\nthree\n"


def _apply(patch: str, folder: Path) -> None:
    (folder / "patch").write_text(patch.replace(f"{folder}/", ""))  # git takes no absolute paths
    subprocess.run(["git", "apply", "-p0", "patch"], cwd=folder, check=True)


def test_case_30_deleting_renaming_and_binary_files_are_what_they_are(tmp_path: Path) -> None:
    old, new, gone = (str(tmp_path / name) for name in ("old", "new", "gone"))
    Path(old).write_text("same\n")
    Path(gone).write_text("x\n")
    made = diff_of([(old, "same\n", None), (gone, "x\n", None), (new, None, "same\n")])
    assert {one["operation"]: one for one in made["changes"]} == {
        "move": {"operation": "move", "oldPath": old, "path": new, "fileType": "text"},
        "delete": {"operation": "delete", "path": gone, "fileType": "text"},
    }
    _apply(made["patch"]["text"], tmp_path)
    assert Path(new).read_text() == "same\n" and not Path(old).exists() and not Path(gone).exists()
    binary = diff_of([("/x", "a\0b", "c\0d")])
    assert binary["changes"][0]["fileType"] == "binary" and "\0" not in binary["patch"]["text"]


BYTES = b"gr\xc3\xbc\xc3\x9fe \xff\xfe\x80 \xed\xa0\x80 \xf0\x9f\x98\x80 \xc3\n\x00\x1b[1m"


def _shell(data: bytes, pieces: int) -> EchoTool:
    """Runs a command that prints this, in pieces that may end anywhere."""
    from dragoman.tools.output import Capture, Outputs, Progress

    class Shell(EchoTool):
        async def run(self, args: dict[str, Any], env: Any) -> Outcome:
            progress, capture = Progress(env.progress), Capture(Outputs())
            size = max(1, len(data) // pieces)
            for start in range(0, len(data), size):
                progress.take(data[start : start + size])
                capture.take(data[start : start + size])
            progress.take(b"", final=True)
            text = capture.text()
            detail = Detail(exit_code=0, output=(2, 2 + len(text)), raw=capture.raw)
            return Outcome((Text(f"$ {text}[exit 0]"),), detail=detail)

    return Shell("bash", "execute")


def shown(updates: Sequence[dict[str, Any]]) -> bytes:
    """What a client has of a terminal that applies all it is told."""
    data = b""
    for update in updates:
        if update["sessionUpdate"] == "terminal_output_chunk":
            data += base64.b64decode(update["data"], validate=True)
        elif update["sessionUpdate"] == "terminal_update" and "output" in update:
            data = base64.b64decode(update["output"]["data"], validate=True)
    return data


async def _printed(tmp_path: Path, data: bytes, pieces: int) -> Strict:
    script = Scripted([call("bash", command="cat data"), "ok"])
    door = memory_door(script, [_shell(data, pieces)], mode="full")
    client, session = await begun(door, str(tmp_path))
    await turned(client, session)
    streamed = [u for u in client.updates() if u["sessionUpdate"] == "terminal_output_chunk"]
    assert shown(streamed) == data  # the chunks alone, too
    assert shown(client.updates()) == data
    again = await met(door)
    params = {"sessionId": session, "cwd": str(tmp_path), "replayFrom": {"type": "start"}}
    await again.call("session/resume", params)
    assert shown(again.updates()) == data
    return client


async def test_case_31_bytes_that_are_no_text_come_as_they_are(tmp_path: Path) -> None:
    await _printed(tmp_path, BYTES, 1)
    await _printed(tmp_path, bytes(range(256)) * 4, 3)


async def test_case_32_a_piece_may_end_inside_a_character(tmp_path: Path) -> None:
    for pieces in (2, 5, len(BYTES)):
        await _printed(tmp_path, BYTES, pieces)
    await _printed(tmp_path, "grüße 😀\n".encode(), 14)


async def test_case_33_what_offers_no_cancel_has_none() -> None:
    script = Scripted([call("echo", text="x"), "ok"])
    client, session = await begun(memory_door(script, [EchoTool()]))
    await prompt(client, session)
    await asked(client)
    waiting = calls_of(client)[-1]
    assert "capabilities" not in waiting
    for method, more in (
        ("tool_call/cancel", {"toolCallId": waiting["toolCallId"]}),
        ("tool_call/cancel", {"toolCallId": "unknown"}),
        ("tool_call/cancel", {"toolCallId": None}),
        ("tool_call/cancel", {}),
        ("terminal/cancel", {"terminalId": "unknown"}),
        ("terminal/cancel", {}),
    ):
        error = await client.refused(method, {"sessionId": session, **more})
        assert error["code"] == -32602, method


class Hangs(EchoTool):
    """Runs until it is stopped, and then says how far it came."""

    def __init__(self) -> None:
        super().__init__("bash", "execute")
        self.begun = asyncio.Event()

    async def run(self, args: dict[str, Any], env: Any) -> Outcome:
        self.begun.set()
        env.progress("half")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise Stopped(Outcome((Text("came half way"),), is_error=True)) from None
        raise AssertionError


@pytest.mark.parametrize("by", ["tool_call", "terminal"])
async def test_case_34_one_call_is_cancelled_and_the_turn_goes_on(by: str) -> None:
    script = Scripted([call("bash", command="sleep 9"), "never mind"])
    client, session = await begun(memory_door(script, [Hangs()], mode="full"))
    await prompt(client, session)
    running = await heard(client, "tool_call_update", status="in_progress")
    assert running["capabilities"] == {"cancel": {}}
    terminal = await heard(client, "terminal_update")
    assert terminal["capabilities"] == {"cancel": {}}
    params = {"sessionId": session, "toolCallId": running["toolCallId"]}
    if by == "terminal":
        params = {"sessionId": session, "terminalId": terminal["terminalId"]}
    assert await client.call(f"{by}/cancel", params) == {}
    idle = await heard(client, "state_update", state="idle")
    assert idle["stopReason"] == "end_turn" and client.said() == "never mind"
    end = calls_of(client)[-1]
    assert (end["status"], end["capabilities"]) == ("cancelled", None)
    assert end["rawOutput"] == "came half way"
    over = [u for u in client.updates() if u["sessionUpdate"] == "terminal_update"][-1]
    assert over["capabilities"] is None and "exitStatus" in over
    assert (await client.refused(f"{by}/cancel", params))["code"] == -32602


async def test_case_34_a_second_cancel_and_the_turns_own_change_nothing() -> None:
    tool = Hangs()
    script = Scripted([call("bash", command="sleep 9"), "never mind"])
    client, session = await begun(memory_door(script, [tool], mode="full"))
    await prompt(client, session)
    running = await heard(client, "tool_call_update", status="in_progress")
    await tool.begun.wait()
    params = {"sessionId": session, "toolCallId": running["toolCallId"]}
    first, second = (client.ask("tool_call/cancel", params) for _ in range(2))
    client.tell("session/cancel", {"sessionId": session})
    assert (await client.reply(first))["result"] == {}
    assert (await client.reply(second)).keys() & {"result", "error"}
    idle = await heard(client, "state_update", state="idle")
    assert idle["stopReason"] == "cancelled"


async def test_case_34_a_call_that_asks_takes_its_question_back() -> None:
    class Asks(EchoTool):
        async def run(self, args: dict[str, Any], env: Any) -> Outcome:
            return Outcome((Text((await env.ask("Which?", ("red", "blue"))).text),))

    script = Scripted([call("echo", text="x"), "went on"])
    client, session = await begun(memory_door(script, [Asks()], mode="full"))
    await prompt(client, session)
    request = await asked(client)
    call_id = calls_of(client)[-1]["toolCallId"]
    params = {"sessionId": session, "toolCallId": call_id}
    assert await client.call("tool_call/cancel", params) == {}
    idle = await heard(client, "state_update", state="idle")
    taken = [m["params"] for m in client.heard if m.get("method") == "$/cancel_request"]
    assert taken == [{"requestId": request["id"]}]
    assert idle["stopReason"] == "end_turn" and client.said() == "went on"
    assert states(client) == ["running", "requires_action", "running", "idle"]


async def test_case_35_a_client_of_version_2_lends_nothing() -> None:
    script = Scripted([call("bash", command="x"), "ok"])
    door = memory_door(script, [_shell(b"x", 1)], mode="full")
    client = await met(door, fs={"readTextFile": True}, terminal=True)
    await turned(client, await client.new2())
    methods = {m["method"] for m in client.heard if "method" in m}
    assert methods == {"session/update"}


# --- cancelling, and what waits ---


async def test_case_36_cancelled_in_the_middle() -> None:
    client, session = await begun(memory_door(Scripted([turn("a", hang())])))
    await prompt(client, session)
    await heard(client, "agent_message_chunk")
    client.tell("session/cancel", {"sessionId": session})
    idle = await heard(client, "state_update", state="idle")
    assert idle["stopReason"] == "cancelled"


async def test_case_37_cancelling_nothing_is_silent() -> None:
    client, session = await begun()
    client.tell("session/cancel", {"sessionId": session})
    client.tell("session/cancel", {"sessionId": "ghost"})
    await client.silence()


async def test_case_38_an_open_permission_is_taken_back() -> None:
    tool = EchoTool()
    client, session = await begun(memory_door(Scripted([call("echo", text="x"), "ok"]), [tool]))
    await prompt(client, session)
    request = await asked(client)
    client.tell("session/cancel", {"sessionId": session})
    taken = await client.until("$/cancel_request")
    assert taken["params"] == {"requestId": request["id"]}
    assert (await heard(client, "state_update", state="idle"))["stopReason"] == "cancelled"
    answer(client, request)
    await client.silence()
    assert tool.ran == [] and calls_of(client)[-1]["status"] == "cancelled"


async def test_case_39_a_second_prompt_is_held_until_it_begins() -> None:
    script = Scripted([turn("a", hang()), "b"])
    client, session = await begun(memory_door(script))
    await prompt(client, session)
    await heard(client, "agent_message_chunk")
    held = client.ask("session/prompt", at(session, "second"))
    await client.silence()
    assert not [m for m in client.heard if m.get("id") == held and "method" not in m]
    script.release()
    id = (await client.reply(held))["result"]["messageId"]
    assert (await heard(client, "user_message", messageId=id))["content"] == blocks("second")


async def test_case_40_a_cancel_takes_back_what_is_held() -> None:
    client, session = await begun(memory_door(Scripted([turn("a", hang()), "b"])))
    await prompt(client, session)
    await heard(client, "agent_message_chunk")
    held = [client.ask("session/prompt", at(session, str(n))) for n in range(3)]
    await client.silence()
    client.tell("session/cancel", {"sessionId": session})
    for one in held:
        assert (await client.reply(one))["error"]["code"] == -32800
    await heard(client, "state_update", state="idle")
    assert len([u for u in client.updates() if u["sessionUpdate"] == "user_message"]) == 1


async def test_case_41_one_held_prompt_is_taken_back() -> None:
    script = Scripted([turn("a", hang()), "b"])
    client, session = await begun(memory_door(script))
    await prompt(client, session)
    await heard(client, "agent_message_chunk")
    held = client.ask("session/prompt", at(session, "second"))
    client.tell("$/cancel_request", {"requestId": held})
    assert (await client.reply(held))["error"]["code"] == -32800
    script.release()
    assert (await heard(client, "state_update", state="idle"))["stopReason"] == "end_turn"


async def test_case_42_a_prompt_right_after_a_cancel_runs() -> None:
    client, session = await begun(memory_door(Scripted([turn("a", hang()), "next"])))
    await prompt(client, session)
    await heard(client, "agent_message_chunk")
    client.tell("session/cancel", {"sessionId": session})
    later = client.ask("session/prompt", at(session, "more"))
    assert (await client.reply(later))["result"]["messageId"]
    ends = await heard(client, "state_update", state="idle", stopReason="end_turn")
    assert ends and "next" in client.said()


async def test_case_43_closing_cancels_first() -> None:
    client, session = await begun(memory_door(Scripted([turn("a", hang())])))
    await prompt(client, session)
    await heard(client, "agent_message_chunk")
    held = client.ask("session/prompt", at(session, "second"))
    closing = client.ask("session/close", {"sessionId": session})
    assert (await client.reply(closing))["result"] == {}
    assert (await client.reply(held))["error"]["code"] == -32800
    last = client.updates()[-1]
    assert (last["state"], last["stopReason"]) == ("idle", "cancelled")


async def test_case_44_nothing_comes_of_a_closed_session() -> None:
    door = memory_door(Scripted(["a", "b"]))
    client, session = await begun(door)
    other = await met(door)
    await other.call("session/resume", {"sessionId": session, "cwd": "/tmp"})
    await client.call("session/close", {"sessionId": session})
    before = len(client.heard)
    await turned(other, session)
    await client.silence()
    assert not [m for m in client.heard[before:] if m.get("method") == "session/update"]


async def test_case_45_what_is_not_there_is_closed_and_deleted() -> None:
    client = await met()
    for method in ("session/close", "session/delete"):
        assert await client.call(method, {"sessionId": "ghost"}) == {}


# --- resuming ---


async def kept(tmp_path: Path, script: Scripted, **more: Any) -> tuple[Door, Any]:
    store, _ = open_store(str(tmp_path / "s.db"))
    return memory_door(script, [EchoTool()], store=store, mode="full", **more), store


async def _again(door: Door, session: str, cwd: Any, **more: Any) -> tuple[Strict, Any]:
    client = await met(door)
    params = {"sessionId": session, "cwd": str(cwd), **more}
    return client, await client.reply(client.ask("session/resume", params))


START = {"replayFrom": {"type": "start"}}


async def test_case_46_plain_resuming_tells_the_state_alone(tmp_path: Path) -> None:
    door, store = await kept(tmp_path, Scripted(["a"]))
    client, session = await begun(door, str(tmp_path))
    await turned(client, session)
    await client.call("session/close", {"sessionId": session})
    other, said = await _again(door, session, tmp_path)
    assert other.updates() == [{"sessionUpdate": "state_update", "state": "idle"}]
    assert said["result"]["configOptions"] and said["result"]["availableCommands"]
    await host_of(door).stop(1.0)
    await store.close()


async def test_case_47_from_the_start_history_state_answer(tmp_path: Path) -> None:
    script = Scripted([turn(think("hm"), "let me", call("echo", text="x")), "done"])
    door, store = await kept(tmp_path, script)
    client, session = await begun(door, str(tmp_path))
    await turned(client, session)
    await client.call("session/close", {"sessionId": session})
    other, said = await _again(door, session, tmp_path, **START)
    kinds = other.kinds()
    assert kinds == ["user_message", "agent_thought", "agent_message", "tool_call_update",
                     "agent_message", "usage_update", "state_update"]  # fmt: skip
    assert "result" in said and other.heard[-1] == said
    await host_of(door).stop(1.0)
    await store.close()


@pytest.mark.parametrize("given", [{"type": "x"}, {"type": "_x"}, {}, "start", [], 5])
async def test_case_48_an_unknown_beginning_is_refused(given: Any) -> None:
    door = memory_door(Scripted(["a"]))
    _, session = await begun(door)
    _, said = await _again(door, session, "/tmp", replayFrom=given)
    assert said["error"]["code"] == -32602


async def test_case_49_resumed_while_it_runs() -> None:
    door = memory_door(Scripted([turn("Hel", hang(), "lo")]))
    client, session = await begun(door)
    await prompt(client, session)
    first = await heard(client, "agent_message_chunk")
    other, _ = await _again(door, session, "/tmp", **START)
    assert other.updates()[-1] == {"sessionUpdate": "state_update", "state": "running"}
    host_of(door).models.provider.release()  # type: ignore[attr-defined]
    await heard(other, "state_update", state="idle")
    words = [u for u in other.updates() if u["sessionUpdate"] == "agent_message_chunk"]
    assert {u["messageId"] for u in words} == {first["messageId"]}
    assert "".join(u["content"]["text"] for u in words) == "Hello"


async def test_case_49_a_command_that_runs_is_shown_as_it_is(tmp_path: Path) -> None:
    tool = Hangs()
    door = memory_door(Scripted([call("bash", command="sleep 9"), "ok"]), [tool], mode="full")
    client, session = await begun(door, str(tmp_path))
    await prompt(client, session)
    await tool.begun.wait()
    other, _ = await _again(door, session, tmp_path, **START)
    running = calls_of(other)[-1]
    assert running["status"] == "in_progress" and running["capabilities"] == {"cancel": {}}
    params = {"sessionId": session, "toolCallId": running["toolCallId"]}
    assert await other.call("tool_call/cancel", params) == {}
    await heard(other, "state_update", state="idle")
    (terminal,) = {u["terminalId"] for u in other.updates() if "terminalId" in u}
    assert running["content"] == [{"type": "terminal", "terminalId": terminal}]
    ends = [u for u in other.updates() if u["sessionUpdate"] == "terminal_update"]
    assert "exitStatus" in ends[-1]


async def test_case_50_two_replays_are_the_same(tmp_path: Path) -> None:
    script = Scripted([turn(think("hm"), "let me", call("echo", text="x")), "done"])
    door, store = await kept(tmp_path, script)
    client, session = await begun(door, str(tmp_path))
    id = await prompt(client, session)
    await heard(client, "state_update", state="idle")
    first, _ = await _again(door, session, tmp_path, **START)
    second, _ = await _again(door, session, tmp_path, **START)
    assert first.updates() == second.updates() and first.updates()[0]["messageId"] == id
    live = {u["messageId"] for u in client.updates() if "messageId" in u}
    assert {u["messageId"] for u in first.updates() if "messageId" in u} == live
    await host_of(door).stop(1.0)
    await store.close()


async def test_case_51_a_notice_is_told_once() -> None:
    door = memory_door(Scripted(["a"]))
    client, session = await begun(door)
    await turned(client, session)
    await door.note(session, "warning", "careful")
    await heard(client, "notice", title="careful")
    other, _ = await _again(door, session, "/tmp", **START)
    assert "notice" not in other.kinds()


@pytest.mark.parametrize("cwd", ["/", "", "relative", "/tmp\0x"])
async def test_case_52_a_session_stays_where_it_is(cwd: str) -> None:
    door = memory_door(Scripted(["a"]))
    _, session = await begun(door)
    _, said = await _again(door, session, cwd)
    assert said["error"]["code"] == -32602


async def test_case_53_servers_are_those_of_the_resume(tmp_path: Path) -> None:
    door, store = await kept(tmp_path, Scripted(["a"]))
    client = await met(door)
    server = {"type": "stdio", "name": "s", "command": "/bin/false"}
    params = {"cwd": str(tmp_path), "mcpServers": [server]}
    session = (await client.call("session/new", params))["sessionId"]
    await until(lambda: bool(host_of(door).live[session].gear.servers))
    await client.call("session/close", {"sessionId": session})
    other, _ = await _again(door, session, tmp_path)
    assert not host_of(door).live[session].gear.servers
    for wrong in ({"type": "sse", "name": "s", "url": "http://x"}, {"name": "s", "command": "x"}):
        params = {"cwd": str(tmp_path), "mcpServers": [wrong]}
        assert (await other.refused("session/new", params))["code"] == -32602
    await host_of(door).stop(1.0)
    await store.close()


# --- several clients ---


async def test_case_54_another_client_sees_a_prompt() -> None:
    door = memory_door(Scripted(["a"]))
    client, session = await begun(door)
    other, _ = await _again(door, session, "/tmp")
    id = await prompt(client, session, "from a")
    assert (await heard(other, "user_message", messageId=id))["content"] == blocks("from a")
    assert not [m for m in other.heard if "messageId" in m.get("result", {})]


async def test_case_55_a_client_of_version_1_sees_it_too() -> None:
    door = memory_door(Scripted(["a"]))
    desk = desk_of(door)
    client, old = Strict(desk), Strict(desk)
    await client.greet2()
    session = await client.new2()
    await old.greet("editor")
    await old.call("session/resume", {"sessionId": session, "cwd": "/tmp", "_meta": JOIN})
    await turned(client, session, "from two")
    await heard(old, "agent_message_chunk")
    assert old.said("user_message_chunk") == "from two"
    assert not {"state_update", "user_message"} & set(old.kinds())


async def test_case_56_an_answer_takes_the_others_question_back() -> None:
    door = memory_door(Scripted([call("echo", text="x"), "ok"]), [EchoTool()])
    client, session = await begun(door)
    other, _ = await _again(door, session, "/tmp")
    await prompt(client, session)
    theirs = await asked(other)
    answer(client, await asked(client))
    taken = await other.until("$/cancel_request")
    assert taken["params"]["requestId"] == theirs["id"]
    await heard(other, "state_update", state="idle")


async def test_case_57_who_drops_disturbs_nobody() -> None:
    script = Scripted([turn("a", hang(), "b")])
    door = memory_door(script)
    client, session = await begun(door)
    other, _ = await _again(door, session, "/tmp")
    await prompt(client, session)
    await heard(other, "agent_message_chunk")
    other.end.drop()
    script.release()
    idle = await heard(client, "state_update", state="idle")
    assert idle["stopReason"] == "end_turn" and client.said() == "ab"


# --- the rest ---


async def test_case_58_an_option_needs_its_type_in_version_2_alone() -> None:
    client, session = await begun()
    params = {"sessionId": session, "configId": "mode", "value": "full"}
    assert (await client.refused("session/set_config_option", params))["code"] == -32602
    await client.call("session/set_config_option", {**params, "type": "id"})
    old = fresh()
    await old.greet("editor")
    params["sessionId"] = await old.new()
    await old.call("session/set_config_option", params)


async def test_case_59_switches_are_shown_to_those_who_know_them() -> None:
    tried: tuple[tuple[dict[str, Any], bool], ...]
    tried = (({}, False), ({"session": {"configOptions": {"boolean": {}}}}, True))
    for can, has in tried:
        old = fresh()
        await old.greet("editor", **can)
        made = await old.call("session/new", {"cwd": "/tmp", "mcpServers": []})
        assert ("boolean" in {one["type"] for one in made["configOptions"]}) is has
        change = {"sessionId": made["sessionId"], "configId": "mode", "value": "full"}
        found = await old.call("session/set_config_option", change)
        assert ("boolean" in {one["type"] for one in found["configOptions"]}) is has
        update = await heard(old, "config_option_update")
        assert ("boolean" in {one["type"] for one in update["configOptions"]}) is has


async def test_case_60_commands_have_a_type_in_version_2_alone() -> None:
    made = await (await met()).call("session/new", {"cwd": "/tmp"})
    assert {one["type"] for one in made["availableCommands"]} == {"command"}
    old = fresh()
    await old.greet("editor")
    await old.new()
    (update,) = [u for u in old.updates() if u["sessionUpdate"] == "available_commands_update"]
    assert not [one for one in update["availableCommands"] if "type" in one]


@pytest.mark.parametrize("greeted", [False, True])
async def test_case_61_a_batch_is_refused_as_one(greeted: bool) -> None:
    client = await met() if greeted else fresh()
    one = {"jsonrpc": "2.0", "id": 1, "method": "session/list"}
    for batch in ([], [one], [one, one]):
        client.send(batch)  # type: ignore[arg-type]
        said = await client.next()
        assert said["id"] is None and said["error"]["code"] == -32600
    await client.silence()


def test_case_62_every_line_is_judged_by_the_schema() -> None:
    assert Strict.check is check_strictly  # here; the whole tour is tests/interop/test_acp_tour.py
    assert "check_strictly" in (ROOT / "interop/test_acp_tour.py").read_text()


async def test_case_63_a_fork_leaves_its_source_alone() -> None:
    door = memory_door(Scripted(["a", "b", "c"]))
    client, session = await begun(door)
    await turned(client, session)
    before = (await door.info(session)).last_seq
    made = await client.call("session/fork", {"sessionId": session, "cwd": "/tmp"})
    assert made["sessionId"] != session and made["configOptions"]
    await turned(client, made["sessionId"], "in the copy")
    assert (await door.info(session)).last_seq == before
    assert [m.role for m in await door.messages(made["sessionId"])][:2] == ["user", "assistant"]


def accounts(door: Door, *names: str) -> list[str]:
    """Have the host know these accounts; the list may be changed later."""
    known = list(names)

    async def forget() -> None:
        known.clear()

    door.facts = msgspec.structs.replace(door.facts, logged_in=lambda: known, log_out=forget)
    return known


@pytest.mark.parametrize("version", [1, 2])
async def test_case_64_after_a_logout_nothing_begins_until_somebody_logs_in(version: int) -> None:
    door = memory_door(Scripted(["a"]))
    known = accounts(door, "anthropic")
    client = fresh(door)
    await (client.greet("t") if version == 1 else client.greet2())
    open_one = (await client.call("session/new", {"cwd": "/tmp", "mcpServers": []}))["sessionId"]
    await client.call("logout" if version == 1 else "auth/logout")
    assert known == []
    assert (await client.refused("session/new", {"cwd": "/tmp"}))["code"] == -32000
    fork = {"sessionId": open_one, "cwd": "/tmp"}
    assert (await client.refused("session/fork", fork))["code"] == -32000
    known.append("anthropic")  # in a terminal; such a method is never told to `authenticate`
    assert "sessionId" in await client.call("session/new", {"cwd": "/tmp", "mcpServers": []})


async def test_case_65_the_status_says_who_is_logged_in() -> None:
    door = memory_door(Scripted([]))
    known = accounts(door, "anthropic")
    client = await met(door)
    said = await client.call("auth/status")
    assert (said["state"], said["accounts"]) == ("authenticated", [{"label": "anthropic"}])
    await client.call("auth/logout")
    assert (await client.call("auth/status"))["state"] == "unauthenticated"
    known.append("openai")
    assert (await client.call("auth/status"))["accounts"] == [{"label": "openai"}]
    assert isinstance(door.facts, Facts)


@pytest.mark.parametrize(
    ("can", "offered"),
    [
        ({}, False),
        ({"auth": {"terminal": None}}, False),
        ({"auth": {"terminal": False}}, False),
        ({"auth": {"terminal": {}}}, True),
        ({"auth": {"terminal": True}}, True),
        ({"_meta": {"terminal-auth": True}}, True),
    ],
)
async def test_case_66_a_terminal_is_offered_to_those_who_have_one(can: Any, offered: bool) -> None:
    for hello in (await fresh().greet2(**can), await fresh().greet("t", **can)):
        assert [one["type"] for one in hello["authMethods"]] == ["terminal"] * offered


class SignsIn(EchoTool):
    def __init__(self) -> None:
        super().__init__("sign_in", "think")
        self.goes_on = asyncio.Event()

    async def run(self, args: dict[str, Any], env: Any) -> Outcome:
        page = "https://shop.example/in"
        said = await env.inquire(f"Sign in: {page}", ("Opened", "Decline"), url=page)
        await self.goes_on.wait()
        return Outcome((Text(said.text),))


async def test_case_67_a_yes_to_an_address_is_not_its_end() -> None:
    tool = SignsIn()
    door = memory_door(Scripted([call("sign_in"), "ok"]), [tool])
    client = await met(door, elicitation={"url": {}})
    client.answers["elicitation/create"] = lambda params: {"action": "accept"}
    await prompt(client, await client.new2())
    request = await client.until("elicitation/create")
    await heard(client, "state_update", state="requires_action")
    await client.silence()
    assert not [m for m in client.heard if m.get("method") == "elicitation/complete"]
    tool.goes_on.set()
    over = await client.until("elicitation/complete")
    assert over["params"]["elicitationId"] == request["params"]["elicitationId"]


@pytest.mark.parametrize("title", ["  ", "", None, 5, "\n\t"])
async def test_case_68_a_title_is_not_empty(title: Any) -> None:
    client, session = await begun()
    params = {"sessionId": session, "title": title}
    assert (await client.refused("session/set_title", params))["code"] == -32602
    said = await client.call("session/set_title", {"sessionId": session, "title": " A  title\n"})
    assert said == {"title": "A title"}


async def test_case_69_what_is_archived_is_out_of_the_way(tmp_path: Path) -> None:
    door, store = await kept(tmp_path, Scripted(["a"]))
    client, session = await begun(door, str(tmp_path))
    other = await client.new2(str(tmp_path))
    await client.call("session/archive", {"sessionId": session})
    await client.call("session/archive", {"sessionId": session})
    for asked_for, found in (
        (None, {other: False}),
        ("exclude", {other: False}),
        ("include", {session: True, other: False}),
        ("only", {session: True}),
    ):
        said = await client.call("session/list", {"archived": asked_for})
        assert {one["sessionId"]: one["archived"] for one in said["sessions"]} == found
    assert (await client.refused("session/list", {"archived": "some"}))["code"] == -32602
    await client.call("session/unarchive", {"sessionId": session})
    assert len((await client.call("session/list"))["sessions"]) == 2
    await host_of(door).stop(1.0)
    await store.close()


async def test_case_69_what_runs_is_stopped_before_it_is_archived() -> None:
    door = memory_door(Scripted([turn("a", hang())]))
    client, session = await begun(door)
    await prompt(client, session)
    await heard(client, "agent_message_chunk")
    other = await met(door)
    assert await other.call("session/archive", {"sessionId": session}) == {}
    idle = await heard(client, "state_update", state="idle")
    assert idle["stopReason"] == "cancelled" and (await door.info(session)).archived


async def test_case_70_asking_how_a_session_is_loads_nothing(tmp_path: Path) -> None:
    door, store = await kept(tmp_path, Scripted(["a"]))
    client, session = await begun(door, str(tmp_path))
    said = await client.call("session/status", {"sessionId": session})
    assert said == {"status": "open", "state": {"state": "idle"}}
    await client.call("session/close", {"sessionId": session})
    assert await client.call("session/status", {"sessionId": session}) == {"status": "saved"}
    assert door.live(session) is None
    await host_of(door).stop(1.0)
    await store.close()


def test_every_case_has_a_test() -> None:
    files = (Path(__file__), ROOT / "gateway/test_streamable.py", ROOT / "docs/test_registry.py")
    named = {int(n) for one in files for n in re.findall(r"def test_case_(\d\d)_", one.read_text())}
    assert named == set(range(1, 75))
