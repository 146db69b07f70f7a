"""Every way out that we know of, from inside real tools: none leads out, and each is seen."""

import re
from pathlib import Path

import pytest
from tests.sandbox.attempts import ATTEMPTS, Attempt
from tests.sandbox.table import DOCUMENT, render
from tests.sandbox.world import World

from dragoman.engine.content import text_of
from dragoman.engine.faults import BadInput
from dragoman.sandbox import choose as choosing
from dragoman.sandbox.choose import choose, describe
from dragoman.sandbox.landlock import Landlock, abi
from dragoman.sandbox.launch import Unconfined
from dragoman.sandbox.limits import Limits

needs_landlock = pytest.mark.skipif(abi() < 6, reason="this kernel has no Landlock ABI 6")
NAMES = [attempt.name for attempt in ATTEMPTS]
SEEN = re.compile(
    r"denied|not permitted|refused|cannot|failed|No such|not found|stopped|[Ii]nvalid|fork:"
    r"|Cross-device|ended \d+ background|Couldn't|error|not a|read-only|shared object",
)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    made = World(tmp_path)
    for name, value in made.environ().items():
        monkeypatch.setenv(name, value)
    with made.people():
        yield made


def test_there_are_many_and_each_has_its_name() -> None:
    assert len(ATTEMPTS) >= 10 and len(set(NAMES)) == len(NAMES)


@needs_landlock
@pytest.mark.parametrize("mode", ["supervised", "full"])
@pytest.mark.parametrize("attempt", ATTEMPTS, ids=NAMES)
async def test_no_way_leads_out_of_landlock(world: World, attempt: Attempt, mode: str) -> None:
    before = world.snapshot()
    outcome = await world.run(attempt, Landlock(limits=Limits(150)), mode)
    assert world.escaped(attempt, outcome, before) == "", text_of(outcome.content)
    text = text_of(outcome.content)
    assert outcome.is_error or SEEN.search(text), text


REAL = [attempt for attempt in ATTEMPTS if attempt.real]


@pytest.mark.parametrize(
    "attempt",
    [pytest.param(one, id=one.name, marks=[pytest.mark.root] if one.root else []) for one in REAL],
)
async def test_the_attempts_are_no_duds(world: World, attempt: Attempt) -> None:
    """Without a sandbox the harmless ones work, but for what the environment itself keeps."""
    before = world.snapshot()
    outcome = await world.run(attempt, Unconfined(), "full")
    if attempt.name == "own environment":  # no sandbox is needed for that
        assert world.escaped(attempt, outcome, before) == ""
    else:
        assert world.escaped(attempt, outcome, before) != "", text_of(outcome.content)


def test_the_guide_has_the_table_of_attacks() -> None:
    assert render() in DOCUMENT.read_text(encoding="utf-8"), (
        "write it with: python -m tests.sandbox.table"
    )


# --- network ---

CONNECT = "s = socket.create_connection(({host!r}, {port}), 3)"
DATAGRAM = "s = socket.socket(type=2); s.sendto(b'x', ({host!r}, {port}))"


@needs_landlock
@pytest.mark.parametrize("code", [CONNECT, DATAGRAM], ids=["TCP", "UDP"])
@pytest.mark.parametrize("network", [True, False])
async def test_the_network_can_be_taken_away(world: World, code: str, network: bool) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        line = code.format(host="127.0.0.1", port=server.getsockname()[1])
        line = f"import socket; {line}; print('ESC' + 'APED')"
        attempt = Attempt("net", "net", '{python} -c "' + line + '"')
        outcome = await world.run(attempt, Landlock(network=network))
        found = world.escaped(attempt, outcome, world.snapshot())
    assert bool(found) is network, text_of(outcome.content)


# --- choosing ---


def test_what_was_asked_for_and_is_not_there_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "find", lambda name: "")
    with pytest.raises(BadInput, match="bubblewrap"):
        choose("bubblewrap")
    monkeypatch.setattr("dragoman.sandbox.landlock.abi", lambda: 0)
    with pytest.raises(BadInput, match="Landlock"):
        choose("landlock")
    assert choose("auto").name == "none"
    assert "can do what your user can" in describe(choose("none"))


async def test_a_host_does_not_start_without_the_sandbox_it_was_told_to_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dragoman.host.compose import compose

    monkeypatch.setattr(choosing, "find", lambda name: "")
    (tmp_path / "config.toml").write_text('[sandbox]\nbackend = "bubblewrap"\n')
    with pytest.raises(BadInput, match="not available"):
        await compose(config_dir=str(tmp_path))
