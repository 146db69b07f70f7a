"""`dragoman open`: the dashboard in a browser, let in by a link that works once.

A program's arguments can be read by every user of the machine, so the link is not one of them: the
browser is given a page in a folder that only its owner can read, and that page leads on.
"""

from .. import reach, say
from ..parse import Args
from ..places import find

_PAGE = """<!doctype html>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0;url={link}">
<title>Dragoman</title>
<p>The dashboard opens. If it does not: <a href="{link}">open it</a>.
"""


def run(args: Args) -> int:
    """Ask the daemon for a link and hand it to the browser."""
    found = reach.of_daemon(args, "pair", link=True)
    shown = args.print
    if args.json:
        say.json(found)
    elif shown or not _opened(args, found["link"]):
        if not shown:
            say.err("No browser could be opened here. This link works once, for two minutes:")
        say.out(found["link"])
    else:
        say.err(f"The dashboard opens in your browser: {found['address']}/")
    return 0


def _opened(args: Args, link: str) -> bool:
    import webbrowser
    from pathlib import Path

    page = Path(write_page(find(args.config_dir).data_dir, link))
    try:
        return webbrowser.open(page.as_uri())
    except webbrowser.Error:
        return False


def write_page(folder: str, link: str) -> str:
    """A page that leads to the link and that nobody else can read; the one before is replaced."""
    import html
    import os

    os.makedirs(folder, mode=0o700, exist_ok=True)
    path = os.path.join(folder, "open.html")
    fresh = f"{path}.{os.getpid()}"
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(_PAGE.format(link=html.escape(link, quote=True)))
    os.replace(fresh, path)
    return path
