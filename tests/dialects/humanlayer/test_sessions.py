"""What a launch means to the engine, how calls are matched, and what the lists hold on to."""

import asyncio

import msgspec
import pytest
from tests.dialects.humanlayer.desk import HEALTH, HEALTHY, Client, Refused, make, pending

from dragoman.dialects.humanlayer import session_rows, sessions
from dragoman.dialects.humanlayer.rows import summary_of
from dragoman.engine.content import Text
from dragoman.engine.events import Who
from dragoman.engine.host import OpenSpec
from dragoman.engine.ports import ModelInfo
from dragoman.store.memory import MemoryStore
from dragoman.testing.host import MODEL, host_of
from dragoman.testing.script import Scripted, call, hang, turn

ME = Who("test", id="t")


async def test_what_a_launch_sets_reaches_the_engine(tmp_path):
    door, desk = make(["done"])
    client = Client(desk)
    started = await client.call(
        "launchSession",
        query="x",
        working_dir=str(tmp_path),
        system_prompt="be brief",
        append_system_prompt="and kind",
        custom_instructions="in English",
        max_turns=7,
        allowed_tools=["Read", "Bash(git *)", "MultiEdit"],
        disallowed_tools=["Bash"],
        additional_directories=[str(tmp_path), ""],
        mcp_config={
            "mcpServers": {
                "local": {"command": "srv", "args": ["-v"], "env": {"A": "1"}},
                "far": {"type": "http", "url": "http://127.0.0.1:1/mcp", "headers": {"h": "v"}},
            }
        },
        dangerously_skip_permissions=True,
        dangerously_skip_permissions_timeout=60_000,
    )
    extra = dict((await door.info(started["session_id"])).extra)
    until = extra["waiver"]["until"]
    assert 0 < until - door.now_ms() <= 60_000
    assert extra == {
        "humanlayer": {"run_id": started["run_id"]},
        "waiver": {"everything": True, "until": until},
        "given": {
            "system_prompt": "be brief",
            "append_system_prompt": ["and kind", "in English"],
            "max_steps": 7,
            "tools": ["read", "edit"],
            "roots": [str(tmp_path)],
            "mcp": [
                {
                    "name": "local",
                    "command": "srv",
                    "args": ["-v"],
                    "env": {"A": "1", "HUMANLAYER_RUN_ID": started["run_id"]},
                },
                {
                    "name": "far",
                    "type": "http",
                    "url": "http://127.0.0.1:1/mcp",
                    "headers": {"h": "v"},
                },
            ],
        },
    }
    # a child takes over all but the run and the number of turns
    await door.idle(started["session_id"])
    child = await client.call("continueSession", session_id=started["session_id"], query="y")
    inherited = (await door.info(child["session_id"])).extra
    assert inherited == {
        "humanlayer": {"run_id": child["run_id"]},
        "waiver": extra["waiver"],
        "given": {key: value for key, value in extra["given"].items() if key != "max_steps"},
        "continues": {"sessions": [started["session_id"]]},  # its turns can be undone there
    }
    await desk.close()


async def test_a_family_name_picks_the_newest_model_that_has_a_key():
    door, desk = make(["done"] * 4)
    old = msgspec.structs.replace(MODEL, provider="anthropic", id="claude-sonnet-4-20250514")
    new = msgspec.structs.replace(MODEL, provider="anthropic", id="claude-sonnet-4-5-20250929")
    host_of(door).models.more = {old.ref: old, new.ref: new}  # type: ignore[attr-defined]
    client = Client(desk)
    for word, model in (("sonnet", new.ref), ("opus", MODEL.ref), ("gpt-5", MODEL.ref)):
        started = await client.call("launchSession", query="x", model=word)
        assert (await door.info(started["session_id"])).model == model
    state = await client.call("getSessionState", session_id=started["session_id"])
    assert state["session"]["context_limit"] == MODEL.context_window
    host_of(door).models.list = lambda provider: [  # type: ignore[assignment, misc]
        ModelInfo("anthropic", "claude-haiku-9")
    ]  # no key
    started = await client.call("launchSession", query="x", model="haiku")
    assert (await door.info(started["session_id"])).model == MODEL.ref


def test_summaries():
    long = "hello   world\n this is a rather long query that will be cut by the summary logic"
    assert summary_of(long) == "hello world this is a rather long query that wi..."
    assert summary_of("é" * 50) == "é" * 50
    assert summary_of("") == ""


async def test_an_approval_without_an_id_is_matched_to_the_newest_open_call_within_300_seconds():
    script = Scripted([turn(call("echo", text="1"), call("echo", text="2"), call("bash"))])
    door, desk = make(script)
    client = Client(desk)
    started = await client.call("launchSession", query="x")
    first = await pending(client)  # the engine asks about the first call itself
    for tool, expected in (("Echo", "call_2"), ("echo", None), ("nothing", None)):
        made = await client.call(
            "createApproval", run_id=started["run_id"], tool_name=tool, tool_input={}
        )
        row = await client.call("getApproval", approval_id=made["approval_id"])
        assert row["approval"].get("tool_use_id") == expected, tool
    events = (await client.call("getConversation", session_id=started["session_id"]))["events"]
    marks = {e["tool_id"]: e.get("approval_status") for e in events if "tool_id" in e}
    assert marks == {first["tool_use_id"]: "pending", "call_2": "pending", "call_3": None}
    # the same, six minutes later: too old for the open `bash` call
    real = host_of(door).clock.now_ms
    host_of(door).clock = Later(real, 360_000)
    made = await client.call("createApproval", run_id=started["run_id"], tool_name="bash",
                             tool_input={})  # fmt: skip
    row = await client.call("getApproval", approval_id=made["approval_id"])
    assert "tool_use_id" not in row["approval"]
    host_of(door).clock = Later(real, 0)
    await client.call("interruptSession", session_id=started["session_id"])
    await door.idle(started["session_id"])


class Later:
    def __init__(self, now, by):
        self.now, self.by = now, by

    def now_ms(self):
        return self.now() + self.by

    def monotonic(self):
        return asyncio.get_running_loop().time()


async def test_an_approval_that_waits_with_the_session_it_belongs_to_is_withdrawn_by_an_interrupt():
    door, desk = make([turn(call("echo", text="1")), "done"])
    client = Client(desk)
    started = await client.call("launchSession", query="x")
    waiting = await pending(client)
    stopped = await client.call("interruptSession", session_id=started["session_id"])
    assert stopped["status"] == "interrupting"
    await door.idle(started["session_id"])
    assert (await client.call("fetchApprovals"))["approvals"] == []
    late = await client.call("sendDecision", approval_id=waiting["id"], decision="approve")
    assert late["success"] is False and "already decided with status: denied" in late["error"]


async def test_a_continued_parent_that_waits_for_a_human_is_interrupted_first():
    door, desk = make([turn(call("echo", text="1"))])
    client = Client(desk)
    started = await client.call("launchSession", query="x")
    await pending(client)
    child = await client.call("continueSession", session_id=started["session_id"], query="y")
    parent = await client.call("getSessionState", session_id=started["session_id"])
    assert parent["session"]["status"] == "interrupted"
    await client.call("interruptSession", session_id=child["session_id"])
    await door.idle(child["session_id"])


async def test_answers_keep_the_order_of_the_requests_whatever_each_takes():
    script = Scripted([turn("a", hang())])
    door, desk = make(script)
    client = Client(desk)
    started = await client.call("launchSession", query="x")
    await asyncio.wait_for(script.hanging.wait(), 60)
    slow = msgspec.json.encode(
        {
            "jsonrpc": "2.0",
            "method": "continueSession",
            "params": {"session_id": started["session_id"], "query": "y"},
            "id": "slow",
        }
    )
    quick = [b'{"jsonrpc":"2.0","method":"%s","id":"%s"}' % (m, m) for m in (b"health", b"nope")]
    client.wire.send(slow, *quick)
    ids = [msgspec.json.decode(await client.wire.receive())["id"] for _ in range(3)]
    assert ids == ["slow", "health", "nope"]
    await host_of(door).stop(1.0)


# --- lists -----------------------------------------------------------------------------------


async def test_an_unchanged_list_is_the_same_bytes_and_a_changed_one_encodes_one_row(monkeypatch):
    door, desk = make(["done"])
    ids = [(await door.open(OpenSpec(cwd="/"), ME)).id for _ in range(200)]
    client = Client(desk)
    listed = (await client.call("listSessions"))["sessions"]
    assert {row["id"] for row in listed} == set(ids)
    encoded = []
    real = session_rows.row_of

    def counted(info, now):
        encoded.append(info.id)
        return real(info, now)

    monkeypatch.setattr(session_rows, "row_of", counted)
    assert await desk.session_rows.rows() is await desk.session_rows.rows()
    assert not encoded
    await (await door.prompt(ids[7], (Text("hi"),), ME)).done
    listed = (await client.call("listSessions"))["sessions"]
    assert listed[0]["id"] == ids[7] and listed[0]["status"] == "completed"
    assert set(encoded) == {ids[7]}
    await door.delete(ids[3], ME)
    listed = (await client.call("listSessions"))["sessions"]
    assert len(listed) == 199 and ids[3] not in {row["id"] for row in listed}
    desk.session_rows._used -= 3_600
    desk.session_rows._let_go()
    assert not desk.session_rows._entries and desk.session_rows._all is None
    assert len((await client.call("listSessions"))["sessions"]) == 199
    await desk.close()


async def test_a_long_list_is_the_same_bytes_made_beside_the_loop(monkeypatch):
    door, desk = make()
    for number in range(20):
        await door.open(OpenSpec(cwd="/", title=f"{number} %d"), ME)
    client = Client(desk)
    asked = [
        b'{"jsonrpc":"2.0","id":%b,"method":"%b"}' % (id, method)
        for id in (b"7", b'"\xc3\xa4"', b"null")
        for method in (b"listSessions", b"getSessionLeaves")
    ]
    asked.append(b"[" + b",".join(asked) + b"]")

    async def all_answers():
        for line in (*asked, b'{"jsonrpc":"2.0","method":"listSessions"}', HEALTH):
            client.wire.send(line)
        said = [await client.wire.receive() for _ in asked]
        while (last := await client.wire.receive()) != HEALTHY:
            said.append(last)
        return said

    short = await all_answers()
    joined = []

    def aside(function, *args):
        joined.append(function)
        return asyncio.get_running_loop().run_in_executor(None, function, *args)

    monkeypatch.setattr(session_rows, "LONG", 1)
    monkeypatch.setattr(sessions, "LONG", 1)
    monkeypatch.setattr(asyncio, "to_thread", aside)
    desk.session_rows._all = None
    assert await all_answers() == short
    assert len(joined) > len(asked)
    await desk.close()


async def test_sessions_of_another_process_are_listed_and_read_but_not_changed():
    store = MemoryStore()
    ours, desk = make(store=store)
    theirs, _ = make(["hello"], store=store)
    host_of(theirs).owner = "another process"
    host_of(ours).is_alive = lambda owner: owner == "another process"
    client = Client(desk)
    assert (await client.call("listSessions"))["sessions"] == []
    info = await theirs.open(OpenSpec(cwd="/"), ME)
    await (await theirs.prompt(info.id, (Text("hi"),), ME)).done
    await asyncio.sleep(0.06)  # the store is asked at most every 50 ms
    rows = (await client.call("listSessions"))["sessions"]
    assert [(row["id"], row["status"]) for row in rows] == [(info.id, "completed")]
    talk = (await client.call("getConversation", session_id=info.id))["events"]
    assert [event["content"] for event in talk] == ["hi", "hello"]
    with pytest.raises(Refused) as refused:
        await client.call("archiveSession", session_id=info.id, archived=True)
    assert refused.value.args[0] == -32603 and "another process" in refused.value.args[1]
    many = await client.call("bulkArchiveSessions", session_ids=[info.id], archived=True)
    assert many == {"success": False, "failed_sessions": [info.id]}
    await desk.close()
