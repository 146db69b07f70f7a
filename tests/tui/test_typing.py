"""The editor: history, completion, shell commands, pastes, queueing, steering, other editors."""

import os

from tests.tui.panes import Home


def test_history_is_kept_per_folder_walked_and_searched(home: Home) -> None:
    pane = home.open()
    pane.wait("● ready")
    pane.say("say alpha one")
    pane.wait("  alpha one", "● ready")
    pane.say("say beta two")
    pane.wait("  beta two", "● ready")
    pane.press("Up")
    pane.wait("› say beta two\n")
    pane.press("Up")
    pane.wait("─\n› say alpha one")
    pane.press("Down", "Down")
    pane.wait("─\n›\n")
    pane.press("C-d")
    pane.wait("left with 0")

    again = home.open()
    again.wait("● ready")
    again.press("C-r")
    again.type("alp")
    again.wait("▸ say alpha one")
    again.press("Enter")
    again.wait("─\n› say alpha one")

    (home.work / "below").mkdir()
    elsewhere = home.open("cd below && dragoman")
    elsewhere.wait("● ready")
    elsewhere.press("Up")
    elsewhere.type("x")
    elsewhere.wait("─\n› x")


def test_at_completes_files_that_git_does_not_ignore(home: Home) -> None:
    os.system(f"git init -q {home.work}")
    (home.work / ".gitignore").write_text("secret*\n")
    (home.work / "secret.txt").write_text("x")
    (home.work / "src").mkdir()
    (home.work / "src" / "second.py").write_text("x")
    pane = home.open()
    pane.wait("● ready")
    pane.type("look at @sec")
    shown = pane.wait("▸ @src/second.py")
    assert "secret.txt" not in shown
    pane.press("Tab")
    pane.wait("› look at @src/second.py")


def test_slash_completes_own_commands_markdown_commands_and_skills(home: Home) -> None:
    folder = home.work / ".dragoman" / "commands"
    folder.mkdir(parents=True)
    (folder / "greet.md").write_text(
        "---\ndescription: says hello to somebody\n---\nsay hello $1\n"
    )
    pane = home.open()
    pane.wait("● ready")
    pane.type("/")
    pane.wait("/help", "keys and commands")
    pane.type("gre")
    pane.wait("▸ /greet", "says hello to somebody")
    pane.press("Tab")
    pane.type("Ada")
    pane.press("Enter")
    pane.wait("  hello Ada", "● ready")
    pane.say("/gret Ada")
    pane.wait("no command /gret; did you mean /greet?", "› /gret Ada")
    pane.press("C-c")
    pane.type("/undo")
    pane.wait("› /undo", "▸ /undo")
    pane.press("C-c")
    pane.say("/mode")
    pane.wait("▸ readonly", "supervised")
    pane.press("Enter")
    pane.wait("the mode is readonly now")


def test_a_command_of_the_users_own_runs_here_and_its_output_goes_along(home: Home) -> None:
    pane = home.open()
    pane.wait("● ready")
    pane.say("!pwd; exit 3")
    pane.wait("! pwd; exit 3  exit 3", f"│ {home.work}", "≡ output of pwd", "goes along")
    pane.say("say thanks")
    pane.wait("≡ $ pwd; exit 3 (1 line)", "  thanks", "● ready", gone="goes along")
    with home.host() as host:
        session = host.call("dragoman/sessions", {})["sessions"][0]
        events = host.call("dragoman/history", {"session_id": session["id"]})["events"]
    assert any(str(home.work) in str(e) for e in events if e["event"]["type"] == "turn_began")


def test_a_long_paste_is_an_attachment_and_a_short_one_is_text(home: Home) -> None:
    pane = home.open()
    pane.wait("● ready")
    pane.paste("say two\nwords")
    pane.wait("› say two", "  words")
    pane.press("C-c")
    pane.paste("\n".join(f"line {n}" for n in range(200)))
    pane.wait("≡ 200 pasted lines", "goes along")
    pane.press("BSpace")
    pane.wait("─\n›\n", gone="pasted lines")


def test_while_a_turn_runs_enter_tells_it_and_tab_queues(home: Home) -> None:
    pane = home.open()
    pane.wait("● ready")
    pane.say("count slowly to 60")
    pane.wait("1 2 3")
    pane.type("say queued word")
    pane.wait("› say queued word")
    pane.press("Tab")
    pane.wait("1 queued", "⋯ queued: say queued word")
    pane.type("say told word")
    pane.wait("› say told word")
    pane.press("Enter")
    pane.wait("told; the agent hears it", "⋯ at its next step: say told word")
    pane.press("Escape")
    said = ("› say told word", "into the running turn", "  queued word", "● ready")
    pane.wait(*said, gone="⋯")


def test_new_lines_an_editor_of_the_users_own_and_vi_keys(home: Home) -> None:
    script = home.folder / "ed.sh"
    script.write_text('#!/bin/sh\nprintf "say from the editor" > "$1"\n')
    script.chmod(0o755)
    pane = home.open(f"EDITOR={script} dragoman")
    pane.wait("● ready")
    pane.type("first\\")
    pane.press("Enter")
    pane.type("second")
    pane.wait("› first\n  second")
    pane.press("C-j")
    pane.type("third")
    pane.wait("  second\n  third")
    pane.press("C-g")
    pane.wait("─\n› say from the editor")
    pane.press("Enter")
    pane.wait("  from the editor", "● ready")

    vi = home.open("dragoman --vi")
    vi.wait("● ready")
    vi.type("one two")
    vi.wait("› one two")
    vi.press("Escape")
    vi.wait("normal")
    vi.type("0dwix")
    vi.wait("─\n› xtwo")


def test_ctrl_c_empties_the_editor_first_and_leaves_at_the_second_time(home: Home) -> None:
    pane = home.open()
    pane.wait("● ready")
    pane.type("half a thought")
    pane.wait("› half a thought")
    pane.press("C-c")
    pane.wait("─\n›\n")
    pane.press("C-c")
    pane.wait("ctrl+c again leaves")
    pane.press("C-c")
    pane.wait("left with 0")
