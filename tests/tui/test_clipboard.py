"""The desktop's clipboard: pictures and texts, by stand-ins of the programs that desktops have."""

import os
from pathlib import Path

import pytest
from tests.tui.panes import Home

from dragoman.engine.faults import BadInput
from dragoman.tui import clipboard

PICTURE = b"\x89PNG\r\n\x1a\n" + b"\0" * 64


def desktop(folder: Path, program: str, picture: bytes, text: str) -> str:
    """A program that holds these; gives the folder it is in."""
    programs = folder / "programs"
    programs.mkdir(exist_ok=True)
    (programs / "picture").write_bytes(picture)
    (programs / "text").write_text(text)
    made = programs / program
    made.write_text(
        f'#!/bin/sh\ncase "$*" in *image/png*) cat "{programs}/picture";;'
        f' *) cat "{programs}/text";; esac\n'
    )
    made.chmod(0o755)
    return str(programs)


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Neither Wayland nor X11, and no program of the machine's own."""
    for name in ("WAYLAND_DISPLAY", "DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", "/bin:/usr/bin")
    return monkeypatch


@pytest.mark.parametrize(
    "variable, program", [("WAYLAND_DISPLAY", "wl-paste"), ("DISPLAY", "xclip")]
)
def test_a_picture_before_a_text(
    tmp_path: Path, bare: pytest.MonkeyPatch, variable: str, program: str
) -> None:
    bare.setenv(variable, "x")
    bare.setenv("PATH", f"{desktop(tmp_path, program, PICTURE, 'words')}:{os.environ['PATH']}")
    assert clipboard.content() == PICTURE
    desktop(tmp_path, program, b"", "two\nlines")
    assert clipboard.content() == "two\nlines"
    desktop(tmp_path, program, b"no picture at all", "words")
    assert clipboard.content() == "words"
    desktop(tmp_path, program, b"", "")
    with pytest.raises(BadInput, match="neither a picture nor a text"):
        clipboard.content()


def test_what_is_missing_is_named(bare: pytest.MonkeyPatch) -> None:
    bare.setenv("DISPLAY", ":0")
    bare.setenv("PATH", "/nowhere")
    with pytest.raises(BadInput) as raised:
        clipboard.content()
    assert "xclip, pngpaste, pbpaste" in (raised.value.hint or "")


def test_ctrl_v_attaches_the_picture_and_otherwise_types_the_text(home: Home) -> None:
    programs = desktop(home.folder, "wl-paste", PICTURE, "a word from elsewhere")
    pane = home.open(f'env WAYLAND_DISPLAY=x PATH="{programs}:$PATH" dragoman')
    pane.wait("● ready")
    pane.press("C-v")
    pane.wait("▣ picture")
    pane.say("what is this")
    pane.wait("I got your picture", "● ready")
    desktop(home.folder, "wl-paste", b"", "a word from elsewhere")
    pane.press("C-v")
    pane.wait("› a word from elsewhere")
