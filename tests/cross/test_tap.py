"""The wire of a session's connections, side by side, whatever they speak."""

from typing import Any

from tests.cross.house import House
from tests.cross.test_one_session import opened


def rows(seen: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [m["params"] for m in seen if m.get("method") == "dragoman/wire"]


async def test_all_connections_of_a_session_and_no_others(house: House) -> None:
    acp = await house.acp()
    session = await opened(house, acp)
    zot = await house.zot(session)
    stranger = await house.acp()
    elsewhere = await opened(house, stranger)
    tap = await house.zeroclaw()
    await tap.call("dragoman/tap", {"session_id": session})
    prompt = [{"type": "text", "text": "what is dragoman"}]
    await stranger.call("session/prompt", {"sessionId": elsewhere, "prompt": prompt})
    await zot.command("prompt", message="what is dragoman")
    late = await house.zot(session)
    await zot.until(lambda m: m.get("type") == "done")
    await late.command("get_state")
    await tap.until(lambda m: "get_state" in str(m) and m["params"]["direction"] == "out")
    shown = rows(tap.seen)
    assert {row["dialect"] for row in shown} == {"acp", "zot"}
    heard = [(row["dialect"], row["direction"]) for row in shown if '"prompt"' in row["line"]]
    assert heard[:2] == [("zot", "in"), ("zot", "out")]
    assert elsewhere not in str(shown)
    assert len({row["connection"] for row in shown if row["dialect"] == "acp"}) == 1
    assert len({row["connection"] for row in shown if row["dialect"] == "zot"}) == 2
    assert all(row["at"] > 0 and row["peer"].startswith("unix:") for row in shown)


async def test_secrets_are_hidden_and_a_tap_can_be_ended(house: House) -> None:
    tap = await house.zeroclaw()
    await tap.call("dragoman/tap")
    other = await house.speaker("any")
    other.send({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {"protocol_version": 1, "env": {"HOME": "/h", "X": "plain-secret"},
                   "api_key": "sk-abcdefghijklmnopq"},
    })  # fmt: skip
    await tap.until(lambda m: m.get("method") == "dragoman/wire" and "HOME" in str(m))
    assert "plain-secret" not in str(tap.seen) and "sk-abc" not in str(tap.seen)
    assert rows(tap.seen)[0]["dialect"] == "zeroclaw"  # known from the first line on
    await tap.call("dragoman/tap", {"on": False})
    before = len(rows(tap.seen))
    await other.call("status")
    await tap.call("dragoman/agents")
    assert len(rows(tap.seen)) == before


async def test_two_taps_do_not_show_each_other(house: House) -> None:
    first, second = await house.zeroclaw(), await house.zeroclaw()
    await first.call("dragoman/tap")
    await second.call("dragoman/tap")
    other = await house.speaker("any")
    other.send({"jsonrpc": "2.0", "id": 1, "method": "health"})
    for tap in (first, second):
        await tap.until(
            lambda m: m.get("params", {}).get("direction") == "out" and "humanl" in str(m)
        )
        await tap.call("dragoman/agents")
    for tap in (first, second):
        shown = rows(tap.seen)
        assert not [row for row in shown if "dragoman/wire" in row["line"]]
        assert not [row for row in shown if "dragoman/agents" in row["line"]]
    await second.call("dragoman/tap", {"on": False})
    await second.call("dragoman/agents")  # it taps no more, so it is shown again
    await first.until(lambda m: "dragoman/agents" in str(m.get("params", {}).get("line")))
