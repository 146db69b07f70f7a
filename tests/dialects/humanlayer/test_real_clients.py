"""What the real clients of this protocol met with and the samples did not."""

import asyncio
import json

import msgspec
import pytest
from tests.dialects.humanlayer.desk import HEALTH, HEALTHY, Client, Refused, make

from dragoman.dialects.humanlayer import Settings
from dragoman.engine.ports import AgentProfile
from dragoman.store.memory import MemoryStore
from dragoman.testing.host import MODEL, EchoTool, host_of
from dragoman.testing.script import call, turn
from dragoman.transports import memory, unix

MIB = 1_048_576


# --- long lines ------------------------------------------------------------------------------


def filled(pattern, size):
    """A line of `size` bytes with its newline: `~` in the pattern is stretched."""
    line = pattern.encode() + b"\n"
    return line.replace(b"~", b"x" * (size - len(line) + 1), 1)


async def test_what_the_real_daemon_takes_is_taken_without_any_setting(tmp_path):
    _, desk = make(settings=Settings())
    listener = await unix.listen(str(tmp_path / "h.sock"), desk.hearer)
    reader, writer = await asyncio.open_unix_connection(listener.path)
    pattern = '{"jsonrpc":"2.0","method":"health","params":{"pad":"~"},"id":1}'
    for size in (MIB + 1, 10 * MIB):
        writer.write(filled(pattern, size))
        assert await asyncio.wait_for(reader.readline(), 60) == HEALTHY + b"\n"
    writer.close()
    await writer.wait_closed()
    await listener.close()


OVERLONG = [
    ('{"jsonrpc":"2.0","method":"health","params":{"pad":"~"},"id":2}', 2),
    ('{"id":7,"jsonrpc":"2.0","method":"health","params":{"pad":"~"}}', 7),
    ('{"jsonrpc":"2.0","ID":"a b","method":"x","params":{"pad":"~"}}', "a b"),
    ('{"jsonrpc":"2.0","method":"x","params":{"pad":"~"}, "id" : "c\\"d" }', 'c"d'),
    ('{"jsonrpc":"2.0","id":1,"method":"x","params":{"pad":"~"},"id":-3}', -3),
    # Not the request's own, or not to be told from such:
    ('{"jsonrpc":"2.0","method":"x","params":{"pad":"~","id":9}}', None),
    ('{"jsonrpc":"2.0","params":{"id":9,"pad":"~"},"method":"x"}', None),
    ('{"jsonrpc":"2.0","method":"x","params":{"pad":"~"},"x\\"id":5}', None),
    ('{"jsonrpc":"2.0","method":"x","params":"~,\\"id\\":5}"}', None),
    ('[{"jsonrpc":"2.0","method":"x","params":"~","id":5}]', None),
    ("~", None),
]


@pytest.mark.parametrize(("pattern", "id"), OVERLONG, ids=[str(i) for i in range(len(OVERLONG))])
async def test_an_overlong_request_is_answered_with_its_id_where_that_can_be_read(pattern, id):
    _, desk = make(settings=Settings(max_message_bytes=20_000))
    client = memory.Client(desk.hearer)
    line = filled(pattern, 60_000)
    for start in range(0, len(line), 7_001):  # as it comes from a socket, piece by piece
        client.pump.data_received(line[start : start + 7_001])
    refused = json.loads(await client.receive())
    assert refused["id"] == id and refused["error"]["code"] == -32600
    assert "20000" in refused["error"]["message"]
    client.send(HEALTH)
    assert client.received() == [HEALTHY]


# --- models and agents -----------------------------------------------------------------------


def with_models(*refs, **profile):
    door, desk = make(["done"] * 9, **profile)
    known = {}
    for ref in refs:
        provider, _, id = ref.partition("/")
        known[ref] = msgspec.structs.replace(MODEL, provider=provider, id=id)
    models = host_of(door).models
    models.more = known  # type: ignore[attr-defined]
    everything = models.list
    models.list = lambda provider=None: [
        one for one in everything() if provider in (None, one.provider)
    ]
    return door, Client(desk)


OWN = ("work/claude-opus-4-1-20250805", "work/claude-opus-4-20250514", "work/claude-haiku-4-5")
THEIRS = ("anthropic/claude-opus-9", "anthropic/claude-sonnet-4-5")


@pytest.mark.parametrize(
    ("word", "model", "told"),
    [
        ("opus", "work/claude-opus-4-1-20250805", ""),
        ("haiku", "work/claude-haiku-4-5", ""),
        ("claude-opus-4-20250514", "work/claude-opus-4-20250514", ""),
        ("sonnet", "anthropic/claude-sonnet-4-5", "work has no such model"),
        ("gpt-99", MODEL.ref, "gpt-99 is not available; " + MODEL.ref),
    ],
)
async def test_a_word_means_a_model_of_the_agents_own_provider(word, model, told):
    door, client = with_models(*OWN, *THEIRS)
    agents = host_of(door).agents
    if told.startswith("gpt"):
        told = f"The model {told} is used instead."
    else:
        profile = agents.profile("default")
        own = msgspec.structs.replace(profile, model=OWN[1])
        agents.profile = lambda alias: own
    started = await client.call("launchSession", query="x", model=word)
    assert (await door.info(started["session_id"])).model == model
    assert told in started.get("notice", "") and bool(told) == ("notice" in started)
    await door.idle(started["session_id"])
    said = await client.call("getConversation", session_id=started["session_id"])
    notes = [one["content"] for one in said["events"] if one["event_type"] == "system"]
    assert notes == ([started["notice"]] if told else [])


async def test_a_whole_reference_that_cannot_be_had_is_refused_and_leaves_no_session():
    door, client = with_models(*THEIRS)
    with pytest.raises(Refused) as refused:
        await client.call("launchSession", query="x", model="anthropic/claude-nine")
    assert refused.value.args[0] == -32602 and "claude-nine" in refused.value.args[1]
    assert (await client.call("listSessions"))["sessions"] == []


async def test_an_agent_is_chosen_by_its_name_or_where_a_model_is_expected():
    profiles = [AgentProfile(name, model=MODEL.ref, context_files=False) for name in ("one", "two")]
    door, desk = make(["done"] * 4, profiles=profiles)
    client = Client(desk)
    for asked in ({"agent": "two"}, {"model": "two"}):
        started = await client.call("launchSession", query="x", **asked)
        assert (await door.info(started["session_id"])).agent == "two" and "notice" not in started
    with pytest.raises(Refused, match="three") as refused:
        await client.call("launchSession", query="x", agent="three")
    assert refused.value.args[0] == -32602


# --- inputs as they were sent ----------------------------------------------------------------


INPUTS = [
    '{"a":1.0,"b":1,"c":1e2,"d":-0.0,"e":1.10,"f":0.1e-7}',
    '{"big":123456789012345678901234567890,"least":-9223372036854775809}',
    '{"z":1,"a":{"y":2,"b":[3.50,4]}}',
    "null",
    "5.0",
    '"text"',
    "[1.0,{}]",
]


@pytest.mark.parametrize("given", INPUTS)
async def test_an_input_comes_back_as_it_was_sent(given):
    _, desk = make(["done"])
    client = Client(desk)
    started = await client.call("launchSession", query="x")
    client.wire.send(
        b'{"jsonrpc":"2.0","method":"createApproval","params":{"run_id":"%b","tool_name":"Bash",'
        b'"tool_input":%b,"tool_use_id":"t"},"id":5}'
        % (started["session_id"].encode(), given.encode())
    )
    created = json.loads(await client.wire.receive())["result"]["approval_id"]
    for method, params in (
        ("getApproval", {"approval_id": created}),
        ("fetchApprovals", {"session_id": started["session_id"]}),
    ):
        request = {"jsonrpc": "2.0", "method": method, "params": params, "id": 6}
        client.wire.send(json.dumps(request).encode())
        answer = (await client.wire.receive()).decode()
        assert f'"tool_input":{given},' in answer and f'"kwargs":{given}}}' in answer
    decided = await client.call("sendDecision", approval_id=created, decision="approve")
    assert decided == {"success": True}


@pytest.mark.parametrize("given", ["1e400", '{"a":[-1e400]}'])
async def test_a_number_beyond_all_numbers_is_refused_as_a_bad_parameter(given):
    _, desk = make(["done"])
    client = Client(desk)
    started = await client.call("launchSession", query="x")
    client.wire.send(
        b'{"jsonrpc":"2.0","method":"createApproval","params":{"run_id":"%b","tool_name":"Bash",'
        b'"tool_input":%b},"id":5}' % (started["run_id"].encode(), given.encode())
    )
    refused = json.loads(await client.wire.receive())
    assert refused["id"] == 5 and refused["error"]["code"] == -32602
    assert "tool_input" in refused["error"]["message"]
    assert (await client.call("fetchApprovals"))["approvals"] == []


async def test_a_large_input_is_in_a_record_once():
    _, desk = make(["done"])
    client = Client(desk)
    started = await client.call("launchSession", query="x")
    large = {"content": "x" * 200_000}
    created = await client.call(
        "createApproval", run_id=started["run_id"], tool_name="Write", tool_input=large
    )
    request = {"jsonrpc": "2.0", "method": "getApproval", "params": created, "id": 6}
    client.wire.send(json.dumps(request).encode())
    line = await client.wire.receive()
    approval = json.loads(line)["result"]["approval"]
    assert approval["tool_input"] == large
    assert approval["function_call"]["spec"]["kwargs"] == {"$ref": "#/tool_input"}
    assert len(line) < 2.1 * 200_000  # the input, and all of it as text in `question`


# --- bounds ----------------------------------------------------------------------------------


async def test_a_session_takes_a_thousand_open_approvals_and_as_many_as_are_set():
    door, desk = make(["done"])
    client = Client(desk)
    started = await client.call("launchSession", query="x")

    async def create(n):
        return await client.call(
            "createApproval", run_id=started["run_id"], tool_name="Bash", tool_input={"n": n}
        )

    for n in range(100):
        await create(n)
    assert host_of(door).max_asks == 1_024
    host_of(door).max_asks = 100
    with pytest.raises(Refused, match="100 approvals are open.*max_approvals"):
        await create(100)


async def test_a_decision_without_an_id_names_both():
    _, desk = make()
    with pytest.raises(Refused) as refused:
        await Client(desk).call("sendDecision")
    assert "call_id" in refused.value.args[1] and "approval_id" in refused.value.args[1]


# --- events ----------------------------------------------------------------------------------


async def test_a_token_update_carries_the_status_of_its_session():
    class AskingTool(EchoTool):
        async def run(self, args, env):
            await client.call("createApproval", **asking)
            return await super().run(args, env)

    script = [turn(call("asking", text="x")), "said"]
    door, desk = make(script, [AskingTool("asking", "read")])
    watcher, client = Client(desk), Client(desk)
    await watcher.subscribe(event_types=["session_status_changed"])
    asking = {"run_id": "", "tool_name": "Bash", "tool_input": {}}
    started = await client.call("launchSession", query="x")
    asking["run_id"] = started["run_id"]
    updates = []
    while len(updates) < 2:
        data = (await asyncio.wait_for(watcher.event(), 60))["data"]
        if data.get("reason") == "token_update":
            updates.append((data["old_status"], data["new_status"]))
    assert updates == [("running", "running"), ("waiting_input", "waiting_input")]


@pytest.mark.parametrize(("types", "told"), [([], True), (["conversation_updated"], False)])
async def test_lost_events_are_told_to_those_who_want_such_events(types, told):
    door, desk = make(["done"])
    watcher, client = Client(desk), Client(desk)
    await watcher.subscribe(event_types=types)
    started = await client.call("launchSession", query="x")
    await door.idle(started["session_id"])
    watcher.wire.received()
    watcher.wire.wire.stuck = True
    for n in range(300):
        await door.note(started["session_id"], "info", f"note {n}", "x" * 2_000)
    watcher.wire.wire.take()
    await door.note(started["session_id"], "info", "last")
    kinds = []
    while (event := await asyncio.wait_for(watcher.event(), 60))["data"].get("content") != "last":
        kinds.append(event["type"])
    assert len(kinds) < 300 and ("events_dropped" in kinds) == told


class Counting(MemoryStore):
    """Counts the rows that are read."""

    def __init__(self):
        super().__init__()
        self.rows = 0

    async def entries(self, session_id, after, limit):
        page = await super().entries(session_id, after, limit)
        self.rows += len(page)
        return page

    async def entries_since(self, after, limit):
        page = await super().entries_since(after, limit)
        self.rows += len(page)
        return page


async def test_the_past_of_one_session_costs_nothing_of_the_others():
    store = Counting()
    door, desk = make(["done"] * 3, store=store)
    client = Client(desk)
    wanted = await client.call("launchSession", query="mine")
    await door.idle(wanted["session_id"])
    other = await client.call("launchSession", query="another")
    await door.idle(other["session_id"])
    for n in range(3_000):
        await door.note(other["session_id"], "info", f"note {n}")
    await door.note(wanted["session_id"], "info", "the last")
    for filters in ({"session_id": wanted["session_id"]}, {"run_id": wanted["run_id"]}):
        seen, since, store.rows = [], 0, 0
        for _ in range(3):  # from the beginning, then from the middle, then from the end
            watcher = Client(desk)
            await watcher.subscribe(since=since, **filters)
            while True:
                event = await asyncio.wait_for(watcher.event(), 60)
                seen.append(event)
                if event["data"].get("content") == "the last":
                    break
            since = seen[len(seen) // 2]["seq"]
            watcher.wire.wire.close()
        assert store.rows < 150, store.rows
        assert {event["data"]["session_id"] for event in seen} == {wanted["session_id"]}
        numbers = [event["seq"] for event in seen]
        assert numbers[0] == min(numbers) and numbers.count(numbers[-1]) == 3
    await door.note(wanted["session_id"], "info", "and on")
