"""A store that is made: what waits for the disk, and what need not."""

from pathlib import Path

import pytest

from dragoman.store import file, sqlite


@pytest.mark.parametrize(
    ("size", "synchronous", "fresh"),
    [(0, "NORMAL", True), (0, "FULL", False), (1, "NORMAL", False)],
)
def test_only_an_empty_file_without_a_promise_is_not_waited_for(
    size: int, synchronous: str, fresh: bool, tmp_path: Path
) -> None:
    path = tmp_path / "s.db"
    path.write_bytes(b"x" * size)
    assert file.is_fresh(str(path), synchronous) is fresh


@pytest.mark.parametrize(("synchronous", "number"), [("NORMAL", 1), ("FULL", 2)])
async def test_the_first_commit_is_waited_for_as_it_should(
    synchronous: str, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    migrate = sqlite.migrate

    def watched(connection, path):  # type: ignore[no-untyped-def]
        seen.append(connection.execute("PRAGMA synchronous").fetchone()[0])
        return migrate(connection, path)

    monkeypatch.setattr(sqlite, "migrate", watched)
    ask = "PRAGMA synchronous"
    for _ in range(2):  # made, then opened again
        store = sqlite.SqliteStore(tmp_path / "s.db", synchronous=synchronous)
        written = await store.writer.run(lambda at: at.execute(ask).fetchone()[0])
        read = await store._reader.run(lambda at: at.execute(ask).fetchone()[0])
        assert (written, read) == (number, number)
        await store.close()
    assert seen == [0 if synchronous == "NORMAL" else number, number]
