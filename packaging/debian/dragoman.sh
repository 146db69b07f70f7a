#!/bin/sh
# The parts of this package come before everything else that Python would find.
home=$(dirname "$(readlink -f "$0")")/../lib/dragoman
PYTHONPATH=$home${PYTHONPATH:+:$PYTHONPATH} exec python3 -P -m dragoman "$@"
