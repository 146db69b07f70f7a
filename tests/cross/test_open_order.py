"""zot: what `open` brings of a session in the middle of a message comes after its answer."""

from tests.cross.house import House


async def test_the_answer_of_open_comes_before_the_draft_of_the_new_session(house: House) -> None:
    own = await house.zeroclaw()
    ids = []
    for _ in range(2):
        opened = await own.call("dragoman/open", {"cwd": str(house.work)})
        ids.append(opened["session"]["id"])
    await own.call("dragoman/watch", {"session_id": ids[1]})
    own.begin("dragoman/prompt", {"session_id": ids[1], "text": "count slowly to 300"})
    await own.until(lambda m: (m.get("params", {}).get("event") or {}).get("type") == "text_delta")
    zot = await house.zot(ids[0])
    before = len(zot.seen)
    await zot.command("open", session=ids[1])
    await zot.until(lambda m: m.get("type") == "text_delta")
    kinds = [one["type"] for one in zot.seen[before:]]
    assert kinds[0] == "response" and "text_delta" in kinds
    told = [one["delta"] for one in zot.seen if one["type"] == "text_delta"]
    assert told[0].startswith("1"), "the draft is whole"
    await own.call("dragoman/cancel", {"session_id": ids[1]})
