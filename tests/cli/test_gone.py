"""A shell whose folder was removed: what needs no folder works, the rest says one sentence."""

import errno
import os
import subprocess
import sys

import pytest
from tests.cli.living import WITHIN, Living

from dragoman.cli.main import main
from dragoman.cli.verbs import dialects

GO = 'mkdir gone && cd gone && rmdir ../gone && exec "$0" -m dragoman "$@"'


def told(living: Living, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-c", GO, sys.executable, *words], env=living.env, cwd=living.work, text=True,
        stdin=subprocess.DEVNULL, capture_output=True, timeout=WITHIN,
    )  # fmt: skip


@pytest.fixture
def living(tmp_path_factory: pytest.TempPathFactory) -> Living:
    return Living(tmp_path_factory.mktemp("gone"))


@pytest.mark.parametrize(
    "words", ["sessions", "models", "agents", "agents show default", "doctor", "acp"]
)
def test_what_needs_no_folder_works(living: Living, words: str) -> None:
    done = told(living, *words.split())
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr


@pytest.mark.parametrize("words", ["run hello", "rpc", "apps add there"])
def test_what_needs_one_says_so(living: Living, words: str) -> None:
    done = told(living, *words.split())
    assert done.returncode == 1 and not done.stdout
    assert done.stderr == (
        "dragoman: The folder that you are in is gone. Go to one that is there: cd ~\n"
    )


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOMEM])
def test_a_system_that_gives_no_more_is_told(
    number: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(args: object) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(dialects, "run", run)
    assert main(["dialects"]) == 1
    told = capsys.readouterr()
    assert told.err == f"dragoman: The system gives no more: {os.strerror(number)}.\n"
    assert not told.out
