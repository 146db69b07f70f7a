"""Where the configuration and the data are, for verbs."""

import os

TYPE_CHECKING = False  # `typing` is not loaded just for annotations
if TYPE_CHECKING:
    from dragoman.settings.places import Places


def find(config_dir: str | None = None) -> "Places":
    """The directories of this environment; `--config-dir` wins."""
    from dragoman.settings import places

    return places.places(os.environ, config_dir)
