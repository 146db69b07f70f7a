"""What holds for all tests: nothing skipped with CI=true, nothing left behind by earlier runs."""

import os
import signal
import sys
import threading
from collections.abc import Generator, Iterator
from pathlib import Path
from shutil import which
from typing import Any

import pytest
from hypothesis import settings
from tests.lane import LATER, LONG, begins, has, is_below, is_later
from tests.mounts import sweep

from dragoman.testing.postgres import Server, find_program

# A busy machine is no failure; pytest's own limit is left for what hangs.
settings.register_profile("suite", deadline=None)
settings.load_profile("suite")

# pytest names its folder after the user, and a Unix socket's path has room for 107 bytes only.
os.environ["LOGNAME"] = f"u{os.geteuid()}"

# A run that was put into the background ignores ctrl+c, one with nohup the end of its terminal, and
# so would all programs that they try.
if threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)

# `dragoman` is the one of the Python that runs the tests, however they were begun.
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"

# Python's readline tells every program that it starts how wide the terminal of the tests is.
for _name in ("COLUMNS", "LINES"):
    os.environ.pop(_name, None)

_CI = os.environ.get("CI", "").lower() in ("1", "true", "yes")
_ALL = _CI or LONG


def pytest_sessionstart(session: pytest.Session) -> None:
    """A run that was killed may have left a file system mounted; pytest could not delete it."""
    if not hasattr(session.config, "workerinput"):
        sweep()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--having", help="only files that have tests with this mark")
    parser.addoption(
        "--timed", action="store_true",
        help="only tests that judge how long something takes, which nothing else runs",
    )  # fmt: skip
    parser.addoption(
        "--measured", action="append", default=[],
        help="a folder whose tests have run, but for those that are slow or bare",
    )  # fmt: skip


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    if not collection_path.name.startswith("test_") or collection_path.suffix != ".py":
        return None
    timed = config.getoption("--timed")
    if not _ALL and not timed and is_later(collection_path, config.args):
        return True
    wanted = [config.getoption("--having")] if config.getoption("--having") else []
    wanted += ["timed"] if timed else []
    if is_below(collection_path, config.getoption("--measured")):
        wanted = list(_UNMEASURED)
    return True if wanted and not any(has(collection_path, one) for one in wanted) else None


_UNMEASURED = ("slow", "bare")
_KEPT_APART = (*_UNMEASURED, "terminal", "alone", "timed")


def _is_out_of_reach(item: pytest.Item, measured: list[str], timed: bool) -> bool:
    marks = {one.name for one in item.iter_markers()}
    for mark in marks.intersection(_KEPT_APART):
        if not has(item.path, mark):
            raise pytest.UsageError(f"{item.nodeid} is {mark}, and its file does not say so")
    only_root = os.geteuid() != 0 and "root" in marks
    later = not _ALL and not timed and "slow" in marks
    ran = is_below(item.path, measured) and not marks.intersection(_UNMEASURED)
    if ("timed" in marks) is not timed:  # the one place that keeps them apart
        return True
    return only_root or later or ran or "[NOTSET" in item.nodeid  # by tools, none is here


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if terminalreporter.config.getoption("--timed"):
        return
    terminalreporter.line("left to make timed: how long things take, on a quiet machine")
    if not _ALL:
        terminalreporter.line(
            f"left to CI: tests marked slow and, when all were asked for, {len(LATER)} files"
            " (tests/lane.py says why); LONG=1 make test runs them, too"
        )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with the files that take long; leave out, not skip, what is not tried here.

    That is what only root can do, what is tried with a tool that is not installed, what judges how
    long something takes (but with `--timed`, which leaves out all else), and, but for CI and the
    long lane, what takes long.
    """
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: begins(item.path, slow))  # parallel runs end together
    measured, timed = config.getoption("--measured"), config.getoption("--timed")
    left = [item for item in items if _is_out_of_reach(item, measured, timed)]
    if left:
        config.hook.pytest_deselected(items=left)
        gone = set(left)
        items[:] = [item for item in items if item not in gone]


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what needs a program that is not here."""
    spec = getattr(item, "callspec", None)
    given = [one for one in spec.params.values() if isinstance(one, str)] if spec else []
    if "bubblewrap" in given and not which("bwrap"):
        pytest.skip("no bwrap here: make setup-tools")
    if item.get_closest_marker("terminal") and not which("tmux"):
        pytest.skip("no tmux here: make setup-tools")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[Any]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn a skip into a failure where everything must run."""
    try:
        report = yield
    except SystemError:
        # Python 3.11 miscounts when two threads read sources at once (gh-106905), and a failing
        # test is shown by its source: once more, lest the whole run end here.
        report = pytest.TestReport.from_item_and_call(item, call)
    if _CI and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped, but with CI=true nothing may be: {report.longrepr}"
    return report


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees the configuration or the keys of whoever runs it."""
    for name in list(os.environ):
        if name.startswith(("DRAGOMAN_", "ZEROCLAW_", "HUMANLAYER_", "OPENCLAWOS_")):
            monkeypatch.delenv(name)
        elif name.endswith("_API_KEY"):
            monkeypatch.delenv(name)


_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.fixture(autouse=True)
def _own_signals() -> Iterator[None]:
    """Every test leaves this process to those after it as it was: ended by what ends programs."""
    before = [signal.getsignal(number) for number in _SIGNALS]
    yield
    assert [signal.getsignal(number) for number in _SIGNALS] == before


@pytest.fixture(scope="session")
def initdb() -> None:
    """PostgreSQL is installed."""
    if not find_program("initdb"):
        pytest.skip("no PostgreSQL here: make setup-tools")


@pytest.fixture(scope="session")
def postgres(initdb: None) -> Iterator[Server]:
    """A database server for all tests of this process, begun with the first that needs it."""
    server = Server()
    yield server
    server.stop(wait=False)  # by now it holds a hundred databases
