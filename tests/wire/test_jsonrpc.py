"""JSON-RPC envelopes: every malformed one is told apart, and both directions correlate."""

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Raw

from dragoman.wire import jsonrpc
from dragoman.wire.calls import CallFailed, LinkLost, Outbound, TooManyCalls
from dragoman.wire.jsonrpc import (
    Batch,
    BatchReply,
    Invalid,
    Reader,
    Request,
    Response,
    Rules,
)

STRICT = Reader(Rules(batches=False))
GO = Reader(
    Rules(
        any_id=True,
        always_answered=True,
        folded_keys=True,
        typed_parse=True,
        null_params=True,
        blank_lines=True,
    )
)
V = '"jsonrpc":"2.0"'


def one(reader: Reader, text: str | bytes):
    messages = reader.read([text.encode() if isinstance(text, str) else text])
    assert len(messages) <= 1
    return messages[0] if messages else None


def test_a_plain_request():
    message = one(STRICT, f'{{{V},"id":7,"method":"a/b","params":{{"x": 1}}}}')
    assert type(message) is Request
    assert (message.id, message.method, bytes(message.params)) == (7, "a/b", b'{"x": 1}')
    assert not message.is_notification


def test_a_notification_without_params():
    message = one(STRICT, f'{{{V},"method":"n","extra":[1]}}')
    assert message.is_notification and message.id is UNSET and not message.params


@pytest.mark.parametrize("id", ["0", '"x"', "null", "1.5", "-3", "123456789012345678901234567890"])
def test_ids_are_echoed_with_their_type(id):
    message = one(STRICT, f'{{{V},"id":{id},"method":"m"}}')
    assert not message.is_notification
    assert json.loads(jsonrpc.reply(message.id, 1)) == {
        "jsonrpc": "2.0",
        "result": 1,
        "id": json.loads(id),
    }


# what comes in, the code and the id that go out, and why
MALFORMED = [
    ("nonsense", -32700, None, "json"),
    ("{} {}", -32700, None, "json"),
    (f'{{{V},"method":"a"}}{{{V},"method":"b"}}', -32700, None, "json"),
    (b'{"jsonrpc":"2.0","method":"a","params":["\xff"]}', -32700, None, "utf8"),
    ("\ufeff{}", -32700, None, "json"),
    (f'{{{V},"method":"a","params":{"[" * 128}{"]" * 128}}}', -32700, None, "depth"),
    ("[" * 100_000, -32700, None, "depth"),
    ("[" * 3000 + "]" * 3000, -32700, None, "depth"),
    ("\ufeff1e999", -32700, None, "json"),
    ("[1e999", -32700, None, "json"),
    ("[1e999,NaN]", -32700, None, "json"),
    (f"{'[' * 129}1e999{']' * 129}", -32700, None, "depth"),
    ("1e999", -32600, None, "shape"),
    ("-1e999", -32600, None, "shape"),
    ("1" * 10_000, -32600, None, "shape"),
    ("[123.456e-789, 1e400]", -32600, None, "batch"),
    (r'["\ud800", 1e400]', -32600, None, "batch"),
    ('{"a":1e999}', -32600, None, "method"),
    (f'{{{V},"id":1e999,"method":"a"}}', -32600, None, "id"),
    ("[]", -32600, None, "batch"),
    ("[1,2]", -32600, None, "batch"),
    ("5", -32600, None, "shape"),
    ("null", -32600, None, "shape"),
    ('"x"', -32600, None, "shape"),
    ("true", -32600, None, "shape"),
    ("{}", -32600, None, "method"),
    ('{"id":1}', -32600, None, "method"),
    (f"{{{V}}}", -32600, None, "method"),
    ('{"id":1,"method":"a"}', -32600, 1, "version"),
    ('{"jsonrpc":"1.0","id":"x","method":"a"}', -32600, "x", "version"),
    ('{"jsonrpc":2.0,"id":true,"method":"a"}', -32600, None, "version"),
    (f'{{{V},"id":1,"method":5}}', -32600, None, "method"),
    (f'{{{V},"id":1,"method":null}}', -32600, None, "method"),
    (f'{{{V},"id":1,"method":"a","result":1}}', -32600, None, "ambiguous"),
    (f'{{{V},"id":1,"method":"a","error":{{}}}}', -32600, None, "ambiguous"),
    (f'{{{V},"id":true,"method":"a"}}', -32600, None, "id"),
    (f'{{{V},"id":[1],"method":"a"}}', -32600, None, "id"),
    (f'{{{V},"id":{{}},"method":"a"}}', -32600, None, "id"),
    (f'{{{V},"id":4,"method":"a","params":null}}', -32600, 4, "params"),
    (f'{{{V},"id":4,"method":"a","params":"x"}}', -32600, 4, "params"),
    (f'{{{V},"method":"a","params":5}}', -32600, None, "params"),
]


@pytest.mark.parametrize(("line", "code", "id", "reason"), MALFORMED)
def test_malformed(line, code, id, reason):
    message = one(STRICT, line)
    assert type(message) is Invalid
    assert (message.code, message.id, message.reason) == (code, id, reason)
    answer = json.loads(message.reply())
    assert list(answer) == ["jsonrpc", "error", "id"]
    assert answer["id"] == id and answer["error"]["code"] == code
    text = "Parse error: " if code == -32700 else "Invalid request: "
    assert answer["error"]["message"].startswith(text)


@pytest.mark.parametrize(
    "line",
    [
        f'{{{V},"result":1,"error":{{"code":1,"message":"x"}},"id":1}}',
        f'{{{V},"result":1,"id":1,"params":{{}}}}',
        f'{{{V},"error":5,"id":1}}',
        f'{{{V},"error":null,"id":1}}',
        f'{{{V},"error":{{"code":"x","message":"m"}},"id":1}}',
        '{"result":1,"id":1}',
        '{"jsonrpc":"1.0","result":1,"id":1}',
    ],
)
def test_a_malformed_response_fails_what_it_answers(line):
    found = one(Reader(), line)
    assert type(found) is Response and found.id == 1
    assert found.error is not None and "malformed" in found.error.message


@pytest.mark.parametrize(
    "line", [f'{{{V},"result":1}}', f'{{{V},"result":1,"id":[]}}', f'{{{V},"error":5,"id":null}}']
)
def test_malformed_responses_to_nothing_are_dropped_and_counted(line):
    reader = Reader()
    assert one(reader, line) is None
    assert reader.dropped == 1


@pytest.mark.parametrize("order", ['"result":{},"error":{}', '"error":{1},"result":{0}'])
def test_of_two_outcomes_the_one_that_is_null_does_not_count(order):
    error = '{"code":7,"message":"no"}'
    body = order.replace("{}", "{0}", 1).replace("{}", "{1}", 1)
    good = one(STRICT, f'{{{V},"id":1,{body.replace("{0}", "[1]").replace("{1}", "null")}}}')
    assert bytes(good.result) == b"[1]" and good.error is None
    bad = one(STRICT, f'{{{V},"id":1,{body.replace("{0}", "null").replace("{1}", error)}}}')
    assert bad.error is not None and bad.error.code == 7
    none = one(STRICT, f'{{{V},"id":1,{body.replace("{0}", "null").replace("{1}", "null")}}}')
    assert none.error is None and bytes(none.result) == b"null"


def test_responses():
    good = one(STRICT, f'{{{V},"id":"zc-out-0","result":null}}')
    assert good.id == "zc-out-0" and bytes(good.result) == b"null" and good.error is None
    bad = one(STRICT, f'{{{V},"id":3,"error":{{"code":-1,"message":"no","data":[1]}}}}')
    assert (bad.error.code, bad.error.message, bytes(bad.error.data)) == (-1, "no", b"[1]")


def test_one_bad_line_does_not_spoil_its_neighbours():
    good = f'{{{V},"id":1,"method":"a"}}'.encode()
    kinds = [type(m) for m in STRICT.read([good, b"x", good, b"  ", b"[]", good])]
    assert kinds == [Request, Invalid, Request, Invalid, Request]


def test_a_value_over_two_lines_is_two_bad_lines():
    kinds = [type(m) for m in STRICT.read([f"{{{V},".encode(), b'"method":"a"}'])]
    assert kinds == [Invalid, Invalid]


def test_duplicate_members_the_last_one_wins():
    assert one(STRICT, f'{{{V},"id":1,"id":2,"method":"a","method":"b"}}').method == "b"


def test_a_lone_surrogate_escape_is_mended():
    message = one(STRICT, f'{{{V},"id":1,"method":"a","params":["\\ud800", "\\ud83d\\ude00"]}}')
    assert type(message) is Request
    assert json.loads(bytes(message.params)) == ["\ufffd", "😀"]


def test_blank_lines():
    assert one(STRICT, "  \t ") is None
    assert one(GO, "   ").code == -32700


def test_lines_may_be_surrounded_by_white_space():
    assert one(STRICT, f'  {{{V},"method":"a"}} \r').method == "a"
    assert one(STRICT, "  5 ").reason == "shape"


def test_rules_like_go():
    assert one(GO, '{"JSONRPC":"2.0","Method":"health","ID":7}').id == 7
    folded = one(GO, f'{{{V},"method":"m","ID":7,"PARAMS":{{"a":1}}}}')
    assert folded.id == 7 and bytes(folded.params) == b'{"a":1}'
    missing = one(GO, f'{{{V},"method":"m"}}')
    assert missing.id is None and not missing.is_notification
    assert one(GO, f'{{{V},"id":{{"a":[true]}},"method":"m"}}').id == {"a": [True]}
    assert not one(GO, f'{{{V},"id":1,"method":"m","params":null}}').params
    for line in (f'{{{V},"id":1,"method":5}}', '{"jsonrpc":2.0,"method":"a"}', "5", '"x"'):
        assert one(GO, line).code == -32700, line
    for line in ("null", "{}", '{"id":1,"method":"m"}'):
        assert one(GO, line).code == -32600, line


def test_other_rules():
    assert one(Reader(Rules(any_version=True)), '{"id":1,"method":"m"}').id == 1
    assert bytes(one(Reader(Rules(scalar_params=True)), f'{{{V},"method":"m","params":5}}').params)


@given(st.binary(max_size=80))
def test_no_bytes_raise(line):
    for reader in (STRICT, GO, Reader()):
        reader.read([line])


JSONISH = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4) | st.just("2.0"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["jsonrpc", "id", "method", "params", "result", "error", "ID", "x"]),
            inner,
            max_size=6,
        )
    ),
    max_leaves=12,
)


@given(JSONISH)
def test_no_json_raises_and_every_request_is_sound(value):
    for reader in (STRICT, GO, Reader()):
        message = one(reader, json.dumps(value))
        if type(message) is Request:
            assert isinstance(message.method, str)
            assert not message.params or bytes(message.params)[:1] in (b"{", b"[")


# --- the examples of the JSON-RPC 2.0 specification, section 7 --------------------------------


def answer(request: Request) -> bytes:
    """The little server of the examples."""
    params = json.loads(bytes(request.params)) if request.params else None
    if request.method == "subtract":
        a, b = params if isinstance(params, list) else (params["minuend"], params["subtrahend"])  # type: ignore[index]
        return jsonrpc.reply(request.id, a - b)
    if request.method == "sum":
        return jsonrpc.reply(request.id, sum(params))
    if request.method == "get_data":
        return jsonrpc.reply(request.id, ["hello", 5])
    return jsonrpc.error(request.id, -32601, "Method not found")


def talk(text: str):
    """What comes back for one line, or None."""
    sent: list[bytes] = []
    message = one(Reader(), text)
    if isinstance(message, Batch):
        collect = BatchReply(message, sent.append)
        for item in message.items:
            sink = collect.sink(item)
            if isinstance(item, Invalid):
                sink(item.reply())
            elif isinstance(item, Request):
                sink(answer(item))
    elif isinstance(message, Invalid):
        sent.append(message.reply())
    elif isinstance(message, Request) and not message.is_notification:
        sent.append(answer(message))
    assert len(sent) <= 1
    return json.loads(sent[0]) if sent else None


def test_specification_calls():
    assert talk('{"jsonrpc": "2.0", "method": "subtract", "params": [42, 23], "id": 1}') == {
        "jsonrpc": "2.0",
        "result": 19,
        "id": 1,
    }
    named = (
        '{"jsonrpc": "2.0", "method": "subtract", '
        '"params": {"subtrahend": 23, "minuend": 42}, "id": 3}'
    )
    assert talk(named) == {"jsonrpc": "2.0", "result": 19, "id": 3}
    assert talk('{"jsonrpc": "2.0", "method": "update", "params": [1,2,3,4,5]}') is None
    assert talk('{"jsonrpc": "2.0", "method": "foobar", "id": "1"}')["error"]["code"] == -32601


def error_of(answer):
    assert answer["jsonrpc"] == "2.0" and answer["id"] is None
    return answer["error"]["code"]


def test_specification_errors():
    assert error_of(talk('{"jsonrpc": "2.0", "method": "foobar, "params": "bar", "baz]')) == -32700
    assert error_of(talk('{"jsonrpc": "2.0", "method": 1, "params": "bar"}')) == -32600
    assert error_of(talk('[{"jsonrpc": "2.0", "method": "sum", "id": "1"},{"jsonrpc"')) == -32700
    assert error_of(talk("[]")) == -32600
    assert [error_of(item) for item in talk("[1]")] == [-32600]
    assert [error_of(item) for item in talk("[1,2,3]")] == [-32600] * 3


def test_specification_batch():
    answers = talk(
        '[{"jsonrpc": "2.0", "method": "sum", "params": [1,2,4], "id": "1"},'
        '{"jsonrpc": "2.0", "method": "notify_hello", "params": [7]},'
        '{"jsonrpc": "2.0", "method": "subtract", "params": [42,23], "id": "2"},'
        '{"foo": "boo"},'
        '{"jsonrpc": "2.0", "method": "foo.get", "params": {"name": "myself"}, "id": "5"},'
        '{"jsonrpc": "2.0", "method": "get_data", "id": "9"}]'
    )
    seen = [(a["id"], a.get("result"), a.get("error", {}).get("code")) for a in answers]
    assert seen == [
        ("1", 7, None),
        ("2", 19, None),
        (None, None, -32600),
        ("5", None, -32601),
        ("9", ["hello", 5], None),
    ]


def test_specification_batch_of_notifications_gets_nothing():
    assert (
        talk(
            '[{"jsonrpc": "2.0", "method": "notify_sum", "params": [1,2,4]},'
            '{"jsonrpc": "2.0", "method": "notify_hello", "params": [7]}]'
        )
        is None
    )


def test_a_batch_is_sent_when_its_last_answer_is_there_in_the_order_asked():
    sent: list[bytes] = []
    batch = one(Reader(), f'[{{{V},"id":1,"method":"a"}},{{{V},"id":2,"method":"b"}}]')
    collect = BatchReply(batch, sent.append)
    first, second = (collect.sink(item) for item in batch.items)
    second(b'"two"')
    second(b'"again"')
    assert sent == []
    first(b'"one"')
    assert sent == [b'["one","two"]']


# --- writing ----------------------------------------------------------------------------------


def test_key_order_and_absent_members():
    assert jsonrpc.reply(1, {"b": 1, "a": 2}) == b'{"jsonrpc":"2.0","result":{"b":1,"a":2},"id":1}'
    assert jsonrpc.reply("x", None) == b'{"jsonrpc":"2.0","result":null,"id":"x"}'
    assert jsonrpc.error(None, -1, "no") == (
        b'{"jsonrpc":"2.0","error":{"code":-1,"message":"no"},"id":null}'
    )
    assert jsonrpc.error(1, -1, "no", {"a": 1}).endswith(b'"message":"no","data":{"a":1}},"id":1}')
    assert jsonrpc.notification("m") == b'{"jsonrpc":"2.0","method":"m"}'
    assert jsonrpc.notification("m", {"a": 1}) == b'{"jsonrpc":"2.0","method":"m","params":{"a":1}}'
    assert jsonrpc.request("i", "m", {}) == b'{"jsonrpc":"2.0","method":"m","params":{},"id":"i"}'
    assert jsonrpc.reply(1, Raw(b"[1]")) == b'{"jsonrpc":"2.0","result":[1],"id":1}'


# --- our own requests -------------------------------------------------------------------------


def respond(id, **rest) -> Response:
    return one(Reader(), json.dumps({"jsonrpc": "2.0", "id": id, **rest}))


async def test_outbound_ids_count_per_connection_and_results_arrive():
    sent: list[bytes] = []
    out = Outbound(sent.append)
    first = asyncio.ensure_future(out.call("ask", {"q": 1}))
    second = asyncio.ensure_future(out.call("ask", {"q": 2}, within=5))
    await asyncio.sleep(0)
    assert [json.loads(line)["id"] for line in sent] == ["zc-out-0", "zc-out-1"]
    assert out.settle(respond("zc-out-1", result=[2]))
    assert out.settle(respond("zc-out-0", result=None))
    assert (bytes(await first), bytes(await second)) == (b"null", b"[2]")
    assert out.pending == 0


async def test_outbound_ignores_what_nobody_waits_for():
    out = Outbound(lambda line: None)
    out.begin("m")
    for id in (None, "zc-out-1", 0, "x"):
        assert not out.settle(respond(id, result=1))
    assert out.settle(respond("zc-out-0", result=1))
    assert not out.settle(respond("zc-out-0", result=1))


async def test_outbound_compares_numbers_by_their_text():
    out = Outbound(lambda line: None, prefix="")
    _, future = out.begin("m")
    assert out.settle(respond(0, result="yes"))
    assert bytes(await future) == b'"yes"'


async def test_outbound_error_answer():
    out = Outbound(lambda line: None)
    _, future = out.begin("m")
    out.settle(respond("zc-out-0", error={"code": -5, "message": "no", "data": {"a": 1}}))
    with pytest.raises(CallFailed, match="no") as caught:
        await future
    assert (caught.value.code, bytes(caught.value.data)) == (-5, b'{"a": 1}')


async def test_outbound_timeout_forgets_the_request():
    out = Outbound(lambda line: None)
    with pytest.raises(TimeoutError):
        await out.call("m", within=0.01)
    assert out.pending == 0
    assert not out.settle(respond("zc-out-0", result=1))


async def test_outbound_cancel_and_loss():
    out = Outbound(lambda line: None)
    _, cancelled = out.begin("m")
    _, waiting = out.begin("m")
    cancelled.cancel()
    out.lose()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    with pytest.raises(LinkLost):
        await waiting
    with pytest.raises(LinkLost):
        out.begin("m")
    await asyncio.sleep(0)
    assert out.pending == 0


async def test_outbound_is_bounded():
    out = Outbound(lambda line: None, most=2)
    out.begin("m")
    out.begin("m")
    with pytest.raises(TooManyCalls):
        out.begin("m")


def test_a_server_that_sends_no_requests_takes_nothing_for_a_response():
    reader = Reader(Rules(serves_only=True, any_id=True))
    nameless, alone, answer = reader.read(
        [b'{"jsonrpc":"2.0","id":1}', b'{"id":2}', b'{"jsonrpc":"2.0","id":3,"result":{}}']
    )
    assert isinstance(nameless, Request) and (nameless.method, nameless.id) == ("", 1)
    assert isinstance(alone, Invalid) and (alone.reason, alone.id) == ("version", 2)
    assert isinstance(answer, Invalid) and (answer.code, answer.id) == (-32600, 3)
