"""`dragoman bug-report`: what others need to help, in one text file that is shown first."""

import os
import re
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from dragoman.engine.faults import BadInput, Fault, in_words
from dragoman.engine.visible import many
from dragoman.observe.redact import HIDDEN, is_secret, scrub

from .. import say
from ..parse import Args
from ..places import find
from .logs import log_file, newest

if TYPE_CHECKING:
    from dragoman.settings.places import Places

_OURS = ("dragoman", "msgspec", "uvloop", "httptools", "textual", "websockets", "mcp")
_CELL = 64 * 1024  # characters of one part
# A long part of an address's path: webhooks and some servers have their secret there.
_ADDRESS = re.compile(r"\bhttps?://[^\s\"'<>]+")
_LONG_PART = re.compile(r"(?<=[^/]/)[\w~%+=.-]{16,}|(?<=[?&#=])[\w~%+.-]{16,}")
_SHORTEST = 6  # characters of a secret that is looked for everywhere; "yes" would hide too much


def run(args: Args) -> int:
    """Show the report, then write it when its owner agrees."""
    text = "\n".join(f"== {title} ==\n{body}\n" for title, body in parts(args))
    say.out(text)
    path = args.output or "dragoman-report.txt"
    if not args.yes and not _agreed(path):
        say.err("Nothing was written.")
        return 1
    made = False
    try:
        opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        made = True
        with open(opened, "w", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise BadInput(f"{path} is there already.", "Name another: --output FILE") from None
    except OSError as problem:
        if made:
            os.unlink(path)
        raise BadInput(f"{path} cannot be written: {problem.strerror}.") from None
    say.err(f"Written to {path}. Look through it before you give it away.")
    return 0


def _agreed(path: str) -> bool:
    if not sys.stdin.isatty():
        say.err("Without a terminal it is written only with --yes.")
        return False
    return say.agreed(f"Write this to {path}?")


def parts(args: Args) -> Iterator[tuple[str, str]]:
    """Titles and texts, without secrets."""
    where = find(args.config_dir)
    makers: dict[str, Callable[[], str]] = {
        "versions": _versions,
        "doctor": lambda: _doctor(where),
        "configuration": lambda: _configuration(where),
        "running": lambda: _running(args),
        f"log, the newest {say.many(args.lines, 'line')}": lambda: _log(args),
    }
    home, known = os.path.expanduser("~"), _secrets(where)
    for title, make in makers.items():
        try:
            body = make()
        except (Fault, OSError) as problem:
            body = f"cannot be read: {in_words(problem)}"
        for secret in known:
            body = body.replace(secret, HIDDEN)
        if len(home) > 1:
            body = body.replace(home, "~")
        body = _ADDRESS.sub(lambda one: _LONG_PART.sub(HIDDEN, one[0]), scrub(body))
        if len(body) > _CELL:
            body = f"({many(len(body) - _CELL, 'character')} left out before this)\n{body[-_CELL:]}"
        yield title, body


def _secrets(where: "Places") -> list[str]:
    """What this environment and the configuration call a secret, the longest first."""
    from dragoman.settings.load import load
    from dragoman.settings.redact import plain

    found = set(_named(dict(os.environ)))
    try:
        found.update(_named(plain(load(where.config_file).settings)))
    except Fault:
        pass  # the report says so
    return sorted(found, key=len, reverse=True)


def _named(value: Any, name: str = "") -> Iterator[str]:
    """Values below a name that is a secret's; of programs all that they are given."""
    if isinstance(value, dict):
        given = name in ("env", "headers") or is_secret(name)
        for key, below in value.items():
            yield from _named(below, "secret" if given else str(key))
    elif isinstance(value, str) and len(value) >= _SHORTEST and is_secret(name):
        yield value


def _versions() -> str:
    import platform
    from importlib.metadata import PackageNotFoundError, version

    rows = [f"{platform.platform()}, Python {platform.python_version()}"]
    for name in _OURS:
        try:
            rows.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            rows.append(f"{name} is not installed")
    return "\n".join(rows)


def _doctor(where: Any) -> str:
    from dragoman.host.doctor import examine

    return "\n".join(
        f"{row.severity:<6} {row.category:<14} {row.message}" for row in examine(where)
    )


def _configuration(where: Any) -> str:
    import json

    from dragoman.settings.load import load
    from dragoman.settings.redact import redact

    loaded = load(where.config_file)
    shown = _unsaid(redact(loaded.settings))
    return json.dumps(shown, indent=1, ensure_ascii=False, default=str)


def _unsaid(value: Any) -> Any:
    """Without what the owner says to models: how much it is may matter, what it is may not."""
    if not isinstance(value, dict):
        return value
    return {
        name: f"({many(sum(map(len, one)), 'character')})"
        if name.endswith("prompt") and isinstance(one, str | list | tuple)
        else _unsaid(one)
        for name, one in value.items()
    }


def _running(args: Args) -> str:
    import json

    from dragoman.client.problems import NotRunning

    from .. import reach

    try:
        return json.dumps(reach.of_daemon(args, "status"), indent=1, ensure_ascii=False)
    except NotRunning:
        return "no daemon runs"


def _log(args: Args) -> str:
    """The log has neither prompts nor answers in it."""
    return "\n".join(newest(log_file(args), args.lines)) or "empty"
