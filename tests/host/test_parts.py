"""Parts that a host is put together of: `agent_access`, `attacking`, `learning`, `recollection`,
`stores`, `tokens`.
"""

import asyncio
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from dragoman.engine.content import Message, Text
from dragoman.engine.faults import BadInput, Refused
from dragoman.engine.hooks import Completed, HookContext
from dragoman.engine.info import SessionInfo
from dragoman.engine.offers import Offers
from dragoman.engine.ports import AgentProfile
from dragoman.engine.traits import Given
from dragoman.host import attacking, stores, tokens
from dragoman.host.agent_access import Ground
from dragoman.host.cells import Cells
from dragoman.host.doctor import examine
from dragoman.host.learning import Learning
from dragoman.host.recollection import Recollection
from dragoman.host.roster import Roster
from dragoman.policy.paths import Boundary
from dragoman.sandbox.choose import choose
from dragoman.settings.agents import Agent, AgentMemory
from dragoman.settings.host import Fleet, Log
from dragoman.settings.host import Store as StoreSettings
from dragoman.settings.model import Settings
from dragoman.settings.places import Places, log_file, places
from dragoman.store.memory import MemoryStore
from dragoman.store.sqlite import SqliteStore

# --- agent_access ---


@pytest.fixture
def ground(tmp_path: Path) -> tuple[Ground, Any, Path]:
    work = tmp_path / "work"
    work.mkdir()
    walls = Boundary(str(work), forbidden=(), protected=(), home=str(tmp_path))
    made = Ground(
        lambda profile, info: walls, lambda profile: choose("none"),
        str(tmp_path / "outputs"), lambda profile: {"OWN": "1"},
    )  # fmt: skip
    return made, SimpleNamespace(profile=None, info=SimpleNamespace(cwd=str(work))), work


async def test_agent_access_reads_and_writes_inside_only(ground: Any) -> None:
    made, turn, work = ground
    await made.write(turn, str(work / "a.txt"), "text \ud800")
    assert (await made.read(turn, str(work / "a.txt"))).startswith("text ")
    with pytest.raises((Refused, BadInput)):
        await made.write(turn, "/proc/self/x", "no")
    with pytest.raises(BadInput, match="more than the limit"):
        await made.write(turn, str(work / "large"), "x" * (10 * 1024 * 1024 + 1))


async def test_agent_access_runs_commands_without_our_secrets(ground: Any) -> None:
    made, turn, work = ground
    env = [{"name": "PLAIN", "value": "2"}, {"name": "X_API_KEY", "value": "k"}, {"odd": 1}]
    terminal = await made.run(
        turn, {"command": "echo $OWN $PLAIN [$X_API_KEY]; pwd; exit 4", "env": env}
    )
    assert await terminal.wait() == {"exitCode": 4, "signal": None}
    assert terminal.output() == (f"1 2 []\n{work}\n", False)
    await terminal.close()
    words = await made.run(
        turn, {"command": "printf", "args": ["%s", "a b; echo"], "outputByteLimit": 4}
    )
    await words.wait()
    assert words.output() == ("echo", True)  # the end of it when that is much
    await words.close()


async def test_agent_access_a_terminal_can_be_ended(ground: Any) -> None:
    made, turn, _ = ground
    terminal = await made.run(turn, {"command": "sleep 360"})
    assert terminal.exit_status() is None
    terminal.kill()
    assert await terminal.wait() == {"exitCode": None, "signal": "SIGKILL"}
    await terminal.close()
    broken = await made.run(turn, {"command": "/no/such", "args": ["x"]})
    assert (await broken.wait())["exitCode"] == 127
    await broken.close()


# --- attacking ---


class World:
    def __init__(self, top: Path) -> None:
        self.top = self.work = top

    def __enter__(self) -> "World":
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def run(self, attacks: Any, confine: Any, walls: Any) -> Any:
        for got, gap in (("", ""), ("a secret", ""), ("seen", "Everybody can.")):
            yield SimpleNamespace(got=got, attack=SimpleNamespace(name="n", what="w", gap=gap))


def test_attacking_tells_what_was_stopped_what_is_known_and_what_is_wrong(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(attacking, "World", World)
    monkeypatch.setattr(attacking, "choose", lambda *a, **k: SimpleNamespace(name="test"))
    monkeypatch.setattr(attacking, "describe", lambda confine: "walls")
    rows = list(attacking.attack(Settings()))
    assert [row.severity for row in rows] == ["ok", "ok", "error", "warn"]
    assert rows[2].message.startswith("NOT stopped (a secret)") and rows[3].fix == "Everybody can."


def test_attacking_without_walls_tries_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attacking, "choose", lambda *a, **k: SimpleNamespace(name="none"))
    (row,) = attacking.attack(Settings())
    assert row.severity == "error" and "no sandbox" in row.message


# --- learning ---


class Turn:
    def __init__(self, cwd: str, tools: tuple[str, ...] | None = None) -> None:
        self.info = SimpleNamespace(id="s1", agent="a", cwd=cwd)
        self.profile = SimpleNamespace(tools=tools)
        self.messages: list[Message] = []
        self.notes: list[str] = []

    async def note(self, level: str, title: str, text: str) -> None:
        self.notes.append(text)


def skill(folder: Path, name: str, about: str) -> None:
    place = folder / ".dragoman" / "skills" / name
    place.mkdir(parents=True)
    (place / "SKILL.md").write_text(about)


async def test_learning_brings_skills_to_those_who_may_use_them(tmp_path: Path) -> None:
    skill(tmp_path, "bake", "---\nname: bake\ndescription: bakes bread\n---\nmix")
    learning = Learning(str(tmp_path / "config"))
    (said,) = await learning.said(Turn(str(tmp_path)))
    assert "bakes bread" in said
    assert list(await learning.said(Turn(str(tmp_path), ("read",)))) == []
    profile = SimpleNamespace(tools=None)
    assert await learning.tools(profile, SimpleNamespace(cwd=str(tmp_path))) is not None
    assert await learning.tools(profile, SimpleNamespace(cwd="/")) is None
    assert await learning.tools(SimpleNamespace(tools=("read",)), SimpleNamespace(cwd="/")) is None


async def test_learning_tells_what_is_wrong_with_a_skill_once_per_session(tmp_path: Path) -> None:
    skill(tmp_path, "odd", "---\nname: [\n---\nx")
    learning = Learning(str(tmp_path / "config"))
    turn = Turn(str(tmp_path))
    await learning.said(turn)
    await learning.said(turn)
    assert len(turn.notes) == 1


async def test_learning_turns_of_one_moment_share_a_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learning = Learning(str(tmp_path))
    looks: list[str] = []

    def read(alias: str, cwd: str) -> Any:
        looks.append(cwd)
        return [], "", ()

    monkeypatch.setattr(learning, "_read", read)
    monkeypatch.setattr("dragoman.host.learning._MOMENT", 60)
    await asyncio.gather(*(learning.said(Turn("/a")) for _ in range(5)), learning.said(Turn("/b")))
    assert sorted(looks) == ["/a", "/b"]


# --- recollection ---


def remembering(
    tmp_path: Path, session: Any = None, **memory: Any
) -> tuple[Recollection, list[Any]]:
    own = Agent(memory=AgentMemory(**memory))
    settings = msgspec.structs.replace(Settings(), agents={"a": own})
    spawned: list[Any] = []
    host = SimpleNamespace(
        live={"s1": session}, store=SimpleNamespace(durable=True), spawn=spawned.append
    )
    where = Places(str(tmp_path), str(tmp_path), True)
    return Recollection(lambda: settings, where, host), spawned


def info(origin: str = "zeroclaw", **given: Any) -> SessionInfo:
    extra = {"given": msgspec.to_builtins(Given(**given))} if given else {}
    return SessionInfo(
        id="s1", agent="a", cwd="/", model="p/m", mode="full", status="idle", created_at=1,
        updated_at=1, origin=origin, extra=extra,
    )  # fmt: skip


async def test_recollection_is_for_those_who_are_set_so(tmp_path: Path) -> None:
    off, _ = remembering(tmp_path)
    profile = SimpleNamespace(alias="a", tools=None)
    assert await off.tools(profile, info()) is None
    on, _ = remembering(tmp_path, tools=True)
    assert await on.tools(profile, info("acp")) is None
    assert await on.tools(profile, info(memory=False)) is None
    box = await on.tools(SimpleNamespace(alias="a", tools=("memory_recall",)), info())
    assert box is not None and [spec.name for spec in box.specs()] == ["memory_recall"]
    on.close()
    off.close()


async def test_recollection_saves_a_turn_and_recalls_it(tmp_path: Path) -> None:
    asked = Message("user", (Text("my parrot is Archimedes"),))
    state = SimpleNamespace(info=info, messages=[asked])
    made, spawned = remembering(
        tmp_path, SimpleNamespace(state=state), auto_save=True, auto_recall=True
    )
    context = HookContext(session="s1", turn="t1")
    for outcome, text in (("failed", "x"), ("completed", ""), ("completed", "noted")):
        made.observe("agent_end", Completed(outcome=outcome, text=text, error=""), context)
    made.observe(
        "agent_end", Completed(outcome="completed", text="x", error=""), HookContext(session="gone")
    )
    assert len(spawned) == 1
    await spawned[0]
    turn: Any = Turn("/")
    turn.info = info()
    assert await made.recalled(turn) == ()
    turn.messages = [Message("user", (Text("what is my parrot called"),))]
    (said,) = await made.recalled(turn)
    assert "Archimedes" in said and "agent: noted" in said
    made.close()


# --- stores ---


async def test_stores_open_what_the_settings_name(tmp_path: Path) -> None:
    where = Places(str(tmp_path), str(tmp_path / "data"), True)
    settings = Settings()
    assert stores.file_of(settings, where) == str(tmp_path / "data" / "sessions.db")
    in_memory = msgspec.structs.replace(
        settings, store=msgspec.structs.replace(settings.store, path=":memory:")
    )
    assert isinstance(await stores.open_store(in_memory, where, []), MemoryStore)
    opened = await stores.open_store(settings, where, [])
    assert isinstance(opened, SqliteStore) and os.path.exists(stores.file_of(settings, where))
    await opened.close()
    fleet = msgspec.structs.replace(settings, fleet=Fleet(database="postgresql://x/y"))
    assert stores.database_of(fleet) == "postgresql://x/y" and stores.database_of(settings) == ""


def test_stores_a_node_has_a_name_that_is_no_guests(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    node = stores.named(Fleet(node="n1", labels=["gpu"], shared_roots=[str(tmp_path / "link")]))
    assert (node.name, node.labels, node.roots) == ("n1", ("gpu",), (str(tmp_path),))
    for name in ("a~1", " "):
        with pytest.raises(BadInput, match="fleet.node cannot be"):
            stores.named(Fleet(node=name))
    assert stores.named(Fleet()).name


@pytest.mark.parametrize(
    ("given", "file"),
    [
        ("", "{data}/sessions.db"),
        ("my.db", "{data}/my.db"),
        ("./deep/../my.db", "{data}/my.db"),
        ("../my.db", "{top}/my.db"),
        ("~/my.db", "{home}/my.db"),
        ("~my.db", "{data}/~my.db"),
        ("/srv/my.db", "/srv/my.db"),
        (":memory:", ":memory:"),
    ],
)
def test_a_store_is_the_same_file_wherever_somebody_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str, file: str
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    where = places({}, str(tmp_path))
    wanted = file.format(data=where.data_dir, top=tmp_path, home=home)
    for folder in (tmp_path, home):
        monkeypatch.chdir(folder)
        assert stores.file_of(Settings(store=StoreSettings(path=given)), where) == wanted


def test_tokens_and_doctor_use_the_file_of_a_relative_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config.toml").write_text('[store]\npath = "my.db"\n')
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        tokens.new_token(str(tmp_path), name)
        assert not list((tmp_path / name).iterdir())
    assert {one.name for one in tokens.list_tokens(str(tmp_path))} == {"a", "b"}
    rows = [row for row in examine(places({}, str(tmp_path)), {}) if row.category == "store"]
    assert [row.message.partition(",")[0] for row in rows] == [f"{tmp_path}/data/my.db"]


# --- tokens ---


def test_tokens_are_made_listed_and_revoked_without_a_daemon(tmp_path: Path) -> None:
    token, secret = tokens.new_token(str(tmp_path), "phone")
    assert secret and [one.id for one in tokens.list_tokens(str(tmp_path))] == [token.id]
    assert tokens.revoke_token(str(tmp_path), token.id) is True
    assert tokens.revoke_token(str(tmp_path), token.id) is False
    assert len(tokens.new_code(str(tmp_path))) >= 6


def test_tokens_of_a_store_in_memory_are_the_daemons(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('[store]\npath = ":memory:"\n')
    with pytest.raises(BadInput, match="in the daemon's memory"):
        tokens.list_tokens(str(tmp_path))


@pytest.mark.parametrize(
    ("config", "address"),
    [
        ("", "http://127.0.0.1:"),
        ('host = "::"\nport = 9\npath_prefix = "/x/"', "http://[::1]:9/x"),
        ('host = "0.0.0.0"\nport = 9\ntls_self_signed = true', "https://127.0.0.1:9"),
    ],
)
def test_tokens_know_where_the_gateway_listens(tmp_path: Path, config: str, address: str) -> None:
    (tmp_path / "config.toml").write_text(f"[gateway]\n{config}\n")
    where, settings = tokens.read_settings(str(tmp_path))
    assert tokens.address(where, settings).startswith(address)
    Path(where.data_dir).mkdir(exist_ok=True)
    for noted, wanted in (('{"address": "http://noted:1"}', "http://noted:1"), ("{", address)):
        (Path(where.data_dir) / "gateway.json").write_text(noted)
        assert tokens.address(where, settings).startswith(wanted)


def test_a_log_that_moves_is_closed_to_tools_where_it_is(tmp_path: Path) -> None:
    where = places({"HOME": str(tmp_path)}, str(tmp_path / "config"))
    settings = Settings()
    cells = Cells(lambda: settings, where, str(tmp_path), lambda profile, info: None)
    before = cells.protected
    settings = Settings(log=Log(file=str(tmp_path / "x.log")))
    assert cells.protected == (*before, str(tmp_path / "x.log"), str(tmp_path / "x.log.1"))
    settings = Settings(log=Log(file="/dev/null"))
    assert cells.protected == before


def test_a_log_is_found_wherever_one_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    where = Places("/c", "/d", True)
    assert log_file("", where) == "/d/daemon.log" and log_file("x/y", where) == "/d/x/y"
    assert log_file("~/y", where) == "/home/me/y" and log_file("/y", where) == "/y"


# --- roster ---


def test_commands_are_told_of_programs_that_came_among_caches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    settings = Settings()
    where = places({"HOME": str(tmp_path)})
    roster = Roster(lambda: settings, None, Offers(), where)
    profile = AgentProfile("default")
    before = roster._registry(profile)
    assert before is roster._registry(profile) and "XDG_CACHE_HOME" not in before.extra_env
    (tmp_path / ".cache/pre-commit").mkdir(parents=True)
    assert "XDG_CACHE_HOME" in roster._registry(profile).extra_env
