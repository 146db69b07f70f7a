"""Parts of this dialect by themselves: `attachments`, `desk`, `elicit`, `faults`, `terminals`,
`verbs.config`, `verbs.core`, `verbs.logs`, `verbs.turns`.
"""

import asyncio
import json
from base64 import b64encode
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from tests.dialects.zeroclaw.talking import Talker, desk_of

from dragoman.dialects.zeroclaw import attachments, elicit
from dragoman.dialects.zeroclaw.attachments import _keep, _read, contents, take
from dragoman.dialects.zeroclaw.desk import TERMINAL
from dragoman.dialects.zeroclaw.elicit import Questions, Reply, answer, schema
from dragoman.dialects.zeroclaw.faults import Refusal, bare_message, code_of, message_of
from dragoman.dialects.zeroclaw.shapes import (
    AliasSource,
    CatalogModels,
    ConfigGet,
    ConfigList,
    File,
    Initialize,
    LogGet,
    LogQuery,
    MapKey,
)
from dragoman.dialects.zeroclaw.terminals import drop_unused, is_unused
from dragoman.dialects.zeroclaw.verbs import config, core, logs, turns
from dragoman.engine.ask import Ask
from dragoman.engine.content import Image, Text
from dragoman.engine.events import Who
from dragoman.engine.faults import BadInput, Busy, NothingRunning, StoreFailed, UnknownSession
from dragoman.engine.host import OpenSpec
from dragoman.engine.ports.rows import Explained
from dragoman.observe.feed import Feed
from dragoman.testing.host import memory_door
from dragoman.testing.script import Scripted

# --- attachments ---


def test_attachments_are_kept_once_under_their_hash(tmp_path: Path) -> None:
    first = _keep(str(tmp_path), b"x", "My ]File.TXT", "text/plain")
    again = _keep(str(tmp_path), b"x", "other.txt", "text/plain")
    assert not first.deduplicated and again.deduplicated
    assert first.workspace_path == again.workspace_path and first.workspace_path.endswith(".txt")
    assert first.marker == f"[Document: My _File.TXT] {first.workspace_path}"
    assert _keep(str(tmp_path), b"y", "a.p/ng", "image/png").marker.startswith("[IMAGE:")
    assert Path(first.workspace_path).stat().st_mode & 0o777 == 0o600
    odd = _keep(str(tmp_path), b"z", "a.exe%00", "x/y")
    assert "%" not in odd.workspace_path


@pytest.mark.parametrize(
    ("file", "why"),
    [
        (File(), "neither `path` nor `data_b64`"),
        (File(data_b64="%%%"), "is not base64"),
        (File(data_b64="A" * (15 * 1024 * 1024)), "is larger than"),
        (File(path="relative"), "must be absolute"),
        (File(path="/etc"), "is no file"),
        (File(path="/no/such\0"), "must be absolute"),
    ],
)
def test_attachments_that_cannot_be_taken(file: File, why: str) -> None:
    with pytest.raises(BadInput, match=why):
        _read(file, "files[0]", True)
    with pytest.raises(BadInput, match="clients on this machine"):
        _read(File(path="/etc/hostname"), "files[0]", False)


async def test_attachments_go_after_the_text_and_pictures_are_seen(tmp_path: Path) -> None:
    data = b64encode(b"png").decode()
    files = (File(data_b64=data, filename="a.png"), File(data_b64=data, filename="b.bin"))
    conn: Any = SimpleNamespace(
        link=SimpleNamespace(peer=SimpleNamespace(transport="ws")),
        door=SimpleNamespace(live=lambda id: SimpleNamespace(vision=True)),
    )
    text, picture = await contents(conn, "s", str(tmp_path), "look", files)
    assert isinstance(text, Text) and text.text.startswith("look\n[IMAGE:")
    assert picture == Image("image/png", b"png")
    with pytest.raises(BadInput, match="33 files; 32 are allowed"):
        await take(conn, str(tmp_path), files[:1] * 33)
    assert attachments.PER_CALL > attachments.PER_FILE


# --- faults ---


def test_faults_numbers_and_words() -> None:
    assert code_of(UnknownSession("s")) == -32000 and code_of(StoreFailed("x")) == -32603
    assert message_of(UnknownSession("s")) == "Session not found"
    assert message_of(NothingRunning("x")) == "No active turn for this session"
    assert message_of(BadInput("bad.", "Try.")) == "bad. Try."
    full = Busy("x", "later", waiting=3)
    assert bare_message(full) == "Session busy: queue full (3 pending requests)"
    assert message_of(Busy("x", gave_up="s1")).endswith("Timed out waiting for session s1")
    assert bare_message(Refusal(1, "plain")) == "plain"


# --- unused ---


async def test_unused_sessions_go_and_all_others_stay() -> None:
    door = memory_door(Scripted(["hi"]))
    me = Who("zeroclaw", id="z")
    empty = (await door.open(OpenSpec(cwd="/"), me)).id
    named = (await door.open(OpenSpec(cwd="/", title="T"), me)).id
    foreign = (await door.open(OpenSpec(cwd="/"), Who("acp", id="a"))).id
    used = (await door.open(OpenSpec(cwd="/"), me)).id
    await (await door.prompt(used, (Text("x"),), me)).done
    assert is_unused(door, await door.info(empty)) and not is_unused(door, await door.info(used))
    await drop_unused(door, [empty, named, foreign, used, "gone already"])
    assert set(door.live_ids()) == {named, foreign, used}


# --- elicit ---


@pytest.mark.parametrize(
    ("reply", "choices", "text"),
    [
        (Reply("accept", {"choice": "choice-1"}), ("a", "b"), "b"),
        (Reply("accept", {"choice": "b"}), ("a", "b"), "b"),
        (Reply("accept", {"choice": "choice-9"}), ("a", "b"), None),
        (Reply("accept", {"choice": "choice-²"}), ("a", "b"), None),
        (Reply("accept", {"choice": "choice-" + "9" * 5_000}), ("a", "b"), None),
        (Reply("accept", {"choice": 1}), ("a", "b"), None),
        (Reply("accept", {"answer": "free"}), (), "free"),
        (Reply("accept", {"answer": "choice-0"}), (), "choice-0"),
        (Reply("decline", {"answer": "x"}), (), None),
    ],
)
def test_elicit_reads_what_was_answered(reply: Reply, choices: Any, text: str | None) -> None:
    assert answer(reply, choices) == text


def test_elicit_forms() -> None:
    assert schema(())["required"] == ["answer"]
    one = schema(("a", "b"))["properties"]["choice"]["oneOf"]
    assert one == [{"const": "choice-0", "title": "a"}, {"const": "choice-1", "title": "b"}]


class Outbound:
    def __init__(self) -> None:
        self.asked: list[Any] = []

    def begin(self, method: str, params: Any) -> Any:
        future: Any = asyncio.get_running_loop().create_future()
        self.asked.append((params, future))
        return 1, future


async def test_elicit_a_question_is_put_once_and_settled_by_its_answer() -> None:
    door = memory_door(Scripted([]))
    session = (await door.open(OpenSpec(cwd="/"))).id
    conn: Any = SimpleNamespace(door=door, who=Who("zeroclaw", id="z"), outbound=Outbound())
    questions = Questions(conn)
    for id, said in (
        ("q1", Reply("accept", {"choice": "choice-0"})), ("q2", Reply("decline")),
        ("q3", Reply("cancel")), ("q4", Reply("accept", {"choice": "odd"})),
    ):  # fmt: skip
        ask = Ask(id, session, "question", "?", 1, choices=("a",), external=True)
        await door.put_ask(ask)
        questions.ask(ask)
        questions.ask(ask)
        await asyncio.sleep(0)
        conn.outbound.asked[-1][1].set_result(msgspec.json.encode(said))
        async with asyncio.timeout(60):
            while id != "q4" and not (await door.ask(id)).settled:  # noqa: ASYNC110
                await asyncio.sleep(0.001)
        await asyncio.sleep(0.01)  # the last one is left open
    assert len(conn.outbound.asked) == 4
    settled = {id: (await door.ask(id)).settled for id in ("q1", "q2", "q3", "q4")}
    assert (settled["q1"].verdict, settled["q1"].text) == ("answer", "a")
    assert settled["q2"].verdict == "cancelled" and settled["q3"].verdict == "cancelled"
    assert settled["q4"] is None  # an answer that fits nothing is an inability
    assert elicit.schema is schema


# --- desk ---


async def test_desk_keeps_the_answer_of_status_until_something_changes() -> None:
    desk = desk_of(Scripted([]))
    line = desk.status_line(False)
    assert line is desk.status_line(False)
    assert json.loads(line % 3)["result"]["active_sessions"] == 0
    await desk.door.open(OpenSpec(cwd="/"))
    assert json.loads(desk.status_line(False) % 3)["result"]["active_sessions"] == 1
    assert json.loads(bytes(desk.status(True)))["activeSessions"] == 1
    for number in range(40):
        desk.status(True, f"0.8.{number}")
    assert len(desk._status) <= 18  # clients choose the version they name


async def test_desk_a_client_that_comes_back_has_one_row() -> None:
    desk = desk_of(Scripted([]))
    link: Any = SimpleNamespace(peer=SimpleNamespace(label="l", transport="unix"))
    first, second = desk.who(link), desk.who(link)
    assert first.id != second.id
    assert desk.enlist(first, link, "mine") == desk.enlist(second, link, "mine") == "mine"
    assert list(desk.tuis) == [second.id]
    assert desk.enlist(first, link, "").startswith("tui_")
    assert desk.version_for("0.8.2") == "0.8.2"


async def test_desk_readers_of_one_session_share_a_look() -> None:
    desk = desk_of(Scripted([]))
    id = (await desk.door.open(OpenSpec(cwd="/"))).id
    await desk.door.close(id)
    one, two = await asyncio.gather(desk.state(id), desk.state(id))
    assert one is two and desk._reading == {}
    with pytest.raises(UnknownSession):
        await desk.state("nope")


# --- verbs.core ---


@pytest.mark.parametrize(
    ("given", "form"),
    [
        ({"elicitation": {}}, True), ({"elicitation": {"form": {}}}, True),
        ({"elicitation": {"url": {}}}, False), ({"elicitation": True}, False), (None, False),
    ],
)  # fmt: skip
def test_core_knows_who_offers_a_form(given: Any, form: bool) -> None:
    assert core._has_form(given) is form


@pytest.mark.parametrize(
    ("params", "alike", "version"),
    [
        (Initialize(), True, TERMINAL),
        (Initialize(), False, ""),
        (Initialize(client_name="other"), True, ""),
        (Initialize(client_info="zerocode/0.8.2"), False, "0.8.2"),
        (
            Initialize(client_info={"name": "ZeroCode", "version": "0.8.7-rc.1"}),
            False,
            "0.8.7-rc.1",
        ),
        (Initialize(client_name="zerocode", client_version="9.9.9"), False, TERMINAL),
        (Initialize(client_name="zerocode", client_version="0.8.1\n"), False, TERMINAL),
    ],
)
def test_core_tells_a_terminal_its_own_version(params: Any, alike: bool, version: str) -> None:
    assert core._terminal(params, alike, None) == version


def test_core_takes_an_environment_of_this_machine_within_bounds() -> None:
    def conn(transport: str) -> Any:
        return SimpleNamespace(link=SimpleNamespace(peer=SimpleNamespace(transport=transport)))

    given = {"A": "b", "N": 5, "": "x", "B=C": "x", "D": "nul\0", "E": "f"}
    assert core._environment(conn("unix"), given) == {"A": "b", "E": "f"}
    assert (
        core._environment(conn("ws"), given) == {} and core._environment(conn("unix"), None) == {}
    )
    assert len(core._environment(conn("unix"), {f"V{n}": "x" for n in range(2_000)})) == 1_000
    assert core._environment(conn("unix"), {"BIG": "x" * 300_000}) == {}


async def test_core_health_and_doctor() -> None:
    desk = desk_of(Scripted([]))
    conn: Any = SimpleNamespace(door=desk.door, desk=desk)
    found = core.health(conn, None)
    assert found["components"]["store"]["status"] == "ok" and found["uptime_seconds"] >= 0
    with pytest.raises(Refusal, match="not available"):
        await core.doctor(conn, None)

    async def rows() -> Any:
        return [SimpleNamespace(severity="warn", category="c", message="m.", fix="Do.")]

    desk.door.facts.doctor = rows
    told = await core.doctor(conn, None)
    assert told["results"][0]["message"] == "m. Do." and told["summary"]["warnings"] == 1


# --- verbs.config ---


def configured(values: dict[str, Any] | None = None, rows: Any = ()) -> Any:
    desk = desk_of(Scripted([]))
    desk.door.facts.explain = lambda path: rows
    done: list[Any] = []

    async def added(*given: Any) -> None:
        done.append(given)

    if values is not None:
        desk.door.config = SimpleNamespace(
            get=lambda path: values.get(path) if path else values,
            add_entry=added, reload=lambda: done.append("reload"),
        )  # fmt: skip
    return SimpleNamespace(door=desk.door, desk=desk, done=done)


async def test_config_is_not_there_or_is_read() -> None:
    with pytest.raises(Refusal, match="not available"):
        config.get(configured(), ConfigGet())
    conn = configured({"a": {"b": 1}})
    assert json.loads(bytes(config.get(conn, ConfigGet()))) == {"a": {"b": 1}}
    assert config.get(conn, ConfigGet("a"))["prop"] == "a"
    made = await config.create_key(conn, MapKey("agents", "x"))
    assert made["created"] and conn.done == [("agents", "x")]
    assert config.sections(conn, None) == {"sections": []}
    assert config.validate(conn, None) == {"valid": True}


async def test_config_what_is_asked_behind_a_change_is_answered_after_it() -> None:
    conn, gate = configured({"a": 1}), asyncio.Event()
    values = {"a": 1}

    async def changed(path: str, value: Any) -> None:
        await gate.wait()  # another process changes the file
        values[path] = value

    conn.door.config.set = changed
    conn.door.config.get = values.get
    talker = Talker(conn.desk)
    setting = talker.say("config/set", {"prop": "a", "value": 2})
    getting = talker.say("config/get", {"prop": "a"})
    assert await talker.ask("health") and not [one for one in talker.seen if "id" in one]
    gate.set()
    assert (await talker.answer(setting))["result"]["set"]
    assert (await talker.answer(getting))["result"]["value"] == 2


def test_config_entries_hide_secrets_and_know_their_kind() -> None:
    def row(key: str, allowed: str, value: Any, source: str = "default") -> Explained:
        return Explained(key, "doc", allowed, None, value, source, "ENV")

    secret = config._entry(row("providers.x.api_key", "a text", "s3cret", "file"))
    assert secret["value"] is None and secret["is_secret"] and secret["populated"]
    enum = config._entry(row("a.mode", 'one of "x", "y"', "x", "env A"))
    assert enum["enum_variants"] == ["x", "y"] and enum["is_env_overridden"]
    kinds = [config._kind(row("k", words, 0)) for words in ("true or false", "a number", "odd")]
    assert kinds == ["bool", "float", "string"]
    rows = [row("a.b", "a text", 1), row("a.<name>.c", "a text", 1), row("ab", "a text", 1)]
    conn = configured({}, rows)
    assert [one["path"] for one in config.listed(conn, ConfigList("a"))["entries"]] == ["a.b"]
    assert len(config.listed(conn, ConfigList())["entries"]) == 2


def test_config_the_terminal_finds_an_agents_model() -> None:
    conn = configured({})
    entry = config.listed(conn, ConfigList("agents.default.model_provider"))["entries"][0]
    assert bytes(entry["value"]) == b'"scripted.default"'
    assert config._model_of(conn, "agents.none.model_provider") is None
    found = config._model_of(conn, "providers.models.x.default.model")
    assert found is not None and found.value == "test"


def test_config_catalogues() -> None:
    conn = configured({"risk_profiles": {"b": 1, "a": 2}})
    assert config.alias_source(conn, AliasSource("agents"))["values"] == ["default"]
    assert config.alias_source(conn, AliasSource("risk_profiles"))["values"] == ["a", "b"]
    assert config.alias_source(conn, AliasSource("tts_providers"))["values"] == []
    with pytest.raises(BadInput, match="unknown source"):
        config.alias_source(conn, AliasSource("odd"))
    with pytest.raises(BadInput, match="is missing"):
        config.catalog_models(conn, CatalogModels())
    assert config._per_token(3.0) == "0.000003" and config._per_token(None) is None


# --- verbs.logs ---


def logged() -> Any:
    feed = Feed()
    for number, level in enumerate(("debug", "info", "warning", "error"), 1):
        feed.take(f"T{number}", level, "area", f"event {number}", {"k": "v"})
    door = SimpleNamespace(facts=SimpleNamespace(logs=feed))
    return SimpleNamespace(door=door), feed


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        (LogQuery(), ["4", "3", "2", "1"]),
        (LogQuery(limit=2), ["4", "3"]),
        (LogQuery(until_id="3"), ["2", "1"]),
        (LogQuery(severity_min=13), ["4", "3"]),
        (LogQuery(outcome="failure"), ["4"]),
        (LogQuery(q="EVENT 2"), ["2"]),
        (LogQuery(since_ts="T2", until_ts="T3"), ["3", "2"]),
        (LogQuery(category="other"), []),
        (LogQuery(limit=0), ["4"]),
    ],
)
def test_logs_are_found_newest_first(query: LogQuery, ids: list[str]) -> None:
    conn, feed = logged()
    found = logs.query(conn, query)
    assert [one["id"] for one in json.loads(bytes(found["events"]))] == ids
    assert (found["next_cursor"] is None) is found["at_end"]
    feed.close()


@pytest.mark.parametrize("id", ["x", "²", "-1", "9" * 5_000])
def test_logs_an_id_that_is_none_is_refused(id: str) -> None:
    conn, feed = logged()
    with pytest.raises(BadInput, match="until_id"):
        logs.query(conn, LogQuery(until_id=id))
    with pytest.raises(BadInput, match="no log event"):
        logs.get(conn, LogGet(id))
    feed.close()
    with pytest.raises(Refusal, match="not available"):
        logs._feed(SimpleNamespace(door=SimpleNamespace(facts=SimpleNamespace(logs=None))))


# --- verbs.turns ---


@pytest.mark.parametrize(
    ("verdict", "text", "choices", "reply"),
    [
        ("allow", "blue", (), ("answer", "blue")),
        ("allow", "", ("only",), ("answer", "only")),
        ("deny", "x", (), ("cancelled", "")),
    ],
)
def test_turns_a_decision_about_a_question_is_its_text(
    verdict: Any, text: str, choices: Any, reply: Any
) -> None:
    assert turns._reply(verdict, text, choices) == reply
    with pytest.raises(BadInput, match="goes into `replacement`"):
        turns._reply("allow", "", ("a", "b"))


async def test_turns_say_no_in_the_protocols_words() -> None:
    desk = desk_of(Scripted(["hi"]))
    talker = Talker(desk)
    await talker.new()
    assert (await talker.refused("session/prompt", {"sessionId": "s", "prompt": " "}))[
        "code"
    ] == -32602
    assert (await talker.refused("session/cancel", {"sessionId": "s"}))["code"] == -32000
    odd = {"sessionId": "s", "requestId": "x", "decision": "odd"}
    assert "unknown decision" in (await talker.refused("session/approve", odd))["message"]
    unknown = {**odd, "decision": "reject"}
    assert (await talker.ask("session/approve", unknown))["acknowledged"] is True
    done = await talker.ask("session/prompt", {"sessionId": "s", "prompt": "x"})
    assert done == {"sessionId": "s", "stopReason": "end_turn", "content": "hi"}


def test_config_sections_stand_in_their_groups() -> None:
    names = ("mcp", "agents", "listen", "acp", "memory", "store", "sandbox")
    facts = SimpleNamespace(sections=lambda: [(name, f"about {name}", False) for name in names])
    conn: Any = SimpleNamespace(door=SimpleNamespace(facts=facts, config=object()))
    found = config.sections(conn, None)["sections"]
    groups = [row["group"] for row in found]
    assert groups == sorted(groups, key=groups.index)  # none comes twice
    assert [row["key"] for row in found if row["group"] == "Agents"] == ["agents", "memory"]
    assert groups[-2:] == ["Host", "Host"]
