"""kill -9 in the middle of constant appends: what was acknowledged is there, whole."""

import asyncio
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.lane import share
from tests.store.making import ROOT, make_info

from dragoman.store.sqlite import SqliteStore, open_store

KILLS = share(25, 8)
SESSIONS = 4
SIZE = 7  # entries of one batch

# Each session appends batches of SIZE entries for ever and prints its name and last number after
# the store has answered.
CHILD = """
import asyncio, os, sys
from dragoman.store.sqlite import SqliteStore
from tests.store.making import make_batch

async def live(store, name, size):
    epoch = await store.take(name, str(os.getpid()), lambda owner: False)
    seq = (await store.info(name)).last_seq
    while True:
        await store.append(make_batch(name, epoch, seq + 1, size, text="x" * 300))
        seq += size
        os.write(1, f"{name} {seq}\\n".encode())

async def main(path, synchronous, sessions, size):
    store = SqliteStore(path, synchronous=synchronous)
    os.write(1, b"ready 0\\n")
    await asyncio.gather(*(live(store, f"s{n}", int(size)) for n in range(int(sessions))))

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.timeout(60)
@pytest.mark.parametrize("synchronous", ["NORMAL", "FULL"])
@pytest.mark.slow
async def test_nothing_acknowledged_is_lost_and_nothing_is_torn(
    tmp_path: Path, synchronous: str
) -> None:
    path = tmp_path / "s.db"
    store = SqliteStore(path)
    for n in range(SESSIONS):
        await store.create(make_info(f"s{n}"), "parent")
    await store.close()
    chance = random.Random(20_240_611)
    acked = {f"s{n}": 0 for n in range(SESSIONS)}
    lost = torn = 0
    for _ in range(KILLS if synchronous == "NORMAL" else 5):
        arguments = [CHILD, str(path), synchronous, str(SESSIONS), str(SIZE)]
        child = subprocess.Popen(
            [sys.executable, "-c", *arguments], stdout=subprocess.PIPE, cwd=ROOT
        )
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready 0\n"
        # A number of acknowledgements and then a piece of a millisecond: any point of a commit.
        for _ in range(chance.randrange(60)):
            note(acked, child.stdout.readline())
        await asyncio.sleep(chance.random() * 0.003)
        child.send_signal(signal.SIGKILL)
        for line in child.stdout.read().splitlines(keepends=True):
            note(acked, line)
        child.stdout.close()
        child.wait(60)
        reopened, notices = open_store(path)
        assert not notices
        for name, last in acked.items():
            entries = await reopened.entries(name)
            lost += len(entries) < last
            torn += len(entries) % SIZE != 0
            assert [e.seq for e in entries] == list(range(1, len(entries) + 1))
            info = await reopened.info(name)
            assert info is not None and info.last_seq == len(entries)
        await reopened.close()
    assert (lost, torn) == (0, 0)
    assert sum(acked.values()) > 0


def note(acked: dict[str, int], line: bytes) -> None:
    if line.endswith(b"\n"):
        name, seq = line.split()
        acked[name.decode()] = int(seq)
