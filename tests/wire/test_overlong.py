"""What the two ends of a line say of the whole."""

import json

import pytest

from dragoman.wire.overlong import beginning_of, id_of

LONG = b"x" * 5_000


@pytest.mark.parametrize(
    ("head", "told"),
    [
        (b'{"type":"prompt","id":"7","message":"' + LONG, {"type": "prompt", "id": "7"}),
        (b' { "jsonrpc" : "2.0" , "id":-1.5e3, "params":{"a":"' + LONG, {"jsonrpc": "2.0",
                                                                          "id": -1500.0}),
        (b'{"a":true,"b":null,"c":"d,\\"e\\"","f":["' + LONG, {"a": True, "b": None,
                                                              "c": 'd,"e"'}),
        (b'{"prompt":"' + LONG, None),
        (b'[{"id":1,"x":"' + LONG, None),
        (LONG, None),
        (b"", None),
    ],
)  # fmt: skip
def test_the_plain_members_at_the_beginning_are_an_object(head: bytes, told: object) -> None:
    found = beginning_of((head[:4_096], b""))
    assert (json.loads(found) if found else None) == told


@pytest.mark.parametrize(
    ("line", "id"),
    [
        (b'{"id":3,"x":"' + LONG + b'"}', 3),
        (b'{"x":"' + LONG + b'","id":"t"}', "t"),
        (b'{"x":{"y":"' + LONG + b'","id":"inner"}}', None),
        (b'{"x":"' + LONG, None),
    ],
)
def test_an_id_is_read_where_it_is_certain(line: bytes, id: object) -> None:
    assert id_of((line[:4_096], line[-4_096:])) == id
