"""Where things are. The rules are in `settings.places`, which clients read as well."""

from dragoman.settings.places import (
    LONGEST,
    NAMES,
    Places,
    check_length,
    endpoint,
    endpoints,
    native,
    places,
)

__all__ = [
    "LONGEST",
    "NAMES",
    "Places",
    "check_length",
    "endpoint",
    "endpoints",
    "native",
    "places",
]
