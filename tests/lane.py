"""Which tests a lane runs, and how much of a long one: all of it with LONG=1, as in CI.

A file that has no test with a lane's mark need not be read by it. Marks are known by their word in
the file; a test that got one otherwise is an error, so that none is lost.

`python -m tests.lane` prints what `make test-user` spares, `python -m tests.lane by-user` what CI,
where it is root, leaves to it.
"""

import os
import re
import sys
from functools import cache
from pathlib import Path

LONG = os.environ.get("LONG", "") not in ("", "0")

TESTS = Path(__file__).parent

# Where root and others differ: processes, sandboxes, sockets and files with rights. CI, where it is
# root, runs them as both.
BOTH = (
    "checkpoints daemon faults fleet gateway host policy sandbox store tools transports"
).split()
# Whole days of people and their programs, who are seldom root. CI, where it is, leaves them to
# `make test-user`; the parts they use run as both.
BY_USER = "apps browser cli cross docs fuzz interop packaging settings stdio testing".split()
AS_USER = [*BOTH, *BY_USER]
# What root tries as nobody: CI runs the same tests as an ordinary user.
AS_NOBODY = ("policy/test_another_user.py", "sandbox/test_another_user.py")
# What CI runs once, as whoever runs it: there root can do nothing that others cannot.
ONCE = {
    "agents": "hosted agents played in this process",
    "client": "loopback sockets of this process",
    "dialects": "protocols spoken to a host in this process",
    "engine": "sessions and turns in memory",
    "http": "a client and servers on loopback, in this process",
    "markup": "text made of text",
    "observe": "logs, metrics and spans of this process",
    "providers": "model servers on loopback, in this process",
    "questions": "texts of questions",
    "schedules": "times worked out",
    "transcripts": "written talks that other tests read",
    "tui": "an app without a terminal; those at a real one run as everybody",
    "wire": "bytes made of messages and back",
}
# The same of long tests in the folders that run as both, whose short ones show what a user minds.
ONCE_LONG = {
    "daemon/test_acp_join.py": "what editors are told; test_acp.py runs as everybody",
    "daemon/test_bridge.py": "what editors are told; test_acp.py runs as everybody",
    "daemon/test_rpc_edges.py": "odd lines; test_rpc.py runs as everybody",
    "daemon/test_run_together.py": "several programs on one store; test_run.py runs as everybody",
    "faults/test_kill.py": "a writer that is killed again and again",
    "fleet/test_nodes.py": "what nodes tell each other; test_commands.py runs as everybody",
    "fleet/test_proofs.py": "what must hold of a fleet, not who runs it",
    "gateway/test_openapi.py": "requests and answers, in this process",
    "policy/test_shells.py": "what the judge reads and what shells run",
    "store/test_conformance.py": "rows in and out",
    "store/test_crash.py": "a writer that is killed again and again",
    "store/test_differential.py": "rows in and out",
    "tools/test_hostile.py": "hostile calls of all tools; each tool has tests of its own",
}
# The same of short ones that read text, or look at answers alone.
ONCE_SHORT = {
    "policy/test_commands.py": "commands read, none run",
    "policy/test_reading.py": "commands read, none run",
    "tools/test_mcp_alive.py": "servers that say nothing",
    "tools/test_search_random.py": "what is found; test_search.py runs as everybody",
    "transports/test_idle.py": "memory of silent connections",
}
# What a run of the whole suite leaves to CI: much of its time, for what others show in short.
# A run that names a folder or a file has all of it (`make test T=tests/cli`).
LATER = {
    **ONCE_LONG,
    "browser/test_elsewhere.py": "what others do meanwhile; test_behind.py runs",
    "browser/test_fleet.py": "one page of the dashboard; test_dashboard.py runs",
    "browser/test_hostile.py": "one page of the dashboard; test_dashboard.py runs",
    "browser/test_questions.py": "questions in a page; test_dashboard.py runs",
    "browser/test_rooms.py": "pages that test_tour.py goes through as well",
    "browser/test_tour.py": "pages of the dashboard; test_dashboard.py runs",
    "browser/test_worktree.py": "one page of the dashboard; test_dashboard.py runs",
    "cross/test_acknowledged.py": "what a daemon keeps; test_one_session.py runs",
    "cross/fire/test_fire.py": "random clients; test_one_session.py runs",
    "cross/test_soak.py": "memory of a daemon",
    "cross/test_whole_questions.py": "what a question shows on every surface",
    "fuzz/test_zot_lines.py": "many lines",
    "interop/test_acp_acpx.py": "what one of the clients asks for; the others run",
    "agents/test_hosted.py": "an SDK in a process of its own each time; test_hosted_odd.py runs",
    "apps/test_examples.py": "whole apps; test_sdk.py and test_declaring.py run",
    "apps/test_installing.py": "whole apps; test_sdk.py and test_declaring.py run",
    "cli/test_field.py": "whole reports; the parts have tests of their own",
    "cli/test_odd_streams.py": "every command with odd streams; test_main.py runs",
    "cli/test_everyday.py": "days of work, command by command; test_main.py runs",
    "client/test_host.py": "a daemon for each test; test_one_session.py has clients of all kinds",
    "cross/test_any.py": "a daemon for each test; test_one_session.py runs",
    "cross/test_overlong.py": "long lines in each protocol; the parts have tests of their own",
    "daemon/test_load.py": "a thousand clients",
    "docs/test_pages.py": "every command of every page; test_guides.py reads them",
    "host/test_installed.py": "an installation of its own for each test",
    "policy/test_another_user.py": "tests of this folder once more, as nobody",
    "policy/test_domains.py": "a proxy and a sandbox for each test; the parts have tests",
    "policy/test_ordinary_work.py": "ordinary tools in sandboxes; test_autonomy.py runs",
    "sandbox/test_another_user.py": "tests of this folder once more, as nobody",
    "sandbox/test_attacks.py": "every attack; test_escapes.py runs",
    "sandbox/test_doctor_attack.py": "every attack; test_escapes.py runs",
    "sandbox/test_mark.py": "daemons and their commands; test_sockets.py runs",
    "sandbox/test_programs.py": "servers and agents in sandboxes; test_escapes.py runs",
    "test_hashes.py": "pip, with digests",
    "transports/test_idle.py": "memory of silent connections",
    "tui/test_board.py": "people at terminals; test_approving.py and test_opening.py run",
    "tui/test_conversing.py": "people at terminals; test_approving.py and test_opening.py run",
    "tui/test_ends.py": "people at terminals; test_approving.py and test_opening.py run",
    "tui/test_looks.py": "people at terminals; test_approving.py and test_opening.py run",
    "tui/test_run.py": "people at terminals; test_approving.py and test_opening.py run",
}
# What takes long begins first, so that the workers of a parallel run end together.
LONGEST = (
    "daemon/test_run_together.py", "browser/test_rooms.py", "gateway/test_openapi.py",
    "policy/test_ordinary_work.py", "fleet/test_proofs.py", "cli/test_everyday.py",
    "cross/test_whole_questions.py", "daemon/test_bridge.py", "docs/test_pages.py",
    "sandbox/test_guarded.py", "interop/test_acp_acpx.py", "daemon/test_acp_join.py",
    "daemon/test_rpc_edges.py", "cli/test_field.py", "daemon/test_rpc.py",
    "cross/test_acknowledged.py", "fleet/test_nodes.py", "daemon/test_acp.py",
    "policy/test_shells.py", "store/test_conformance.py", "tools/test_hostile.py",
)  # fmt: skip
# A file of the folders above that speaks of one of these runs as everybody nevertheless.
_MINDS = re.compile(
    r"subprocess|Popen|Living|daemon\.running|chmod|getuid|geteuid|os\.fork|Confine|Landlock|Bubblewrap"
)

# A test at a real terminal has a home of its own (see tests/tui/conftest.py).
# What is timed may have got its mark from tests/timed.py.
_WORDS = {
    "terminal": r"mark\.terminal|\bhome\b",
    "timed": r"mark\.timed\b|@promised\(|@judging\b",
}


def share(whole: int, part: int) -> int:
    """`whole` in the long lane, else `part`."""
    return whole if LONG else part


@cache
def has(path: Path, mark: str) -> bool:
    """Whether a file has tests with this mark."""
    return re.search(_WORDS.get(mark, rf"mark\.{mark}\b"), path.read_text()) is not None


def is_below(path: Path, folders: list[str]) -> bool:
    """Whether a path is in one of these folders, named as on the command line."""
    return any(path.is_relative_to(Path(folder).absolute()) for folder in folders)


def is_later(path: Path, asked: list[str]) -> bool:
    """Whether a file is left to CI in a run of what was `asked` for."""
    everything = [Path(one).absolute() for one in asked] == [TESTS]
    return everything and path.is_relative_to(TESTS) and str(path.relative_to(TESTS)) in LATER


def begins(path: Path, slow: set[Path]) -> int:
    """When a file's turn is: those that take long first, the longest before all."""
    name = path.relative_to(TESTS).as_posix() if path.is_relative_to(TESTS) else ""
    if name in LONGEST:
        return LONGEST.index(name)
    return len(LONGEST) + (path not in slow)


def spared() -> list[Path]:
    """Files that need not run a second time as another user."""
    found = [path for name in ONCE for path in sorted((TESTS / name).rglob("test_*.py"))]
    found += (path for path in sorted(TESTS.glob("test_*.py")) if path.name != "test_mounts.py")
    quiet = [path for path in found if not _MINDS.search(path.read_text())]
    return [*quiet, *(TESTS / name for name in (*ONCE_LONG, *ONCE_SHORT))]


if __name__ == "__main__":
    others = [TESTS / name for name in (*BY_USER, *AS_NOBODY)]
    left = others if "by-user" in sys.argv else spared()
    print(*(path.relative_to(TESTS.parent) for path in left))
