"""The judge against the real shells: whatever they run must be on the judge's list.

Random commands, made to be misread, are run by `bash` and `dash` in an empty folder, as a user
without rights, with nothing on PATH but programs that write down their words. A command that the
judge can read must run no other programs, and write no other files, than the judge said.
"""

import fnmatch
import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from dragoman.policy.commands import assess

COMMANDS = int(os.environ.get("COMMANDS", "5000"))
SEED = int(os.environ.get("SEED", "20261116"))
BATCH = 2500
SHELLS = [path for path in map(shutil.which, ("bash", "dash")) if path]
NAMES = "ls cat rm touch git sort echo2 x y".split()
# Found by their bare name whatever PATH says.
BUILT_IN = {"echo", "printf", "test", "true", "false", ":", "pwd", "cd", "type"}

ATOMS = [
    *NAMES, "echo", "printf", "test", "true", ":", "cd", "pwd", "if", "then", "fi", "do", "done",
    "{", "}", "!", "time", "[[", "]]", "in", "case", "esac", "eval", "exec", "command", "alias",
    "-o", "-v", "-n", "--", "--x=", "a", "b", "P", "x=1", "PATH=.", "1", "2", "12", "0", "=",
    "a=", "%n", "%s", "a[", "]", "$(", ")", "`", "${x:-", "$x", "$((", "))", "$'", '$"', "<<E",
    "E", "<<<", "<(", ">(", "<", ">", ">>", ">|", ">&", "<&", "&>", "<>", "2>", "2>&1", "3>",
    "{fd}>", "-", "&", "&&", "||", ";", ";;", "|", "|&", "\n", " ", " ", " ", " ", "\t", "\r",
    "\\", "\\\n", "'", "'", '"', '"', "#", " #", "~", "*", "?", "[a]", "{a,b}", "^", "%", "@",
    "+", ",", ".", "./x", "/", "..", "\x0b", "\x0c", "\x01", "\x7f", "\u00a0", "\u2003", "\u200b",
    "é", "\u0085", "\u3000", "()", "(", "{ ", " }", "; }", "x()", "\\'", '\\"', "\\$", "\\ ",
    "'a b'", '"a b"', "''", '""', "'$x'", '"\\."', '"a\\b"', "'\\'", "a'b'", 'a"b"', "'a'\"b\"",
]  # fmt: skip
# Whole commands that are plain; pieces of them are put together and damaged.
PLAIN = [
    "ls -la", "cat a b", "sort -u a", "git status", "echo 'a b' \"c\"", "touch P", "ls > P",
    "ls 2>&1", "cat < a", "ls | sort", "ls && cat a", "ls; rm x", "ls\ncat a", "echo a >> P",
    "sh -c 'ls'", "env ls", "command ls a", "test -f a && ls", "cd a; ls", "printf '%s' a",
]  # fmt: skip

RECORDER = r"""
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv) {
  char *to = getenv("RECORD"), text[8192];
  size_t n = 0;
  for (int i = 0; i < argc; i++) {
    size_t size = strlen(argv[i]) + 1;
    if (n + size + 1 > sizeof text) break;
    memcpy(text + n, argv[i], size);
    n += size;
  }
  text[n++] = 1;
  int fd = to ? open(to, O_WRONLY | O_APPEND) : -1;
  return fd < 0 || write(fd, text, n) < 0;
}
"""


_numbers = itertools.count()


def generate(rng: random.Random) -> str:
    """One command: atoms at random, or plain ones that are joined and damaged."""
    if rng.random() < 0.4:
        return "".join(rng.choice(ATOMS) for _ in range(rng.randint(1, 14)))
    pieces = [rng.choice(PLAIN) for _ in range(rng.randint(1, 3))]
    text = rng.choice(["; ", " && ", " | ", "\n", " || ", ";"]).join(pieces)
    for _ in range(rng.randint(0, 4)):
        at = rng.randint(0, len(text))
        if rng.random() < 0.7:
            text = text[:at] + rng.choice(ATOMS) + text[at:]
        else:
            text = text[:at] + text[at + rng.randint(1, 3) :]
    return text


@pytest.fixture(scope="module")
def harmless() -> Iterator[tuple[Path, Path]]:
    """A folder to work in and one with nothing but recorders, for a user without rights."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    assert compiler, "a C compiler makes the program that records"
    top = Path(tempfile.mkdtemp(prefix="shells-"))
    try:
        top.chmod(0o755)
        (top / "bin").mkdir()
        source = top / "recorder.c"
        source.write_text(RECORDER)
        program = top / "recorder"
        subprocess.run([compiler, "-O1", "-o", str(program), str(source)], check=True)
        for name in (*NAMES, "sh", "env", "bash", "nohup"):
            os.link(program, top / "bin" / name)
        play = top / "play"
        play.mkdir()
        if os.geteuid() == 0:
            os.chown(play, 65534, 65534)
        yield play, top / "bin"
    finally:
        shutil.rmtree(top)


class Did(NamedTuple):
    """What one shell did with one command."""

    ran: list[list[str]]
    files: list[str]
    ended: bool


def run_all(commands: list[str], place: Path, bin: Path) -> list[list[Did]]:
    """Run each command by each shell, as nobody when we are root."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        status = 1
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
            with os.fdopen(writing, "w") as pipe:
                for command in commands:
                    print(
                        json.dumps([run(shell, command, place, bin) for shell in SHELLS]), file=pipe
                    )
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        found = [[Did(*one) for one in json.loads(line)] for line in pipe]
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    return found


def run(shell: str, command: str, place: Path, bin: Path) -> Did:
    # A folder and a record for each: what an earlier command left running writes elsewhere.
    number = f"{os.getpid()}-{next(_numbers)}"  # another process runs the next ones
    work = place / f"work{number}"
    work.mkdir()
    os.chdir(work)
    for name in ("a", "b"):
        (work / name).touch()
    record = place / f"record{number}"
    record.write_bytes(b"")
    text = command.encode("utf-8", "surrogatepass")
    options = ["--norc", "--noprofile"] if shell.endswith("bash") else []
    environment = {"PATH": str(bin), "RECORD": str(record), "LANG": "C.UTF-8"}
    quiet = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in range(3)]
    argv = [shell, *options, "-c", text]
    pid = os.posix_spawn(shell, argv, environment, file_actions=quiet, setsid=True)
    ended = threading.Event()
    killer = threading.Timer(5, lambda: ended.is_set() or os.killpg(pid, signal.SIGKILL))
    killer.daemon = True
    killer.start()
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    ended.set()
    killer.cancel()
    ran = [
        [word.decode("utf-8", "replace") for word in one.split(b"\0")[:-1]]
        for one in record.read_bytes().split(b"\1")[:-1]
    ]
    files = [os.path.relpath(os.path.join(at, name), work) for at, _, names in os.walk(work)
             for name in names]  # fmt: skip
    os.chdir(place)
    shutil.rmtree(work, ignore_errors=True)  # what is left running may write in between
    record.unlink()
    return Did(ran, files, status != -signal.SIGKILL)


def objections(command: str, did: Did) -> list[str]:
    """What a shell did that the judge had not said."""
    found = assess(command)
    if found.kind == "unknown":
        return []
    said = [(part.name, *part.argv[1:]) for part in found.parts]
    wrong = []
    for ran in did.ran:
        name = os.path.basename(ran[0])
        if not any(_same((name, *ran[1:]), one) for one in said):
            wrong.append(f"ran {ran}, said {said}")
    files = set(did.files) - {"a", "b"}
    written = {os.path.normpath(os.path.join(place, path)) for path in found.writes
               for place in ("", *(p.argv[1] for p in found.parts if p.name == "cd"))}  # fmt: skip
    if files - written:
        wrong.append(f"wrote {files - written}, said {found.writes}")
    return wrong


def _same(ran: tuple[str, ...], said: tuple[str, ...]) -> bool:
    if ran == said:
        return True
    # A word that is a pattern may have become several; the rest must be the same.
    if not any(set("*?") & set(word) for word in said):
        return False
    at = 0
    for word in said:
        if at < len(ran) and ran[at] == word:
            at += 1
        elif set("*?") & set(word):
            while at < len(ran) and fnmatch.fnmatchcase(ran[at], word):
                at += 1
        else:
            return False
    return at == len(ran)


@pytest.mark.timeout(3600)
def test_the_shells_run_nothing_that_the_judge_has_not_read(harmless: tuple[Path, Path]) -> None:
    assert len(SHELLS) == 2, "bash and dash are both needed"
    place, bin = harmless
    rng = random.Random(SEED)
    tried = read = ran = 0
    while tried < COMMANDS:
        commands = [generate(rng) for _ in range(min(BATCH, COMMANDS - tried))]
        # What the judge does not read is asked about; a few are run all the same, to see that the
        # recorders work. All that it reads are run.
        chosen = [c for c in commands if assess(c).kind != "unknown" or rng.random() < 0.02]
        unread = len(commands) - len(chosen)
        tried += len(commands)
        for command, answers in zip(chosen, run_all(chosen, place, bin), strict=True):
            readable = assess(command).kind != "unknown"
            read += readable
            for shell, did in zip(SHELLS, answers, strict=True):
                ran += len(did.ran)
                wrong = objections(command, did)
                assert not wrong, f"{shell}: {command!r}: {wrong}"
                assert did.ended or not readable, f"{shell}: {command!r} did not end"
        assert unread
    print(f"{tried} commands, {read} of them read by the judge and run, {ran} programs recorded")
    assert read > COMMANDS / 20
    assert ran > read
