"""`python -m dragoman` is the same as the command `dragoman`."""

import os
import sys

if __name__ == "__main__":
    # Python puts the working directory first: a `json.py` of some project would be our own code.
    ours = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if not sys.flags.safe_path and sys.path[0] != ours:
        del sys.path[0]

    from dragoman.cli.main import script

    sys.exit(script())
