"""Where the configuration and the data are, for verbs."""

import os

from dragoman import TYPE_CHECKING

if TYPE_CHECKING:
    from tempfile import TemporaryDirectory

    from dragoman.settings.load import Loaded
    from dragoman.settings.places import Places

    from .parse import Args

_ROOM = len("/dragoman-12345678/config/data/humanlayer.sock")


def find(config_dir: str | None = None) -> "Places":
    """The directories of this environment; `--config-dir` wins."""
    from dragoman.settings import places

    return places.places(os.environ, config_dir)


def next_line(args: "Args", words: str) -> str:
    """A command to type next, for the same installation as this one."""
    if not args.config_dir:
        return f"dragoman {words}"
    from shlex import quote

    return f"dragoman {words} --config-dir {quote(args.config_dir)}"


def short_folder() -> "TemporaryDirectory[str]":
    """A temporary folder with room for the paths of sockets in it, wherever TMPDIR leads."""
    from tempfile import TemporaryDirectory, gettempdir

    from dragoman.settings.places import LONGEST

    top = gettempdir()
    if len(os.fsencode(top)) + _ROOM > LONGEST and os.name == "posix":
        top = "/tmp"
    return TemporaryDirectory(prefix="dragoman-", dir=top, ignore_cleanup_errors=True)


def write_whole(path: str, data: bytes, mode: int = 0o666) -> None:
    """Write a file so that it is there as a whole, or as it was. Raises OSError with its name."""
    real = os.path.realpath(path)
    beside = f"{real}.new"
    try:
        with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as file:
            file.write(data)
        os.replace(beside, real)
    except OSError as problem:
        if os.path.lexists(beside):
            os.unlink(beside)
        raise OSError(problem.errno, problem.strerror, path) from None


def warn(config_dir: str | None = None) -> "Loaded":
    """Read the configuration and say what is strange in it. Raises BadSettings."""
    from dragoman.settings.load import load

    from . import say

    loaded = load(find(config_dir).config_file)
    for warning in loaded.warnings:
        say.warn(warning)
    return loaded


def tell(config_dir: str | None, what: str) -> "Loaded | None":
    """The same for what can do without: a configuration that cannot be read is told, too."""
    from dragoman.engine.faults import Fault

    from . import say

    try:
        return warn(config_dir)
    except Fault as fault:
        say.warn(f"{fault}{' ' if what else ''}{what}")
        return None
