"""Approvals at a real terminal: the inbox, and a turn that asks where it was sent from."""

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from tests.cli.living import WITHIN, Living
from tests.cli.test_everyday import new_session


@pytest.fixture(scope="module")
def living(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Living]:
    made = Living(tmp_path_factory.mktemp("i"))
    made.start()
    yield made
    made.stop()


class Terminal:
    """A command with a terminal around it."""

    def __init__(self, living: Living, *words: str) -> None:
        self._ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "dragoman", *words], env=living.env, cwd=living.work,
            stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
        )  # fmt: skip
        os.close(theirs)
        self.said = ""

    def wait(self, pattern: str) -> re.Match[str]:
        """Read until a pattern is there; what was before it is forgotten."""
        deadline = time.monotonic() + WITHIN
        while not (found := re.search(pattern, self.said)):
            left = deadline - time.monotonic()
            assert left > 0 and select.select([self._ours], [], [], left)[0], self.said
            try:
                self.said += os.read(self._ours, 65536).decode("utf-8", "replace")
            except OSError:
                raise AssertionError(f"ended without {pattern}: {self.said}") from None
        self.said = self.said[found.end() :]
        return found

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def close(self) -> int:
        try:
            return self.process.wait(WITHIN)
        finally:
            os.close(self._ours)


def test_the_inbox_asks_answers_and_sees_others_answers(living: Living) -> None:
    inbox = Terminal(living, "approvals", "--watch")
    inbox.wait("waiting for approvals")
    session = new_session(living, "")
    one = living.spawn("sessions", "send", session, 'write "x" to one.txt', "--approve", "ask")
    inbox.wait(r"one\.txt[\s\S]*\[y\]es")
    inbox.type("what\n")  # not understood: asked again
    inbox.wait(r"one\.txt[\s\S]*\[y\]es")
    inbox.type("y\n")
    one.communicate(timeout=WITHIN)
    assert one.returncode == 0 and (living.work / "one.txt").exists()
    two = living.spawn("sessions", "send", session, 'write "x" to two.txt', "--approve", "ask")
    inbox.wait(r"two\.txt[\s\S]*\[y\]es")
    ask = living.json("approvals")["approvals"][0]["ask"]["id"]
    living.says("deny", ask)
    inbox.wait("deny by dragoman deny")
    two.communicate(timeout=WITHIN)
    inbox.process.send_signal(signal.SIGINT)
    assert inbox.close() == 130


def test_a_turn_asks_where_it_was_sent_from(living: Living) -> None:
    session = new_session(living, "")
    sending = Terminal(living, "sessions", "send", session, 'write "x" to three.txt')
    sending.wait(r"three\.txt[\s\S]*\[y\]es")
    sending.type("n\n")
    assert sending.close() == 0
    assert not (living.work / "three.txt").exists()


def test_a_question_is_answered_by_number_or_by_words(living: Living) -> None:
    session = new_session(living, "")
    sending = Terminal(living, "sessions", "send", session, "ask me red or blue")
    sending.wait(r"\? [\s\S]*> ")
    sending.type("1\n")
    assert sending.close() == 0
    rows = living.json("approvals", "--all")["approvals"]
    mine = [row for row in rows if row["ask"]["session"] == session]
    assert mine[0]["settled"]["verdict"] == "answer" and mine[0]["settled"]["text"]
