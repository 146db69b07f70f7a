"""The files that make a system start the daemon at login: a systemd user unit, a launchd agent."""

import os

from dragoman import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LABEL = "dev.dragoman.daemon"
UNIT = "dragoman.service"


def unit_path(env: "Mapping[str, str]") -> str:
    """Where systemd looks for a user's own units."""
    base = env.get("XDG_CONFIG_HOME", "")
    if not os.path.isabs(base):
        base = os.path.join(env.get("HOME") or os.path.expanduser("~"), ".config")
    return os.path.join(base, "systemd", "user", UNIT)


def plist_path(env: "Mapping[str, str]") -> str:
    """Where launchd looks for a user's own agents."""
    home = env.get("HOME") or os.path.expanduser("~")
    return os.path.join(home, "Library", "LaunchAgents", f"{LABEL}.plist")


def unit(command: "Sequence[str]", config_dir: str, env: "Mapping[str, str]") -> str:
    """A systemd unit that is ready when every endpoint listens.

    `env` is what says where things are: systemd does not know a shell's variables.
    """
    given = "".join(f"Environment={_quoted(f'{name}={env[name]}', '$')}\n" for name in sorted(env))
    return f"""\
# Written by `dragoman service install`; it is written anew each time.
[Unit]
Description=Dragoman agent host

[Service]
Type=notify
ExecStart={" ".join(_quoted(word) for word in command)}
ExecReload=/bin/kill -HUP $MAINPID
Restart=on-failure
RestartSec=2
{given}# Keys of providers: one NAME=value per line, readable by you alone.
EnvironmentFile=-{_escaped(os.path.join(config_dir, "env"))}
UMask=0077

[Install]
WantedBy=default.target
"""


def _quoted(word: str, dollar: str = "$$") -> str:
    """A word of a command line as systemd reads it; in assignments a dollar sign is itself."""
    word = _escaped(word).replace("$", dollar)
    if word and not any(char in word for char in " \t\"'\\;"):
        return word
    return '"' + word.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _escaped(text: str) -> str:
    return text.replace("%", "%%")


def plist(command: "Sequence[str]", log_file: str, env: "Mapping[str, str]") -> bytes:
    """A launchd agent that is kept alive."""
    import plistlib

    return plistlib.dumps(
        {
            "Label": LABEL,
            "ProgramArguments": list(command),
            "RunAtLoad": True,
            "KeepAlive": {"SuccessfulExit": False},
            "ProcessType": "Background",
            "StandardErrorPath": log_file,
            "Umask": 0o077,
            **({"EnvironmentVariables": dict(env)} if env else {}),
        },
        sort_keys=False,
    )
