#!/usr/bin/env bash
# The release as a stranger gets it: built twice with the same result, installed from wheels alone
# where no compiler is found, and tried by itself, in a folder that knows nothing of this one.
set -euo pipefail
cd "$(dirname "$0")/.."
python=$PWD/.venv/bin/python
pins=$PWD/constraints.txt
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
for n in 1 2; do "$python" -m build -q -n -o "$folder/$n" . >/dev/null; done
for file in "$folder"/1/*; do cmp "$file" "$folder/2/$(basename "$file")"; done
"$python" -m venv --without-pip "$folder/venv"
CC=/bin/false CXX=/bin/false "$python" -m pip --python "$folder/venv/bin/python" install -q \
  --only-binary :all: -c "$pins" "$folder"/1/*.whl
# The list of parts is what was installed, in the same versions.
"$python" -m pip --python "$folder/venv/bin/python" list --format=json >"$folder/installed"
"$python" scripts/sbom.py --compare "$folder/installed"
mkdir "$folder/empty" "$folder/home"
cd "$folder/empty"
for paper in man/man1/dragoman.1 bash-completion/completions/dragoman; do test -s "$folder/venv/share/$paper"; done
env -i HOME="$folder/home" PATH="$folder/venv/bin:/usr/bin:/bin" LANG=C.UTF-8 dragoman self-test
