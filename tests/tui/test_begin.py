"""How the terminal is opened: `begin`."""

import argparse
from pathlib import Path
from typing import Any

import pytest

from dragoman.cli.verbs.terminal import wish_of
from dragoman.engine.faults import BadInput
from dragoman.tui.begin import Curtain, is_light, way_back


def args(**given: Any) -> argparse.Namespace:
    usual = {
        "prompt": [], "continue": False, "resume": False, "cwd": None, "config_dir": None,
        "agent": None, "model": None, "mode": None, "worktree": False, "vi": False,
    }  # fmt: skip
    return argparse.Namespace(**{**usual, **given})


def test_begin_reads_what_the_words_mean(tmp_path: Path) -> None:
    wish = wish_of(args(prompt=["do", "it \udcff"], cwd=str(tmp_path), mode="plan"))
    assert (wish.prompt, wish.cwd, wish.mode, wish.pick) == (
        "do it ?",
        str(tmp_path),
        "plan",
        False,
    )
    resumed = wish_of(args(resume=True, prompt=["abc", "go", "on"], cwd=str(tmp_path)))
    assert (resumed.session, resumed.prompt, resumed.pick) == ("abc", "go on", False)
    assert wish_of(args(resume=True, cwd=str(tmp_path))).pick is True


def test_begin_refuses_what_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="exclude each other"):
        wish_of(args(**{"continue": True}, resume=True))
    with pytest.raises(BadInput, match="is no folder"):
        wish_of(args(cwd=str(tmp_path / "nowhere")))


def test_begin_takes_vi_keys_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert wish_of(args(cwd=str(tmp_path))).vi is False
    monkeypatch.setenv("DRAGOMAN_KEYS", "vi")
    assert wish_of(args(cwd=str(tmp_path))).vi is True


def test_begin_tells_the_way_back() -> None:
    assert way_back("", None) == ""
    assert way_back("0123456789", None) == "come back with: dragoman -r 01234567"
    assert "--config-dir '/a b'" in way_back("0123456789", "/a b")
    back, merge, drop = way_back("0123456789", "/a b", worktree=True).splitlines()
    assert back == way_back("0123456789", "/a b")
    assert merge.endswith(": dragoman sessions worktree merge 01234567 --config-dir '/a b'")
    assert drop.endswith(": dragoman sessions worktree drop 01234567 --config-dir '/a b'")


@pytest.mark.parametrize(
    ("value", "light"),
    [("0;15", True), ("15;0", False), ("0;default;7", True), ("0;8", False), ("", False),
     ("0;²", False), ("x;y", False), ("0;" + "7" * 5000, False)],
)  # fmt: skip
def test_colours_by_what_the_terminal_says(value: str, light: bool) -> None:
    assert is_light({"COLORFGBG": value}) is light
    assert is_light({}) is False


def test_curtain_draws_the_frame_with_or_without_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    drawn = Curtain(welcome=True)._frame(40, 20)
    assert "\x1b[1m  dragoman" in drawn and drawn.endswith("\x1b[18;3H")
    monkeypatch.setenv("NO_COLOR", "1")
    plain = Curtain(welcome=False, state="busy")._frame(10, 8)
    assert "dragoman" not in plain and "\x1b[8;1H◌ busy" in plain and "\x1b[36m" not in plain


def test_curtain_without_a_terminal_draws_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import termios

    def none(fd: int) -> Any:
        raise termios.error(25, "not a terminal")

    monkeypatch.setattr("dragoman.tui.begin.termios.tcgetattr", none)
    with Curtain(welcome=True):
        assert capsys.readouterr().out == ""
    with pytest.raises(ZeroDivisionError), Curtain(welcome=True):
        raise ZeroDivisionError
    assert capsys.readouterr().out == "\x1b[?1049l\x1b[?25h"  # the screen as it was before
