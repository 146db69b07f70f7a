"""Every endpoint's right to be listened at, taken and given up together."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dragoman.daemon import listening
from dragoman.daemon.listening import Listening
from dragoman.engine.faults import InUse, Refused
from dragoman.settings.host import Limits, Listen
from dragoman.settings.places import Places
from dragoman.wire.link import Peer


class Held:
    def __init__(self, path: str, released: list[str]) -> None:
        self._path, self._released = path, released

    def release(self) -> None:
        self._released.append(self._path)


class Rights:
    """Who has which address already."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, native: list[tuple[str, str]]) -> None:
        self.taken: dict[str, Exception] = {}
        self.held: list[str] = []
        self.released: list[str] = []
        monkeypatch.setattr(listening.lock, "hold", self._hold)
        monkeypatch.setattr(listening.places, "native", lambda env: native)

    def _hold(self, path: str) -> Held:
        if path in self.taken:
            raise self.taken[path]
        self.held.append(path)
        return Held(path, self.released)


def made(tmp_path: Path, *, native: bool = True, **listen: Any) -> Listening:
    settings = SimpleNamespace(listen=Listen(**listen), limits=Limits())
    where = Places(str(tmp_path), str(tmp_path), True)
    composed: Any = SimpleNamespace(places=where, settings=settings, descendants=None)
    return Listening(composed, None, None, native)


NATIVE = [("zeroclaw", "/n/z1"), ("zeroclaw", "/n/z2"), ("acp", "/n/a")]


def test_listening_has_our_own_addresses_first_and_the_settings_win(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Rights(monkeypatch, NATIVE)
    found = made(tmp_path, zeroclaw="/own/z").addresses()
    assert ("zeroclaw", "/own/z") in found and found[-3:] == NATIVE
    assert made(tmp_path, zeroclaw="/own/z").main()["zeroclaw"] == "/own/z"
    assert ("acp", "/n/a") not in made(tmp_path, native=False).addresses()


def test_listening_does_without_a_second_place_that_another_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rights = Rights(monkeypatch, NATIVE)
    rights.taken = {"/n/z2": InUse("taken"), "/n/a": Refused("another user's folder", "DATA_DIR")}
    one = made(tmp_path)
    one.hold()
    said = capsys.readouterr().err
    assert "/n/z1" in rights.held and said.count("left out") == 2 and "DATA_DIR" not in said
    assert ("zeroclaw", "/n/z2") not in one.addresses() and ("acp", "/n/a") not in one.addresses()
    one.release()
    assert sorted(rights.released) == sorted(rights.held)


def test_listening_says_what_to_do_about_a_native_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rights = Rights(monkeypatch, NATIVE)
    rights.taken = {"/n/z1": InUse("process 7 has it", owner=7)}
    with pytest.raises(InUse, match="process 7") as found:
        made(tmp_path).hold()
    assert "--native" in found.value.hint and found.value.data["owner"] == 7


def test_listening_our_own_place_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rights = Rights(monkeypatch, [])
    one = made(tmp_path)
    rights.taken = {one.addresses()[0][1]: Refused("not ours")}
    with pytest.raises(Refused, match="not ours"):
        one.hold()


async def test_listening_opens_all_or_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Rights(monkeypatch, [])
    one = made(tmp_path)
    closed: list[str] = []

    class End:
        def __init__(self, path: str) -> None:
            self.path = path

        async def close(self) -> None:
            closed.append(self.path)

    last = one.addresses()[-1][1]

    async def listen(name: str, path: str) -> Any:
        if path == last:
            raise OSError("no more")
        return End(path)

    monkeypatch.setattr(one, "_listen", listen)
    with pytest.raises(OSError):
        await one.open()
    assert len(closed) == len(one.addresses()) - 1


def test_listening_audits_who_was_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[Any] = []
    log = SimpleNamespace(
        warning=lambda *a, **k: said.append(("warning", a)),
        info=lambda *a, **k: said.append(("info", a)),
        wants=lambda level: False,
    )
    monkeypatch.setattr(listening, "audit", log)
    listening._audit("refused", Peer("unix:x", "unix"))
    listening._audit("accepted", Peer("unix:x", "unix"))
    assert said == [("warning", ("refused",))]
