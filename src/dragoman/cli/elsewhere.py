"""What other programs call a thing: the command of ours that does it, for who types their word."""

from . import table

OURS = {
    "attach": "dragoman -r ID", "chat": "dragoman", "continue": "dragoman -c",
    "exec": 'dragoman run "…"', "info": "dragoman status", "init": "dragoman login",
    "kill": "dragoman stop", "ps": "dragoman sessions", "ls": "dragoman sessions",
    "quit": "dragoman stop", "resume": "dragoman -r",
    "restart": "dragoman stop && dragoman daemon --background",
    "serve": "dragoman daemon --background", "start": "dragoman daemon --background",
    "setup": "dragoman login",
    "shutdown": "dragoman stop", "tui": "dragoman", "version": "dragoman --version",
    "web": "dragoman open", "dashboard": "dragoman open",
    "approve-all": "dragoman run --approve all", "ask": 'dragoman run "…"',
    "auth": "dragoman login", "test": "dragoman self-test", "check": "dragoman doctor",
    "settings": "dragoman config explain", "update": "dragoman upgrade-check",
    "-p": 'dragoman run "…"', "--print": 'dragoman run "…"', "-v": "dragoman --version",
    "--yolo": 'dragoman run --approve all "…"',
    "--dangerously-skip-permissions": 'dragoman run --approve all "…"',
    "config list": "dragoman config get", "config show": "dragoman config get",
    "config edit": "dragoman config path",
    "mcp add": "dragoman config set mcp.NAME.command PROGRAM",
    "mcp remove": "dragoman config unset mcp.NAME", "sessions resume": "dragoman -r ID",
    "sessions stop": "dragoman sessions cancel ID", "cron delete": "dragoman cron remove ID",
    "sessions remove": "dragoman sessions delete ID",
}  # fmt: skip
_MOST = 3


def hint(word: str) -> str:
    """`; did you mean: …` for a word of other programs, or of a sub-command of ours; or nothing."""
    found = OURS.get(word.lower(), "")
    if not found:
        above = [one.name for one in table.commands() if one.sub(word.lower())]
        if len(above) > _MOST:
            return ""  # `list` is said of nearly everything
        found = " or ".join(f"dragoman {name} {word.lower()}" for name in above)
    return f"; did you mean: {found}" if found else ""
