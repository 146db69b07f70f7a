"""Looks the installation over: one row per finding, each with its way out. Changes nothing."""

import errno
import os
import shutil
import socket
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any

from dragoman import __version__
from dragoman.dialects.descriptor import MAIN
from dragoman.engine.faults import Fault, in_words
from dragoman.engine.opening import launch_dir
from dragoman.engine.points import INTERCEPTABLE
from dragoman.engine.ports.rows import DoctorRow
from dragoman.engine.visible import many
from dragoman.host import held, installed, lock, wanted
from dragoman.host.cells import outside
from dragoman.host.hook_programs import program_of
from dragoman.host.stores import database_of, file_of
from dragoman.observe.extras import adding
from dragoman.settings import places, profiles
from dragoman.settings.load import Loaded, load
from dragoman.settings.model import Settings
from dragoman.settings.places import Places
from dragoman.standing import in_place_of_file, in_place_of_folder

if TYPE_CHECKING:
    import sqlite3

    from dragoman.settings.agents import Agent
    from dragoman.settings.host import McpServer

Row = DoctorRow
_RUNS = "listens at"
_LOW_DISK = 200_000_000  # bytes
_NO_DISK = 1_000_000  # bytes that a store cannot do with
_LOOK_BYTES = 64 * 1024 * 1024  # a larger store is not looked through


_MEND = "Install it, or correct the hook"
_PASS = "fail_closed = false lets calls pass where a hook cannot run"


def examine(
    where: Places, env: Mapping[str, str] | None = None, kept: Loaded | None = None
) -> list[Row]:
    """Everything that can be said without changing anything.

    `kept` is what a running daemon goes on with where the configuration cannot be read.
    """
    env = os.environ if env is None else env
    rows = [Row("ok", "program", f"dragoman {__version__}, Python {sys.version.split()[0]}")]
    rows += _loop()
    try:
        loaded = load(where.config_file, env)
    except Fault as fault:
        fix = fault.hint or f"Edit {where.config_file}."
        rest = "The daemon goes on with what it had." if kept else "The rest is of the defaults."
        rows.append(Row("error", "configuration", f"{fault.message} {rest}", fix))
        loaded = kept or Loaded(Settings(), where.config_file, "", {}, ())
    else:
        rows += _configuration(loaded, where)
    rows += data_directory(where)
    rows += _store(loaded, where)
    daemon = list(_sockets(loaded, where, env))
    rows += daemon
    rows += _models(loaded, where, env)
    rows += _keys(loaded, env)
    rows += _writable(loaded)
    rows += _sandbox(loaded)
    rows += wanted.look(loaded, where, env, any(_RUNS in row.message for row in daemon))
    rows += _hooks(loaded)
    rows += _trusting(loaded)
    rows += _programs(loaded)
    rows += _extras(loaded)
    return rows


def _loop() -> Iterator[Row]:
    try:
        import uvloop  # noqa: F401
    except ImportError:
        yield Row("warn", "program", "uvloop is not installed: slower", "pip install uvloop")


def _configuration(loaded: Loaded, where: Places) -> Iterator[Row]:
    there = os.path.exists(where.config_file)
    said = where.config_file if there else f"no {where.config_file}: defaults are used"
    yield Row("ok", "configuration", said)
    for warning in loaded.warnings:
        yield Row("warn", "configuration", warning, f"Edit {where.config_file}.")


def data_directory(where: Places) -> Iterator[Row]:
    """What is to be said of the folder that everything of ours is in."""
    data = where.data_dir
    if wrong := in_place_of_folder(data):
        yield Row("error", "data", wrong[0], f"{wrong[1]}, or set DRAGOMAN_DATA_DIR.")
        return
    try:
        found = os.stat(data)
    except FileNotFoundError:
        if why := wanted.lacks_place(data):
            yield Row("error", "data", f"{data} {why}", "Set DRAGOMAN_DATA_DIR.")
        else:
            yield Row("ok", "data", f"{data} will be made at the first start")
        return
    except OSError as problem:
        yield Row("error", "data", f"{data}: {problem.strerror}", "Set DRAGOMAN_DATA_DIR.")
        return
    if not os.access(data, os.W_OK | os.X_OK):
        yield Row(
            "error", "data", f"{data} is not writable: sessions will not survive",
            "Repair its permissions, or set DRAGOMAN_DATA_DIR.",
        )  # fmt: skip
    elif why := wanted.lacks_room(data):
        yield Row(
            "error", "data", f"nothing can be written in {data}: {why}",
            "Make room there, or set DRAGOMAN_DATA_DIR.",
        )  # fmt: skip
        return
    elif found.st_uid != os.geteuid():
        yield Row(
            "warn", "data", f"{data} belongs to another user (uid {found.st_uid}): what is made "
            "there now is closed to that one", "Work as that user, or set DRAGOMAN_DATA_DIR.",
        )  # fmt: skip
    elif found.st_mode & 0o022 and not found.st_mode & stat.S_ISVTX:
        yield Row("error", "data", f"others can write in {data}", f"chmod 700 {data}")
    elif stat.S_IMODE(found.st_mode) & 0o077:
        yield Row("warn", "data", f"others can look into {data}", f"chmod 700 {data}")
    else:
        yield Row("ok", "data", data)
    free = shutil.disk_usage(data).free
    if free < _NO_DISK:
        fix = "Make room there, or set DRAGOMAN_DATA_DIR."
        yield Row("error", "data", f"the disk with {data} is full: nothing can be saved", fix)
    elif free < _LOW_DISK:
        yield Row("warn", "data", f"only {free // 1_000_000} MB are free", "Make room.")


def _store(loaded: Loaded, where: Places) -> Iterator[Row]:
    yield from _aside(os.path.join(where.data_dir, "checkpoints.db"))
    if address := database_of(loaded.settings):
        from dragoman.host import database

        for severity, message, fix in database.examine(address):
            yield Row(severity, "store", message, fix)
        return
    path = file_of(loaded.settings, where)
    if path == ":memory:":
        yield Row("warn", "store", "sessions do not survive a restart", "Unset store.path.")
        return
    if wrong := in_place_of_file(path):
        if not in_place_of_folder(where.data_dir):  # one word about it is enough
            said = f"{wrong[0]}: sessions will not survive"
            yield Row("error", "store", said, f"{wrong[1]}, or set store.path.")
        return
    yield from _aside(path)
    try:
        found = os.stat(path)
    except FileNotFoundError:
        if alone := log_alone(path):
            yield Row("error", "store", *alone)
        elif (why := wanted.lacks_place(path)) and loaded.settings.store.path:
            yield Row(
                "error", "store", f"{path} {why}: sessions will not survive",
                "Make its directory writable, or choose another with store.path.",
            )  # fmt: skip
        else:
            yield Row("ok", "store", f"{path} does not exist yet")
        return
    except OSError as problem:
        yield Row("error", "store", f"{path}: {problem.strerror}", "Repair its permissions.")
        return
    try:
        damage = _damage(path, found.st_size)
    except BlockingIOError:
        yield _locked(path, held.holder(path))
        return
    except OSError as problem:
        yield Row("error", "store", f"{path}: {problem.strerror}", "Repair its permissions.")
        return
    if pid := held.holder(path):
        yield _locked(path, pid)
        return
    if damage:
        from dragoman.store.file import rescue

        yield Row("error", "store", f"{path} is damaged: {damage}", rescue(path))
        return
    if newer := _foreign(path):
        yield Row("error", "store", newer.message, newer.hint)
        return
    for session in _unreadable(path, found.st_size):
        yield Row(
            "error", "store", f"the row of session {session} is damaged: lists leave it out",
            f"Remove it with: dragoman sessions delete {session}",
        )  # fmt: skip
    if found.st_nlink > 1:
        yield Row(
            "warn", "store", f"{path} has {found.st_nlink} names (hard links), each with a log and "
            "a lock of its own: sessions are lost when it is opened by two of them",
            "Keep one; for a copy: sqlite3 FILE '.backup COPY'.",
        )  # fmt: skip
    yield Row("ok", "store", f"{path}, {found.st_size / 1e6:.1f} MB")


def log_alone(path: str) -> tuple[str, str] | None:
    """What is wrong with a log whose database is gone, and what to do."""
    log = f"{path}-wal"
    try:
        if not os.path.getsize(log):
            return None
    except OSError:
        return None
    return (
        f"{path} is not there, but its log is: {log} may hold the newest changes of a lost store",
        "Put the store back beside it, or move the log away: a new store removes it.",
    )


def _foreign(path: str) -> "Fault | None":
    """Why the store is none of ours, or of a version that this one does not know."""
    import sqlite3

    from dragoman.store.migrations import recognise

    try:
        with closing(looked_at(path)) as opened:
            recognise(opened, path)
    except Fault as fault:
        return fault
    except sqlite3.Error:
        return None  # told as damage
    return None


def _locked(path: str, pid: int) -> Row:
    if not pid:
        fix = f"End whoever has it open; this may tell: fuser -v {path}"
        return Row("error", "store", f"another process keeps {path} locked", fix)
    name = f" ({called})" if (called := held.name_of(pid)) else ""
    return Row(
        "error", "store", f"process {pid}{name} keeps {path} locked: nothing can be saved",
        f"Let it finish, or end it: kill {pid}",
    )  # fmt: skip


def _aside(path: str) -> Iterator[Row]:
    """Damaged stores that were moved aside and still take their place."""
    folder, name = os.path.split(path)
    try:
        names = sorted(os.listdir(folder or "."))
    except OSError:
        return  # told with the directory
    for one in names:
        if one.startswith(f"{name}.corrupt-") and not one.endswith(("-wal", "-shm")):
            whole = os.path.join(folder, one)
            yield Row(
                "warn", "store", f"a damaged store was moved aside: {whole}",
                f"Save what it holds (sqlite3 {whole} .recover), then remove it and its -wal.",
            )  # fmt: skip


def _damage(path: str, size: int) -> str:
    """What is wrong with a database, read without changing it; empty when nothing is.

    Only SQLite opens it: a file of one's own, once closed, takes with it the locks that the daemon
    has on its store, for whom this looks. The next process to leave would take the log away then.
    """
    if not os.access(path, os.R_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
    import sqlite3

    look = "PRAGMA quick_check(1)" if size <= _LOOK_BYTES else "SELECT 'ok' FROM sqlite_master"
    try:
        with closing(looked_at(path)) as opened:
            said = str((opened.execute(look).fetchone() or ("ok",))[0])
    except sqlite3.OperationalError as problem:
        if getattr(problem, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN), path) from None
        return ""  # its log cannot be read without writing
    except sqlite3.DatabaseError as problem:
        wrong = getattr(problem, "sqlite_errorcode", 0) == sqlite3.SQLITE_NOTADB
        return "it is no database" if wrong else str(problem)
    return "" if said == "ok" else said.splitlines()[-1]


def looked_at(path: str) -> "sqlite3.Connection":
    """A connection to a database file that changes nothing, whatever its path is written with."""
    import sqlite3
    from urllib.parse import quote

    # Without a log nobody writes to it, and even the files beside it need not be made.
    how = "mode=ro" if os.path.exists(f"{path}-wal") else "mode=ro&immutable=1"
    return sqlite3.connect(f"file:{quote(path)}?{how}", uri=True, timeout=1.0)


def _unreadable(path: str, size: int) -> list[str]:
    """Sessions whose rows cannot be read."""
    if not size or size > _LOOK_BYTES:
        return []
    import sqlite3

    from dragoman.store.lists import damaged_rows

    try:
        with closing(looked_at(path)) as opened:
            return damaged_rows(opened)
    except sqlite3.Error:
        return []  # busy, or damaged as a whole, which is told by itself


def _sockets(loaded: Loaded, where: Places, env: Mapping[str, str]) -> Iterator[Row]:
    try:
        own = getattr(loaded.settings.listen, MAIN)
        path = places.listened(own, where, env) if own else places.endpoint(MAIN, env, where)
    except Fault as fault:
        yield Row("error", "daemon", fault.message, fault.hint)
        return
    owner = lock.owner(path)
    if owner is None:
        yield from _in_the_way(path)
        return
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
            sock.settimeout(1.0)
            sock.connect(path)
    except PermissionError as problem:
        said = in_words(problem)
        yield Row(
            "error", "daemon", f"process {owner} has {path}, which is closed to us: {said}",
            "Ask outside of the sandbox, as the user that it runs as.",
        )  # fmt: skip
        return
    except OSError as problem:
        said = in_words(problem)
        yield Row(
            "error", "daemon", f"process {owner} holds {path} but does not answer: {said}",
            f"Stop it: kill {owner}",
        )  # fmt: skip
        return
    yield Row("ok", "daemon", f"process {owner} {_RUNS} {path}")


def _in_the_way(path: str) -> Iterator[Row]:
    """No daemon runs: whether one could."""
    beside_it = lock.lock_path(path)
    odd = next((one for one in (path, beside_it) if os.path.isdir(one)), "")
    if not odd and os.path.lexists(path) and not stat.S_ISSOCK(os.lstat(path).st_mode):
        odd = path
    if odd:
        fix = "Move it away, or set DRAGOMAN_DATA_DIR."
        yield Row("error", "daemon", f"{odd} is in the daemon's way: it cannot start", fix)
    elif lock.is_heard(path):
        fix = "End it, or set DRAGOMAN_DATA_DIR."
        yield Row("error", "daemon", f"another program listens at {path}", fix)
    elif wrong := in_place_of_folder(os.path.dirname(path)):
        fix = f"{wrong[1]}, or set DRAGOMAN_DATA_DIR."
        yield Row("error", "daemon", f"no daemon can start: {wrong[0]}", fix)
    elif refused := lock.refusal(path):
        yield Row("error", "daemon", f"no daemon can start: {refused.message}", refused.hint)
    elif why := wanted.lacks_place(beside_it):
        fix = "Repair the permissions of its folder, or choose another with listen."
        yield Row("error", "daemon", f"no daemon can start: {beside_it} {why}", fix)
    else:
        yield Row("ok", "daemon", "not running (dragoman daemon --background starts it)")


def _models(loaded: Loaded, where: Places, env: Mapping[str, str]) -> Iterator[Row]:
    from dragoman.host.account import Account
    from dragoman.host.compose import provider_configs
    from dragoman.providers.registry import ModelRegistry

    models = ModelRegistry(Account(where).over(provider_configs(loaded.settings, None)), env=env)
    for alias in profiles.names(loaded.settings):
        own = profiles.agent(loaded.settings, alias)
        if own.backend != "builtin":
            program = _program(own)
            if lacks := _lacks(program):
                fix = f"Install {program}, or name its whole path in agents.{alias}.command."
                if os.path.isabs(program):
                    fix = f"Install it there, or name another in agents.{alias}.command."
                yield Row("error", "agents", f"{alias}: {program} {lacks}", fix)
            else:
                yield Row("ok", "agents", f"{alias} is hosted: {own.command}")
            continue
        try:
            ref = profiles.model_ref(
                loaded.settings, alias, lambda _: models.default_ref() or "demo/demo"
            )
            _, model = models.resolve(ref, alias)
        except Fault as fault:
            yield Row("error", "agents", f"{alias}: {fault.message}", fault.hint)
            continue
        if model.provider == "demo":
            yield Row(
                "warn", "agents", f"{alias} uses the embedded demo, which is no language model",
                "Keep a key with: dragoman login (or start Ollama, or set ANTHROPIC_API_KEY, "
                "OPENAI_API_KEY or GEMINI_API_KEY before the daemon starts).",
            )  # fmt: skip
        else:
            yield Row("ok", "agents", f"{alias} uses {model.ref}")


def _sandbox(loaded: Loaded) -> Iterator[Row]:
    from dragoman.sandbox.choose import choose, describe

    wanted = loaded.settings.sandbox
    try:
        confine = choose(wanted.backend, network=wanted.network, unix=wanted.trust_unix_sockets)
    except Fault as fault:
        yield Row("error", "sandbox", fault.message, fault.hint)
        return
    if confine.name == "none":
        yield Row(
            "warn", "sandbox", "none: commands can do what your user can",
            "A Linux kernel with Landlock, or bubblewrap, would confine them.",
        )  # fmt: skip
        return
    yield Row("ok", "sandbox", describe(confine))
    if wanted.trust_unix_sockets:
        yield Row(
            "warn", "sandbox",
            "commands may talk to Unix sockets: whoever listens there (Docker, D-Bus, tmux) can "
            "start programs outside of the sandbox for them",
            "Set sandbox.trust_unix_sockets false.",
        )  # fmt: skip


def beside() -> Iterator[Row]:
    """What is to be said of our program and the folder that somebody works in."""
    if not installed.is_apart() and (place := installed.inside(launch_dir())):
        yield Row(
            "warn", "sandbox", f"dragoman runs from {place}: agents that work here cannot write it",
            f"Install it apart from the project: pipx install {installed.source()}",
        )  # fmt: skip


def _hooks(loaded: Loaded) -> Iterator[Row]:
    for one in loaded.settings.hooks:
        about = f" of {', '.join(one.tools)}" if one.tools else ""
        said = f"{one.on}{about} runs {one.run}"
        program = program_of(one.run)
        if not (lack := _lacks(program)):
            yield Row("ok", "hooks", said)
        elif one.fail_closed and one.on in INTERCEPTABLE:
            yield Row(
                "error", "hooks", f"{said}: {program} {lack}, so all of these are blocked",
                f"{_MEND}; {_PASS}.",
            )  # fmt: skip
        else:
            yield Row("warn", "hooks", f"{said}: {program} {lack}", f"{_MEND}.")


def _trusting(loaded: Loaded) -> Iterator[Row]:
    for kind, entries in (("agents", loaded.settings.agents), ("mcp", loaded.settings.mcp)):
        for name, entry in entries.items():
            if entry.trust_with_daemon:
                yield Row(
                    "warn", kind, f"{name} may talk to the daemon as you do: it can answer its "
                    "own questions", f"Set {kind}.{name}.trust_with_daemon false.",
                )  # fmt: skip
            if entry.trust_outside_sandbox:
                yield Row(
                    "warn", kind, f"{name} runs outside of the sandbox, with your rights",
                    f"Set {kind}.{name}.trust_outside_sandbox false.",
                )  # fmt: skip


def _writable(loaded: Loaded) -> Iterator[Row]:
    """What programs of ours may write and nobody has made: it cannot be opened for them."""
    for kind, entries in (("agents", loaded.settings.agents), ("mcp", loaded.settings.mcp)):
        for name, entry in entries.items():
            for path in () if outside(entry) else entry.sandbox_writable:
                if not os.path.exists(os.path.expanduser(path)):
                    yield Row(
                        "warn", kind, f"{name} is to write {path}, which is not there; it cannot "
                        "make it itself", f"mkdir -p {path}, before {name} is started.",
                    )  # fmt: skip


def _keys(loaded: Loaded, env: Mapping[str, str]) -> Iterator[Row]:
    """Which variables of ours programs get by name. Without a name they get no key."""
    given = loaded.settings
    hosted = ((name, one) for name, one in given.agents.items() if one.backend != "builtin")
    entries: list[tuple[str, str, Any]] = [("agents", name, one) for name, one in hosted]
    entries += [("mcp", name, one) for name, one in given.mcp.items() if one.command]
    for kind, name, entry in entries:
        if _lacks(_program(entry)):
            continue  # one word about it is enough: it cannot be run
        missing = [one for one in entry.pass_env if "*" not in one and one not in env]
        if missing:
            yield Row(
                "warn", kind, f"{name} is to get {', '.join(missing)}, which is not set here",
                f"Set it where the daemon starts, or take it out of {kind}.{name}.pass_env.",
            )  # fmt: skip
        elif entry.pass_env:
            yield Row("ok", kind, f"{name} gets {', '.join(entry.pass_env)} of the environment")
        elif kind == "agents":
            said = f"{name} gets no key of the environment"
            yield Row("ok", kind, said, f"If it needs one, name it in agents.{name}.pass_env.")


def servers(status: Iterable[Mapping[str, Any]]) -> Iterator[Row]:
    """What a running host knows of its MCP servers."""
    for server in status:
        if server["state"] == "failed":
            soon = server["again_in"]
            when = "by itself" if soon is None else f"in {soon:.0f} s, or with a new session"
            fix = f"See mcp.{server['name']}; it is tried again {when}."
            yield Row("warn", "mcp", f"{server['name']} failed: {server['problem']}", fix)
        elif server["state"] == "connected":
            yield Row(
                "ok", "mcp", f"{server['name']} is connected, {many(server['tools'], 'tool')}"
            )


def _programs(loaded: Loaded) -> Iterator[Row]:
    for name, server in loaded.settings.mcp.items():
        if server.enabled and (lacks := _lacks(_program(server))):
            fix = f"Install it, or set mcp.{name}.enabled false."
            if " " in server.command and not _lacks(server.command.split()[0]):
                fix = f"Name the program alone, and the rest of the line in mcp.{name}.args."
            yield Row("error", "mcp", f"{name}: {server.command} {lacks}", fix)


def _extras(loaded: Loaded) -> Iterator[Row]:
    """Packages that the configuration asks for and that are not installed."""
    asked = {
        "mcp": any(server.enabled for server in loaded.settings.mcp.values()) and "mcp",
        "telemetry": loaded.settings.telemetry.enabled and "opentelemetry.sdk",
    }
    for extra, package in asked.items():
        if package and not _is_installed(package):
            said = f"{package.partition('.')[0]} is not installed"
            yield Row("error", extra, said, f"Install it: {adding(extra)}")


def _is_installed(package: str) -> bool:
    from importlib.util import find_spec

    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # nor what it is a part of
        return False


def _program(entry: "Agent | McpServer") -> str:
    from dragoman.settings import agents, profiles

    if isinstance(entry, agents.Agent):
        return (*profiles.command_of(entry), "")[0]
    return os.path.expanduser(entry.command)


def _lacks(program: str | None) -> str:
    """Why a program cannot be run, or nothing."""
    if not program or shutil.which(program) is not None:
        return ""
    if os.path.dirname(program) == "":
        return "is not on PATH"
    return "cannot be run" if os.path.exists(program) else "does not exist"
