"""`dragoman apps list|add|remove|logs|restart|permissions`: apps of the kernel protocol."""

import sys

from dragoman import TYPE_CHECKING
from dragoman.engine.faults import BadInput

from .. import reach, say
from ..parse import Args
from ..places import find, tell, warn

if TYPE_CHECKING:
    from typing import Any


def run(args: Args) -> int:
    """Do what the second word says."""
    verbs = {"list": _list, "add": _add, "remove": _remove, "logs": _logs, "restart": _restart}
    if args.sub not in ("list", "logs", "restart"):
        warn(args.config_dir)
    return verbs.get(args.sub, _permissions)(args)


def _states(args: Args) -> "dict[str, Any]":
    """What a running daemon says of its apps."""
    from dragoman.client.problems import NotRunning

    try:
        return dict(reach.of_daemon(args, "apps"))
    except NotRunning:
        return {"kept": [], "connected": []}


def _list(args: Args) -> int:

    loaded = tell(args.config_dir, "What is installed is not known.")
    found = loaded.settings.openclawos.apps if loaded else {}
    said = _states(args)
    if loaded is None and not said["kept"] and not said["connected"]:
        return 1
    kept = {row["id"]: row for row in said["kept"]}
    connected = {row["id"]: row for row in said["connected"]}
    rows = []
    for id in dict.fromkeys((*found, *kept, *connected)):
        if loaded is not None and id in kept and id not in found:
            continue  # it was removed; the daemon has not noticed yet, or waits for its end
        process, link = kept.get(id, {}), connected.get(id, {})
        rows.append(
            {
                "id": id,
                "installed": id in found,
                "state": process.get("state") or ("outside" if id in connected else "not running"),
                "registered": link.get("state", ""),
                "pid": process.get("pid"),
                "restarts": process.get("restarts", 0),
                "problem": process.get("problem", ""),
                "capabilities": link.get("capabilities", []),
            }
        )
    if say.as_json(args, {"apps": rows}):
        return 0
    shown = [
        (row["id"], row["state"], row["registered"], ", ".join(row["capabilities"]), row["problem"])
        for row in rows
    ]
    headers = ("app", "process", "kernel", "serves", "")
    say.table(headers, shown, spare=("serves", "kernel"), empty="no apps are installed")
    return 0


def _add(args: Args) -> int:
    from dragoman.cli.local import app_folders

    where = find(args.config_dir)
    asked = app_folders.look(args.folder)
    granted = app_folders.narrowed(asked.wants, args.deny)
    if not args.json:
        _show(asked, granted)
    if not args.yes and not args.deny:
        if not sys.stdin.isatty():
            raise BadInput("Nobody can be asked here.", "Add --yes, or --deny KIND:NAME.")
        if not say.agreed("Install it and grant this?"):
            say.out("Nothing was changed.")
            return 1
    app_folders.install(where, asked, granted)
    text = f"Installed {say.clean(asked.id)}. A running daemon starts it: dragoman apps"
    return say.result(args, {"id": asked.id, "granted": granted}, text)


def _show(asked: "Any", granted: "dict[str, tuple[str, ...]]") -> None:
    say.out(f"{say.clean(asked.name)} {say.clean(asked.version)} ({say.clean(asked.id)})")
    if asked.description:
        say.out(say.clean(asked.description))
    rows = [("runs", say.clean(" ".join((asked.command, *asked.args))))]
    for kind, names in asked.wants.items():
        for name in names:
            mark = "" if name in granted.get(kind, ()) else "   (denied)"
            rows.append((kind, f"{say.clean(name)}{mark}"))
    rows += [("environment", say.clean(name)) for name in asked.env]
    unheld = "(said by the app; it is not held to it)"
    rows += [("network", f"{say.clean(name)} {unheld}") for name in asked.hosts]
    width = max(len(kind) for kind, _ in rows)
    for kind, text in rows:
        say.out(f"  {kind:<{width}}  {text}")


def _remove(args: Args) -> int:
    from dragoman.cli.local import app_folders

    app_folders.remove(find(args.config_dir), args.id)
    return say.result(args, {"removed": args.id}, f"Removed {say.clean(args.id)}.")


def _restart(args: Args) -> int:
    reach.of_daemon(args, "apps/restart", id=args.id)
    return say.result(args, {"restarted": args.id}, f"Restarted {say.clean(args.id)}.")


def _logs(args: Args) -> int:
    """The newest lines of the daemon's log that are about an app."""
    from .logs import log_file, newest

    marks = (f"app={args.id} ", f"app={args.id}\n", f'"app":"{args.id}"', f'"app": "{args.id}"')
    lines = [
        line
        for line in newest(log_file(args), 200_000)
        if any(mark in line + "\n" for mark in marks)
    ][-args.lines :]
    if not lines and all(row["id"] != args.id for row in _states(args)["connected"]):
        from dragoman.cli.local import app_folders

        app_folders.entry(find(args.config_dir), args.id)  # raises for one that nobody knows
    if args.json:
        say.plain_json({"lines": lines})
    for line in () if args.json else lines:
        say.out(say.clean(line))
    return 0


def _permissions(args: Args) -> int:
    from dragoman.cli.local import app_folders

    where = find(args.config_dir)
    app = app_folders.entry(where, args.id)
    if not app.folder:
        raise BadInput(f"{args.id} was not installed from a folder.", "See: dragoman apps add")
    asked = app_folders.look(app.folder)
    granted = {kind: list(names) for kind, names in (app.granted or asked.wants).items()}
    for word in args.grant:
        kind, name = app_folders.part(word)
        if name not in asked.wants.get(kind, ()):
            wanted = app_folders.spell(asked.wants)
            raise BadInput(f"The app does not ask for {word}.", f"It asks for: {wanted}.")
        if name not in granted.setdefault(kind, []):
            granted[kind].append(name)
    kept = app_folders.narrowed({kind: tuple(names) for kind, names in granted.items()}, args.deny)
    if args.grant or args.deny:
        app_folders.permit(where, args.id, kept)
    if args.json:
        say.plain_json({"id": args.id, "asks": asked.wants, "granted": kept})
    else:
        _show(asked, kept)
    return 0
