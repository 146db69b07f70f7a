"""`python -m dragoman` is the same as the command `dragoman`."""

import sys

from dragoman.cli.main import script

if __name__ == "__main__":
    sys.exit(script())
