"""TLS to the database, from its address alone."""

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.http.servers import make_certificate
from tests.store.making import make_batch, make_info

from dragoman.engine.faults import Fault
from dragoman.store.postgres import PostgresStore
from dragoman.testing.postgres import Server


class Guarded:
    """A server that takes nothing but TLS on a loopback address of its own."""

    def __init__(self) -> None:
        self.server = Server()
        folder = self.server.folder
        self.address = f"127.{random.randint(2, 250)}.{random.randint(2, 250)}.{os.getpid() % 250}"
        self.cert, key = make_certificate(folder, address=self.address)
        rules = folder / "hba.conf"
        rules.write_text("local all all trust\nhostssl all all 127.0.0.0/8 trust\n")
        for path in (self.cert, key, rules):
            os.chown(path, os.stat(folder).st_uid, -1)
        self.server.restart(
            f"listen_addresses={self.address}", "ssl=on", f"ssl_cert_file={self.cert}",
            f"ssl_key_file={key}", f"hba_file={rules}",
        )  # fmt: skip

    def url(self, query: str) -> str:
        return f"postgresql://dragoman@{self.address}/postgres?{query}"


@pytest.fixture(scope="module")
def guarded(initdb: None) -> Iterator[Guarded]:
    made = Guarded()
    yield made
    made.server.stop()


async def test_the_whole_store_works_over_tls(guarded: Guarded) -> None:
    store = await PostgresStore.open(guarded.url(f"sslmode=verify-full&sslrootcert={guarded.cert}"))
    epoch = await store.create(make_info("s1"), "me")
    await store.append(make_batch("s1", epoch, 1, 2))
    assert len(await store.entries("s1")) == 2
    secure = await store.fetch("SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity"
                               " USING (pid) WHERE application_name = 'dragoman'")  # fmt: skip
    assert secure[0][0] is True  # the writer's connection, and the readers'
    await store.close()


async def test_a_certificate_that_nobody_vouches_for_is_refused(
    guarded: Guarded, tmp_path: Path
) -> None:
    other, _ = make_certificate(tmp_path, "other")
    with pytest.raises(Fault) as caught:
        await PostgresStore.open(guarded.url(f"sslmode=verify-full&sslrootcert={other}"))
    assert "is not trusted: self-signed certificate." in str(caught.value)
    assert "sslrootcert" in str(caught.value)


async def test_without_tls_the_server_does_not_let_us_in(guarded: Guarded) -> None:
    with pytest.raises(Fault) as caught:
        await PostgresStore.open(guarded.url("sslmode=disable"))
    assert "does not let us in" in str(caught.value)
