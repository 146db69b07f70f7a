"""Where the configuration and the data are, for verbs."""

import os

from dragoman import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman.settings.places import Places


def find(config_dir: str | None = None) -> "Places":
    """The directories of this environment; `--config-dir` wins."""
    from dragoman.settings import places

    return places.places(os.environ, config_dir)


def warn(config_dir: str | None = None) -> None:
    """Say what is strange in the configuration that a verb is about to read. Raises BadSettings."""
    from dragoman.settings.load import load

    from . import say

    for warning in load(find(config_dir).config_file).warnings:
        say.warn(warning)
