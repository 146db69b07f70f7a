"""Full-text search: what is found, what is not, and how soon."""

import sqlite3
import time
from pathlib import Path

import pytest

from dragoman.engine.content import Message, Text, Thinking
from dragoman.engine.events import Opened, Renamed, Seeded, Spoke, TurnBegan, encode_body
from dragoman.engine.faults import BadInput
from dragoman.engine.ports import Batch, Entry
from dragoman.store import search, words
from dragoman.store.sqlite import SqliteStore

from .making import make_info


def entry(seq, body):
    return Entry(seq, 1000 + seq, type(body).__struct_config__.tag, encode_body(body))


async def talk(store, session, *bodies, **other):
    epoch = await store.create(make_info(session, **other), "me")
    for seq, body in enumerate(bodies, 1):
        info = make_info(session, last_seq=seq, **other)
        await store.append(Batch(session, epoch, [entry(seq, body)], info))
    return epoch


def asked(text):
    return TurnBegan("t", (Text(text),))


def said(text):
    return Spoke("t", 1, (Thinking("pondering deeply"), Text(text)), "end_turn")


async def found(store, text, limit=100):
    return [info.id for info in await store.search(text, limit)]


async def test_all_that_was_said_is_found(store):
    await talk(store, "a", asked("Fix the parser"), said("The lexer was wrong."), asked("Thanks!"))
    await talk(store, "b", Opened("m", "/", "d/d", "full", title="Wednesday"), asked("hello"))
    await talk(store, "c", asked("x"), Renamed("Parsing of Größen"))
    seed = Seeded("a", (Message("user", (Text("an ancient word"),), 1),))
    await talk(store, "d", seed)
    assert await found(store, "lexer") == ["a"]
    assert await found(store, "LEX wrong") == ["a"]
    assert await found(store, "pars") == ["c", "a"]  # the newest place first
    assert await found(store, "groSSen") == [] and await found(store, "GROẞEN".lower()) == ["c"]
    assert await found(store, "wednesday") == ["b"]
    assert await found(store, "ancient") == ["d"]
    assert await found(store, "fix lexer") == []  # never together
    assert await found(store, "pondering") == []  # nobody said it
    assert await found(store, "arser") == []
    assert await found(store, "pars", 1) == ["c"]


@pytest.mark.parametrize(
    "text", ["", "   ", '"', "'; DROP TABLE words", "a* OR b", "NEAR(x y)", "text:fix", "-fix", "%"]
)
async def test_nothing_is_a_command(store, text):
    await talk(store, "a", asked("something else"))
    assert await found(store, text) == []
    assert await found(store, f"something {text} else") in ([], ["a"])


@pytest.mark.parametrize("read", [1, 2, 300])  # rows that are read before all is gathered
async def test_several_long_words_are_found_by_their_beginnings(store, monkeypatch, read):
    monkeypatch.setattr(search, "_READ", read)
    await talk(store, "a", asked("elephants otherwise sleeping"))
    await talk(store, "b", asked("elephantine others"), said("Otherwise élephants"))
    await talk(store, "c", asked("elephant other"))
    await talk(store, "d", asked("an elephantine mother"))
    assert await found(store, "elephan others") == ["b"]
    assert await found(store, "elephant otherw") == ["b", "a"]
    assert await found(store, "elephant otherw", 1) == ["b"]
    assert await found(store, "elephants otherwise") == ["b", "a"]
    assert await found(store, "sleeping elephant otherw") == ["a"]
    assert await found(store, "elephant otherx") == []


def test_words_without_case_and_accents():
    assert words.terms("Größe  ÉTÉ größe a_b") == ("große", "ete", "a", "b")
    assert words.has_terms(("gro", "e"), "Große Été") and not words.has_terms(("x",), "Große")


async def test_bounds(store):
    with pytest.raises(BadInput):
        await store.search("x", 0)
    with pytest.raises(BadInput):
        await store.search("x" * 1001)
    assert await found(store, " ".join(f"w{n}" for n in range(200))) == []


async def test_a_deleted_session_leaves_no_word(store):
    await talk(store, "a", asked("a secret"))
    await talk(store, "b", asked("a secret too"))
    assert await found(store, "secret") == ["b", "a"]
    await store.delete("a")
    assert await found(store, "secret") == ["b"]
    await store.delete("b")
    await talk(store, "c", asked("harmless"))
    assert await found(store, "secret") == [] and await found(store, "harm") == ["c"]


async def test_no_token_of_a_deleted_session_stays_in_the_file(tmp_path):
    store = SqliteStore(tmp_path / "s.db")
    await talk(store, "a", asked("unmistakable"))
    assert await found(store, "unmistakable") == ["a"]
    await store.delete("a")
    await store.close()
    connection = sqlite3.connect(tmp_path / "s.db")
    connection.execute("CREATE VIRTUAL TABLE temp.vocabulary USING fts5vocab(main, words, row)")
    assert connection.execute("SELECT term FROM vocabulary").fetchall() == []
    connection.close()


async def test_older_files_are_taken_up_and_other_processes_are_seen(tmp_path, monkeypatch):
    from dragoman.store import migrations

    path = tmp_path / "s.db"
    with monkeypatch.context() as older:
        older.setattr(migrations.migrate, "__defaults__", (migrations.STEPS[:2],))
        older.setattr(migrations.recognise, "__defaults__", (migrations.STEPS[:2],))
        connection = sqlite3.connect(path, isolation_level=None)
        migrations.migrate(connection, str(path), migrations.STEPS[:2])
        connection.close()
    one, other = SqliteStore(path), SqliteStore(path)
    await talk(one, "a", asked("from one"))
    await talk(other, "b", asked("from the other"))
    assert await found(one, "from") == ["b", "a"] == await found(other, "from")
    await one.close()
    await other.close()


async def test_without_fts5_titles_and_first_prompts_are_searched(tmp_path, monkeypatch):
    from dragoman.store import migrations

    monkeypatch.setattr(migrations, "WORDS", "CREATE VIRTUAL TABLE words USING no_fts5(text)")
    store = SqliteStore(tmp_path / "s.db")
    await store.create(make_info("a", query="first prompt"), "me")
    assert await found(store, "prompt") == ["a"] and await found(store, "other") == []
    assert await store.delete("a")
    await store.close()


async def test_words_are_taken_up_while_much_is_written(tmp_path, monkeypatch):
    from dragoman.store import writer

    monkeypatch.setattr(writer, "LAG", 20)
    monkeypatch.setattr(search, "CHUNK", 10)
    store = SqliteStore(tmp_path / "s.db")
    await talk(store, "a", *(asked(f"word{n}") for n in range(60)))
    rows = await store.rows("SELECT value FROM counters WHERE name = 'words'")
    assert rows[0][0] >= 20
    assert await found(store, "word59") == ["a"]
    await store.close()


async def test_folders_and_agents_are_found_too_alone_and_with_what_was_said(store):
    await talk(store, "a", asked("mend the parser"), cwd="/home/ann/harbour", agent="builder")
    await talk(store, "b", asked("mend the parser"), cwd="/home/ann/meadow", agent="critic")
    await talk(store, "c", asked("count the boats"), cwd="/home/ann/harbour", agent="critic")
    assert sorted(await found(store, "harbour")) == ["a", "c"]
    assert await found(store, "builder") == ["a"]
    assert await found(store, "parser harbour") == ["a"]
    assert await found(store, "boats critic") == ["c"]
    assert await found(store, "harbour critic") == ["c"]
    assert await found(store, "meadow boats") == []


def fill(path: Path, count: int) -> None:
    """Sessions straight in the file, as a store would have left them."""
    from dragoman.store import changes
    from dragoman.store.rows import pack

    made = sqlite3.connect(path, isolation_level=None)
    made.execute("BEGIN")
    for number in range(count):
        info = make_info(f"s{number}", at=number, cwd=f"/home/ann/project{number % 1000}")
        changes.Create(info, "me")(made)
        text = f"common words of session number{number} and {'rare' if number % 997 == 0 else 'x'}"
        for _, at, kind, body in pack([entry(1, asked(text))]):
            made.execute(changes.INSERT_EVENT, (number + 1, number + 1, 1, at, kind, body))
    made.execute("COMMIT")
    made.close()


@pytest.mark.timed
async def test_a_hundred_thousand_sessions_are_searched_in_a_moment(tmp_path):
    path = tmp_path / "s.db"
    await SqliteStore(path).close()
    fill(path, 100_000)
    store = SqliteStore(path)
    await store.search("warm")
    for text in ("common", "comm", "rare", "number4711", "common rare words", "nothing", "n", "se",
                 "default", "ann rare"):  # fmt: skip
        took = []
        for _ in range(5):
            began = time.perf_counter()
            await store.search(text)
            took.append(time.perf_counter() - began)
        print(f"{text}: {min(took) * 1000:.1f} ms")
        assert min(took) < 0.05, (text, took)
    await store.close()
