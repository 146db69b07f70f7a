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

    def know(self, client: Path) -> None:
        """Let in who shows this certificate, and nobody else."""
        rules = self.server.folder / "clients.conf"
        rules.write_text(
            "local all all trust\nhostssl all all 127.0.0.0/8 trust clientcert=verify-ca\n"
        )
        os.chown(rules, os.stat(self.server.folder).st_uid, -1)
        self.server.restart(f"ssl_ca_file={client}", f"hba_file={rules}")

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


async def test_one_of_several_hosts_answers(guarded: Guarded) -> None:
    url = guarded.url("sslmode=require&target_session_attrs=read-write&channel_binding=prefer")
    store = await PostgresStore.open(url.replace("@", "@127.0.0.1:1,", 1))
    assert store.place.startswith("postgres at 127.0.0.1:1, 127.")
    await store.close()


async def test_a_client_shows_its_certificate(guarded: Guarded) -> None:
    """The last one: the server asks everybody for it from now on."""
    cert, key = make_certificate(guarded.server.folder, "client")
    guarded.know(cert)
    with pytest.raises(Fault) as caught:
        await PostgresStore.open(guarded.url("sslmode=require"))
    assert "client certificate" in str(caught.value)
    verified = f"sslmode=verify-full&sslrootcert={guarded.cert}"
    store = await PostgresStore.open(guarded.url(f"{verified}&sslcert={cert}&sslkey={key}"))
    shown = await store.fetch(
        "SELECT client_dn IS NOT NULL FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
    )
    assert shown[0][0] is True
    await store.close()
