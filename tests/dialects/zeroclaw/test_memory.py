"""memory/*: the agents' memories as clients of this protocol look after them."""

import json

import pytest

from dragoman.dialects.zeroclaw import Desk
from dragoman.host.compose import compose
from dragoman.settings.protocols import Zeroclaw
from dragoman.transports.memory import Client


@pytest.fixture
async def ask(tmp_path):
    composed = await compose(config_dir=str(tmp_path))
    client = Client(Desk(composed.door, Zeroclaw()).hearer)
    number = 0

    async def call(method: str, **params):
        nonlocal number
        number += 1
        said = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        client.send(json.dumps(said).encode())
        answer = json.loads(await client.receive())
        return answer.get("result", answer.get("error"))

    await call("initialize", protocol_version=1)
    yield call
    client.drop()
    await composed.close()


async def test_what_is_stored_is_found_shown_and_deleted(ask):
    assert await ask("memory/store", key="k", content="likes tea") == {"key": "k", "stored": True}
    found = await ask("memory/search", query="tea")
    assert (found["count"], found["entries"][0]["content"]) == (1, "likes tea")
    assert (await ask("memory/list"))["entries"][0]["key"] == "k"
    assert (await ask("memory/get", key="k"))["entry"]["agent_alias"] == "default"
    assert (await ask("memory/delete", key="k"))["deleted"] is True
    assert (await ask("memory/delete", key="k"))["deleted"] is False
    assert await ask("memory/get", key="k") == {"entry": None}


async def test_bad_requests_say_what_is_missing(ask):
    assert (await ask("memory/search"))["code"] == -32602
    assert (await ask("memory/store", key="k"))["code"] == -32602
    assert "nobody" in (await ask("memory/list", agent="nobody"))["message"]
