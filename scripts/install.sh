#!/usr/bin/env bash
# Installs this clone with some extras for an interpreter: `scripts/install.sh PYTHON '.[test]'`.
# uv takes a fifth of pip's time, but knows nothing of pip's configuration: where it fails, pip does it.
set -euo pipefail
cd "$(dirname "$0")/.."
python=$1 what=$2
if .venv/bin/uv pip install -q --link-mode copy --python "$python" -c constraints.txt -e "$what"; then exit; fi
echo "uv could not install it: pip does" >&2
.venv/bin/python -m pip --python "$python" install -q -c constraints.txt -e "$what"
