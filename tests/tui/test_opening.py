"""`dragoman` typed alone: what opens, where, with which session, and what happens elsewhere."""

import os
import subprocess

from tests.tui.panes import Home


def test_in_an_empty_home_it_opens_starts_the_daemon_says_so_and_answers(home: Home) -> None:
    pane = home.open()
    shown = pane.wait("starting one; it goes on when you leave", "● ready", "demo/demo")
    assert "supervised" in shown and "0%" in shown
    assert "one host for every agent" in shown and "ctrl+s all sessions" in shown
    pane.say("say a first word")
    pane.wait("› say a first word", "  a first word", "● ready")
    pid = home.pid()
    pane.press("C-d")
    pane.wait("left with 0")
    assert home.pid() == pid, "the daemon goes on when the terminal is closed"


def test_a_key_that_only_this_shell_has_is_told_with_what_brings_it_to_the_daemon(
    home: Home,
) -> None:
    first = home.open()
    first.wait("● ready", "demo/demo")
    first.press("C-d")
    first.wait("left with 0")
    with_key = home.open("GEMINI_API_KEY=x dragoman")
    shown = with_key.wait("● ready", "dragoman login google", "dragoman stop &&")
    assert "only this shell has a key for google" in shown and "all sessions" in shown
    plain = home.open("OPENAI_API_KEY=x dragoman --plain")
    plain.wait("/help tells", "only this shell has a key for openai", "dragoman login openai")
    without = home.open("dragoman --plain")
    assert "only this shell" not in without.wait("/help tells")


def test_what_is_typed_before_the_first_frame_is_kept(home: Home) -> None:
    pane = home.open("stty -echo; sleep 0.5; stty echo; dragoman")
    pane.type("say early bird")
    pane.wait("› say early bird", "● ready")


def test_continue_goes_on_with_the_newest_session_of_the_folder_and_resume_picks(
    home: Home,
) -> None:
    pane = home.open('dragoman "say one sentence"')
    pane.wait("› say one sentence", "  one sentence", "● ready")
    pane.press("C-c")
    pane.wait("ctrl+c again leaves")
    pane.press("C-c")
    pane.wait("left with 0")

    again = home.open("dragoman -c")
    again.wait("› say one sentence", "  one sentence", "● ready")
    again.say("say another one")
    again.wait("  another one", "● ready")
    with home.host() as host:
        rows = host.call("dragoman/sessions", {})["sessions"]
    assert len(rows) == 1 and rows[0]["turns"] == 2

    picking = home.open("dragoman -r")
    picking.wait("sessions  1", "say one sentence")
    picking.press("Enter")
    picking.wait("› say another one", "● ready")

    named = home.open(f"dragoman -r {rows[0]['id'][:8]}")
    named.wait("› say another one", "● ready")


def test_continue_means_a_conversation_and_not_what_a_schedule_did_since(home: Home) -> None:
    pane = home.open('dragoman "say my own words"')
    pane.wait("  my own words", "● ready")
    with home.host() as host:
        own = host.call("dragoman/sessions", {})["sessions"][0]["id"]
        job = {"prompt": "say by the clock", "every": "1h", "cwd": str(home.work)}
        made = host.call("dragoman/addSchedule", job)["id"]
        host.call("dragoman/triggerSchedule", {"id": made})
        rows = host.call("dragoman/sessions", {})["sessions"]
    assert len(rows) == 2 and rows[0]["id"] != own, "the schedule's is the newest"
    again = home.open("dragoman -c")
    again.wait("› say my own words", "● ready")
    again.press("C-d")
    again.wait(f"come back with: dragoman -r {own[:8]}", "left with 0")
    run = home.open('dragoman run -c "say once more"')
    run.wait("once more", "left with 0")
    with home.host() as host:
        turns = {row["id"]: row["turns"] for row in host.call("dragoman/sessions", {})["sessions"]}
    assert turns[own] == 2 and len(turns) == 2


def test_who_said_nothing_is_told_no_way_back(home: Home) -> None:
    pane = home.open()
    pane.wait("● ready")
    pane.press("C-d")
    assert "come back" not in pane.wait("left with 0")


def test_who_leaves_a_worktree_is_told_how_its_work_is_taken_over(home: Home) -> None:
    git = ["git", "-C", str(home.work), "-c", "user.name=me", "-c", "user.email=me@example.org"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-qm", "one", "--allow-empty"], check=True)
    pane = home.open('dragoman --worktree "say uno"')
    pane.wait("  uno", "● ready")
    pane.press("C-d")
    shown = pane.wait("come back with", "worktree drop", "left with 0")
    way = shown.partition("over with: ")[2].partition("\n")[0]
    merging = way.split()[-1]
    plain = home.open(f"dragoman --plain -r {merging}")
    plain.wait("session ")
    plain.type("/quit")
    plain.press("Enter")
    plain.wait("worktree drop", "left with 0")
    staying = home.open(f"dragoman -r {merging}")
    staying.wait("› say uno", "● ready")
    merged = home.open(way)
    merged.wait("changed nothing", "left with 0")
    staying.press("C-d")
    assert "worktree" not in staying.wait("come back with", "left with 0")


def test_continue_in_a_folder_without_sessions_begins_one(home: Home) -> None:
    pane = home.open("dragoman -c")
    pane.wait("no session in this folder yet")
    pane.say("say hello")
    pane.wait("  hello", "● ready")


def test_a_folder_that_is_not_there_is_refused_in_a_sentence(home: Home) -> None:
    pane = home.open("dragoman terminal --cwd /nowhere/at/all")
    pane.wait("is no folder", "left with 1")


def test_without_a_terminal_the_name_alone_prints_help(home: Home) -> None:
    done = subprocess.run(
        ["dragoman"], env=home.env(), capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0 and "Usage: dragoman COMMAND" in done.stdout
    done = subprocess.run(
        ["dragoman", "-c"], env=home.env(), capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 1 and "dragoman run" in done.stderr
    assert not os.path.exists(home.socket), "and no daemon was started"


def test_an_unknown_single_word_is_still_a_mistake_and_not_a_prompt(home: Home) -> None:
    pane = home.open("dragoman sesions")
    pane.wait("did you mean sessions?", "left with 2")


def test_an_agent_that_is_not_there_is_told_before_the_first_prompt(home: Home) -> None:
    pane = home.open("dragoman --agent nobody")
    pane.wait("There is no agent nobody. Configured: default.", "Leave with ctrl+c twice")
    pane.press("C-c")
    pane.wait("ctrl+c again leaves")
    pane.press("C-c")
    pane.wait("left with 0")
