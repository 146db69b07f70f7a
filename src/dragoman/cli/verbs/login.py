"""`dragoman login`: choose who answers, and keep the key for it; `dragoman logout`: forget it."""

import os
import sys

from .. import reach, say
from ..parse import Args
from ..places import find

_LONGEST = 4096


def run(args: Args) -> int:
    """Ask in the terminal, or take provider and key from the command line and standard input."""
    from dragoman.engine.faults import Fault
    from dragoman.settings import login

    from ..local.login import known_providers, ollama_answers, plain_name

    known = known_providers()
    name = plain_name(args.provider or "")
    if not name:
        if not sys.stdin.isatty():
            say.err("dragoman: Say whose key it is. For example: dragoman login anthropic")
            return 2
        name = _chosen(known)
    if name not in known:
        say.err(f"dragoman: Unknown provider: {name}. Known: {', '.join(known)}.")
        return 2
    key = ""
    if name == "ollama":
        if not ollama_answers(os.environ):
            say.err("dragoman: Ollama does not answer. Start it with: ollama serve")
            return 1
    else:
        key = _key(name)
        if not key or len(key) > _LONGEST or not key.isprintable() or " " in key:
            say.err("dragoman: That is no key. Nothing was kept.")
            return 1
    try:
        kept = login.keep(find(args.config_dir), name, key)
    except Fault as fault:
        say.err(f"dragoman: {fault}")
        return 1
    where = "in the keyring" if kept.keyring else "in a file that only you can read"
    reach.reload(args)
    say.out(f"Logged in with {name}." + (f" The key is {where}." if key else ""))
    return 0


def log_out(args: Args) -> int:
    """Forget the key that was kept."""
    from dragoman.settings import login

    from ..local.login import plain_name

    where = find(args.config_dir)
    if args.provider:
        meant, kept = plain_name(args.provider), login.chosen(where)
        if meant != kept:
            say.err(
                f"dragoman: Nobody is logged in with {meant}{f', but with {kept}' * bool(kept)}."
            )
            return 1
    name = login.forget(where)
    if name:
        reach.reload(args)
    say.out(f"Logged out of {name}." if name else "Nobody is logged in.")
    return 0


def _chosen(known: list[str]) -> str:
    say.out("Who is to answer?")
    for number, name in enumerate(known, 1):
        say.out(f"  {number:>2}  {name}" + ("  (on this machine, no key)" * (name == "ollama")))
    while True:
        if (word := say.typed("Number or name: ")) is None:
            return ""
        word = word.lower()
        if word.isdecimal() and 1 <= int(word) <= len(known):
            return known[int(word) - 1]
        if word in known:
            return word
        say.out("Give one of the numbers or names above.")


def _key(name: str) -> str:
    """The key, which is not shown while it is typed."""
    if not sys.stdin.isatty():
        return sys.stdin.readline(_LONGEST + 2).strip()
    from getpass import getpass

    return say.typed(f"Key for {name} (it is not shown): ", getpass) or ""
