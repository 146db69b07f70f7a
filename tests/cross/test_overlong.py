"""A line over its protocol's limit is answered, with its id, and the connection goes on."""

import json

import pytest
from tests.cross.house import House, Speaker

MIB = 1_048_576


def line(fields: dict[str, object], long: dict[str, object], *, last: str) -> bytes:
    """An object whose member `last` stands at its end, behind the long one."""
    end = {last: fields[last]} if last in fields else {}
    first = {name: value for name, value in fields.items() if name not in end}
    return json.dumps({**first, **long, **end}).encode()


async def told(speaker: Speaker, said: bytes, id: str) -> dict[str, object]:
    speaker._writer.write(said + b"\n")
    return await speaker.until(lambda m: id in (m.get("id"), m.get("requestId")))


@pytest.mark.parametrize("last", ["", "id"])
@pytest.mark.parametrize(
    ("socket", "size"), [("daemon", 9), ("humanlayer", 11), ("acp", 17), ("any", 17)]
)
async def test_json_rpc(house: House, socket: str, size: int, last: str) -> None:
    speaker = await house.speaker(socket)
    fields: dict[str, object] = {"jsonrpc": "2.0", "id": "big", "method": "health"}
    if socket != "humanlayer":
        speaker = await (house.acp(socket) if socket == "acp" else house.zeroclaw(socket))
        fields["method"] = "session/list"
    refused = await told(
        speaker, line(fields, {"params": {"x": "y" * size * MIB}}, last=last), "big"
    )
    assert refused["error"]["code"] == -32600  # type: ignore[index]
    small = await told(speaker, line({**fields, "id": "small"}, {"params": {}}, last=""), "small")
    assert "result" in small


@pytest.mark.parametrize("last", ["", "id"])
@pytest.mark.parametrize("first", [True, False])
async def test_zot_also_when_it_is_the_first_line(house: House, first: bool, last: str) -> None:
    speaker = await house.speaker("any")
    if not first:
        await speaker.command("ping")
    long: dict[str, object] = {"message": "y" * 17 * MIB}
    said = line({"type": "prompt", "id": "big"}, long, last=last)
    refused = await told(speaker, said, "big")
    assert (refused["command"], refused["success"]) == ("prompt", False)
    assert "too long" in str(refused["error"])
    await speaker.command("ping")


async def test_a_prompt_without_an_id_is_learned_to_be_lost(house: House) -> None:
    """The terminal waits for the end of a turn: the end of the connection says there is none."""
    speaker = await house.zeroclaw()
    prompt = {"jsonrpc": "2.0", "method": "session/prompt", "params": {"prompt": "y" * 9 * MIB}}
    speaker._writer.write(json.dumps(prompt).encode() + b"\n")
    with pytest.raises(EOFError):
        await speaker.until(lambda m: False)
    assert speaker.seen[-1]["error"]["code"] == -32600
