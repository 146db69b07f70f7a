"""Where the configuration and the data are, for verbs."""

import os

from dragoman import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman.settings.load import Loaded
    from dragoman.settings.places import Places


def find(config_dir: str | None = None) -> "Places":
    """The directories of this environment; `--config-dir` wins."""
    from dragoman.settings import places

    return places.places(os.environ, config_dir)


def warn(config_dir: str | None = None) -> "Loaded":
    """Read the configuration and say what is strange in it. Raises BadSettings."""
    from dragoman.settings.load import load

    from . import say

    loaded = load(find(config_dir).config_file)
    for warning in loaded.warnings:
        say.warn(warning)
    return loaded
