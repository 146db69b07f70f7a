"""Caches: what package managers keep is written by commands, programs among it are not.

A cache is half data and half programs that the owner later runs as they are: environments of hooks
and projects, what `npx` and `uvx` have fetched, files that a shell reads when it starts. Those that
are there are sealed. A folder around something sealed takes no new names (Landlock cannot keep one
name from being made), so where `~/.cache` or `~/.npm` holds such a thing, variables tell programs
to keep theirs in a folder that is the commands' own.
"""

import os
from collections.abc import Iterator
from fnmatch import fnmatch

OWN = ".local/state/dragoman-commands"  # in the home directory, where no command puts a link
# What the owner, or a shell or editor of theirs, runs as it is, or what is linked into projects.
_PROGRAMS = (
    *(".cache/pre-commit", ".cache/pypoetry/virtualenvs", ".cache/uv", ".cache/pnpm"),
    *(".cache/node", ".cache/ms-playwright", ".cache/puppeteer", ".cache/huggingface/modules"),
    *(".cache/gitstatus", ".cache/p10k-*", ".cache/zsh*", ".cache/fish", ".cache/nvim"),
    *(".cache/vim", ".cache/emacs", ".cache/wal", ".cache/starship", ".cache/oh-my-zsh"),
    *(".cache/pipx", ".cache/pex", ".cache/nce", ".cache/rattler", ".cache/Cypress"),
    *(".cache/selenium", ".cache/bazelisk", ".cache/prisma", ".cache/electron-builder"),
    *(".cache/coursier/arc", ".cache/coursier/jvm", ".cache/torch/hub", ".cache/torch_extensions"),
    *(".cache/R", ".cache/rebar3/plugins", ".cache/helm/plugins", ".cache/ansible-compat"),
    *(".cache/yay", ".cache/paru", ".cache/antidote", ".cache/prezto"),
    # Read as it is by what runs it: pickles, machine code, lists of programs and libraries.
    *(".cache/black", ".cache/jedi", ".cache/parso", ".cache/pylint", ".cache/thefuck*"),
    *(".cache/gstreamer-1.0", ".cache/ksycoca*", ".cache/mesa_shader_cache*"),
    *(".npm/_npx", "go/src", ".cargo/env.fish", ".m2/wrapper", ".pub-cache/global_packages"),
)
# Caches that are linked into projects, or lead to a program that waits for work: commands have
# their own from the start.
_BELOW = {
    "BUN_INSTALL_CACHE_DIR": "bun",
    "npm_config_store_dir": "pnpm-store",
    "GRADLE_USER_HOME": "gradle",
    "MAVEN_USER_HOME": "maven",
}
# The owner's, where there is one: programs that are run, not written, and models.
_LENT = {
    "PRE_COMMIT_HOME": ".cache/pre-commit",
    "CYPRESS_CACHE_FOLDER": ".cache/Cypress",
    "PLAYWRIGHT_BROWSERS_PATH": ".cache/ms-playwright",
    "POETRY_VIRTUALENVS_PATH": ".cache/pypoetry/virtualenvs",
    "HF_HUB_CACHE": ".cache/huggingface/hub",
    "HF_DATASETS_CACHE": ".cache/huggingface/datasets",
}


def programs(home: str | None = None) -> tuple[str, ...]:
    """What is there now, in caches that can be written, and is not written by a command."""
    home = home or os.path.expanduser("~")
    return tuple(path for name in _PROGRAMS for path in _found(home, name))


def variables(forbidden: tuple[str, ...], home: str | None = None) -> dict[str, str]:
    """What tells programs where a command's caches are; `forbidden` may begin with `~`."""
    home = home or os.path.expanduser("~")
    own = os.path.join(home, OWN)
    found = {name: os.path.join(own, place) for name, place in _BELOW.items()}
    closed = (*_PROGRAMS, *(path.removeprefix("~/") for path in forbidden))
    inside = (name for name in closed if name.startswith(".cache/"))
    if any(True for name in inside for _ in _found(home, name)):
        found["XDG_CACHE_HOME"] = own
        lent = {name: os.path.join(home, place) for name, place in _LENT.items()}
        found |= {name: place for name, place in lent.items() if os.path.isdir(place)}
    if os.path.lexists(os.path.join(home, ".npm/_npx")):
        found["npm_config_cache"] = os.path.join(own, "npm")
    return found


def _found(home: str, name: str) -> Iterator[str]:
    """The paths of that name that are there."""
    path = os.path.join(home, name)
    folder, pattern = os.path.split(path)
    if "*" not in pattern:
        if os.path.lexists(path):
            yield path
        return
    try:
        names = os.listdir(folder)
    except OSError:
        return  # there is none, or it is nobody's to read: nothing of ours is in it
    yield from (os.path.join(folder, one) for one in names if fnmatch(one, pattern))
