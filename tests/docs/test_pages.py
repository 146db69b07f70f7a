"""Every command of README and the guides runs as written, in the order of the page, from an empty
folder.

A comment before a block says how: `<!-- run: lines -->` each line for itself, for a second when
it does not end; `<!-- run: terminal -->` the same in a terminal; `<!-- run: never, REASON -->` not
at all, for one of the reasons below. `<!-- before: ... -->` is shell that makes what the page takes
for granted. SESSION, TOKEN, ASK, RULE and DIGEST stand for those of real ones.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PAGES += sorted((ROOT / "docs" / "guides").glob("*.md"))
PAGES += sorted((ROOT / "docs" / "protocols").glob("*.md"))
PIECE = re.compile(
    r"<!-- (?P<word>run|before): (?P<rest>.*?) -->|^ *```sh\n(?P<block>.*?)^ *```", re.S | re.M
)
NAMES = "SESSION|TOKEN|ASK|RULE|DIGEST"
# What begins a line that somebody may type.
TYPED = re.compile(
    r"^ *(?:\$ )?(?:dragoman|curl|git|jq|make|npm|npx|nc|pip|pipx|printf|python3?|socat|uvx|echo) ",
    re.M,
)
REASONS = {
    "it is what runs this test",
    "it needs a key",
    "it needs a registry",
    "it needs an editor",
    "it needs a service manager",
    "it needs weights",
    "it needs root",
    "it makes other systems' packages",
}
HEAD = """
set -euo pipefail
each() {  # a line that may go on for ever; those that end by themselves have time to
    echo "\\$ $1"
    local code=0 most=1
    case $1 in *--background*|*" stop"*|*" run "*|*" token "*|*" pair"*|*" open"*) most=20;; esac
    timeout -s INT -k 20 $most bash -c "$1" </dev/null || code=$?
    case $code in 0|124|130) ;; *) echo "exit $code"; return 1;; esac
}
in_terminal() {
    echo "\\$ $1"
    local code=0
    timeout -s TERM -k 20 1.5 script -qec "$1" /dev/null </dev/null >/dev/null || code=$?
    case $code in 0|124|143) ;; *) echo "exit $code"; return 1;; esac
}
export -f each in_terminal
"""


def pieces(page: Path) -> list[tuple[str, str]]:
    """How and what, in the order of the page."""
    found: list[tuple[str, str]] = []
    how = ""
    for piece in PIECE.finditer(page.read_text()):
        if piece["word"] == "before":
            found.append(("before", piece["rest"]))
        elif piece["word"] == "run":
            how = piece["rest"]
        else:
            found.append((how or "whole", piece["block"]))
            how = ""
    return found


def script(page: Path) -> str:
    rows = [HEAD]
    for number, (how, text) in enumerate(pieces(page), 1):
        if how.startswith("never, "):
            continue
        rows.append(f"echo '== {number} of {page.name}'")
        if how == "before":
            rows.append(text)
            continue
        text = re.sub(rf"(?<![$\w{{])({NAMES})\b(?![=\w])", r'"$\1"', text)
        if how in ("lines", "terminal"):
            call = "each" if how == "lines" else "in_terminal"
            for line in re.sub(r"\\\n", " ", text).splitlines():
                command = re.sub(r"\s+#.*$", "", line).strip()
                command = re.sub(rf'"\$({NAMES})"', r"'\"$\1\"'", command.replace("'", "'\\''"))
                if command:
                    rows.append(f"{call} '{command}'")
        else:
            rows.append(text)
    return "\n".join(rows)


WITH = [page for page in PAGES if any(how != "before" for how, _ in pieces(page))]


def test_only_good_reasons_keep_a_block_from_being_run() -> None:
    for page in PAGES:
        for how, _ in pieces(page):
            how, _, reason = how.partition(", ")
            assert how in ("before", "whole", "lines", "terminal", "never"), (page, how)
            assert how != "never" or reason in REASONS, (page, reason)


def test_whatever_somebody_may_type_is_run() -> None:
    """A block of commands that is not called `sh` would be left out."""
    for page in PAGES:
        for kind, block in re.findall(r"(?ms)^ *```(\w*)\n(.*?)^ *```", page.read_text()):
            assert kind in ("sh", "lua") or not TYPED.search(block), f"{page}: {block}"


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder whose sockets' paths are short enough, however deep the tests' own are."""
    with tempfile.TemporaryDirectory(prefix="dr-", dir="/tmp", ignore_cleanup_errors=True) as made:
        yield Path(made)


@pytest.mark.timeout(200)  # a page takes seconds, but many programs may run beside it
@pytest.mark.parametrize("page", WITH, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_page_works_as_written(page: Path, short: Path) -> None:
    home, work = short / "h", short / "w"
    home.mkdir()
    work.mkdir()
    (short / "r").mkdir(0o700)
    keep = ("LANG", "LC_ALL", "TMPDIR", "USER", "LOGNAME")
    env = {name: os.environ[name] for name in keep if name in os.environ}
    env |= {
        "HOME": str(home),
        "XDG_RUNTIME_DIR": str(short / "r"),  # else places that all suites of this machine share
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "BROWSER": "true",
        "EDITOR": "true",
        "TERM": "xterm-256color",
        "ROOT": str(ROOT),
    }
    process = subprocess.Popen(
        ["bash", "-c", script(page)],
        cwd=work,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        said, _ = process.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGTERM)
        said, _ = process.communicate(timeout=60)
        pytest.fail(f"does not end:\n{said[-4000:]}")
    finally:
        stop = [sys.executable, "-m", "dragoman", "stop"]
        subprocess.run(stop, env=env, cwd=work, capture_output=True, timeout=60)
    assert process.returncode == 0, said[-4000:]
