"""Hosted agents that do not keep to the protocol: each request is answered, turns go on."""

import json
from pathlib import Path
from typing import Any

from .test_hosted import talk

RAW = [str(Path(__file__).with_name("raw_agent.py"))]
ODD: list[Any] = [
    None,
    5,
    -1,
    1.5,
    10**400,
    float("inf"),
    True,
    "x",
    "a\0b",
    "\ud800",
    [],
    [5],
    [None],
    [{}],
    {},
    {"a": 1},
]
Fields = dict[str, Any]


def update(**fields: Any) -> Fields:
    return {"method": "session/update", "params": {"update": fields}}


def odd_updates() -> list[Fields]:
    members = "title kind status content locations rawInput rawOutput name _meta".split()
    found = []
    for place, odd in enumerate(ODD):
        found += [
            update(sessionUpdate=odd),
            update(sessionUpdate="plan", entries=odd),
            update(sessionUpdate="agent_thought_chunk", content=odd),
            update(sessionUpdate="tool_call", toolCallId=odd, title="t"),
            update(sessionUpdate="usage_update", used=odd, cost=odd),
            update(sessionUpdate="usage_update", cost={"amount": odd}),
            {"method": "session/update", "params": {"update": odd}},
            {"method": "session/update", "params": odd},
        ]
        for name in members:
            call = f"{name}-{place}"
            found += [
                update(sessionUpdate="tool_call", toolCallId=call, title="t", status="pending"),
                update(sessionUpdate="tool_call_update", toolCallId=call, **{name: odd}),
                update(sessionUpdate="tool_call_update", toolCallId=call, status="completed"),
            ]
        content = [
            {"type": "diff", "path": "/x", "oldText": odd, "newText": "n"},
            {"type": "diff", "path": odd, "oldText": odd, "newText": odd},
            {"type": "content", "content": {"type": "image", "data": odd, "mimeType": odd}},
            {"type": "terminal", "terminalId": odd},
        ]
        places = [{"path": odd, "line": odd}, {"path": "/x", "line": odd}]
        ended = {"toolCallId": f"whole-{place}", "title": "t", "status": "completed"}
        found.append(update(sessionUpdate="tool_call", content=content, locations=places, **ended))
    return found


async def test_updates_that_make_no_sense_end_no_turn(hosts, tmp_path: Path) -> None:
    one = await talk(await hosts(args=RAW), tmp_path, mode="full")
    done = await one.say(json.dumps(odd_updates()))
    assert (done.outcome, done.text) == ("completed", "{}"), done.error
    assert (await one.say("[]")).outcome == "completed"


def odd_requests(inside: str) -> list[Fields]:
    found = []
    for odd in ODD:
        option = {"optionId": odd, "name": odd, "kind": "allow_once"}
        call = {"toolCallId": odd, "title": odd, "content": odd, "rawInput": odd}
        for method, params in (
            ("fs/read_text_file", {"path": odd}),
            ("fs/read_text_file", {"path": inside, "line": odd, "limit": odd}),
            ("fs/write_text_file", {"path": odd, "content": odd}),
            ("terminal/output", {"terminalId": odd}),
            ("terminal/kill", odd),
            ("session/request_permission", {"toolCall": odd, "options": odd}),
            ("session/request_permission",
             {"toolCall": call, "options": [option], "_meta": {"x": {"toolCallId": odd}}}),
            ("elicitation/create", odd),
        ):  # fmt: skip
            found.append({"method": method, "params": params})
    commands: list[Fields] = [
        {"command": 5}, {"command": "a\0b"}, {"command": "true", "args": 5},
        {"command": "true", "args": [{}, "a\0b"]}, {"command": "true", "env": 5},
        {"command": "true", "env": [5, {"name": 5}, {"name": "a=b\0", "value": "\0"}]},
        {"command": "true", "cwd": "a\0b"}, {"command": "true", "outputByteLimit": -1},
    ]  # fmt: skip
    return found + [{"method": "terminal/create", "params": one} for one in commands]


async def test_every_request_of_a_hosted_agent_gets_one_answer(hosts, tmp_path: Path) -> None:
    (tmp_path / "work/odd").write_bytes(b"\xff\xfe\0x")
    asked = odd_requests(str(tmp_path / "work/odd"))
    one = await talk(await hosts(args=RAW), tmp_path, mode="full")
    done = await one.say(json.dumps(asked))
    assert done.outcome == "completed", done.error
    assert len(json.loads(done.text)) == len(asked)


async def test_lines_of_a_file_end_with_a_newline_alone(hosts, tmp_path: Path) -> None:
    path = tmp_path / "work/lines"
    path.write_text("one\u2028still one\fand\rso on\ntwo\nthree", newline="")
    asked = [
        {"method": "fs/read_text_file", "params": {"path": str(path), **more}}
        for more in ({"line": 2}, {"line": 2, "limit": 1}, {"limit": 1}, {"line": 9}, {"limit": 0})
    ]
    one = await talk(await hosts(args=RAW), tmp_path, mode="full")
    found = [
        each["content"] for each in json.loads((await one.say(json.dumps(asked))).text).values()
    ]
    assert sorted(found) == sorted(
        ["two\nthree", "two\n", "one\u2028still one\fand\rso on\n", "", ""]
    )
