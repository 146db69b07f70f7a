"""Which program a hook's command runs first."""

import os

import pytest

from dragoman.host.hook_programs import program_of


@pytest.mark.parametrize(
    ("run", "program"),
    [
        ("ruff check .", "ruff"),
        ("A=1 B='x y' ruff check", "ruff"),
        ("cd src && ruff check", "ruff"),
        ("if grep -q x y; then rm y; fi", "grep"),
        ("/usr/bin/env python3 -V", "/usr/bin/env"),
        ("~/bin/mine x", os.path.expanduser("~/bin/mine")),
        ("./here.sh", ""),  # of the session's folder, which is not known
        ("tools/here.sh", ""),
        ("echo hi | mail", ""),  # the shell's own
        ("$TOOL x", ""),
        ("'no end", ""),
        ("cd src", ""),
        ("", ""),
    ],
)
def test_the_first_program(run: str, program: str) -> None:
    assert program_of(run) == program
