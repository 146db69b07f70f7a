"""Questions: all that is asked about, one key per answer, also for other sessions."""

import re

from tests.tui.panes import Home


def test_the_whole_command_is_shown_and_one_key_answers(home: Home) -> None:
    pane = home.open()
    pane.wait("● ready")
    long = "echo " + " ".join(f"word{n}" for n in range(40)) + " && touch made.txt"
    pane.type(f"run {long}")
    pane.wait("touch made.txt")
    pane.press("Enter")
    pane.wait("$ echo word0", "word39", "made.txt", "waits for your answer", " y  yes")
    pane.press("n")
    pane.wait("⊘ bash", "● ready")
    assert not (home.work / "made.txt").exists()
    pane.say("run touch made.txt")
    pane.wait("waits for your answer", " y  yes")
    pane.press("y")
    pane.wait("● bash touch made.txt", "● ready")
    assert (home.work / "made.txt").exists()


def test_a_change_of_a_file_is_shown_as_the_real_difference(home: Home) -> None:
    (home.work / "notes.txt").write_text("one\ntwo\nthree\n")
    pane = home.open()
    pane.wait("● ready")
    pane.say("edit notes.txt replace two with TWO")
    pane.wait("waits for your answer", " y  yes", "-two", "+TWO", " three")
    pane.press("y")
    pane.wait("● edit notes.txt", "+TWO", "● ready")
    assert (home.work / "notes.txt").read_text() == "one\nTWO\nthree\n"


def test_what_cannot_be_seen_is_made_visible(home: Home) -> None:
    pane = home.open('dragoman "say ready for it"')
    pane.wait("  ready for it", "● ready")
    with home.host() as host:
        session = host.call("dragoman/sessions", {})["sessions"][0]["id"]
        nasty = "run echo a\u202eb\u200bc\u00a0d\x1b[2Jgone"
        host.call("dragoman/prompt", {"session_id": session, "text": nasty, "detach": True})
        pane.wait("waits for your answer", "a<U+202E>b", "<ESC>[2Jgone")


def test_a_question_longer_than_the_screen_is_allowed_only_after_it_was_read(home: Home) -> None:
    pane = home.open('dragoman "say hello"')
    pane.wait("  hello", "● ready")
    with home.host() as host:
        session = host.call("dragoman/sessions", {})["sessions"][0]["id"]
        lines = "; ".join(f"echo {'x' * 90} {n}" for n in range(30))
        params = {"session_id": session, "text": f"run {lines}; touch read", "detach": True}
        host.call("dragoman/prompt", params)
    pane.wait("more lines, read on", " n  no")
    pane.press("y")
    assert not (home.work / "read").exists()
    while "read on" in pane.screen():
        pane.press("Space")
    pane.wait("touch read", " y  yes")
    pane.press("y")
    pane.wait("● ready", gone="y  yes")
    assert (home.work / "read").exists()


def test_always_names_its_scope_and_rules_are_listed_and_withdrawn(home: Home) -> None:
    pane = home.open()
    pane.wait("● ready")
    pane.say("run touch one")
    pane.wait("waits for your answer", " a  always")
    pane.press("a")
    pane.wait("always:", " 1 ", "in this session")
    pane.press("1")
    pane.wait("● bash touch one", "● ready")
    pane.say("/rules")
    pane.wait("enter withdraws a rule", "▸ rule_")
    pane.press("Enter")
    pane.wait("withdrawn:", "touch one")


def test_on_a_small_screen_all_that_always_may_mean_can_be_read(home: Home) -> None:
    pane = home.open(width=40, height=20)
    pane.wait("● ready")
    pane.say("run touch one")
    pane.wait("waits for your answer", " a  always")
    pane.press("a")
    seen = shown = pane.wait("always:", "read on")
    while more := re.search(r"↓ (\d+) more", shown):
        pane.press("Space")
        # The last line that is drawn: what is above it is the next page, too.
        shown = pane.match(rf"↓ (?!{more[1]} )\d+ more| esc  back").string
        seen += shown
    last = int(pane.match(r"(?s).* (\d)  ").group(1))
    assert all(f" {number}  " in seen for number in range(1, last + 1)) and last > 3
    pane.wait(" esc  back")
    pane.press("Escape")
    pane.wait("$ touch one", " y  yes")
    pane.press("a")
    pane.wait("always:")
    pane.press("1")
    pane.wait("● bash touch one")


def test_no_with_a_word_to_the_agent(home: Home) -> None:
    pane = home.open()
    pane.wait("● ready")
    pane.say("run touch x")
    pane.wait("waits for your answer", " w  no")
    pane.press("w")
    pane.wait("no, because")
    pane.type("use a better name")
    pane.press("Enter")
    pane.wait("deny: use a better name", "● ready")
    assert not (home.work / "x").exists()


def test_a_question_is_answered_by_number_or_in_words(home: Home) -> None:
    pane = home.open()
    pane.wait("● ready")
    pane.say("ask me which colour: red, green or blue")
    pane.wait("waits for your answer", " 2  green")
    pane.press("2")
    pane.wait("→ green", "● ready")


def test_a_question_does_not_take_the_keys_of_somebody_who_types(home: Home) -> None:
    pane = home.open('dragoman "say hello"')
    pane.wait("  hello", "● ready")
    with home.host() as host:
        session = host.call("dragoman/sessions", {})["sessions"][0]["id"]
        pane.type("I am ty")
        pane.wait("› I am ty")
        params = {"session_id": session, "text": "run touch never", "detach": True}
        host.call("dragoman/prompt", params)
    pane.wait("waits for your answer")
    pane.type("ping a y here")
    pane.wait("› I am typing a y here", "waits for your answer")
    assert not (home.work / "never").exists()


def test_questions_of_other_sessions_are_counted_and_answered_without_leaving(home: Home) -> None:
    pane = home.open('dragoman "say here I am"')
    pane.wait("  here I am", "● ready")
    with home.host() as host:
        other = host.call("dragoman/open", {"cwd": str(home.work)})["session"]["id"]
        params = {"session_id": other, "text": "run touch elsewhere.txt", "detach": True}
        host.call("dragoman/prompt", params)
    pane.wait("▲ 1 waits (ctrl+n)")
    pane.press("C-n")
    pane.wait("in: run touch elsewhere.txt", "touch elsewhere.txt", " y  yes")
    pane.press("y")
    pane.wait("› say here I am", "● ready", gone="▲ 1 waits")
    with home.host() as host:
        for _ in range(200):
            if not host.call("dragoman/session", {"session_id": other})["busy"]:
                break
    pane.press("C-s")
    pane.wait("sessions  2", "rests")
    assert (home.work / "elsewhere.txt").exists()


def test_an_answer_given_elsewhere_closes_the_question_here(home: Home) -> None:
    pane = home.open()
    pane.wait("● ready")
    pane.say("run touch y")
    pane.wait("waits for your answer")
    with home.host() as host:
        ask = host.call("dragoman/approvals", {})["approvals"][0]["ask"]["id"]
        host.call("dragoman/answer", {"id": ask, "verdict": "deny", "comment": "not now"})
    pane.wait("deny by a test", "not now", gone="waits for your answer")
