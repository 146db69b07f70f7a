"""Sessions that rest cost nothing: what a node does all day never reads them all."""

import msgspec
from tests.fleet.making import place_of
from tests.postgres import new_database
from tests.store.making import make_ask, make_batch, make_info

from dragoman.engine.info import SessionQuery
from dragoman.fleet.desk import Desk, owner_name
from dragoman.fleet.words import Steer
from dragoman.store.postgres import PostgresStore
from dragoman.store.postgres.changes import Node
from dragoman.store.rows import encode
from dragoman.testing.postgres import Server

COLD = 20_000
MOST = COLD // 10  # rows that all of it together may look at
FILL = """
INSERT INTO sessions (id, epoch, last_seq, updated_at, created_at, status, archived, leaf, agent,
    cwd, origin, words, info)
SELECT 'cold' || n, 1, 0, n, n, 'idle', false, true, 'a' || n % 3, '/p' || n % 7, '', 'x', $2
FROM generate_series(1, $1::bigint) AS n
"""
READ = """
SELECT (SELECT sum(seq_tup_read) FROM pg_stat_user_tables)
    + (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes)
"""


async def rows_read(url: str) -> int:
    """What was read until now; a connection that is closed has told all of its own."""
    import asyncpg

    connection = await asyncpg.connect(url)
    try:
        return int(await connection.fetchval(READ))
    finally:
        await connection.close()


async def opened(url: str) -> tuple[PostgresStore, Desk]:
    store = await PostgresStore.open(url)
    store.node = Node("n", (), ("/",))
    return store, Desk(store, owner_name("n", "1"))


async def test_nothing_that_a_node_does_reads_the_sessions_that_rest(postgres: Server) -> None:
    url = await new_database(postgres)
    store, desk = await opened(url)
    await store.fetch(FILL, COLD, encode(make_info("cold")))
    await store.fetch("VACUUM ANALYZE")
    await desk.join(600.0, "test", {})
    await store.close()
    before = await rows_read(url)

    store, desk = await opened(url)
    epoch = await store.create(make_info("s1", cwd="/p3"), desk.owner)
    await store.append(make_batch("s1", epoch, 1, asked=[make_ask("q", "s1")]))
    await store.append(make_batch("s1", epoch, 2, 3))
    await desk.send("c1", "s1", Steer((), None))
    assert [id for id, _, _ in await desk.commands()] == ["c1"]
    assert not await desk.claim(100) and not await desk.strangers()
    await desk.tidy(60.0)
    assert (await desk.nodes())[0].sessions == 1
    assert (await desk.whereabouts(["s1"]))["s1"].node == "n"
    assert (await place_of(desk, "s1")).alive and await desk.owned(["s1", "cold7"]) == {"s1": epoch}
    assert not (await desk.foreign(0, 10, 100))[0]
    assert await desk.move("cold19", "n") == "cold19"
    for query in (
        SessionQuery(limit=20),
        SessionQuery(limit=20, cwd="/p3"),
        SessionQuery(limit=20, agent="a1"),
        SessionQuery(limit=20, status=("running", "waiting_input")),
        SessionQuery(limit=20, archived=False),
        SessionQuery(limit=20, leaves=True),
        SessionQuery(limit=20, parent="cold5"),
    ):
        page = await store.list(query)
        if page.cursor:
            await store.list(msgspec.structs.replace(query, cursor=page.cursor))
    for text in ("rare", "p3", "p3 a1", "p3 rare", "cold5"):
        await store.search(text, 20)
    assert len(await store.asks()) == 1 and len(await store.asks("s1")) == 1
    assert await store.find(humanlayer={"run_id": "nobody"}) is None
    assert await store.delete("s1")
    await desk.leave()
    await store.close()
    assert await rows_read(url) - before < MOST
