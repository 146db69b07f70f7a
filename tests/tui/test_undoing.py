"""Undo: the last turn's changes, one of a list, and the way back."""

from tests.tui.panes import Home


def test_undo_puts_files_back_lists_what_can_be_undone_and_redo_takes_it_back(home: Home) -> None:
    note = home.work / "note.txt"
    note.write_text("first\n")
    pane = home.open("dragoman --mode full")
    pane.wait("● ready")
    pane.say("/undo")
    pane.wait("There is no session yet")  # nothing was said yet
    pane.press("C-u")
    for old, new in (("first", "second"), ("second", "third")):
        pane.say(f"edit note.txt replacing {old} with {new}")
        pane.wait(f"+{new}", "● ready")
        assert note.read_text() == f"{new}\n"

    pane.type("/und")
    pane.wait("put files back to before the last turn")  # it stands in the menu
    pane.press("Tab")
    pane.wait("› /undo")
    pane.press("Enter")
    pane.wait("undone: note.txt", "· 1 turn undone.")
    assert note.read_text() == "second\n"
    pane.say("/redo")
    pane.wait("redone: note.txt")
    assert note.read_text() == "third\n"

    pane.say("/undo list")
    pane.wait("enter goes back to before that turn")
    pane.press("Down", "Enter")  # the older of two
    pane.wait("undone: note.txt", gone="enter goes back")
    assert note.read_text() == "first\n"
    pane.say("/undo list")
    pane.wait("all is undone; /redo does it again")
