"""`dragoman-pi --mode rpc`: pi's RPC mode on standard input and output, with pi's flags."""

import argparse
import os
import sys
from typing import Any

from dragoman import __version__

# Flags of pi that choose what this host has no say in: taken, and without effect.
_PASSED_OVER = ("--no-extensions", "--no-skills", "--no-themes", "--offline", "--approve")
_PASSED_OVER_WITH_VALUE = ("--models", "--session-dir", "-e", "--extension", "--fork")


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser("dragoman-pi", description=__doc__, allow_abbrev=False)
    made.add_argument("--version", action="version", version=f"{__version__} (dragoman)")
    made.add_argument("--mode", choices=["rpc"], default="rpc", help="the only mode there is")
    made.add_argument("--provider", default="", help="the provider to use")
    made.add_argument("--model", default="", help="the model: provider/id, id, or with :level")
    made.add_argument("--thinking", default="", help="how hard to think")
    made.add_argument("--api-key", default="", help="the provider's key")
    made.add_argument("--session", default="", help="the path of the session to begin with")
    made.add_argument("--session-id", default="", help="the id of the session to begin with")
    made.add_argument("--no-session", action="store_true", help="keep nothing")
    made.add_argument("--config-dir", default=None, help="the directory of the configuration")
    for name in _PASSED_OVER:
        made.add_argument(name, action="store_true", help=argparse.SUPPRESS)
    for name in _PASSED_OVER_WITH_VALUE:
        made.add_argument(name, help=argparse.SUPPRESS)
    return made


def settings(given: argparse.Namespace) -> dict[str, Any]:
    """The command line as settings by their dotted names."""
    model, _, level = given.model.partition(":")
    if model and given.provider and "/" not in model:
        model = f"{given.provider}/{model}"
    provider = given.provider or model.partition("/")[0]
    found: dict[str, Any] = {
        "dialects.pi.cwd": os.getcwd(),
        "dialects.pi.model": model,
        "dialects.pi.thinking": given.thinking or level,
        "dialects.pi.session": given.session or given.session_id,
    }
    if given.api_key and provider:
        found[f"providers.{provider}.api_key"] = given.api_key
    return {name: value for name, value in found.items() if value}


def main(words: list[str] | None = None) -> int:
    """Serve until the input ends; returns the exit code."""
    given = parser().parse_args(words)
    from dragoman.stdio.speak import main as speak

    return speak("pi", config_dir=given.config_dir, memory=given.no_session, flags=settings(given))


if __name__ == "__main__":
    sys.exit(main())
