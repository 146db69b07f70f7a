"""Configuration by path, and as it changes."""

from dragoman.dialects.openclawos import Desk
from dragoman.host.compose import compose

from .talking import Talker, app, desk_of, manifest

VALUES = {"a": {"b": 5, "list": [1, 2]}, "n": None, "key": "***"}


async def test_values_by_path():
    talker = await app(desk_of(config=VALUES))
    assert await talker.call("config.get", {}) == {"value": VALUES}
    assert await talker.call("config.get", None) == {"value": VALUES}
    for path, value in (("", VALUES), ("a.b", 5), ("a.list.1", 2), ("n", None), ("x.y", None)):
        assert await talker.call("config.get", {"path": path}) == {"value": value}
    assert (await talker.refused("config.get", {"path": 5}))["code"] == "INVALID_PARAMS"
    assert (await talker.refused("config.get", {"path": "key"}))["code"] == "FORBIDDEN"


async def test_changes_are_streamed():
    desk = desk_of(config=VALUES)
    talker = await app(desk)
    everything = talker.ask("config.watch", {})
    some = talker.ask("config.watch", {"paths": ["a.b", "$.c.d"]})
    assert (await talker.answer(everything))["success"] and (await talker.answer(some))["success"]
    config = desk.door.config
    config.change("z", 1, 2)
    chunk = await talker.chunk()
    assert chunk["requestId"] == everything and chunk["done"] is False
    assert chunk["chunk"] == {"path": "z", "oldValue": 1, "newValue": 2}
    config.change("a.b.deep", 1, 2)
    assert [(await talker.chunk())["requestId"] for _ in range(2)] == [everything, some]
    config.change("c", {"d": 1, "e": 1}, None)
    assert (await talker.chunk())["chunk"]["path"] == "c"
    assert (await talker.chunk())["chunk"] == {"path": "c.d", "oldValue": 1, "newValue": None}
    await talker.silence()
    await desk.close()
    ends = [await talker.chunk() for _ in range(2)]
    assert [(end["requestId"], end["done"]) for end in ends] == [(everything, True), (some, True)]
    assert config.told == []


async def test_watches_end_with_the_connection():
    desk = desk_of(config=VALUES)
    talker = await app(desk)
    await talker.call("config.watch", {})
    await talker.leave()
    assert desk.door.config.told == []


async def test_the_real_configuration(tmp_path):
    (tmp_path / "config.toml").write_text('[providers.openai]\napi_key = "sk-very-secret-1234"\n')
    composed = await compose(config_dir=str(tmp_path), store="memory")
    desk = Desk(composed.door, composed.settings.openclawos)
    talker = Talker(desk)
    await talker.call("app.register", {"manifest": manifest()})
    whole = await talker.call("config.get", {})
    assert "very-secret" not in str(whole)
    path = {"path": "providers.openai.api_key"}
    assert (await talker.refused("config.get", path))["code"] == "FORBIDDEN"
    await talker.call("config.watch", {"paths": ["acp.max_sessions"]})
    await composed.config.set("acp.max_sessions", 3)
    chunk = (await talker.chunk())["chunk"]
    assert chunk == {"path": "acp.max_sessions", "oldValue": 10, "newValue": 3}
    await desk.close()
    await composed.close()
