"""The board: every session, who is attached, what it does, and what can be done with it."""

from tests.tui.panes import Home


def test_sessions_of_all_clients_live_watched_renamed_forked_stopped(home: Home) -> None:
    pane = home.open('dragoman "say from the terminal"')
    pane.wait("  from the terminal", "● ready")
    with home.host() as host:
        other = host.call("dragoman/open", {"cwd": str(home.work)})["session"]["id"]
        text = "count slowly to 3000"
        host.call("dragoman/prompt", {"session_id": other, "text": text, "detach": True})
    pane.press("C-s")
    pane.wait(
        "sessions  2", "1 at work", "count slowly to 3000", "works", "in 24 h", "terminal pts"
    )
    pane.press("Up", "Up", "Space")
    pane.wait("1 2 3 4 5")
    pane.press("r")
    pane.wait("title:")
    pane.type("the counter")
    pane.press("Enter")
    pane.wait("the counter")
    pane.press("x")
    pane.wait("0 at work", "■ cancelled")
    pane.press("Escape")
    pane.wait("0 at work", gone="■ cancelled")
    pane.type("/")
    pane.wait("only sessions with:")
    pane.type("terminal")
    pane.press("Enter")
    pane.wait("only: terminal", gone="the counter")
    pane.press("f")
    pane.wait("continues", "from the terminal", "● ready")
    with home.host() as host:
        rows = host.call("dragoman/sessions", {})["sessions"]
    assert sum(bool(row["parent"]) for row in rows) == 1


def test_a_session_whose_turn_failed_has_failed(home: Home) -> None:
    pane = home.open('dragoman "fail with an auth error"')
    pane.wait("✗ failed:", "● ready")
    pane.press("C-s")
    pane.wait("sessions  1")
    pane.match(r"✗ fail with an auth error.* failed ")


def test_enter_opens_a_session_and_hand_over_gives_it_to_another_agent(home: Home) -> None:
    config = home.folder / ".config" / "dragoman"
    config.mkdir(parents=True)
    (config / "config.toml").write_text(
        '[acp]\ndefault_agent = "first"\n[agents.first]\n[agents.second]\nmode = "readonly"\n'
    )
    pane = home.open('dragoman "say something to go on with"')
    pane.wait("  something to go on with", "● ready", "supervised")
    pane.press("C-s")
    pane.wait("sessions  1")
    pane.press("h")
    pane.wait("to which agent (first, second)")
    pane.type("second")
    pane.press("Enter")
    pane.wait("continues", "readonly", "● ready")


def test_one_key_jumps_to_the_session_that_needs_somebody(home: Home) -> None:
    pane = home.open('dragoman "say the first"')
    pane.wait("  the first", "● ready")
    with home.host() as host:
        for number in range(12):
            made = host.call("dragoman/open", {"cwd": str(home.work)})["session"]["id"]
            text = "run touch z" if number == 3 else f"say {number}"
            host.call("dragoman/prompt", {"session_id": made, "text": text, "detach": True})
    pane.wait("▲ 1 waits")
    pane.press("C-s")
    pane.wait("1 waiting for you", "asks you")
    pane.press("Down", "Down", "n", "Enter")
    pane.wait("› run touch z", "waits for your answer")
