"""`dragoman config get|set|unset|explain|schema|path`."""

import os

from .. import reach, say
from ..parse import Args
from ..places import find, next_line, tell, warn


def run(args: Args) -> int:
    """Run one sub-command."""
    return int(_SUBS[args.sub](args))


def _warn(args: Args) -> None:
    """The key is written, but the whole may not be right: say so now, not at the next start."""
    from dragoman.settings.load import BadSettings

    try:
        warn(args.config_dir)
    except BadSettings as bad:
        for text in (*bad.problems, *bad.warnings):
            say.warn(text)


def _path(args: Args) -> int:
    where = find(args.config_dir)
    exists = os.path.exists(where.config_file)
    found = {"config": where.config_file, "exists": exists, "data": where.data_dir}
    return say.result(args, found, where.config_file)


def _get(args: Args) -> int:
    from dragoman.observe.redact import redact
    from dragoman.settings.explain import value_of
    from dragoman.settings.redact import plain

    loaded = warn(args.config_dir)
    if args.key:
        value = value_of(loaded, args.key)
        name = args.key.rpartition(".")[2].strip("\"'")
    else:
        value, name = plain(loaded.settings), ""
    if not args.secrets:
        value = redact(value, name)
    if args.json or isinstance(value, dict | list):
        say.json(value)
    else:
        say.out("" if value is None else _word(value))
    return 0


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _set(args: Args) -> int:
    from dragoman.observe.redact import redact
    from dragoman.settings.write import render, set_key

    file = find(args.config_dir).config_file
    value = set_key(file, args.key, args.value)
    above, _, name = args.key.rpartition(".")
    shown = redact(value, "secret" if above.rpartition(".")[2] in ("env", "headers") else name)
    if args.json:
        say.json({"key": args.key, "value": shown, "file": file})
    else:
        said = render(value) if shown == value else shown
        say.out(f"{args.key} = {said}  ({file})")
    _warn(args)
    _reload(args)
    return 0


def _reload(args: Args) -> None:
    """Have a running daemon read it, and say what it does not take up before its next start."""
    if not reach.reload(args):
        return
    from dragoman.settings.shape import split
    from dragoman.settings.starting import waits

    if waits(split(args.key)):
        again = f"{next_line(args, 'stop')}; {next_line(args, 'daemon --background')}"
        say.warn(f"The running daemon takes this up at its next start: {again}")


def _unset(args: Args) -> int:
    from dragoman.engine.faults import BadInput
    from dragoman.settings.write import unset_key

    file = find(args.config_dir).config_file
    if not unset_key(file, args.key):
        raise BadInput(f"{args.key} is not set in {file}.", "See: dragoman config get")
    say.result(args, {"key": args.key, "file": file}, f"{args.key} is not set any more  ({file})")
    _warn(args)
    _reload(args)
    return 0


def _explain(args: Args) -> int:
    from dragoman.settings.explain import explain
    from dragoman.settings.load import load
    from dragoman.settings.write import render

    loaded = tell(args.config_dir, "Values of the file are not shown.")
    found = explain(loaded or load(), args.key or "")
    if args.json:
        say.json(found)
    elif len(found) == 1:
        one = found[0]
        say.out(say.style(one.key, "bold"))
        say.out(f"  {one.doc}")
        say.out(f"  allowed  {one.allowed}")
        say.out(f"  value    {'not set' if one.value is None else render(one.value)}")
        say.out(f"  from     {one.source}")
        say.out(f"  default  {'not set' if one.default is None else render(one.default)}")
        say.out(f"  env      {one.env}")
    else:
        say.table(
            ("key", "value", "from", "meaning"),
            [
                (one.key, "" if one.value is None else render(one.value), one.source, one.doc)
                for one in found
            ],
            spare=("from", "meaning"),
        )
    return 0


def _schema(args: Args) -> int:
    from dragoman.settings.explain import schema

    say.json(schema())
    return 0


_SUBS = {
    "path": _path,
    "get": _get,
    "set": _set,
    "unset": _unset,
    "explain": _explain,
    "schema": _schema,
}
