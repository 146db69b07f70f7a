"""Whether a shell waits that can say `fg`."""

import subprocess
import sys

import pytest

ASK = [sys.executable, "-c", "from dragoman.tui.foreground import has_shell; print(has_shell())"]
BETWEEN = [sys.executable, "-c", "import subprocess, sys; subprocess.run(sys.argv[1:])", *ASK]
# Leads a session, as the shell of a terminal does, and begins a job in a group of its own, or not.
SHELL = """
import subprocess, sys
subprocess.run(sys.argv[2:], process_group=0 if sys.argv[1] == "jobs" else None)
"""


@pytest.mark.parametrize(
    ("how", "command", "said"),
    [
        ("jobs", ASK, "True"),
        ("jobs", BETWEEN, "True"),  # begun by what the shell began
        ("no jobs", ASK, "False"),
        ("no jobs", BETWEEN, "False"),
    ],
)
def test_a_shell_waits_for_its_jobs(how: str, command: list[str], said: str) -> None:
    words = [sys.executable, "-c", SHELL, how, *command]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, start_new_session=True)
    assert done.stdout.strip() == said, done.stderr


def test_nobody_waits_for_who_leads_the_session() -> None:
    done = subprocess.run(ASK, capture_output=True, text=True, timeout=60, start_new_session=True)
    assert done.stdout.strip() == "False", done.stderr
