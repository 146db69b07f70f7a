"""Where tests that run Go keep what it compiles: where commands of agents do, once for all of them.

A compiler that has compiled nothing yet takes most of a minute for its own library, in each place.
`python -m tests.go_cache` compiles it beforehand, and prints the place.
"""

import os
import shutil
import subprocess
from pathlib import Path

from dragoman.policy import caches
from dragoman.policy.profiles import STANDARD

CLIENT = Path(__file__).parents[1] / "examples/rpc/go"


def place() -> str:
    """Of whoever runs this, with what is forbidden to commands by default."""
    told = caches.variables(STANDARD.forbidden)
    return os.path.join(told.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "go-build")


def warm() -> None:
    if go := shutil.which("go"):
        env = {**os.environ, "GOCACHE": place(), "GOFLAGS": "-mod=mod"}
        for words in (("build", "-o", os.devnull, "."), ("build", "testing/internal/testdeps")):
            subprocess.run([go, *words], cwd=CLIENT, env=env, check=True)


if __name__ == "__main__":
    warm()
    print(place())
