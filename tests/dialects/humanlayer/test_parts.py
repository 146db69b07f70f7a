"""Parts of this dialect by themselves: `approvals`, `desk`, `faults`, `hear`, `launch`, `models`,
`waiting`.
"""

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import UNSET, Raw
from tests.dialects.humanlayer.desk import make

from dragoman.dialects.humanlayer import approvals, launch
from dragoman.dialects.humanlayer.approvals import _judged, approval_of, input_of, said
from dragoman.dialects.humanlayer.desk import MAX_LINE, Desk, Settings
from dragoman.dialects.humanlayer.faults import Failed, Wrong, details, required, told
from dragoman.dialects.humanlayer.hear import HumanlayerHearer
from dragoman.dialects.humanlayer.models import _version, agent_of, model_of
from dragoman.dialects.humanlayer.shapes import Continue, Decision, Launch, NewApproval, OfApproval
from dragoman.dialects.humanlayer.speak import Filter, Waiting
from dragoman.engine.ask import Ask
from dragoman.engine.events import Settled, Who
from dragoman.engine.faults import BadInput, StoreFailed, UnknownModel
from dragoman.engine.host import OpenSpec
from dragoman.engine.ports import AskRow, ModelInfo
from dragoman.engine.traits import Given, Waiver
from dragoman.testing.script import Scripted, hang, turn
from dragoman.transports.memory import Client
from dragoman.wire.verbs import BadParams, Crowded, UnknownMethod

ME = Who("humanlayer", id="me")

# --- faults ---


def test_faults_have_the_protocols_numbers() -> None:
    assert told(Wrong("no", "why")) == (-32602, "no", {"details": "why"})
    assert told(Failed("no"))[0] == -32603 and told(Failed("no"))[2] is UNSET
    assert told(BadInput("bad", "try"))[:2] == (-32602, "bad")
    assert told(StoreFailed("full"))[0] == -32603
    assert told(KeyError("x")) == (-32603, "Internal error", {"details": "KeyError: 'x'"})
    assert details("") is UNSET
    with pytest.raises(Wrong, match="^b is required$"):
        required(a="x", b="", c=None)


# --- approvals ---


@pytest.mark.parametrize(
    ("params", "judged"),
    [
        (Decision(approval_id="a", decision="approve"), ("a", "allow", "")),
        (Decision(approval_id="a", decision="deny", comment="x"), ("a", "deny", "")),
        (Decision(approval_id="a", decision="respond", comment="x"), ("a", "answer", "")),
        (Decision(call_id="c", type="function_call", decision="approve"),
         ("c", "allow", "function_call")),
        (Decision(call_id="c", type="human_contact", decision="respond", comment="x"),
         ("c", "answer", "human_contact")),
    ],
)  # fmt: skip
def test_approvals_read_a_decision(params: Decision, judged: tuple[str, str, str]) -> None:
    assert _judged(params) == judged


@pytest.mark.parametrize(
    ("params", "why"),
    [
        (Decision(), "call_id is required"),
        (Decision(approval_id="a"), "decision is required"),
        (Decision(approval_id="a", decision="maybe"), "invalid decision"),
        (Decision(approval_id="a", decision="deny"), "comment is required"),
        (Decision(approval_id="a", decision="respond"), "invalid decision"),
        (Decision(call_id="c", type="odd", decision="approve"), "invalid type: odd"),
        (Decision(call_id="c", type="function_call", decision="respond"), "for function_call"),
        (Decision(call_id="c", type="human_contact", decision="respond"), "comment is required"),
    ],
)
def test_approvals_say_what_is_wrong_with_a_decision(params: Decision, why: str) -> None:
    with pytest.raises(Wrong, match=why):
        _judged(params)


def test_approvals_are_told_with_their_input_once() -> None:
    ask = Ask("q", "s", "tool", "t", 1, tool="bash", args={"command": "x" * 20_000})
    row = approval_of(AskRow(ask), "run")
    assert row.status == "pending" and row.tool_input == ask.args
    assert row.function_call.spec.kwargs == {"$ref": "#/tool_input"}
    written = Ask("q", "s", "tool", "t", 1, written='{"a": 1}', args={"a": 1})
    assert input_of(written) == Raw(b'{"a": 1}')
    question = Ask("q", "s", "question", "Which?", 1, choices=("a",))
    contact = approval_of(AskRow(question, Settled("q", "answer", text="a"), 5), "run")
    assert (
        contact.status == "approved" and contact.comment == "a" and contact.function_call is UNSET
    )
    assert said(Settled("q", "expired")) == "nobody decided in time"
    assert said(Settled("q", "cancelled")).startswith("withdrawn")


async def test_approvals_are_asked_about_and_decided_once() -> None:
    door, desk = make()
    session = (await door.open(OpenSpec(cwd="/"))).id
    given = NewApproval(session, "Bash", Raw(b'{"command": "ls" }'), "call-1")
    made = await approvals.create(desk, ME, given)
    row = (await approvals.get(desk, ME, OfApproval(made.approval_id)))["approval"]
    assert row.tool_input == Raw(b'{"command": "ls" }')  # as it was written, to the byte
    decided = Decision(approval_id=made.approval_id, decision="approve")
    assert (await approvals.decide(desk, ME, decided)).success
    again = await approvals.decide(desk, ME, decided)
    assert not again.success and "already decided with status: approved (by me" in again.error
    unknown = await approvals.decide(desk, ME, Decision(approval_id="x", decision="approve"))
    assert unknown.error == "failed to get approval: approval not found: x"
    for params, why in (
        (NewApproval("nope", "Bash", Raw(b"{}")), "session not found for run_id: nope"),
        (NewApproval(session, "Bash", Raw(b"{")), "tool_input cannot be read"),
        (NewApproval(session, "Bash"), "tool_input is required"),
    ):
        with pytest.raises(Wrong, match=why):
            await approvals.create(desk, ME, params)


async def test_approvals_what_was_waived_goes_on_at_once() -> None:
    door, desk = make()
    session = (await door.open(OpenSpec(cwd="/", traits=(Waiver(tools=("edit",)),)))).id
    for tool, comment in (("Edit", approvals.ACCEPTED), ("Bash", "")):
        made = await approvals.create(desk, ME, NewApproval(session, tool, Raw(b"{}")))
        settled = (await door.ask(made.approval_id)).settled
        assert (settled.comment if settled else "") == comment


# --- models ---


def models(*ids: str) -> Any:
    known = {f"anthropic/{id}": ModelInfo("anthropic", id) for id in ids}

    def model(ref: str, agent: str = "") -> ModelInfo:
        if ref not in known:
            raise UnknownModel(f"no {ref}")
        return known[ref]

    profile = SimpleNamespace(alias="a", model="openai/gpt")
    return SimpleNamespace(
        model=model, models=lambda provider: list(known.values()), profile=lambda alias: profile,
        agents=lambda: ["a", "sonnet", "coder"], default_agent=lambda: "a",
    )  # fmt: skip


def test_models_a_family_is_its_newest() -> None:
    door = models("claude-sonnet-3-5-20250101", "claude-sonnet-4-5", "claude-haiku-9")
    ref, notice = model_of(door, "a", "sonnet")
    assert ref == "anthropic/claude-sonnet-4-5" and "openai has no such model" in notice
    assert (
        model_of(door, "a", "opus")[0] == "" and "is used instead" in model_of(door, "a", "opus")[1]
    )
    assert model_of(door, "a", "") == ("", "")
    with pytest.raises(Wrong, match="model not available"):
        model_of(door, "a", "anthropic/none")
    assert _version("claude-3-5-sonnet-20241022") == (3, 5)


def test_models_one_that_is_called_like_an_agent_chooses_that() -> None:
    door = models()
    assert agent_of(door, None, "coder") == ("coder", "")
    assert agent_of(door, None, "sonnet") == ("a", "sonnet")  # the usual wish, not the agent
    assert agent_of(door, "a", " x ") == ("a", "x")


# --- launch ---


@pytest.mark.parametrize(
    ("word", "waiver"),
    [
        ("acceptEdits", Waiver(tools=("write", "edit"))),
        ("bypassPermissions", Waiver(True)),
        ("default", Waiver()),
        (None, Waiver()),
    ],
)
async def test_launch_permission_modes_mean_the_same_at_the_beginning_and_later(
    word: str | None, waiver: Waiver, tmp_path: Path
) -> None:
    door, desk = make(["one", "two"])
    begun = await launch.launch(
        desk,
        ME,
        Launch(query="go", model="sonnet", working_dir=str(tmp_path), permission_mode=word),
    )
    info = await door.info(begun.session_id)
    assert Waiver.of(info.extra) == waiver and "is used instead" in begun.notice
    await door.idle(begun.session_id)
    plain = await launch.launch(desk, ME, Launch(query="go", working_dir=str(tmp_path)))
    await door.idle(plain.session_id)
    again = await launch.resume(
        desk, ME, Continue(session_id=plain.session_id, query="more", permission_mode=word)
    )
    assert Waiver.of((await door.info(again.session_id)).extra) == waiver
    await door.idle(again.session_id)


async def test_launch_says_what_cannot_be(tmp_path: Path) -> None:
    _, desk = make()
    (tmp_path / "file").write_text("")
    for params, why in (
        (Launch(), "query is required"),
        (Launch(query=" \n"), "query is required"),
        (Launch(query="x", working_dir=str(tmp_path / "no")), "does not exist"),
        (Launch(query="x", working_dir=str(tmp_path / "file")), "is not a directory"),
        (Launch(query="x", working_dir="relative"), "as a whole path"),
        (Launch(query="x", permission_mode="odd"), "unknown permission_mode odd"),
    ):
        with pytest.raises(Wrong, match=why):
            await launch.launch(desk, ME, params)
    with pytest.raises(Failed, match="failed to get parent session"):
        await launch.resume(desk, ME, Continue(session_id="nope", query="x"))


async def test_a_blank_continuation_leaves_its_parent_alone() -> None:
    script = Scripted([turn("a", hang())])
    door, desk = make(script)
    parent = await launch.launch(desk, ME, Launch(query="x"))
    await script.hanging.wait()
    with pytest.raises(Wrong, match="query is required"):
        await launch.resume(desk, ME, Continue(session_id=parent.session_id, query=" "))
    live = door.live(parent.session_id)
    assert live is not None and live.works_on and len(door.live_infos()) == 1
    script.release()
    await door.idle(parent.session_id)


async def test_a_session_that_cannot_be_given_its_query_is_not_left_behind() -> None:
    door, desk = make(["done", "more"])
    prompt = door.prompt

    async def full(*args: Any, **fields: Any) -> Any:
        raise StoreFailed("The disk is full.")

    door.prompt = full  # type: ignore[method-assign]
    with pytest.raises(Failed, match="failed to launch session: The disk is full"):
        await launch.launch(desk, ME, Launch(query="x"))
    assert not (await door.list()).sessions
    door.prompt = prompt  # type: ignore[method-assign]
    parent = await launch.launch(desk, ME, Launch(query="x"))
    await door.idle(parent.session_id)
    door.prompt = full  # type: ignore[method-assign]
    with pytest.raises(Failed, match="failed to launch resumed"):
        await launch.resume(desk, ME, Continue(session_id=parent.session_id, query="y"))
    assert [one.id for one in (await door.list()).sessions] == [parent.session_id]


@pytest.mark.parametrize(
    ("config", "why"),
    [
        ({"mcpServers": []}, "mcpServers must be an object"),
        ({"mcpServers": {"a": 1}}, "a must be an object"),
        ({"mcpServers": {"a": {}}}, "no command and no url"),
        ({"mcpServers": {"a": {"command": "x", "env": []}}}, None),
        ({"mcpServers": {"a": {"command": "x", "env": [1]}}}, "env must be an object"),
        ({"mcpServers": {"a": {"command": "x", "args": "abc"}}}, "args must be an array"),
    ],
)
def test_launch_reads_servers(config: dict[str, Any], why: str | None) -> None:
    if why is None:
        (one,) = launch._servers(config, "run-1")
        assert one["env"] == {"HUMANLAYER_RUN_ID": "run-1"}
        return
    with pytest.raises(Wrong, match=why):
        launch._servers(config, "run-1")
    with pytest.raises(Wrong, match="invalid mcp_config JSON"):
        launch._servers_from_text("{", "run-1")
    with pytest.raises(Wrong, match="invalid mcp_config JSON"):
        launch._servers_from_text('{"a":' * 100_000, "run-1")


def test_launch_tools_are_spelled_as_ours() -> None:
    assert launch._names(["Bash(git *)", "MultiEdit", "mcp__X__Y", " ", "bash"]) == [
        "bash", "edit", "mcp__X__Y",
    ]  # fmt: skip
    made = launch._told(Given(), Launch(disallowed_tools=["Bash"], max_turns=0, system_prompt="p"))
    assert made.tools is not None and "bash" not in made.tools and "read" in made.tools
    assert made.max_steps is None and made.system_prompt == "p"


# --- desk ---


async def test_desk_shapes_are_shared_and_given_back() -> None:
    _, desk = make()
    wanted = Filter(frozenset(), "s", "", "")
    first, second = desk.borrow(wanted), desk.borrow(wanted)
    assert first is second and desk.subscriptions == 2
    desk.give_back(wanted)
    desk.give_back(wanted)
    assert desk.subscriptions == 0 and desk.borrow(wanted) is not first


def test_desk_takes_settings_within_bounds() -> None:
    door, _ = make()
    desk = Desk(door, Settings(max_message_bytes=1, version="100%"))
    assert desk.max_line == 1024
    assert json.loads(desk.health % 7)["result"] == {"status": "ok", "version": "100%"}
    desk.settings = Settings(max_message_bytes=10**9)
    assert desk.max_line == MAX_LINE


async def test_desk_skipping_ends_by_itself_and_is_recalled() -> None:
    door, desk = make()
    until = door.now_ms() - 1
    session = (await door.open(OpenSpec(cwd="/", traits=(Waiver(True, until),)))).id
    desk.recall_expiries()
    desk.recall_expiries()
    async with asyncio.timeout(60):
        while Waiver.of((await door.info(session)).extra).everything:  # noqa: ASYNC110
            await asyncio.sleep(0.001)  # the timer is due at once
    desk.expire_later("gone", until + 60_000)
    desk.expire_later("gone", None)
    assert desk._expiries == {}
    await desk.close()


# --- hear ---


async def test_hear_tells_failures_in_the_protocols_words() -> None:
    _, desk = make()
    made: list[Any] = []
    client = Client(lambda link: made.append(desk.hearer(link)) or made[-1])
    hearer: HumanlayerHearer = made[0]
    for problem, code, text in (
        (UnknownMethod("x"), -32601, "Method not found: x"),
        (Crowded(5), -32603, "5 requests wait on this connection already"),
        (BadParams("n is no number"), -32602, "invalid request: n is no number"),
    ):
        error = json.loads(hearer.failure(None, 1, problem))["error"]
        assert (error["code"], error["message"]) == (code, text)
    client.send(b"{", b'{"jsonrpc":"1.0","method":"health","id":3}')
    heard = [json.loads(line)["error"] for line in client.received()]
    assert heard[0]["message"] == "Parse error" and heard[0]["data"]["details"]
    assert heard[1]["message"] == "Invalid request: must be JSON-RPC 2.0"
    hearer.overlong(99)
    assert b"longer than" in await client.receive()
    client.drop()


async def test_hear_refuses_a_place_that_was_never_reached() -> None:
    _, desk = make()
    made: list[Any] = []
    Client(lambda link: made.append(desk.hearer(link)) or made[-1])
    for since, why in ((-1, "negative"), (10**9, "newer than every event")):
        with pytest.raises(Wrong, match=why):
            await made[0]._check_since(since)
    await made[0]._check_since(None)


# --- waiting ---


async def test_waiting_counts_what_is_open_in_memory_and_in_the_store() -> None:
    door, _ = make()
    session = (await door.open(OpenSpec(cwd="/"))).id
    await door.put_ask(Ask("q", session, "question", "?", 1, external=True))
    waiting = Waiting(door)
    assert (waiting.count("human_contact"), waiting.count("function_call")) == (1, 0)
    await waiting.look()
    await door.close(session)
    assert waiting.count("human_contact") == 1  # known from the last look

    async def fails(**_: Any) -> Any:
        raise StoreFailed("gone")

    broken = Waiting(SimpleNamespace(asks=fails, lives=lambda: [], spawn=lambda work: work.close()))
    await broken.look()
    assert broken.count("human_contact") == 0
