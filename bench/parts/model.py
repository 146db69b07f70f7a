"""A token's whole way: a model over HTTP, the engine, the store, the client; beside a Go host.

The daemon serves all sessions in one process; the Go reference is one process to a session, as
such hosts are. Both are given the same loopback model, in turn, with warm connections. CPU is that
of the host's processes; every word must have arrived.
"""

import contextlib
import json
import os
import selectors
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from bench.clients import certificate, model
from bench.echo import build_go, cpu_ns

from .host import Running, daemon, first_answer, greeted, settled
from .rows import Row, compared, held_to

WORD = b"word "
FORMATS = ("anthropic", "openai")
SESSIONS = (1, 20, 100)
_EVERY = {1: 0.001, 20: 0.02, 100: 0.02}  # seconds between two deltas of a session
_PACED = 1.5  # seconds that a paced answer takes
_UNPACED = {1: 20_000, 20: 2_000, 100: 500}  # deltas of an answer that comes at once
_GO = "Go net/http"


@dataclass(frozen=True)
class _Load:
    """One kind of answer: how many sessions, how fast, and where from."""

    sessions: int
    paced: bool
    secure: bool

    @property
    def every(self) -> float:
        return _EVERY[self.sessions] if self.paced else 0

    @property
    def deltas(self) -> int:
        return int(_PACED / self.every) if self.paced else _UNPACED[self.sessions]

    @property
    def name(self) -> str:
        pace = f"a delta every {self.every * 1000:g} ms" if self.paced else "unpaced"
        many = f"{self.sessions} session{'s' if self.sessions > 1 else ''}"
        return f"{many}, {pace}, {'TLS' if self.secure else 'plain'}"

    @property
    def key(self) -> str:
        return f"{'p' if self.paced else 'u'}{self.sessions}{'s' if self.secure else ''}"


@dataclass
class _Talk:
    """One session's two ends."""

    output: int
    prompt: Callable[[], None]
    end: bytes


@dataclass
class _Taken:
    ours: list[float] = field(default_factory=list)
    theirs: list[float] = field(default_factory=list)


def measure(folder: str, rounds: int) -> tuple[list[Row], list[str]]:
    """All rows of this area."""
    if not shutil.which("openssl"):
        return [], ["the model's path needs openssl for a certificate: skipped"]
    go = build_go(folder, "go_model")
    pair = certificate(folder)
    os.environ["SSL_CERT_FILE"] = pair[0]  # for the daemon and for Go
    try:
        loads = [_Load(n, p, s) for n in SESSIONS for p in (True, False) for s in (False, True)]
        rows = _start(folder, go, pair, 3 if rounds < 7 else 7)
        with contextlib.ExitStack() as stack:
            urls = {
                load.key: stack.enter_context(
                    model(load.deltas, load.every, pair if load.secure else None)
                )
                for load in loads
            }
            urls["one"] = stack.enter_context(model(1, 0))
            place = os.path.join(folder, "model")
            host = stack.enter_context(daemon(place, ["hello"], _config(urls)))
            rows += _empty(host, rounds)
            for load in loads:
                for format in FORMATS:
                    rows += _deltas(host, go, folder, urls[load.key], load, format, rounds)
    finally:
        del os.environ["SSL_CERT_FILE"]
    return rows, [] if go else ["the Go model host was not built: skipped"]


def _config(urls: dict[str, str]) -> str:
    made = ""
    for key, url in urls.items():
        for format in FORMATS:
            kind = "anthropic" if format == "anthropic" else "openai-chat"
            made += (
                f'[providers.{key}-{format}]\nkind = "{kind}"\nbase_url = "{url}"\napi_key = "k"\n'
                f'[agents.{key}-{format}]\nmodel = "{key}-{format}/m"\nmode = "full"\n'
                "context_files = false\ntools = []\n"
            )
    return made


# --- a delta ---


def _deltas(
    host: Running, go: str | None, folder: str, url: str, load: _Load, format: str, rounds: int
) -> list[Row]:
    taken = _Taken()
    memory: list[Row] = []
    rounds = min(rounds, 3)
    with contextlib.ExitStack() as stack:
        ours = stack.enter_context(_our_talks(host, f"{load.key}-{format}", load.sessions))
        pids: list[int] = []
        theirs: list[_Talk] = []
        if go:
            theirs, pids = stack.enter_context(_go_talks(go, folder, url, format, load.sessions))
        for round in range(rounds + 1):  # the first warms up
            spent = _run(ours, [host.pid], load.deltas)
            other = _run(theirs, pids, load.deltas) if go else 0.0
            if round:
                taken.ours.append(spent / load.sessions / load.deltas)
                taken.theirs.append(other / load.sessions / load.deltas)
        if load.sessions == 100 and load.paced and not load.secure and format == "anthropic":
            memory = _memories(host.pid, pids) if go else []
    name = f"{format} delta, {load.name}"
    bar = "<= 1.0" if load.sessions == 1 else "<= 0.8"
    if not go:
        return [held_to("model", name, taken.ours, "us cpu", digits=1)]
    row = compared("model", name, taken.ours, _GO, taken.theirs, "us cpu", bar, digits=1)
    return [row, *memory]


def _run(talks: Sequence[_Talk], pids: Sequence[int], deltas: int, *, rest: bool = True) -> float:
    """Prompt everybody, read to every end; microseconds of CPU. Every word must arrive."""
    if rest:
        settled(pids[0])
    before = sum(map(cpu_ns, pids))
    poll = selectors.DefaultSelector()
    heard: dict[int, list[bytes]] = {}
    ending: set[int] = set()  # whose last line has begun
    for talk in talks:
        poll.register(talk.output, selectors.EVENT_READ, talk)
        heard[talk.output] = [b""]
    for number, talk in enumerate(talks):
        talk.prompt()
        if number % 5 == 4:
            time.sleep(0.002)  # sessions are not in step
    limit = time.monotonic() + 60
    waiting = len(talks)
    while waiting:
        if time.monotonic() > limit:
            raise TimeoutError("an answer did not come")
        for key, _ in poll.select(1):
            talk = key.data
            data = os.read(talk.output, 1 << 18)
            if not data:
                raise ConnectionError("a host hung up")
            pieces = heard[talk.output]
            pieces.append(data)
            if talk.end in pieces[-2] + data:
                ending.add(talk.output)
            if talk.output in ending and data.endswith(b"\n"):
                poll.unregister(talk.output)
                waiting -= 1
    spent = (sum(map(cpu_ns, pids)) - before) / 1000
    poll.close()
    for talk in talks:
        text = b"".join(heard[talk.output])
        words = text[: text.rfind(b"\n", 0, text.index(talk.end)) + 1].count(WORD)
        if words != deltas:
            raise RuntimeError(f"{deltas} words were sent, {words} arrived")
    return spent


@contextlib.contextmanager
def _our_talks(host: Running, agent: str, count: int) -> Iterator[list[_Talk]]:
    lines = [greeted(host) for _ in range(count)]
    talks = []
    for line in lines:
        session = line.call("session/new", agentAlias=agent, cwd="/")["sessionId"]
        prompt = json.dumps({
            "jsonrpc": "2.0", "id": 7, "method": "session/prompt",
            "params": {"sessionId": session, "prompt": "go"},
        }).encode() + b"\n"  # fmt: skip
        talks.append(
            _Talk(line.socket.fileno(), lambda to=line, p=prompt: to.socket.sendall(p),  # type: ignore[misc]
                  b'"stopReason"')
        )  # fmt: skip
    try:
        yield talks
    finally:
        for line in lines:
            line.close()


@contextlib.contextmanager
def _go_talks(
    go: str, folder: str, url: str, format: str, count: int
) -> Iterator[tuple[list[_Talk], list[int]]]:
    running: list[subprocess.Popen] = []
    try:
        for number in range(count):
            command = [go, url, format, os.path.join(folder, f"go-{number}.jsonl")]
            running.append(
                subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
            )
        talks = [
            _Talk(one.stdout.fileno(), lambda o=one: o.stdin.write(b'{"id":"1","prompt":"go"}\n'),  # type: ignore[misc]
                  b'"type":"done"')
            for one in running
        ]  # fmt: skip
        yield talks, [one.pid for one in running]
    finally:
        for one in running:
            one.kill()
            one.wait()
            for pipe in (one.stdin, one.stdout):
                if pipe is not None:
                    pipe.close()


def _memories(ours: int, theirs: Sequence[int]) -> list[Row]:
    """Memory as every process shows it, and with what processes share counted once."""
    name, label = "memory of 100 streaming sessions", "100 Go processes"
    return [
        compared("model", f"{name}{how}", [_memory([ours], field)], label,
                 [_memory(theirs, field)], "MB", bar, digits=0)
        for field, how, bar in (("Rss", "", "<= 0.2"), ("Pss", ", shared counted once", ""))
    ]  # fmt: skip


def _memory(pids: Sequence[int], field: str) -> float:
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/smaps_rollup") as file:
            total += next(int(line.split()[1]) for line in file if line.startswith(f"{field}:"))
    return total / 1000


# --- a turn, and the first ---


def _empty(host: Running, rounds: int) -> list[Row]:
    """CPU of a turn whose answer is one word, connection warm."""
    found = []
    turns = 25
    for round in range(rounds + 1):
        with _our_talks(host, "one-anthropic", 1) as talks:
            settled(host.pid)
            before = cpu_ns(host.pid)
            for _ in range(turns):
                _run(talks, [host.pid], 1, rest=False)
            settled(host.pid)  # what is done after the answer counts, too
            spent = (cpu_ns(host.pid) - before) / 1000
        if round:
            found.append(spent / turns / 1000)
    return [held_to("model", "an empty turn over HTTP, committed", found, "ms cpu", "<= 1.5")]


def _start(folder: str, go: str | None, pair: tuple[str, str], rounds: int) -> list[Row]:
    """From the start of `dragoman rpc` to the first delta, beside the first ping."""
    home = os.path.join(folder, "cold")
    os.makedirs(home, exist_ok=True)
    env = {**os.environ, "DRAGOMAN_CONFIG_DIR": home, "HOME": home}
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed program is compiled once
    prompt = b'{"id":"1","type":"prompt","message":"go"}'
    pings: list[float] = []
    firsts: dict[bool, list[float]] = {False: [], True: []}
    theirs: list[float] = []
    program = [sys.executable, "-m", "dragoman", "rpc"]
    with model(20, 0) as plain, model(20, 0, pair) as secure:
        for round in range(rounds + 1):
            ping = first_answer([*program, "--provider", "demo"], b'{"id":"1","type":"ping"}', env)
            made = {
                safe: _first_delta([*program, "--provider", "anthropic", "--api-key", "k",
                                    "--model", "m", "--base-url", url], prompt, env)
                for safe, url in ((False, plain), (True, secure))
            }  # fmt: skip
            if go:
                file = os.path.join(folder, "go-cold.jsonl")
                asked = b'{"id":"1","prompt":"go"}'
                other = _first_delta([go, plain, "anthropic", file], asked, env)
            if round:
                pings.append(ping * 1000)
                for safe, took in made.items():
                    firsts[safe].append(took * 1000)
                if go:
                    theirs.append(other * 1000)
    name = "rpc, start to first delta"
    rows = [
        compared("model", name, firsts[False], "first ping", pings, "ms", "<= 1.8", digits=0),
        compared("model", f"{name}, TLS", firsts[True], "first ping", pings, "ms", digits=0),
    ]
    if theirs:
        rows.append(compared("model", name, firsts[False], _GO, theirs, "ms", digits=0))
    return rows


def _first_delta(command: list[str], prompt: bytes, env: dict[str, str]) -> float:
    start = time.perf_counter()
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)
    assert process.stdin is not None and process.stdout is not None
    try:
        process.stdin.write(prompt + b"\n")
        process.stdin.flush()
        for line in process.stdout:
            if WORD.strip() in line:
                return time.perf_counter() - start
        raise RuntimeError("no delta came")
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()
